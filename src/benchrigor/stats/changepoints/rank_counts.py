"""How many of the first t readings reach each of a few thresholds, for any t, at constant cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats
from benchrigor.model.series import Ints

Counts = npt.NDArray[np.int32]

THRESHOLDS = 16
_CHUNK = 32_768


def quantiles(rows: Floats, sample: int) -> Floats:
    """Return 16 ascending thresholds for each row, from about ``sample`` of its readings.

    They are readings above the least one, since rounding would decide on which side of an
    interpolated quantile ties fall; where fewer are distinct the rest are infinite.
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

    def truncate(self, n: int) -> None:
        """Forget the readings from ``n`` on, at the start of a block, to append others."""
        self.n = n

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
