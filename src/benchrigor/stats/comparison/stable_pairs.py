"""Which pairs of readings are compared: those that are stable in both series, or in their ratio.

If no interval of their ratio can be estimated, blocks of pairs are compared. Both sides of a block
were measured in turn, so that whatever the machine did meanwhile is in both. No distribution is
assumed, only that a block is as often above the median of blocks as below it.

A Notice says if a few pairs carry the interval of a ratio of means. The median of the ratios of
pairs stands next to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.analysis import PhaseReason
from benchrigor.model.estimate import show_change
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.detector import MIN_FOR_CHANGES
from benchrigor.stats.phases.chosen_phase import choose_phase
from benchrigor.stats.phases.stability_rules import find_trend
from benchrigor.stats.phases.stable_phase import measured_part, measured_phase
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.series.interval import (
    MIN_FOR_VARIANCE,
    TRANSIENTS,
    block_starts,
    exponential,
    too_few,
)
from benchrigor.stats.shares_and_quantiles import MIN_IN_TAIL, quantile_of
from benchrigor.units import counted, percent

# Of pairs with a stable ratio in series that move, the first third is left out, since no transient
# can be fitted beside a moving level. With a warm-up in one series intervals then cover in 0.87 to
# 0.98 of cases, else in 0.61 to 0.97 (500 and 1125 pairs).
_SETTLING = 3
_MOST = 0.8  # of the pairs: the cut part is a warm-up then, not another pace of the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class StablePairs:
    """The stable phase of pairs, and the part of it that is compared."""

    start: int
    stop: int
    measured: slice
    transients: tuple[float, ...] = ()  # time constants fitted along with the levels
    notices: tuple[Notice, ...] = ()


def stable_pairs(baseline: Floats, candidate: Floats, asked: Readings) -> StablePairs:
    """Choose the pairs that are stable in both series and in their difference.

    If those are less than 0.8 of all, since the machine changes its speed under both, the pairs
    with a stable ratio are chosen if they are more. All pairs are kept if they are too few to
    look for a phase. By the published method the pairs in the longest segments of both count, and
    it is not known whether they are steady.

    Raises
    ------
    NotEstimable
        When too few pairs are stable, or the ratio has several levels and not only a warm-up.
    """
    n = baseline.size
    if n < MIN_FOR_CHANGES:
        return StablePairs(start=0, stop=n, measured=slice(0, n))
    if asked.takes_longest:
        one, two = (measured_part(asked.search.phase_of(side)) for side in (baseline, candidate))
        shared = slice(max(one.start, two.start), min(one.stop, two.stop))
        return StablePairs(start=0, stop=n, measured=shared)
    baseline, candidate = _in_order(baseline, candidate)
    try:
        both = _stable_in_both(baseline, candidate, asked)
    except NotEstimable:
        by_ratio = _stable_ratio(baseline, candidate, asked)
        if by_ratio is None:
            raise
        return by_ratio
    if both.stop - both.start >= _MOST * n:
        return both
    by_ratio = _stable_ratio(baseline, candidate, asked)
    longer = by_ratio is not None and by_ratio.stop - by_ratio.start > both.stop - both.start
    return by_ratio if by_ratio is not None and longer else both


def _in_order(one: Floats, two: Floats) -> tuple[Floats, Floats]:
    """Return both series in an order that does not depend on which is the baseline.

    A ratio has other phases than its reciprocal.
    """
    first, second = (
        (side / middle if (middle := float(np.median(side))) else side).tolist()
        for side in (one, two)
    )
    return (one, two) if first <= second else (two, one)


def _stable_in_both(baseline: Floats, candidate: Floats, asked: Readings) -> StablePairs:
    """Find stable pairs; the difference shows a warm-up that common noise hides in both series.

    The detector cuts both series. Whether their difference, or their ratio, is steady
    is for a test to say, which a published method may not have.
    """
    middle = float(np.median(baseline))
    ratio = float(np.median(candidate)) / middle if middle else 1.0
    difference = candidate - ratio * (baseline - middle)
    phases = [asked.search.phase_of(baseline), asked.search.phase_of(candidate)]
    phases.append(measured_phase(difference, asked.search))
    parts = [measured_part(phase) for phase in phases]
    start, stop = max(part.start for part in parts), min(part.stop for part in parts)
    if stop - start < MIN_FOR_VARIANCE:
        raise NotEstimable(too_few(max(stop - start, 0), MIN_FOR_VARIANCE))
    return StablePairs(start=start, stop=stop, measured=slice(start, stop), transients=TRANSIENTS)


def _stable_ratio(baseline: Floats, candidate: Floats, asked: Readings) -> StablePairs | None:
    """Find pairs with a stable ratio, though both series may move together."""
    if min(float(baseline.min()), float(candidate.min())) <= 0.0:
        return None
    ratio = candidate / baseline
    phase = measured_phase(ratio, asked.search)
    phase = choose_phase(ratio, phase, asked.search)
    if phase.start is None or phase.stop is None or phase.reason is PhaseReason.SLOW_NOISE:
        return None
    if phase.reason is PhaseReason.CHANGING_PACE:
        raise NotEstimable(Notice.of(Code.NO_STABLE_PHASE, "levels"))
    inside = measured_part(phase)
    settled = inside.start + (inside.stop - inside.start) // _SETTLING
    if inside.stop - settled < MIN_FOR_VARIANCE:
        return None
    return StablePairs(
        start=phase.start,
        stop=phase.stop,
        measured=slice(settled, inside.stop),
        notices=(Notice.of(Code.NO_STABLE_PHASE, "pairs"),),
    )


BLOCKS_OF_PAIRS = "blocks of pairs"

_BLOCKS = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairBlocks:
    """Ratio and difference of each block of pairs, in the order in which they were measured."""

    ratios: Floats
    differences: Floats
    n: int  # pairs
    confidence: float

    def ratio(self) -> Estimate:
        """Estimate the median of the blocks' ratios, of exchanged sides the reciprocal."""
        value = math.exp(float(np.median(np.log(self.ratios))))
        return replace(self._median(self.ratios), value=value)

    def difference(self) -> Estimate:
        """Estimate the median of the blocks' differences."""
        return self._median(self.differences)

    def _median(self, values: Floats) -> Estimate:
        ordered, rank = np.sort(values), _rank(values.size, self.confidence)
        return Estimate(
            value=float(np.median(values)),
            low=float(ordered[rank - 1]),
            high=float(ordered[-rank]),
            confidence=self.confidence,
            n=self.n,
            n_effective=float(values.size),
            method=BLOCKS_OF_PAIRS,
        )

    def p_value(self, ratio: float) -> float:
        """Return the p-value of the sign test that the median of blocks is this ratio."""
        below, above = (self.ratios < ratio).sum(), (self.ratios > ratio).sum()
        fewer, count = int(min(below, above)), int(below + above)
        return min(1.0, 2.0 * float(special.bdtr(fewer, count, 0.5))) if count else 1.0


