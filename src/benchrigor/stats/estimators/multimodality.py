"""The values around which readings gather: one, or several with sparse valleys between them."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import special

from benchrigor.model import Floats, Mode
from benchrigor.stats.series.long_run_variance import batch_means, long_run_variance

__all__ = ["FEWEST", "LEAST_SHARE", "apart", "modes_of"]

FEWEST = 60
"""Fewer readings are called one mode: they seldom show a second."""
LEAST_SHARE = 0.05
"""Of all readings: what gathers elsewhere but is less is rare slowness, not a mode."""

_CUTS = (4, 8, 16, 32, 64)
"""A stretch of sorted readings is cut into so many blocks, and as many half a block aside."""
_SMALLEST_BLOCK = 5
_APART = 0.05
_ROUNDING = 1e-12
"""Relative difference of readings that is nothing but rounding."""
_NOTHING = 1e-16
"""Width of a spacing, relative to the readings, that is nothing but rounding."""
_SELDOM = 50
"""Values so many times less frequent than the most frequent one tell nothing of the tick."""
_POINTS = 16_384
_MOMENTS = 4_096

Indices = npt.NDArray[np.int64]


def apart(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """Join neighbouring modes less than a twentieth apart: true as they are, nobody minds them."""
    joined = list(modes[:1])
    for mode in modes[1:]:
        last = joined[-1]
        if mode.value - last.value >= _APART * abs(last.value):
            joined.append(mode)
            continue
        share = last.share + mode.share
        middle = (last.value * last.share + mode.value * mode.share) / share
        joined[-1] = Mode(value=middle, share=share)
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Readings as they came, sorted, and the points between which spacings are counted.

    Points are every ``stride``-th of the sorted readings from the ``first`` on, with ties spread
    over a tick: blocks hold hundreds of points anyway, and so the price is that of sorting.
    """

    series: Floats
    ordered: Floats
    points: Floats
    tick: float
    stride: int
    first: int


