"""Likelihood ratio of a split: how clearly the readings before it differ from those after it.

It is read off counts: how many of the first t readings reach each of a few thresholds, for any t,
at constant cost.

Ranks are taken at two scales: within the whole series, and within short windows of it. A step
between two levels that hardly differ on the scale of the whole series shows only within a window,
by its own quantiles.

Splits are looked for in seeded intervals (Kovacs, Li, Buehlmann & Munk 2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Floats, Ints

Counts = npt.NDArray[np.int32]
Ratios = npt.NDArray[np.float32]

THRESHOLDS = 16
_CHUNK = 32_768
_MAX_EXPLAINED = np.float32(0.95)
_ONES = np.ones(THRESHOLDS, dtype=np.float32)
_PLACES = np.arange(1, THRESHOLDS + 1, dtype=np.float32)


def quantiles(rows: Floats, sample: int) -> Floats:
    """Return 16 ascending thresholds for each row, from about ``sample`` of its readings.

    They are readings above the least one, since rounding would decide on which side of an
    interpolated quantile ties fall; if fewer are distinct the rest are infinite.
    """
    ordered = np.sort(rows[:, :: -(-rows.shape[1] // sample)], axis=1)
    size = ordered.shape[1]
    above_least = (ordered > ordered[:, :1]).argmax(axis=1)
    ranks = np.arange(1, THRESHOLDS + 1) * size // (THRESHOLDS + 1)
    picked = np.maximum(ranks, above_least[:, np.newaxis])
    thresholds: Floats = np.take_along_axis(ordered, picked, axis=1)
    thresholds[:, 1:][thresholds[:, 1:] == thresholds[:, :-1]] = np.inf
    thresholds[ordered[:, -1] == ordered[:, 0]] = np.inf
    thresholds.sort(axis=1)
    return thresholds


class RankCounts:
    """Prefix counts of readings at or above 16 thresholds, by bits and counts before each block."""

    def __init__(self, step: int) -> None:
        # Readings counted; it may be lowered to the start of a block, to append others there
        self.n = 0
        self.step = step
        self._bits: npt.NDArray[Any] = np.zeros((64, THRESHOLDS), dtype=f"<u{step // 8}")
        self._before: Counts = np.zeros((65, THRESHOLDS), dtype=np.int32)

    def append(self, rows: Floats, thresholds: Floats) -> None:
        """Count more readings, shape (R, W), each row by its own thresholds, shape (R, 16)."""
        count, width = rows.shape
        first = self.n // self.step
        per_row = -(-width // self.step)
        self._reserve(first + count * per_row)
        at_once = max(1, _CHUNK // width)
        for row in range(0, count, at_once):
            some = slice(row, row + at_once)
            for start in range(0, width, _CHUNK):
                words = self._words(rows[some, start : start + _CHUNK], thresholds[some])
                begin = first + row * per_row + start // self.step
                self._bits[begin : begin + words.shape[0]] = words
        last = first + count * per_row
        inside = np.bitwise_count(self._bits[first:last])
        np.cumsum(inside, axis=0, dtype=np.int32, out=self._before[first + 1 : last + 1])
        self._before[first + 1 : last + 1] += self._before[first]
        self.n += count * width

    def before_blocks(self, positions: Ints) -> Counts:
        """Return the counts before positions at block borders, or at the end, shape (..., 16)."""
        return self._before.take(-(-positions // self.step), axis=0)

    def before(self, positions: Ints) -> Counts:
        """Return the counts among the first ``positions`` readings, shape (..., 16)."""
        blocks, rest = np.divmod(positions, self.step)
        word = self._bits.dtype.type
        mask = np.left_shift(word(1), rest.astype(word)) - word(1)
        bits = self._bits.take(blocks, axis=0)
        bits &= mask[..., np.newaxis]
        counts: Counts = self._before.take(blocks, axis=0)
        counts += np.bitwise_count(bits)
        return counts

    def _words(self, rows: Floats, thresholds: Floats) -> npt.NDArray[Any]:
        """Return one word per block and threshold, shape (blocks, 16)."""
        bits = rows[:, np.newaxis, :] >= thresholds[:, :, np.newaxis]
        packed = np.packbits(bits, axis=-1, bitorder="little")
        excess = -packed.shape[-1] % (self.step // 8)
        if excess:
            rest = np.zeros((*packed.shape[:-1], excess), dtype=np.uint8)
            packed = np.concatenate((packed, rest), axis=-1)
        return packed.view(self._bits.dtype).swapaxes(1, 2).reshape(-1, THRESHOLDS)

    def _reserve(self, blocks: int) -> None:
        # One block more than there are: positions at the very end look there for no bits.
        if blocks >= self._bits.shape[0]:
            size = blocks + blocks // 8 + 64
            self._bits, self._before = _grown(self._bits, size), _grown(self._before, size + 1)


def _grown(rows: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    # Other than np.pad, this touches no memory before it is needed.
    grown = np.zeros((size, THRESHOLDS), dtype=rows.dtype)
    grown[: rows.shape[0]] = rows
    return grown


class Criterion(NamedTuple):
    """What makes a split a change point."""

    penalty: float  # log-likelihood ratio that a change point must exceed
    inflation: float  # divides every log-likelihood ratio
    min_segment: int
    locating: bool = False  # compare places of one split: return R instead of T


def log_likelihood_ratio(
    left: Counts, whole: Counts, n_left: Ints, n: Ints, criterion: Criterion
) -> Ratios:
    """Return T = -(n/r - 3)/2 ln(1 - R) of S splits in each of I intervals; 0 next to the ends.

    R is the share of the variation of the readings' ranks that the split explains, r the variance
    inflation. ``left`` counts the readings left of the splits, shape (S, I, K), ``whole`` those of
    the intervals, shape (I, K), of n_left and n readings, shapes (S, I) and (I,).

    The energy distance of the ranks (Szekely & Rizzo 2005), weighted as by Anderson & Darling
    (1952), is the sum of the squared differences of the shares at or above each threshold, each
    over its variance. Over n and the largest eigenvalue of the indicators' correlations it is R,
    which behaves like the squared correlation of one normal variable with the side; the tail of T
    without change is about exp(-T)/2. The variance is that a third of the way from the whole's
    share to that of the smaller side, by which half the square is the Kullback-Leibler divergence
    to third order and holds for rare readings. To locate a split, the variance of the whole's share
    is better: slow noise has many splits that part few extreme readings perfectly. Thresholds that
    hardly any reading is above, or below, are left out.
    """
    size = np.maximum(n, 1).astype(np.float32)
    before = n_left.astype(np.float32)
    after = size - before
    share = whole.astype(np.float32)
    share /= size[:, np.newaxis]
    variance = share * (1 - share)
    usable = variance >= criterion.min_segment / 2 / size[:, np.newaxis]
    active = usable.astype(np.float32)
    gap = left.astype(np.float32)
    gap -= share * before[:, :, np.newaxis]
    # One half in place of the shares left out keeps the variance away from 0.
    between = np.where(usable, share, np.float32(0.5))
    if not criterion.locating:
        third = np.where(before <= after, 1 / np.maximum(before, 1), -1 / np.maximum(after, 1))
        third *= np.float32(1 / 3)
        between = gap * third[:, :, np.newaxis] + between
    between -= between * between
    gap *= gap
    gap /= between
    explained: Ratios = np.einsum("sik,ik->si", gap, active)
    explained /= _eigenvalue(share, variance, active) * np.maximum(before * after, 1)
    explained[np.minimum(before, after) < criterion.min_segment] = 0
    if criterion.locating:
        return explained
    np.minimum(explained, _MAX_EXPLAINED, out=explained)
    freedom = np.maximum(size / np.float32(criterion.inflation) - 3, 0)
    ratio: Ratios = np.log1p(-explained)
    ratio *= freedom / -2
    return ratio


def _eigenvalue(share: Ratios, variance: Ratios, active: Ratios) -> Ratios:
    """Return the largest eigenvalue of the correlations of the indicators ``x >= threshold``.

    By the Rayleigh quotient of the standard deviations (exact for many even thresholds): the
    variance of the readings' codes over the sum of the variances. The active thresholds, 1 where
    the others are 0, follow each other, after those that nearly all readings reach.
    """
    shares = share * active
    total = shares @ _ONES
    skipped = np.where(share > np.float32(0.5), 1 - active, np.float32(0)) @ _ONES
    joint = 2 * (shares @ _PLACES) - (1 + 2 * skipped + total) * total
    least = np.maximum((variance * active) @ _ONES, np.float32(1e-6))
    return np.maximum(joint / least, np.float32(1))


WINDOW = 128  # multiples of the grid
_SAMPLE_OF_SERIES = 16_384
_SAMPLE_OF_WINDOW = 128
_WINDOWS_AT_ONCE = 30_720

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
        at_once = max(1, _WINDOWS_AT_ONCE // (THRESHOLDS * split.shape[0]))
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
        """Count the readings after those counted so far; ``series`` holds all."""
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
        """Add a shorter window for the readings after the complete ones."""
        local = self.local
        rest = series[np.newaxis, self.complete * local.hop :]
        padded = np.full((1, 2 * local.hop), -np.inf)
        padded[:, : rest.size] = rest
        local.ranks.append(padded, quantiles(rest, _SAMPLE_OF_WINDOW))
        local.count = self.complete + 1
        local.n = series.size


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
        # Next to a split of ratio T the next of three splits has about T/4 or more.
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
