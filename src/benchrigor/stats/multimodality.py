"""Modes: the values around which readings gather, with sparse valleys between them.

`observe` describes what readings show by themselves, where they allow no number.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from benchrigor.model import Code, Notice
from benchrigor.model.analysis import Mode, Observed, StablePhase
from benchrigor.model.series import Floats, Ints, as_series
from benchrigor.model.text import show_modes
from benchrigor.stats.series.long_run_variance import batch_means, long_run_variance

MIN_READINGS = 60  # fewer readings show only modes that are far apart, below 20 none
_FEWEST, _LEAST_OF_FEW = 20, 0.2  # readings, and the share of them in a mode
_FAR = 5.0  # widths of the wider of two modes from which on they are far apart
MIN_SHARE = 0.05  # of all readings in a mode: fewer are rare slow readings

_CUTS = (4, 8, 16, 32, 64)  # numbers of blocks, each half over the next, over sorted readings
_SMALLEST_BLOCK = 5
_APART = 0.05
_ROUNDING = 1e-12  # relative difference of readings that is mere rounding
_ROUNDED_SPACING = 1e-16  # width of a spacing, relative to the readings, that is mere rounding
_RARE = 50  # values rarer by this factor than the most frequent do not determine the tick
_POINTS = 16_384
_MOMENTS = 4_096


def merge_near_modes(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """Join neighbouring modes less than a twentieth apart, a difference of no importance."""
    joined = list(modes[:1])
    for mode in modes[1:]:
        last = joined[-1]
        if mode.value - last.value > _APART * abs(last.value):
            joined.append(mode)
        else:
            joined[-1] = join_modes(last, mode)
    return tuple(joined)


def join_modes(first: Mode, second: Mode) -> Mode:
    """Return one mode in place of two: their weighted mean."""
    share = first.share + second.share
    middle = (first.value * first.share + second.value * second.share) / share
    return Mode(value=middle, share=share)


class Points(NamedTuple):
    """Readings in order of time and of size, and the points between which spacings are counted.

    Points are every ``stride``-th of the sorted readings from the ``first`` on, with ties spread
    over a tick. Blocks hold hundreds of points anyway, so sorting dominates the cost.
    """

    series: Floats
    ordered: Floats
    values: Floats
    tick: float
    stride: int
    first: int


class Block(NamedTuple):
    """The readings between two points: their spacings, and the log of the mean spacing."""

    start: int
    stop: int
    spacings: int
    sparsity: float


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of ``count`` spacings each, given by their first points."""

    starts: Ints
    count: int
    spacings: int
    sparsity: Floats

    def block(self, index: int) -> Block:
        """Return one of the blocks."""
        start = int(self.starts[index])
        return Block(start, start + self.count, self.spacings, float(self.sparsity[index]))

    def densest(self, among: npt.NDArray[np.bool_]) -> Block:
        """Return the densest block among some."""
        return self.block(int(np.where(among, self.sparsity, np.inf).argmin()))


class Contrasts(NamedTuple):
    """By how many standard deviations blocks are sparser than the densest on either side."""

    left: Floats
    right: Floats
    chance: float


class _Valley(NamedTuple):
    """A block that is sparser than one on each side, and the chance of error of each test."""

    margin: float
    inside: Block
    beside: tuple[tuple[Block, float], tuple[Block, float]]


def find_modes(series: Floats, level: float) -> tuple[Mode, ...]:
    """Find the modes of a series; ``level`` is the chance of a false one.

    A density with one mode has no valley: of three blocks of sorted readings, the middle one is
    nowhere sparser than both others. Blocks of a and b successive spacings of a uniform density
    have widths per spacing whose ratio follows F(2a, 2b); where the density falls away from the
    mode the ratio is stochastically less. A block is a valley when it is significantly sparser
    than one at its left and one at its right (intersection-union test). The level is divided by
    all pairs of blocks (Bonferroni). The border is the widest gap in the widest quarter of the
    valley, and both sides are searched again. Local spacings on all scales: Duembgen & Walther
    (2008). For autocorrelated readings the long-run variance of 1[in one block]/p - 1[in the
    other]/q over (1/p + 1/q) divides a and b.
    """
    ordered = np.sort(series)
    n = ordered.size
    points = spread_points(series, ordered) if n >= MIN_READINGS else None
    if n < MIN_READINGS:
        return _modes_of_few(ordered)
    return _modes_between([] if points is None else _borders(points, level), ordered)


