"""Pruning: which of the significant splits are the change points of a series, and where exactly."""

from __future__ import annotations

from bisect import bisect_right, insort
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from benchrigor.model.series import Ints
from benchrigor.stats.changepoints.likelihood_ratio import Criterion, Ratios
from benchrigor.stats.changepoints.seeded_intervals import SPLITS
from benchrigor.stats.changepoints.windows import Scales, Splits, Windows

_PLACES_AT_ONCE = 33
_MAX_POINTS = 4_096
_MAX_PASSES = 3
_SIGHT = 8

_Point = tuple[int, int]  # place of a split, and within which distance its exact place lies


class _Neighbourhood(NamedTuple):
    """A split, and the readings by which its exact place is found."""

    place: int
    tolerance: int
    start: int
    stop: int


class Pruning:
    """Chooses change points among splits of a series that may grow; remembers what it computed."""

    def __init__(self, scales: Scales, criterion: Criterion) -> None:
        self._scales = scales
        self._criterion = criterion
        self._exact: dict[_Neighbourhood, int] = {}
        self._ratios: dict[tuple[int, int, int], float] = {}
        self._unsplit: set[tuple[int, int]] = set()
        self._complete = scales.complete

    def prune(self, splits: Splits) -> Ints:
        """Return the first reading of each new segment, ascending.

        The split with the largest ratio is taken, the intervals that hold it are dropped, and so
        on. Each split is then moved to its exact place, and dropped if it is not significant
        between its neighbours. Splits found inside the segments are added, and all are moved and
        tested again.
        """
        if self._scales.complete != self._complete:
            # The windows near the end have changed.
            self._complete = self._scales.complete
            for memory in (self._exact, self._ratios, self._unsplit):
                memory.clear()
        most = min(max(64, self._scales.whole.n // 512), _MAX_POINTS)
        points = _largest_first(splits, most)
        for _ in range(_MAX_PASSES):
            located = self._locate(points)
            points = self._significant(located)
            more = self._inside(points)
            if not more or len(points) + len(more) > most:
                break
            points = sorted([*points, *more])
        if len(points) < len(located):
            # Those that were dropped leave more readings to locate their neighbours by.
            points = self._significant(
                self._locate(points, _neighbours_of_dropped(located, points))
            )
        return np.array([place for place, _ in points], dtype=np.int64)

    def _locate(self, points: list[_Point], only: set[_Point] | None = None) -> list[_Point]:
        """Move each split, or ``only`` some, to the place with the largest ratio nearby."""
        borders = [0, *(place for place, _ in points), self._scales.whole.n]
        around = [
            _Neighbourhood(
                place,
                tolerance,
                max(before, place - _SIGHT * tolerance),
                min(behind, place + _SIGHT * tolerance),
            )
            for (place, tolerance), before, behind in zip(
                points, borders, borders[2:], strict=False
            )
            if only is None or (place, tolerance) in only
        ]
        new = [point for point in around if point not in self._exact]
        if new:
            place, tolerance, start, stop = np.array(new, dtype=np.int64).T
            for windows, mine in self._scales.by_length(start, stop, 2):
                some = np.nonzero(mine)[0]
                exact = self._exact_places(
                    windows, place[mine], tolerance[mine], start[mine], stop[mine]
                )
                for index, found in zip(some.tolist(), exact.tolist(), strict=True):
                    self._exact[new[index]] = found
        stay = [] if only is None else [point for point in points if point not in only]
        located = {self._exact[point]: point.tolerance for point in around}
        return sorted({**dict(stay), **located}.items())

    def _exact_places(
        self, windows: Windows, splits: Ints, tolerance: Ints, start: Ints, stop: Ints
    ) -> Ints:
        """Return the places with the largest ratios, approached in steps that shrink to one."""
        columns = np.arange(splits.size)
        criterion = self._criterion._replace(locating=True)
        seen = windows.clipped(splits, start, stop)
        while True:
            low = np.maximum(splits - tolerance, seen.start + 1)
            width = np.maximum(np.minimum(splits + tolerance, seen.stop - 1) - low, 0)
            most = min(_PLACES_AT_ONCE, int(width.max()) + 1)
            trial = low + width * np.arange(most)[:, np.newaxis] // max(1, most - 1)
            ratio = windows.ratios(seen, trial, criterion)
            best = trial[ratio.argmax(axis=0), columns]
            splits = np.where(ratio.max(axis=0) > 0, best, splits)
            spacing = -(-width // max(1, most - 1))
            if spacing.max() <= 1:
                return splits
            tolerance = 2 * spacing

    def _significant(self, points: list[_Point]) -> list[_Point]:
        """Drop the split with the least ratio until all are significant between neighbours."""
        while points:
            borders = [0, *(place for place, _ in points), self._scales.whole.n]
            ratio = self._between_neighbours(
                list(zip(borders, borders[1:], borders[2:], strict=False))
            )
            # Splits that are not neighbours' neighbours do not touch: drop them at once.
            rivals = np.concatenate(([np.inf], ratio, [np.inf]))
            least = (ratio < rivals[:-2]) & (ratio <= rivals[2:])
            dropped = least & (ratio <= self._criterion.penalty)
            if not dropped.any():
                break
            points = [point for point, out in zip(points, dropped, strict=True) if not out]
        return points

    def _between_neighbours(self, splits: list[tuple[int, int, int]]) -> Ratios:
        """Return the larger ratio at both scales of splits between two neighbours."""
        new = [split for split in splits if split not in self._ratios]
        if new:
            scales = self._scales
            start, split, stop = np.array(new, dtype=np.int64).T
            ratio = self._ratios_within(scales.whole, start, split, stop)
            weak = np.nonzero(ratio <= self._criterion.penalty)[0]
            if weak.size and scales.local.count:
                local = self._ratios_within(scales.local, start[weak], split[weak], stop[weak])
                ratio[weak] = np.maximum(ratio[weak], local)
            self._ratios.update(zip(new, ratio.tolist(), strict=True))
        return np.array([self._ratios[split] for split in splits], dtype=np.float32)

    def _ratios_within(self, windows: Windows, start: Ints, split: Ints, stop: Ints) -> Ratios:
        """Return the ratio of one split of each interval, as far as a window shows it."""
        seen = windows.clipped(split, start, stop)
        # Behind the last window there are no counts: a split at the end has ratio 0.
        split = np.minimum(split, seen.stop)[np.newaxis]
        ratios: Ratios = windows.ratios(seen, split, self._criterion)[0]
        return ratios

    def _inside(self, points: list[_Point]) -> list[_Point]:
        """Return splits inside the segments; a sixteenth of the last, which grows, may be left."""
        borders = [0, *(place for place, _ in points)]
        borders.append(borders[-1] + leading_bits(self._scales.whole.n - borders[-1], 5))
        segments = [
            segment
            for segment in pairwise(borders)
            if segment[1] - segment[0] >= 2 * self._criterion.min_segment
            and segment not in self._unsplit
        ]
        if not points or not segments:
            return []
        start, stop = np.array(segments, dtype=np.int64).T
        found: list[_Point] = []
        for windows, mine in self._scales.by_length(start, stop, 1):
            middle = (start[mine] + stop[mine]) // 2
            intervals = windows.clipped(middle, start[mine], stop[mine])
            best = windows.best_splits(intervals, self._criterion, count=SPLITS)
            hit = best["ratio"] > self._criterion.penalty
            found += [_point(at, stop - start) for start, at, stop, _ in best[hit].tolist()]
            self._unsplit.update((start, stop) for start, _, stop, _ in best[~hit].tolist())
        return found


def _neighbours_of_dropped(before: list[_Point], after: list[_Point]) -> set[_Point]:
    """Return the points left of which a neighbour was dropped."""
    left = set(after)
    pairs = [*pairwise(before), *pairwise(before[::-1])]
    return {one for one, other in pairs if one in left and other not in left}


def leading_bits(number: int, kept: int) -> int:
    """Return a number with all but so many of its leading bits cleared."""
    rest = max(0, number.bit_length() - kept)
    return number >> rest << rest


def _largest_first(splits: Splits, most: int) -> list[_Point]:
    """Return the splits in whose intervals no larger ratio was taken, ascending by place."""
    order = np.argsort(-splits["ratio"], kind="stable")
    chosen: list[_Point] = []
    for start, split, stop, _ in splits[order].tolist():
        behind = bisect_right(chosen, (start, stop))
        if behind < len(chosen) and chosen[behind][0] < stop:
            continue
        place, tolerance = _point(split, stop - start)
        for at in (behind - 1, behind):
            # Within the tolerance of a rougher split lies that same one, seen closer.
            if (
                0 <= at < len(chosen)
                and abs(chosen[at][0] - place) <= chosen[at][1] > 16 * tolerance
            ):
                del chosen[at]
                break
        insort(chosen, (place, tolerance))
        if len(chosen) == most:
            break
    return chosen


def _point(place: int, length: int) -> _Point:
    """Round the best of a few splits of an interval of that length."""
    tolerance = 1 << max(2, (2 * length // (SPLITS + 1)).bit_length())
    return round(4 * place / tolerance) * tolerance // 4, tolerance
