"""E-Divisive with medians as published: quadratic, a reference to compare with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchrigor.model.series import Floats
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