def blocks_of_pairs(
    baseline: Floats, candidate: Floats, asked: Readings, refusal: NotEstimable
) -> PairBlocks:
    """Cut pairs into twelve blocks of equal wall time, and compare both sides of each.

    Raises
    ------
    NotEstimable
        The ``refusal`` of an interval, if there are too few blocks for the confidence, readings
        are not above 0, or only the longest segment may count.
    """
    statistic, n = asked.statistic, baseline.size
    # A block of few pairs has no far quantile.
    q = statistic.q
    too_few = q is not None and min(q, 1.0 - q) * n < MIN_IN_TAIL * _BLOCKS
    if not statistic.follows_pace or asked.takes_longest or too_few or n < 2:
        raise refusal
    if not float(np.minimum(baseline, candidate).min()) > 0.0:
        raise refusal
    starts = block_starts(baseline + candidate, blocks=_BLOCKS)
    one, two = (
        np.array([*map(statistic.value_of, np.split(side, starts[1:]))])
        for side in (baseline, candidate)
    )
    if _rank(one.size, asked.options.confidence) < 1:
        raise refusal
    return PairBlocks(
        ratios=two / one,
        differences=two - one,
        n=baseline.size,
        confidence=asked.options.confidence,
    )


def _rank(blocks: int, confidence: float) -> int:
    """Return which order statistics from either end hold the median of blocks; 0 if none do.

    The largest r with P(B < r) up to half the error, B binomial (blocks, 1/2): the interval of
    the sign test (Thompson 1936; Conover 1999, section 3.2).
    """
    tails = special.bdtr(np.arange(blocks), blocks, 0.5)
    return int(np.searchsorted(tails, (1.0 - confidence) / 2.0, side="right"))


def by_blocks(refusal: NotEstimable, ratios: Floats, blocks: PairBlocks) -> tuple[Notice, ...]:
    """Say why the interval by readings of pairs is missing, and which one is given instead."""
    assert isinstance(refusal.notice, Notice)  # noqa: S101  # for the type checker
    why, trend = refusal.notice.sentence, find_trend(ratios, ())
    count, least, most = blocks.ratios.size, float(blocks.ratios.min()), float(blocks.ratios.max())
    if trend is not None:
        why = f"The ratio {trend.way()}, to the end."
    return (
        Notice.of(
            Code.BLOCKS_OF_PAIRS,
            why_=why,
            least_=least,
            most_=most,
            blocks=count,
            reason=refusal.notice.evidence.get("reason"),
            rising=trend is not None,
        ),
    )


_TIMES = 5.0  # as wide as the interval of the median
_ROUNDING = 1e-9  # an interval this narrow has no width


def median_ratio(baseline: Floats, candidate: Floats, confidence: float) -> Estimate | None:
    """Estimate the median of the ratios of pairs; None if they are too few or not above 0.

    The median of logarithms only changes its sign when pairs are exchanged.
    """
    if not float(np.minimum(baseline, candidate).min()) > 0.0:
        return None
    try:
        log = quantile_of(np.log(candidate / baseline), 0.5, confidence)
    except NotEstimable:
        return None
    return replace(exponential(log), notices=())


def carried_by_few(ratio: Estimate, median: Estimate | None) -> tuple[Notice, ...]:
    """Say if the interval of a ratio of means is unbounded, or five times the median's."""
    if ratio.low < 0.0 or ratio.value <= 0.0:
        return ()  # not a ratio of positive quantities
    width = _log_width(ratio)
    of_median = math.inf if median is None else _log_width(median)
    if width <= _ROUNDING or (math.isfinite(width) and width <= _TIMES * of_median):
        return ()
    times = width / max(of_median, _ROUNDING)
    how = "is unbounded"
    if math.isfinite(width):
        how = f"is {counted(times)} times as wide as for the median"
    instead = ""
    if median is not None:
        instead = (
            f" The median ratio of the pairs is {show_change(median)} "
            f"{percent(median.confidence, digits=10)}."
        )
    return (
        Notice.of(
            Code.FEW_PAIRS_CARRY,
            how_=how,
            instead_=instead,
            times=times if math.isfinite(times) else None,
            median=None if median is None else median.value,
            low=None if median is None else median.low,
            high=None if median is None else median.high,
        ),
    )


def _log_width(ratio: Estimate) -> float:
    if ratio.low <= 0.0 or math.isinf(ratio.high):
        return math.inf
    return math.log(ratio.high / ratio.low)