@dataclass(frozen=True, slots=True)
class _Block:
    """The stretch between two points: the spacings of readings in it, and the log of their mean."""

    start: int
    stop: int
    spacings: int
    sparsity: float


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of ``count`` spacings between points, by their first points."""

    starts: Indices
    count: int
    spacings: int
    sparsity: Floats

    def block(self, index: int) -> _Block:
        start = int(self.starts[index])
        sparsity = float(self.sparsity[index])
        return _Block(start, start + self.count, self.spacings, sparsity)

    def densest(self, inside: npt.NDArray[np.bool_]) -> _Block:
        return self.block(int(np.where(inside, self.sparsity, np.inf).argmin()))


@dataclass(frozen=True, slots=True)
class _Compared:
    """How clearly blocks are sparser than the densest on each side, in standard deviations."""

    left: Floats
    right: Floats
    chance: float


@dataclass(frozen=True, slots=True)
class _Valley:
    """A block sparser than one on each side, and the chances it was judged by."""

    margin: float
    inside: _Block
    beside: tuple[tuple[_Block, float], tuple[_Block, float]]


def modes_of(series: Floats, level: float) -> tuple[Mode, ...]:
    """Find the values around which readings gather; ``level`` is the chance of a false mode.

    A density with one mode has no valley: of three stretches of sorted readings, the middle one
    is nowhere sparser than both others. Blocks of a and b successive spacings of a uniform
    density have widths per spacing whose ratio follows F(2a, 2b), and where the density falls
    away from the mode the ratio is stochastically less. A block is a valley when it is
    significantly wider per spacing than one at its left and than one at its right (intersection
    and union). The level is divided by all pairs of blocks (Bonferroni). The border lies in the
    widest gap of the widest quarter of the valley; both sides are then searched again. Local
    spacings on all scales: Duembgen & Walther (2008). With autocorrelated readings the long-run
    variance of 1[in one block]/p - 1[in the other]/q over (1/p + 1/q) divides a and b.
    """
    ordered = np.sort(series)
    n = ordered.size
    sample = _sample(series, ordered) if n >= FEWEST else None
    borders = [] if sample is None else _borders(sample, level)
    return tuple(
        Mode(value=_median(ordered, start, stop), share=(stop - start) / n)
        for start, stop in pairwise([0, *borders, n])
    )


def _median(ordered: Floats, start: int, stop: int) -> float:
    middle = start + stop
    return float(ordered[(middle - 1) // 2] + ordered[middle // 2]) / 2.0


def _sample(series: Floats, ordered: Floats) -> _Sample | None:
    """Choose the points and spread ties; None when all points are the same."""
    stride = max(1, ordered.size // _POINTS)
    first = (ordered.size - 1) % stride // 2
    chosen = ordered[first::stride]
    apart = np.diff(chosen) > _ROUNDING * np.abs(chosen[1:])
    starts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    if starts.size == 1:
        return None
    counts = np.diff(starts, append=chosen.size)
    step = _tick(chosen[starts], counts)
    # A tick lost in the rounding of the readings would hide their order in time.
    step = max(step, _ROUNDING * abs(float(chosen[chosen.size // 2])))
    within = np.arange(chosen.size) - np.repeat(starts, counts)
    shift = (within + 0.5) / np.repeat(counts, counts) - 0.5
    points = np.sort(np.repeat(chosen[starts], counts) + shift * step)
    return _Sample(series, ordered, points, step, stride, first)


def _tick(values: Floats, counts: Indices) -> float:
    """Return the smallest difference between frequent values; between any when few are.

    A value met once or twice, off the grid on which the others lie, must not hide the grid.
    """
    frequent = counts >= max(3.0, counts.max() / _SELDOM)
    if frequent.sum() > 1 and 2 * counts[frequent].sum() >= counts.sum():
        values = values[frequent]
    return float(np.diff(values).min())


def _borders(sample: _Sample, level: float) -> list[int]:
    """Return how many readings lie below each border between modes, ascending."""
    found: list[int] = []
    stretches = [(0, sample.points.size)]
    while stretches:
        start, stop = stretches.pop()
        border = _border(sample, start, stop, level)
        if border is not None:
            found.append(_rank(sample, border))
            stretches += [(start, border), (border, stop)]
    return sorted(found)


def _border(sample: _Sample, start: int, stop: int, level: float) -> int | None:
    """Return the point that begins the second part of a stretch, None if it has no valley."""
    least = LEAST_SHARE * sample.points.size
    for valley in _valleys(sample, start, stop, level):
        border = _deepest(sample.points, valley.inside)
        if min(border - start, stop - border) >= least and _withstands(sample, border, valley):
            return border
    return None


def _rank(sample: _Sample, border: int) -> int:
    """Return how many readings lie below the widest gap between a point and the one before."""
    stop = sample.first + border * sample.stride
    gaps = np.diff(sample.ordered[stop - sample.stride : stop + 1])
    return stop - sample.stride + int(gaps.argmax()) + 1


def _deepest(points: Floats, valley: _Block) -> int:
    """Return the point after the widest gap in the widest quarter of a valley."""
    length = max(1, (valley.stop - valley.start) // 4)
    inside = points[valley.start : valley.stop + 1]
    start = int((inside[length:] - inside[:-length]).argmax())
    gap = int(np.diff(inside[start : start + length + 1]).argmax())
    return valley.start + start + gap + 1


def _valleys(sample: _Sample, start: int, stop: int, level: float) -> list[_Valley]:
    """Return the best valley of every size of block, the clearest first."""
    size = stop - start
    least = LEAST_SHARE * sample.points.size
    counts = [size // cuts for cuts in _CUTS if size // cuts >= _SMALLEST_BLOCK]
    ladder = [_blocks(sample, start, stop, count) for count in counts]
    chance = level / max(1, len(ladder) * (len(ladder) + 1) // 2)
    found = []
    for index, own in enumerate(ladder):
        middle = own.starts + own.count / 2.0
        inner = (middle - start >= least) & (stop - middle >= least)
        found.append(_valley(own, ladder[: index + 1], inner, chance))
    return sorted((each for each in found if each), key=lambda each: -each.margin)


def _blocks(sample: _Sample, start: int, stop: int, count: int) -> _Blocks:
    """Lay blocks half over each other, in the same way from both ends."""
    span = stop - start - 1 - count
    half = (stop - start) // count
    rising = np.arange(half) * span // (2 * half - 1)
    starts = start + np.concatenate([rising, span - rising[::-1]])
    lower, upper = sample.points[starts], sample.points[starts + count]
    # Without a least width, ties that rounding left together would be infinitely dense.
    least = np.maximum(_NOTHING * np.maximum(np.abs(lower), np.abs(upper)), sys.float_info.min)
    sparsity = np.log(np.maximum((upper - lower) / count, least))
    return _Blocks(starts, count, count * sample.stride, sparsity)


def _valley(
    own: _Blocks, larger: list[_Blocks], inner: npt.NDArray[np.bool_], chance: float
) -> _Valley | None:
    """Return the clearest valley among the inner blocks of one size, None if none is significant."""
    compared = [_compare(own, other, chance) for other in larger]
    left = np.array([each.left for each in compared])
    right = np.array([each.right for each in compared])
    margins = np.where(inner, np.minimum(left.max(axis=0), right.max(axis=0)), -np.inf)
    best = int(margins.argmax())
    if margins[best] < 0.0:
        return None
    valley = own.block(best)
    below, above = int(left[:, best].argmax()), int(right[:, best].argmax())
    densest_below = larger[below].densest(
        larger[below].starts + larger[below].count <= valley.start
    )
    densest_above = larger[above].densest(larger[above].starts >= valley.stop)
    return _Valley(
        margin=float(margins[best]),
        inside=valley,
        beside=(
            (densest_below, compared[below].chance),
            (densest_above, compared[above].chance),
        ),
    )


def _compare(own: _Blocks, other: _Blocks, level: float) -> _Compared:
    """Compare blocks with the densest of the others to their left and to their right."""
    before = np.searchsorted(other.starts, own.starts - other.count, side="right")
    after = other.starts.size - np.searchsorted(other.starts, own.starts + own.count)
    nothing = np.array([np.inf])
    from_left = np.concatenate([nothing, np.minimum.accumulate(other.sparsity)])
    from_right = np.concatenate([nothing, np.minimum.accumulate(other.sparsity[::-1])])
    # With one mode every block has a side on which it is sparser than none: the pairs that can
    # deceive are at most those of all blocks with the ones before them.
    chance = max(level / max(1, int(before.sum())), sys.float_info.min)
    critical = -math.log(special.fdtri(2.0 * other.spacings, 2.0 * own.spacings, chance))
    deviation = math.sqrt(1.0 / own.spacings + 1.0 / other.spacings)
    return _Compared(
        left=(own.sparsity - from_left[before] - critical) / deviation,
        right=(own.sparsity - from_right[after] - critical) / deviation,
        chance=chance,
    )


def _withstands(sample: _Sample, border: int, valley: _Valley) -> bool:
    """Whether a valley remains one with as many readings as autocorrelation leaves."""
    rank = _rank(sample, border)
    above = sample.series > (sample.ordered[rank - 1] + sample.ordered[rank]) / 2.0
    visits = (np.count_nonzero(above[1:] != above[:-1]) + 1) / 2.0
    inside = valley.inside
    shares = _within(sample, inside) / inside.spacings
    for block, chance in valley.beside:
        independent = 1.0 / inside.spacings + 1.0 / block.spacings
        contrast = shares - _within(sample, block) / block.spacings
        inflation = max(1.0, _variance_of_sum(contrast) / independent)
        sparse = min(inside.spacings / inflation, visits)
        dense = min(block.spacings / inflation, visits)
        ratio = math.exp(inside.sparsity - block.sparsity)
        if special.fdtrc(2.0 * sparse, 2.0 * dense, ratio) > chance:
            return False
    return True


def _variance_of_sum(series: Floats) -> float:
    size = max(1, series.size // _MOMENTS)
    means = batch_means(series, size)
    return long_run_variance(means - means.mean()).value * size * series.size


def _within(sample: _Sample, block: _Block) -> Floats:
    """Return which share of the tick around each reading lies within a block."""
    low, high = float(sample.points[block.start]), float(sample.points[block.stop])
    reach = sample.tick / 2.0
    overlap = np.minimum(sample.series + reach, high) - np.maximum(sample.series - reach, low)
    share: Floats = np.clip(overlap / sample.tick, 0.0, 1.0)
    return share
