"""From a series to its change points: variance inflation, seeded intervals, pruning, exact gaps."""

from __future__ import annotations

import math

import numpy as np

from benchrigor.model import ChangePoints
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.changepoints.likelihood_ratio import Criterion
from benchrigor.stats.changepoints.pruning import Pruning
from benchrigor.stats.changepoints.seeded_intervals import SeededIntervals
from benchrigor.stats.changepoints.unsettled import MIN_EFFECTIVE_TO_SEARCH, settle_ends
from benchrigor.stats.changepoints.variance_inflation import inflation_across, inflation_within
from benchrigor.stats.changepoints.windows import Scales

_SAME = 0.05
_MAX_DECREASE = 0.5
_WHITE = 1.3
_REACH = 16
_EQUAL = 1e-6
_ROUNDING = 1e-14


class Segmenter:
    """Finds the change points of a series, not all the same, and again while it grows."""

    def __init__(self, series: Floats, level: float, min_segment: int) -> None:
        self.known = series.size  # readings that settled them
        self._level = level
        self._min_segment = min_segment
        self._inflation = inflation_across(series)
        self._scales = Scales(series)
        self._set_penalty(self._inflation)
        self._indices = self._search(series)
        if self._indices:
            self._correct_inflation(series)

    def change_points(self, series: Floats) -> ChangePoints:
        """Return the change points of a series that begins with the readings seen before."""
        if series.size > self._scales.whole.n:
            self._scales.extend(series)
            self._indices = self._search(series)
        points = ChangePoints(
            indices=self._indices,
            n=series.size,
            level=float(self._level),
            inflation=self._inflation,
        )
        return settle_ends(series, points, self._min_segment)

    def _correct_inflation(self, series: Floats) -> None:
        """Estimate the variance inflation inside the segments; search again if it differs."""
        within = inflation_within(series, (0, *self._indices, series.size))
        if within is None or max(within, self._inflation) < _WHITE:
            return
        if abs(within - self._inflation) <= _SAME * self._inflation:
            return
        # Cut into pieces that are short enough any series looks uncorrelated.
        self._inflation = max(within, _MAX_DECREASE * self._inflation)
        self._set_penalty(self._inflation)
        self._indices = self._search(series)

    def _set_penalty(self, inflation: float) -> None:
        used = min(inflation, max(1.0, self.known / MIN_EFFECTIVE_TO_SEARCH))
        criterion = Criterion(
            penalty=3.1
            + math.log(self.known / used) / 2.0
            + math.log(0.05)
            - math.log(self._level),
            inflation=used,
            min_segment=max(self._min_segment, math.ceil(2.0 * used)),
        )
        self._intervals = SeededIntervals(self._scales, criterion)
        self._pruning = Pruning(self._scales, criterion)

    def _search(self, series: Floats) -> tuple[int, ...]:
        points = self._pruning.prune(self._intervals.search())
        return _moved_to_gaps(series, points, self._min_segment) if points.size else ()


def _moved_to_gaps(series: Floats, points: Ints, min_segment: int) -> tuple[int, ...]:
    """Move each point to the widest gap, if any, that parts its surroundings perfectly."""
    borders = np.concatenate(([0], points, [series.size]))
    before, behind = borders[:-2, np.newaxis], borders[2:, np.newaxis]
    places = points[:, np.newaxis] + np.arange(-_REACH, _REACH)
    # Beyond the two segments that are parted the nearest reading of theirs is repeated.
    around = series[np.minimum(np.maximum(places, before), behind - 1)]
    gaps = np.maximum(_gaps(around), _gaps(-around))
    # Of gaps that are equal but for rounding, which depends on the unit, the nearest is taken.
    widest = gaps.max(axis=1)
    rounding = np.maximum(_EQUAL * widest, _ROUNDING * np.abs(around).max(axis=1))
    shifts = np.arange(1 - _REACH, _REACH)
    distances = np.where(gaps >= (widest - rounding)[:, np.newaxis], abs(shifts), 2 * _REACH)
    shift = shifts[distances.argmin(axis=1)]
    clear = (widest > rounding) & (abs(shift) <= _REACH // 2)
    moved = points + np.where(clear, shift, 0)
    kept = [0]
    for point, place, stop in zip(
        points.tolist(), moved.tolist(), borders[2:].tolist(), strict=True
    ):
        kept.append(place if min(place - kept[-1], stop - place) >= min_segment else point)
    return tuple(kept[1:])


def _gaps(readings: Floats) -> Floats:
    """Return for each place in a row how far all after it lie above all before it."""
    highest = np.maximum.accumulate(readings, axis=1)[:, :-1]
    lowest = np.minimum.accumulate(readings[:, ::-1], axis=1)[:, ::-1][:, 1:]
    gaps: Floats = lowest - highest
    return gaps
