"""From a series to its change points: inflation, seeds, selection, and the last polish."""

from __future__ import annotations

import math

import numpy as np

from benchrigor.model import ChangePoints, Floats
from benchrigor.model.series import Ints
from benchrigor.stats.changepoints.likelihood_ratio import Search
from benchrigor.stats.changepoints.pruning import Selection
from benchrigor.stats.changepoints.seeded_intervals import Seeds
from benchrigor.stats.changepoints.variance_inflation import inflation_across, inflation_within
from benchrigor.stats.changepoints.windows import Lenses

__all__ = ["Segmenter"]

_FEWEST_EFFECTIVE = 40
_SAME = 0.05
_TRUST = 0.5
_WHITE = 1.3
_REACH = 16
_EQUAL = 1e-6
_ROUNDING = 1e-14


class Segmenter:
    """Cuts a series; what is settled once stays while more readings are appended.

    Settled are the quantiles by which readings are seen, the inflation, and so the threshold.

    Parameters
    ----------
    series
        The readings by which all that is settled, shape (n,), not all the same.
    level, min_segment
        As for `detect_changes`.

    Attributes
    ----------
    known
        How many readings settled it.
    """

    def __init__(self, series: Floats, level: float, min_segment: int) -> None:
        self.known = series.size
        self._level = level
        self._min_segment = min_segment
        self._inflation = inflation_across(series)
        self._lenses = Lenses(series)
        self._aim(self._inflation)
        self._indices = self._found(series)
        if self._indices:
            self._look_inside(series)

    def change_points(self, series: Floats) -> ChangePoints:
        """Return the change points of a series that begins with the readings seen before."""
        if series.size > self._lenses.far.n:
            self._lenses.extend(series)
            self._indices = self._found(series)
        return ChangePoints(
            indices=self._indices,
            n=series.size,
            level=float(self._level),
            inflation=self._inflation,
        )

    def _look_inside(self, series: Floats) -> None:
        """Estimate the inflation again between the points; search again if it differs."""
        within = inflation_within(series, (0, *self._indices, series.size))
        if within is None or max(within, self._inflation) < _WHITE:
            return
        if abs(within - self._inflation) <= _SAME * self._inflation:
            return
        # Cut into pieces that are short enough any series looks uncorrelated.
        within = max(within, _TRUST * self._inflation)
        self._aim(within)
        self._indices = self._found(series)
        self._inflation = within

    def _aim(self, inflation: float) -> None:
        used = min(inflation, max(1.0, self.known / _FEWEST_EFFECTIVE))
        search = Search(
            threshold=3.1 + math.log(self.known / used) / 2.0 + math.log(0.05 / self._level),
            inflation=used,
            shortest=max(self._min_segment, math.ceil(2.0 * used)),
        )
        self._seeds = Seeds(self._lenses, search)
        self._selection = Selection(self._lenses, search)

    def _found(self, series: Floats) -> tuple[int, ...]:
        splits = self._selection.among(self._seeds.found())
        return _settled(series, splits, self._min_segment) if splits.size else ()


def _settled(series: Floats, splits: Ints, min_segment: int) -> tuple[int, ...]:
    """Move each point to the widest gap, if any, that parts its surroundings perfectly.

    Sixteen quantiles leave a clear step a few readings uncertain; the readings do not.
    """
    borders = np.concatenate(([0], splits, [series.size]))
    before, behind = borders[:-2, np.newaxis], borders[2:, np.newaxis]
    places = splits[:, np.newaxis] + np.arange(-_REACH, _REACH)
    # Beyond the two segments that are parted the nearest reading of theirs is repeated.
    around = series[np.minimum(np.maximum(places, before), behind - 1)]
    gaps = np.maximum(_gaps(around), _gaps(-around))
    # Of gaps that are equal but for rounding, which depends on the unit, the nearest is taken.
    widest = gaps.max(axis=1)
    rounding = np.maximum(_EQUAL * widest, _ROUNDING * np.abs(around).max(axis=1))
    shifts = np.arange(1 - _REACH, _REACH)
    near = np.where(gaps >= (widest - rounding)[:, np.newaxis], abs(shifts), 2 * _REACH)
    shift = shifts[near.argmin(axis=1)]
    clear = (widest > rounding) & (abs(shift) <= _REACH // 2)
    moved = splits + np.where(clear, shift, 0)
    kept = [0]
    for split, place, behind_it in zip(
        splits.tolist(), moved.tolist(), borders[2:].tolist(), strict=True
    ):
        fits = min(place - kept[-1], behind_it - place) >= min_segment
        kept.append(place if fits else split)
    return tuple(kept[1:])


def _gaps(readings: Floats) -> Floats:
    """Return for each place in a row how far all behind it lie above all before it."""
    highest = np.maximum.accumulate(readings, axis=1)[:, :-1]
    lowest = np.minimum.accumulate(readings[:, ::-1], axis=1)[:, ::-1][:, 1:]
    gaps: Floats = lowest - highest
    return gaps