def _modes_between(borders: list[int], ordered: Floats) -> tuple[Mode, ...]:
    n = ordered.size
    return tuple(
        Mode(value=_middle(ordered[start:stop]), share=(stop - start) / n)
        for start, stop in pairwise([0, *borders, n])
    )


def _middle(ordered: Floats) -> float:
    """Return the median of sorted readings."""
    half = ordered.size // 2
    return float((ordered[-half - 1] + ordered[half]) / 2.0)


def _modes_of_few(ordered: Floats) -> tuple[Mode, ...]:
    """Return the two or three modes that the widest gaps part, if all are far apart; else one.

    Of 20 lognormal or Pareto readings one in fifty is taken for two modes, of 30 one in 200.
    """
    least = math.ceil(_LEAST_OF_FEW * ordered.size)
    gaps = np.diff(ordered)[least - 1 : ordered.size - least]
    for count in (1, 2) if ordered.size >= _FEWEST else ():
        borders = sorted((np.argsort(gaps)[-count:] + least).tolist())
        parts = np.split(ordered, borders)
        if min(part.size for part in parts) >= least and all(_far_apart(parts)):
            return _modes_between(borders, ordered)
    return _modes_between([], ordered)


def tell_modes(series: Floats, modes: tuple[Mode, ...], unit: str) -> Notice:
    """Report several modes, with a warning if two neighbours are far apart."""
    ordered = np.sort(series)
    middles = [(one.value + two.value) / 2.0 for one, two in pairwise(modes)]
    is_far = any(_far_apart(np.split(ordered, np.searchsorted(ordered, middles))))
    evidence: dict[str, int | float] = {"modes": len(modes)}
    for place, mode in enumerate(modes):
        evidence |= {f"value_{place}": mode.value, f"share_{place}": mode.share}
    shown = show_modes(modes, unit)
    return Notice.of(Code.SEVERAL_MODES, "" if is_far else "near", shown_=shown, **evidence)


def _far_apart(parts: list[Floats]) -> list[bool]:
    """Return whether neighbouring modes are apart by five times the width of the wider one.

    The width is the range of the middle half of the readings, or the tick of their clock.
    """
    values, counts = np.unique(np.concatenate(parts), return_counts=True)
    tick = _tick(values, counts) if values.size > 1 else 0.0
    if 0.0 < float(values[0]) < tick:
        tick = 0.0  # a clock of this tick could not have shown the least reading
    quartiles = [np.quantile(part, [0.25, 0.5, 0.75]).tolist() for part in parts]
    return [
        two[1] - one[1] > _FAR * max(one[2] - one[0], two[2] - two[0], tick)
        for one, two in pairwise(quartiles)
    ]


