"""Likelihood ratio of a split: how clearly the readings before it differ from those after it.

It is read off counts: how many of the first t readings reach each of a few thresholds, for any t,
at constant cost.
"""

from __future__ import annotations

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
