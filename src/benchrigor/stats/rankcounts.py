"""How many of the first t readings reach each of a few thresholds, for any t, at constant cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats

__all__ = ["Counts", "Ints", "RankCounts"]

Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]

_THRESHOLDS = 16
_SAMPLE = 16_384
_BLOCKS = 4_096


class RankCounts:
    """Prefix counts of the readings at or above K thresholds, which are quantiles of the series.

    The difference of two prefixes is the distribution of the stretch between, seen at K points.
    Only the order of the readings enters, so that all that is computed from the counts is the
    same for a*x + b, a > 0.

    Parameters
    ----------
    series
        Readings, shape (n,).

    Attributes
    ----------
    n, thresholds
        Number of readings; of distinct thresholds (K, 0 for a constant series).
    step, blocks
        Readings per block (1, 8, 16, 32 or 64) and number of blocks, the last one perhaps
        incomplete. Stored are one bit per reading and threshold, and the counts up to each
        block's first reading; bits inside a block are counted on demand.

    Notes
    -----
    Memory: K/8 bytes per reading for the bits and 4 K/step for the counts.
    """

    def __init__(self, series: Floats) -> None:
        thresholds = _quantiles(series)
        self.n = series.size
        self.thresholds = thresholds.size
        self.step = _step(self.n)
        self.blocks = -(-self.n // self.step)
        self._units: npt.NDArray[Any]
        if self.step == 1:
            self._units = (series >= thresholds[:, np.newaxis]).view(np.uint8)
        else:
            self._units = _packed(series, thresholds).view(f"<u{self.step // 8}")
        inside = np.bitwise_count(self._units[:, : self.blocks])
        self._before = np.zeros((self.thresholds, self.blocks + 1), dtype=np.int32)
        np.cumsum(inside, axis=1, dtype=np.int32, out=self._before[:, 1:])

    def before_blocks(self, blocks: Ints) -> Counts:
        """Return the counts before each block's first reading, shape (K, *blocks.shape)."""
        # All blocks exist: clipping only spares take() a buffer.
        return self._before.take(blocks, axis=1, mode="clip")

    def before(self, positions: Ints) -> Counts:
        """Return the counts among the first ``positions`` readings, shape (K, *positions.shape)."""
        if self.step == 1:
            return self.before_blocks(positions)
        blocks, rest = np.divmod(positions, self.step)
        word = self._units.dtype.type
        mask = np.left_shift(word(1), rest.astype(word)) - word(1)
        inside = np.bitwise_count(self._units.take(blocks, axis=1, mode="clip") & mask)
        counts: Counts = self.before_blocks(blocks) + inside
        return counts

    def first_readings(self, blocks: Ints) -> Ints:
        """Return the position of each block's first reading; n behind the last block."""
        return np.minimum(blocks * self.step, self.n)


def _step(n: int) -> int:
    """Return a block size that keeps short series at full resolution."""
    if n <= _BLOCKS:
        return 1
    return int(min(64, max(8, 1 << ((n - 1) // _BLOCKS).bit_length())))


def _quantiles(series: Floats) -> Floats:
    """Return quantiles that are readings themselves and above the least one, ascending.

    Interpolated quantiles would leave it to rounding on which side of them ties fall.
    """
    sample = np.sort(series[:: -(-series.size // _SAMPLE)])
    above_least = sample[np.searchsorted(sample, sample[0], side="right") :]
    if above_least.size == 0:
        return above_least
    ranks = np.arange(1, _THRESHOLDS + 1) * sample.size // (_THRESHOLDS + 1)
    return np.unique(np.maximum(sample[ranks], above_least[0]))


def _packed(series: Floats, thresholds: Floats) -> npt.NDArray[np.uint8]:
    """Return one bit per reading, padded with zeros to whole 64-bit words and one more."""
    packed = np.zeros((thresholds.size, (series.size // 64 + 2) * 8), dtype=np.uint8)
    for row, threshold in zip(packed, thresholds, strict=True):
        bits = np.packbits(series >= threshold, bitorder="little")
        row[: bits.size] = bits
    return packed
