"""The readings' ranks at two scales: within the whole series, and within short windows of it.

A step between two levels that hardly differ on the scale of the whole series shows only within a
window, by its own quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Floats, Ints
from benchrigor.stats.changepoints.likelihood_ratio import (
    THRESHOLDS,
    Criterion,
    RankCounts,
    Ratios,
    log_likelihood_ratio,
    quantiles,
)

WINDOW = 128  # multiples of the grid
_SAMPLE_OF_SERIES = 16_384
_SAMPLE_OF_WINDOW = 128
_CHUNK = 30_720

SPLIT = np.dtype([("start", "i8"), ("split", "i8"), ("stop", "i8"), ("ratio", "f4")])
Splits = npt.NDArray[np.void]


class Intervals(NamedTuple):
    """Intervals of readings, each seen through a window; arrays of shape (I,)."""

    window: Ints
    start: Ints
    stop: Ints


class Windows:
    """Rank counts of windows that half overlap, or of one window that grows with the series."""

    def __init__(self, grid: int, size: int = 0) -> None:
        self.grid = grid
        self.hop = size // 2
        self.n = 0  # readings of the series that the windows cover
        self.count = 0
        self.ranks = RankCounts(max(8, grid))

    def clipped(self, middle: Ints, start: Ints, stop: Ints) -> Intervals:
        """Return intervals as far as they lie in the window around their ``middle``."""
        if not self.hop:
            return Intervals(np.zeros_like(start), start, stop)
        nearest = (middle - self.hop // 2) // self.hop
        window = np.minimum(np.maximum(nearest, 0), self.count - 1)
        left = window * self.hop
        end = np.minimum(stop, np.minimum(left + 2 * self.hop, self.n))
        return Intervals(window, np.minimum(np.maximum(start, left), end), end)

    def ratios(
        self, intervals: Intervals, split: Ints, criterion: Criterion, *, step: int = 1
    ) -> Ratios:
        """Return the ratios of splits, shape (S, I), at multiples of ``step`` or the end."""
        counts = self.ranks.before_blocks if step == self.ranks.step else self.ranks.before
        chunks = []
        at_once = max(1, _CHUNK // (THRESHOLDS * split.shape[0]))
        for at in range(0, intervals.start.size, at_once):
            some = slice(at, at + at_once)
            window, begin, end = (interval[some] for interval in intervals)
            middle = split[:, some]
            places = np.concatenate((begin[np.newaxis], middle, end[np.newaxis]))
            reached = counts(places + window * self.hop)
            reached[1:] -= reached[0]
            left, whole = reached[1:-1], reached[-1]
            chunks.append(log_likelihood_ratio(left, whole, middle - begin, end - begin, criterion))
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)

    def best_splits(
        self, intervals: Intervals, criterion: Criterion, *, count: int, step: int = 1
    ) -> Splits:
        """Return the best of ``count`` even splits of intervals in multiples of ``step``."""
        window, start, stop = intervals
        best: Splits = np.zeros(start.size, dtype=SPLIT)
        if start.size == 0:
            return best
        places = np.arange(1, count + 1)[:, np.newaxis]
        split = (start + (stop - start) * places // (count + 1)) * step
        begin, end = start * step, np.minimum(stop * step, self.n)
        ratio = self.ratios(Intervals(window, begin, end), split, criterion, step=step)
        at, columns = ratio.argmax(axis=0), np.arange(start.size)
        best["start"], best["stop"] = begin, end
        best["split"], best["ratio"] = split[at, columns], ratio[at, columns]
        return best


class Scales:
    """The rank counts of a series at both scales; readings can be appended, the quantiles stay."""

    def __init__(self, series: Floats) -> None:
        # Readings between starts of intervals, about sqrt(n) / 16
        self.grid = min(64, 1 << max(0, math.ceil(math.log2(series.size) / 2.0 - 4.0)))
        self.whole = Windows(self.grid)
        # Empty if the series is hardly longer than a window
        self.local = Windows(self.grid, WINDOW * self.grid)
        self.complete = 0  # local windows; a shorter one may lie after them
        self._thresholds = quantiles(series[np.newaxis], _SAMPLE_OF_SERIES)
        self._windowed = series.size >= 1.5 * WINDOW * self.grid
        self.extend(series)
        if self._windowed:
            self._add_last_window(series)

    def extend(self, series: Floats) -> None:
        """Count the readings behind those counted so far; ``series`` holds all."""
        ranks = self.whole.ranks
        ranks.n -= ranks.n % ranks.step
        ranks.append(series[np.newaxis, ranks.n :], self._thresholds)
        self.whole.n, self.whole.count = series.size, 1
        if self._windowed:
            self._add_windows(series)

    def by_length(
        self, start: Ints, stop: Ints, longest: int
    ) -> Iterator[tuple[Windows, npt.NDArray[np.bool_]]]:
        """Yield each scale with a mask of its intervals; up to ``longest`` hops are local."""
        # The last window may end before the series does.
        short = (stop - start <= longest * self.local.hop) & (stop <= self.local.n)
        for windows, mine in ((self.whole, ~short), (self.local, short)):
            if mine.any():
                yield windows, mine

    def _add_windows(self, series: Floats) -> None:
        local, size = self.local, 2 * self.local.hop
        complete = (series.size - size) // local.hop + 1
        if complete > self.complete:
            local.ranks.n = self.complete * size
            rows = np.lib.stride_tricks.sliding_window_view(series, size)
            rows = rows[self.complete * local.hop :: local.hop]
            local.ranks.append(rows, quantiles(rows, _SAMPLE_OF_WINDOW))
            self.complete = local.count = complete
            local.n = (complete + 1) * local.hop

    def _add_last_window(self, series: Floats) -> None:
        """Add a shorter window for the readings behind the complete ones."""
        local = self.local
        rest = series[np.newaxis, self.complete * local.hop :]
        padded = np.full((1, 2 * local.hop), -np.inf)
        padded[:, : rest.size] = rest
        local.ranks.append(padded, quantiles(rest, _SAMPLE_OF_WINDOW))
        local.count = self.complete + 1
        local.n = series.size
