"""Seeded intervals: where splits are looked for (Kovacs, Li, Buehlmann & Munk 2023)."""

from __future__ import annotations

import math

import numpy as np

from benchrigor.model.series import Ints
from benchrigor.stats.changepoints.likelihood_ratio import Criterion
from benchrigor.stats.changepoints.windows import SPLIT, WINDOW, Intervals, Scales, Splits, Windows

SPLITS = 31  # splits tried in an interval
_SCREENING_SPLITS = 3
_SCREENING_SHARE = 0.25
_MIN_BLOCKS = 12


class SeededIntervals:
    """The intervals of a series with a significant split; only those at the end change."""

    def __init__(self, scales: Scales, criterion: Criterion) -> None:
        self._scales = scales
        self._criterion = criterion
        # Even a perfect split of fewer readings (T = 0.74 (n/r - 3)) would not be significant.
        readings = max(
            2 * criterion.min_segment, round((1.35 * criterion.penalty + 3) * criterion.inflation)
        )
        shortest = max(-(-readings // scales.grid), _MIN_BLOCKS if scales.grid > 1 else 1)
        lengths = _lengths(shortest, 2 * scales.whole.n // scales.grid)
        self._short = [length for length in lengths if length <= WINDOW // 2 and scales.local.count]
        self._long = [length for length in lengths if length not in self._short]
        self._blocks = 0
        self._windows = 0
        self._splits: Splits = np.zeros(0, dtype=SPLIT)

    def search(self) -> Splits:
        """Return the best split of every interval that has a significant one."""
        scales = self._scales
        if self._short and (scales.complete > self._windows or not self._blocks):
            self._search_windows()
        n = scales.whole.n
        start, stop = _complete(self._long, self._blocks, n // scales.grid)
        last_start, last_stop = _touching_end(self._long, -(-n // scales.grid))
        lasting = np.arange(start.size + last_start.size) < start.size
        start, stop = np.concatenate((start, last_start)), np.concatenate((stop, last_stop))
        every = Intervals(np.zeros_like(start), start, stop)
        splits, at = self._significant(scales.whole, every)
        self._blocks = n // scales.grid
        known = self._splits
        self._splits = np.concatenate((known, splits[lasting[at]]))
        return np.concatenate((known, splits))

    def _search_windows(self) -> None:
        """Search the short intervals around the middle of new windows, at first up to the end."""
        scales = self._scales
        start, stop = _complete(self._short, 0, WINDOW)
        middle = start + stop
        first = np.arange(self._windows, scales.complete)[:, np.newaxis]
        inner = (middle < WINDOW * 3 // 2) & ((middle >= WINDOW // 2) | (first == 0))
        window, at = np.nonzero(inner)
        window += self._windows
        start, stop = start[at], stop[at]
        if scales.local.count > scales.complete and not self._blocks:
            last = -(-scales.local.n // scales.grid) - scales.complete * (WINDOW // 2)
            parts = (_complete(self._short, 0, last), _touching_end(self._short, last))
            begin, end = np.concatenate(parts, axis=1)
            outer = begin + end >= WINDOW // 2
            start = np.concatenate((start, begin[outer]))
            stop = np.concatenate((stop, end[outer]))
            window = np.concatenate((window, np.full(np.count_nonzero(outer), scales.complete)))
        shift = window * (WINDOW // 2)
        new = Intervals(window, start + shift, stop + shift)
        self._splits = np.concatenate((self._splits, self._significant(scales.local, new)[0]))
        self._windows = scales.complete

    def _significant(self, windows: Windows, intervals: Intervals) -> tuple[Splits, Ints]:
        """Return the significant splits of intervals, given on the grid, and which they are."""
        criterion, grid = self._criterion, windows.grid
        # Beside a split of ratio T the next of three splits has about T/4 or more.
        few = windows.best_splits(intervals, criterion, count=_SCREENING_SPLITS, step=grid)
        at = np.nonzero(few["ratio"] > _SCREENING_SHARE * criterion.penalty)[0]
        hopeful = Intervals._make(interval[at] for interval in intervals)
        splits = windows.best_splits(hopeful, criterion, count=SPLITS, step=grid)
        significant = splits["ratio"] > criterion.penalty
        return splits[significant], at[significant]


def _lengths(shortest: int, longest: int) -> list[int]:
    """Return the lengths of intervals, in multiples of the grid."""
    lengths = []
    length = float(shortest)
    while length <= longest:
        lengths.append(round(length))
        length *= math.sqrt(2.0)
    return lengths


def _complete(lengths: list[int], seen: int, blocks: int) -> tuple[Ints, Ints]:
    """Return starts and stops of the intervals that end after ``seen``, up to ``blocks``."""
    starts = [np.zeros(0, dtype=np.int64)]
    used = [length for length in lengths if length <= blocks]
    for length in used:
        hop = max(1, length // 2)
        first = max(0, (seen - length) // hop + 1)
        starts.append(np.arange(first * hop, blocks - length + 1, hop))
    start = np.concatenate(starts)
    return start, start + np.repeat(used or [0], [part.size for part in starts[1:]] or [0])


def _touching_end(lengths: list[int], blocks: int) -> tuple[Ints, Ints]:
    """Return starts and stops of the intervals that touch the end, the whole series among them."""
    start = np.array(
        [*(blocks - length for length in lengths if length < blocks), 0], dtype=np.int64
    )
    return start, np.full_like(start, blocks)
