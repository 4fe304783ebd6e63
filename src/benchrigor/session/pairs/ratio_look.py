"""The comparison of the pairs so far, and whether there are enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from benchrigor.errors import NotEstimable
from benchrigor.model import Analysis, Comparison, Estimate, Floats, Kind, Metric, Notice, Verdict
from benchrigor.session.stop_rules import HOPELESS, Floor
from benchrigor.stats.comparison.two_sample import Question, compare_pairs
from benchrigor.stats.estimators.estimation import notice_of
from benchrigor.stats.phases.trimming import STABLE_SHARE

RATIO = Metric(name="ratio")  # candidate over baseline; its readings are pairs
_TIMES = 2.0  # from this ratio on a change is shown as a factor instead of per cent


def wanted_at(ratio: float, target: float) -> float:
    """Return the half-width wanted at a ratio, in proportion to a ratio above 2."""
    return target * max(1.0, ratio / _TIMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioLook:
    """The comparison of ``n`` pairs; those from ``start`` to ``stop`` count, if it is estimable."""

    comparison: Comparison
    n: int
    start: int = 0
    stop: int = 0

    @property
    def is_steady(self) -> bool:
        """Whether the stable phase lasts to the end and holds most pairs."""
        return self.stop == self.n and self.stop - self.start >= STABLE_SHARE * self.n


def look_at(baseline: Floats, candidate: Floats, question: Question) -> RatioLook:
    """Compare the stable pairs of two series taken in turn, shape (n,) each."""
    try:
        comparison, pairs = compare_pairs(baseline, candidate, question)
    except NotEstimable as error:
        return RatioLook(comparison=_unknown(question, notice_of(error)), n=baseline.size)
    return RatioLook(comparison=comparison, n=baseline.size, start=pairs.start, stop=pairs.stop)


def required_pairs(look: RatioLook, target: float, floor: Floor) -> int | None:
    """Predict how many pairs in all the target takes; None without a ratio."""
    ratio = look.comparison.ratio
    if ratio is None:
        return None
    shrink = ratio.half_width / wanted_at(ratio.value, target)
    factor = max(min(shrink, HOPELESS) ** 2, floor.effective / ratio.n_effective)
    # A phase that has ended will not count.
    before = look.start if look.stop == look.n else look.stop
    needed_for_share = before / (1.0 - STABLE_SHARE)
    return math.ceil(max(look.n * factor, needed_for_share, floor.first_check))


def as_analysis(look: RatioLook, required: int | None) -> Analysis:
    """Return the look as an Analysis, for stop rules and displays of progress."""
    return Analysis(
        metric=RATIO,
        kind=Kind.UNIT_READINGS,
        n=look.n,
        n_kept=look.stop - look.start,
        estimate=look.comparison.ratio,
        required=required,
        notices=look.comparison.notices,
    )


def noted(
    comparison: Comparison, *, before: tuple[Notice, ...] = (), after: tuple[Notice, ...] = ()
) -> Comparison:
    """Add notices to a comparison, its ratio and its difference."""

    def added(estimate: Estimate | None) -> Estimate | None:
        if estimate is None:
            return None
        return replace(estimate, notices=(*before, *estimate.notices, *after))

    return replace(
        comparison,
        ratio=added(comparison.ratio),
        difference=added(comparison.difference),
        notices=(*before, *comparison.notices, *after),
    )


def _unknown(question: Question, notice: Notice) -> Comparison:
    """Return the comparison of pairs that allow no estimate."""
    return Comparison(
        statistic=question.statistic,
        direction=question.direction,
        margin=question.margin,
        confidence=question.policy.confidence,
        paired=True,
        unit="pair",
        baseline=None,
        candidate=None,
        ratio=None,
        difference=None,
        p_value=None,
        p_beyond=1.0,
        verdict=Verdict.UNDECIDED,
        notices=(notice,),
    )