def spread_points(series: Floats, ordered: Floats) -> Points | None:
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
    # A tick below the rounding of the readings would hide their order in time.
    step = max(step, _ROUNDING * abs(float(chosen[chosen.size // 2])))
    within = np.arange(chosen.size) - np.repeat(starts, counts)
    shift = (within + 0.5) / np.repeat(counts, counts) - 0.5
    values = np.sort(np.repeat(chosen[starts], counts) + shift * step)
    return Points(series, ordered, values, step, stride, first)


def _tick(values: Floats, counts: Ints) -> float:
    """Return the smallest difference between frequent values, or between all if few are.

    A single value between the ticks must not hide them.
    """
    frequent = counts >= max(3.0, counts.max() / _RARE)
    if frequent.sum() > 1 and 2 * counts[frequent].sum() >= counts.sum():
        values = values[frequent]
    return float(np.diff(values).min())


def _borders(points: Points, level: float) -> list[int]:
    """Return how many readings lie below each border between modes, ascending."""
    borders: list[int] = []
    ranges = [(0, points.values.size)]
    while ranges:
        start, stop = ranges.pop()
        border = _border(points, start, stop, level)
        if border is not None:
            borders.append(_rank(points, border))
            ranges += [(start, border), (border, stop)]
    return sorted(borders)


def _border(points: Points, start: int, stop: int, level: float) -> int | None:
    """Return the first point after the clearest valley of a range of points, or None."""
    least = MIN_SHARE * points.values.size
    for valley in _valleys(points, start, stop, level):
        border = _deepest(points.values, valley.inside)
        if min(border - start, stop - border) >= least and _withstands(points, border, valley):
            return border
    return None


def _rank(points: Points, border: int) -> int:
    """Return how many readings lie below the widest gap between a point and the one before."""
    stop = points.first + border * points.stride
    gaps = np.diff(points.ordered[stop - points.stride : stop + 1])
    return stop - points.stride + int(gaps.argmax()) + 1


def _deepest(points: Floats, valley: Block) -> int:
    """Return the point after the widest gap in the widest quarter of a valley."""
    length = max(1, (valley.stop - valley.start) // 4)
    inside = points[valley.start : valley.stop + 1]
    start = int((inside[length:] - inside[:-length]).argmax())
    gap = int(np.diff(inside[start : start + length + 1]).argmax())
    return valley.start + start + gap + 1


def _valleys(points: Points, start: int, stop: int, level: float) -> list[_Valley]:
    """Return the best valley of every size of block, the clearest first."""
    size = stop - start
    least = MIN_SHARE * points.values.size
    counts = [size // cuts for cuts in _CUTS if size // cuts >= _SMALLEST_BLOCK]
    ladder = [lay_blocks(points, start, stop, count) for count in counts]
    chance = level / max(1, len(ladder) * (len(ladder) + 1) // 2)
    found = []
    for index, own in enumerate(ladder):
        middle = own.starts + own.count / 2.0
        inner = (middle - start >= least) & (stop - middle >= least)
        found.append(_valley(own, ladder[: index + 1], inner, chance))
    return sorted((split for split in found if split), key=lambda valley: -valley.margin)


def lay_blocks(points: Points, start: int, stop: int, count: int) -> Blocks:
    """Lay blocks half over each other, symmetrically from both ends."""
    span = stop - start - 1 - count
    half = (stop - start) // count
    rising = np.arange(half) * span // (2 * half - 1)
    starts = start + np.concatenate([rising, span - rising[::-1]])
    lower, upper = points.values[starts], points.values[starts + count]
    # Without a least width, ties that rounding left together would be infinitely dense.
    least = np.maximum(
        _ROUNDED_SPACING * np.maximum(np.abs(lower), np.abs(upper)), sys.float_info.min
    )
    sparsity = np.log(np.maximum((upper - lower) / count, least))
    return Blocks(starts, count, count * points.stride, sparsity)


def _valley(
    own: Blocks, larger: list[Blocks], inner: npt.NDArray[np.bool_], chance: float
) -> _Valley | None:
    """Return the clearest significant valley among the inner blocks of one size, or None."""
    compared = [contrast(own, other, chance) for other in larger]
    left = np.array([split.left for split in compared])
    right = np.array([split.right for split in compared])
    margins = np.where(inner, np.minimum(left.max(axis=0), right.max(axis=0)), -np.inf)
    best = int(margins.argmax())
    if margins[best] < 0.0:
        return None
    valley = own.block(best)
    below, above = int(left[:, best].argmax()), int(right[:, best].argmax())
    before = larger[below].starts + larger[below].count <= valley.start
    after = larger[above].starts >= valley.stop
    return _Valley(
        margin=float(margins[best]),
        inside=valley,
        beside=(
            (larger[below].densest(before), compared[below].chance),
            (larger[above].densest(after), compared[above].chance),
        ),
    )


def contrast(own: Blocks, other: Blocks, level: float) -> Contrasts:
    """Compare blocks with the densest of the others on their left and on their right."""
    before = np.searchsorted(other.starts, own.starts - other.count, side="right")
    after = other.starts.size - np.searchsorted(other.starts, own.starts + own.count)
    none = [np.inf]
    from_left = np.concatenate([none, np.minimum.accumulate(other.sparsity)])
    from_right = np.concatenate([none, np.minimum.accumulate(other.sparsity[::-1])])
    # With one mode every block is sparser than none on one of its sides. So at most the pairs of
    # blocks with the ones before them can err.
    chance = max(level / max(1, int(before.sum())), sys.float_info.min)
    # The logarithm of an F quantile by the beta distribution: the one of scipy 1.13 is 0 far out.
    share = scipy.special.betaincinv(other.spacings, own.spacings, chance)
    critical = math.log(other.spacings / own.spacings) - float(scipy.special.logit(share))
    deviation = math.sqrt(1.0 / own.spacings + 1.0 / other.spacings)
    return Contrasts(
        left=(own.sparsity - from_left[before] - critical) / deviation,
        right=(own.sparsity - from_right[after] - critical) / deviation,
        chance=chance,
    )


def _withstands(points: Points, border: int, valley: _Valley) -> bool:
    """Whether a valley is significant with as many effective readings as autocorrelation leaves."""
    rank = _rank(points, border)
    above = points.series > (points.ordered[rank - 1] + points.ordered[rank]) / 2.0
    visits = (np.count_nonzero(above[1:] != above[:-1]) + 1) / 2.0
    inside = valley.inside
    shares = share_within(points, inside) / inside.spacings
    for block, chance in valley.beside:
        independent = 1.0 / inside.spacings + 1.0 / block.spacings
        difference = shares - share_within(points, block) / block.spacings
        inflation = max(1.0, variance_of_sum(difference) / independent)
        sparse = min(inside.spacings / inflation, visits)
        dense = min(block.spacings / inflation, visits)
        ratio = math.exp(inside.sparsity - block.sparsity)
        if scipy.special.fdtrc(2.0 * sparse, 2.0 * dense, ratio) > chance:
            return False
    return True


def variance_of_sum(series: Floats) -> float:
    """Return the variance of the sum of an autocorrelated series."""
    size = max(1, series.size // _MOMENTS)
    means = batch_means(series, size)
    return long_run_variance(means - means.mean()).value * size * series.size


def share_within(points: Points, block: Block) -> Floats:
    """Return the share of the tick around each reading that lies within a block."""
    low, high = float(points.values[block.start]), float(points.values[block.stop])
    half = points.tick / 2.0
    near = np.flatnonzero((points.series > low - half) & (points.series < high + half))
    values = points.series[near]
    share: Floats = np.zeros(points.series.size)
    share[near] = (np.minimum(values + half, high) - np.maximum(values - half, low)) / points.tick
    return share.clip(0.0, 1.0, out=share)


_MOST = 5  # levels that a reader can take in
_SEVERAL = 0.01  # chance of taking one mode for several


def observe(
    values: npt.ArrayLike, phases: Sequence[StablePhase] = (), *, batch: int = 1
) -> Observed:
    """Describe readings without a claim about their causes; one is enough.

    Parameters
    ----------
    values
        Readings, shape (n,), of several rounds one after the other.
    phases
        Of the series that they make up, one after the other, as `find_stable_phase` finds them.
    batch
        Calls that each reading averages.

    Raises
    ------
    InvalidInput
        Without readings, or if one is not finite.

    Examples
    --------
    >>> observed = observe([1.2, 3.4, 1.4])
    >>> observed.n, observed.least, observed.median, observed.greatest
    (3, 1.2, 1.4, 3.4)
    """
    series = as_series(values)
    least, p10, median, greatest = np.quantile(series, [0.0, 0.1, 0.5, 1.0]).tolist()
    return Observed(
        n=series.size,
        calls=series.size * batch,
        least=least,
        p10=p10,
        median=median,
        mean=min(max(float(series.mean()), least), greatest),  # a sum is rounded
        greatest=greatest,
        levels=_levels(series, phases),
    )


def _levels(series: Floats, phases: Sequence[StablePhase]) -> tuple[Mode, ...]:
    """Return the levels of the phases, like ones joined; of a single level, its modes."""
    cut = [phase for stable in phases for phase in stable.phases]
    levels = [Mode(value=part.median, share=part.n / series.size) for part in cut]
    found = merge_near_modes(tuple(sorted(levels, key=lambda level: level.value)))
    if len(found) < 2 or sum(part.n for part in cut) != series.size:
        found = merge_near_modes(find_modes(series, _SEVERAL))
    joined = list(found)
    while len(joined) > _MOST:
        gaps = np.diff([level.value for level in joined])
        nearest = int(gaps.argmin())
        joined[nearest : nearest + 2] = [join_modes(joined[nearest], joined[nearest + 1])]
    return tuple(joined)
