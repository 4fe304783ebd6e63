"""Baseline and candidate if no interval of their ratio can be estimated: blocks of pairs.

Both sides of a block were measured in turn, so that whatever the machine did meanwhile is in both.
No distribution is assumed, only that a block is as often above the median of blocks as below it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.series import Floats
from benchrigor.stats.phases.stability_rules import find_trend
from benchrigor.stats.series.wall_time_blocks import block_starts
from benchrigor.stats.statistics.order_statistics import quantile_value
from benchrigor.stats.statistics.proportion import MIN_IN_TAIL
from benchrigor.stats.statistics.statistic import Policy

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
    baseline: Floats, candidate: Floats, policy: Policy, refusal: NotEstimable
) -> PairBlocks:
    """Cut pairs into twelve blocks of equal wall time, and compare both sides of each.

    Raises
    ------
    NotEstimable
        The ``refusal`` of an interval, if there are too few blocks for the confidence, readings
        are not above 0, or only the longest segment may count.
    """
    q, n = policy.statistic.q, baseline.size
    # A block of few pairs has no far quantile.
    too_few = q is not None and min(q, 1.0 - q) * n < MIN_IN_TAIL * _BLOCKS
    if not policy.statistic.follows_pace or policy.takes_longest or too_few or n < 2:
        raise refusal
    if not float(np.minimum(baseline, candidate).min()) > 0.0:
        raise refusal
    starts = block_starts(baseline + candidate, blocks=_BLOCKS)
    one, two = (
        np.array([_level(part, q) for part in np.split(side, starts[1:])])
        for side in (baseline, candidate)
    )
    if _rank(one.size, policy.confidence) < 1:
        raise refusal
    return PairBlocks(
        ratios=two / one, differences=two - one, n=baseline.size, confidence=policy.confidence
    )


def _level(part: Floats, q: float | None) -> float:
    return float(part.mean()) if q is None else quantile_value(part, q)


def _rank(blocks: int, confidence: float) -> int:
    """Return which order statistics from either end hold the median of blocks; 0 if none do.

    The largest r with P(B < r) at most half the error, B binomial (blocks, 1/2): the interval of
    the sign test (Thompson 1936; Conover 1999, section 3.2).
    """
    tails = special.bdtr(np.arange(blocks), blocks, 0.5)
    return int(np.searchsorted(tails, (1.0 - confidence) / 2.0, side="right"))


def by_blocks(refusal: NotEstimable, ratios: Floats, blocks: PairBlocks) -> tuple[Notice, ...]:
    """Say why there is no interval by the readings of pairs with these ratios, and what instead."""
    assert isinstance(refusal.notice, Notice)  # noqa: S101  # for the type checker
    why, trend = refusal.notice.sentence, find_trend(ratios, ())
    count, least, most = blocks.ratios.size, float(blocks.ratios.min()), float(blocks.ratios.max())
    if trend is not None:
        why = f"The ratio {trend.way()}, to the end."
    return (
        Notice.warning(
            Code.BLOCKS_OF_PAIRS,
            f"{why} What is given is the median of {count} blocks of pairs, each measured in "
            f"turn, and an interval that assumes no distribution; the ratios of the blocks are "
            f"{least:.3g} to {most:.3g}.",
            blocks=count,
            reason=refusal.notice.evidence.get("reason"),
            rising=trend is not None,
        ),
    )
