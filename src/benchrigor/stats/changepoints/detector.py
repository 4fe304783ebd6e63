"""Change points: where the distribution of a series changes.

The default detector goes by ranks, from a series to its change points: variance inflation, seeded
intervals, pruning (which of the significant splits are change points, and where exactly), exact
gaps. E-Divisive with medians, as published, is a reference to compare with; its cost is quadratic.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from benchrigor.model import ChangePoints
from benchrigor.model.checks import refuse, wrong_choice, wrong_share, wrong_whole
from benchrigor.model.series import Floats, Ints, as_series
from benchrigor.stats.changepoints.likelihood_ratio import (
    SPLITS,
    Criterion,
    Ratios,
    Scales,
    SeededIntervals,
    Splits,
    Windows,
)
from benchrigor.stats.changepoints.variance_inflation import (
    MIN_EFFECTIVE_TO_SEARCH,
    gaps_between,
    inflation_across,
    inflation_within,
    settle_ends,
)
from benchrigor.stats.series.long_run_variance import batch_means

MIN_SEGMENT_BY_MEDIANS = 30  # as published
_MOST_POINTS = 5_000  # their square takes 1.5 s and 100 MB
_PENALTY = 0.25  # share by which a further change has to raise the statistic


def averaged_readings(n: int) -> int:
    """Return how many neighbours of n readings are averaged to a point of the search."""
    return -(-n // _MOST_POINTS)


def name_averaging(method: str, n: int) -> str:
    """Add to a method how many of n readings are averaged to a point of the search."""
    size = averaged_readings(n)
    return f"{method}, means of {size}" if size > 1 else method


def detect_by_medians(
    series: Floats, *, min_segment: int = MIN_SEGMENT_BY_MEDIANS
) -> tuple[int, ...]:
    """Cut a series where the medians of neighbouring segments differ most.

    E-Divisive with medians by James, Kejariwal & Matteson (2016), arXiv:1411.7955, in its form for
    several changes with a relative penalty: a dynamic programme over the last change point. A
    change at t between the change before it, p, and the end s adds

        (t - p) (s - t) / (s - p)^2 * (median(x[p:t]) - median(x[t:s]))^2

    to the best statistic of the first t readings, and is dropped unless it adds at least a quarter
    of that. Without a significance test any noise of ``2 * min_segment`` readings has change
    points, and later changes must outdo all before them: 30 low, 130 high and 30 low readings are
    cut at 30 and 131.

    Its cost is quadratic: n = 1000 takes 0.1 s and 4 MB, n = 5000 takes 1.5 s and 100 MB. More than
    5000 readings are averaged to means of `averaged_readings` neighbours, which ``min_segment``
    counts then.
    """
    size = averaged_readings(series.size)
    series = batch_means(series, size)
    n = series.size
    if n < 2 * min_segment:
        return ()
    # A power of two changes no comparison, and lets the squares stay in range.
    series = np.ldexp(series, -int(np.frexp(np.abs(series).max())[1]))
    best, left = np.zeros(n + 1), np.zeros(n + 1)
    last = np.zeros(n + 1, dtype=np.int64)
    for stop, medians in enumerate(_medians(series), 1):
        if stop >= 2 * min_segment:
            split = np.arange(min_segment, stop - min_segment + 1)
            before = last[split]
            weight = (split - before) * (stop - split) / (stop - before) ** 2
            reached = best[split] + weight * (left[split] - medians[split]) ** 2
            at = int(reached.argmax())
            point, statistic = int(split[at]), float(reached[at])
            if statistic - best[point] < _PENALTY * best[point]:
                best[stop], last[stop] = best[point], last[point]
            elif statistic > 0.0:
                best[stop], last[stop] = statistic, point
        left[stop] = medians[last[stop]]
    points = []
    point = int(last[-1])
    while point > 0:
        points.append(size * point)
        point = int(last[point])
    return tuple(reversed(points))


def _medians(series: Floats) -> Iterator[Floats]:
    """Yield for each stop from 1 to n the medians of ``series[start:stop]``, shape (stop,).

    The readings of each window form a list linked in order of rank, between rank 0 and rank n + 1.
    A new reading joins all windows next to its closest neighbours, and each median moves by one
    place at most.
    """
    n = series.size
    order = np.argsort(series, kind="stable")
    ranks = np.empty(n, dtype=np.int16)
    ranks[order] = np.arange(1, n + 1)
    ranked = np.concatenate(([0.0], series[order], [0.0]))
    # By rank first: successive windows mostly share their neighbours, which then lie together.
    below, above = np.zeros((2, n + 2, n), dtype=np.int16)
    middle = np.zeros(n, dtype=np.int16)
    for stop in range(1, n + 1):
        rank = ranks[stop - 1]
        window = np.arange(stop)
        recent = ranks[:stop][::-1]
        under = np.maximum.accumulate(np.where(recent < rank, recent, 0))[::-1]
        over = np.minimum.accumulate(np.where(recent > rank, recent, n + 1))[::-1]
        below[rank, :stop], above[rank, :stop] = under, over
        above[under, window], below[over, window] = rank, rank
        old = middle[:stop]
        odd = (stop - window) % 2 == 1
        up, down = odd & (rank > old), ~odd & (rank < old)
        middle[:stop] = np.where(up, above[old, window], np.where(down, below[old, window], old))
        lower = middle[:stop]
        upper = np.where(odd, lower, above[lower, window])
        yield (ranked[lower] + ranked[upper]) / 2.0


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
    """Chooses change points among splits of a series that may grow; remembers its sums."""

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
        # After the last window there are no counts: a split at the end has ratio 0.
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
    """Return the points with a dropped neighbour on their left."""
    left = set(after)
    pairs = [*pairwise(before), *pairwise(before[::-1])]
    return {one for one, other in pairs if one in left and other not in left}


def leading_bits(number: int, kept: int) -> int:
    """Return a number with only this number of its leading bits."""
    rest = max(0, number.bit_length() - kept)
    return number >> rest << rest


def _largest_first(splits: Splits, most: int) -> list[_Point]:
    """Return the splits without a larger ratio taken in their intervals, ascending by place."""
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
    gaps = gaps_between(around)
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


MIN_SEGMENT = 10  # readings between two change points, at least
MIN_FOR_CHANGES = 2 * MIN_SEGMENT  # fewer readings have no change points
MIN_SEGMENTS = {"ranks": MIN_SEGMENT, "edm": MIN_SEGMENT_BY_MEDIANS}  # of each method
_SHORT = 4_096


def detect_changes(
    values: npt.ArrayLike,
    *,
    level: float = 0.01,
    min_segment: int | None = None,
    method: str = "ranks",
) -> ChangePoints:
    """Find where a series changes its distribution.

    Parameters
    ----------
    values
        Readings in order of time, shape (n,).
    level
        Chance of any change point in a series without change, in (0, 1).
    min_segment
        Least readings between two change points, 2 or more; twice the variance inflation where
        that is more. None for 10, or 30 with "edm". Fewer than ``2 * min_segment`` values have no
        change points.
    method
        "ranks"; or "edm", E-Divisive with medians as published: a reference to compare with,
        which has no test and does not use ``level``. It sees more than 5000 values as up to 5000
        means of neighbours.

    Returns
    -------
    ChangePoints
        The same for a*x + b, a > 0.

    Raises
    ------
    InvalidInput
        When the values or an option are invalid.

    Notes
    -----
    Like E-Divisive with medians (James, Kejariwal & Matteson 2016) a robust, non-parametric energy
    statistic, but at linear cost and with a significance test: likelihood ratios of the shares
    above 16 quantiles of the series, and of short windows of it; in seeded intervals; pruned by a
    penalty of 3.1 + ln(n/r)/2 + ln(0.05/level), fitted to series without change. The variance
    inflation r, by which every log-likelihood ratio is divided, is estimated from the whole series
    and again inside the segments. It is at most n/40, so that a perfect split remains visible
    however persistent the series is; an effective sample size below 40 has more false change
    points.

    Fewer than ``min_segment`` readings at an end that are at another level are not a change point
    yet but counted as ``early`` and ``late``.

    What lasts for less than about sqrt(n)/2 readings (50 of 10,000) may be missed. Very slow noise
    hidden under white is taken for changes. Time and memory are O(n).

    Examples
    --------
    >>> detect_changes([4.0] * 30 + [9.0] * 130 + [4.0] * 30).indices
    (30, 160)
    """
    series = as_series(values)
    _check(level, MIN_SEGMENT if min_segment is None else min_segment, method)
    shortest = int(min_segment or MIN_SEGMENTS[method])
    if method == "edm":
        indices = detect_by_medians(series, min_segment=shortest)
        return ChangePoints(
            indices=indices, n=series.size, level=None, inflation=inflation_across(series)
        )
    if series.size < 2 * shortest or _repeats(series) == series.size:
        return settle_ends(series, _no_changes(series.size, level), shortest)
    return Segmenter(series, level, shortest).change_points(series)


class ChangeDetector:
    """Finds change points in a series that grows, at a cost that hardly grows with it.

    It follows the estimator interface of ruptures (``fit``, ``predict``), so that its metrics and
    displays work on it, and is itself a `protocols.Detector`.

    Parameters
    ----------
    level, min_segment
        As for `detect_changes`.

    Notes
    -----
    Quantiles, variance inflation and penalty are those of the first n' of n readings, where n' is n
    without all but its five leading bits, and n itself below 4096. So the result depends on the
    readings alone, not on the batches in which they came, and is that of `detect_changes` where n'
    = n. Only intervals that touch the end are searched again.

    Examples
    --------
    >>> detector = ChangeDetector()
    >>> detector.append([4.0] * 30 + [9.0] * 130)
    >>> detector.append([4.0] * 30)
    >>> detector.change_points().indices
    (30, 160)
    >>> detector.fit([4.0] * 30 + [9.0] * 130).predict()
    [30, 160]
    """

    def __init__(self, *, level: float = 0.01, min_segment: int = MIN_SEGMENT) -> None:
        _check(level, min_segment)
        self._level = level
        self._min_segment = int(min_segment)
        self._n = 0
        self._repeated = 0
        self._readings = np.empty(1_024)
        self._segmenter: Segmenter | None = None

    def __call__(self, values: npt.ArrayLike) -> ChangePoints:
        """Return the change points of other readings, as `detect_changes` does."""
        return detect_changes(values, level=self._level, min_segment=self._min_segment)

    def append(self, values: npt.ArrayLike) -> None:
        """Add readings, shape (m,); none of them if one is invalid (InvalidInput)."""
        more = as_series(values)
        n = self._n + more.size
        if n > self._readings.size:
            grown = np.empty(2 * n)
            grown[: self._n] = self._readings[: self._n]
            self._readings = grown
        self._readings[self._n : n] = more
        if self._repeated == self._n:
            self._repeated += _repeats(more, self._readings[0])
        self._n = n

    def change_points(self) -> ChangePoints:
        """Return the change points of all readings so far."""
        n = self._n
        if n < 2 * self._min_segment or self._repeated == n:
            unchanged = _no_changes(n, self._level)
            return settle_ends(self._readings[:n], unchanged, self._min_segment)
        known = n if n < _SHORT else leading_bits(n, 5)
        if self._repeated >= known:
            # Readings that are all the same have no quantiles to see others by.
            known = n
        if self._segmenter is None or self._segmenter.known != known:
            self._segmenter = Segmenter(self._readings[:known], self._level, self._min_segment)
        return self._segmenter.change_points(self._readings[:n])

    def fit(self, signal: npt.ArrayLike) -> Self:
        """Replace all readings by others, shape (n,) or (n, 1), unless one is invalid."""
        column = isinstance(signal, np.ndarray) and signal.ndim == 2 and signal.shape[1] == 1
        series = as_series(np.ravel(signal) if column else signal)
        self._n = self._repeated = 0
        self._segmenter = None
        self.append(series)
        return self

    def predict(self) -> list[int]:
        """Return the ends of all segments, n included."""
        return [*self.change_points().indices, self._n]


def _check(level: object, min_segment: object, method: object = "ranks") -> None:
    refuse(
        wrong_share("level", level),
        wrong_whole("min_segment", min_segment, least=2),
        wrong_choice("method", method, tuple(MIN_SEGMENTS)),
    )


def _no_changes(n: int, level: float) -> ChangePoints:
    return ChangePoints(indices=(), n=n, level=float(level), inflation=1.0)


def _repeats(readings: Floats, value: float | None = None) -> int:
    """Return how many of the first readings equal the value, or the first of them."""
    other = readings != (readings[0] if value is None else value)
    return int(other.argmax()) if other.any() else readings.size
