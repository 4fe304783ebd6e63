"""The stable phase of pairs of readings: of both series, or of their ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Notice
from benchrigor.model.analysis import PhaseReason
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.detector import MIN_FOR_CHANGES
from benchrigor.stats.estimators.estimation import phase_of
from benchrigor.stats.phases.chosen_phase import choose_phase
from benchrigor.stats.phases.trimming import measured_part, measured_phase
from benchrigor.stats.series.level import MIN_FOR_VARIANCE, TRANSIENTS, too_few
from benchrigor.stats.statistics.statistic import Policy

# Of pairs with a stable ratio in series that move, the first third is left out, since no transient
# can be fitted beside a moving level. With a warm-up in one series intervals then cover in 0.87 to
# 0.98 of cases, else in 0.61 to 0.97 (500 and 1125 pairs).
_SETTLING = 3
_MOST = 0.8  # of the pairs: what is cut then is a warm-up, not another pace of the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class StablePairs:
    """The stable phase of pairs, and the part of it that is compared."""

    start: int
    stop: int
    measured: slice
    transients: tuple[float, ...] = ()  # time constants fitted along with the levels
    notices: tuple[Notice, ...] = ()


def stable_pairs(baseline: Floats, candidate: Floats, policy: Policy) -> StablePairs:
    """Choose the pairs that are stable in both series and in their difference.

    If those are less than 0.8 of all, since the machine changes its speed under both, the pairs
    with a stable ratio are chosen if they are more. All pairs are kept if they are too few to
    look for a phase. By the published method the pairs in the longest segments of both count, and
    nothing tells whether they are steady.

    Raises
    ------
    NotEstimable
        When too few pairs are stable, or the ratio has several levels and not only a warm-up.
    """
    n = baseline.size
    if n < MIN_FOR_CHANGES:
        return StablePairs(start=0, stop=n, measured=slice(0, n))
    if policy.takes_longest:
        one, two = (measured_part(phase_of(side, policy)) for side in (baseline, candidate))
        shared = slice(max(one.start, two.start), min(one.stop, two.stop))
        return StablePairs(start=0, stop=n, measured=shared)
    baseline, candidate = _in_order(baseline, candidate)
    try:
        both = _stable_in_both(baseline, candidate, policy)
    except NotEstimable:
        by_ratio = _stable_ratio(baseline, candidate, policy)
        if by_ratio is None:
            raise
        return by_ratio
    if both.stop - both.start >= _MOST * n:
        return both
    by_ratio = _stable_ratio(baseline, candidate, policy)
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


def _stable_in_both(baseline: Floats, candidate: Floats, policy: Policy) -> StablePairs:
    """Find stable pairs; the difference shows a warm-up that common noise hides in both series.

    The detector of the policy cuts both series. Whether their difference, or their ratio, is steady
    is for a test to say, which a published method may not have.
    """
    middle = float(np.median(baseline))
    ratio = float(np.median(candidate)) / middle if middle else 1.0
    difference = candidate - ratio * (baseline - middle)
    phases = [phase_of(baseline, policy), phase_of(candidate, policy)]
    phases.append(measured_phase(difference, policy))
    parts = [measured_part(phase) for phase in phases]
    start, stop = max(part.start for part in parts), min(part.stop for part in parts)
    if stop - start < MIN_FOR_VARIANCE:
        raise NotEstimable(too_few(max(stop - start, 0), MIN_FOR_VARIANCE))
    return StablePairs(start=start, stop=stop, measured=slice(start, stop), transients=TRANSIENTS)


def _stable_ratio(baseline: Floats, candidate: Floats, policy: Policy) -> StablePairs | None:
    """Find pairs whose ratio is stable, though both series may move together."""
    if min(float(baseline.min()), float(candidate.min())) <= 0.0:
        return None
    ratio = candidate / baseline
    phase = measured_phase(ratio, policy)
    phase = choose_phase(ratio, phase, policy)
    if phase.start is None or phase.stop is None or phase.reason is PhaseReason.SLOW_NOISE:
        return None
    if phase.reason is PhaseReason.CHANGING_PACE:
        raise NotEstimable(Notice.refusal(Code.NO_STABLE_PHASE, "The ratio has several levels."))
    inside = measured_part(phase)
    settled = inside.start + (inside.stop - inside.start) // _SETTLING
    if inside.stop - settled < MIN_FOR_VARIANCE:
        return None
    sentence = (
        "Baseline and candidate changed their speed alike: their times and intervals are of this "
        "run only, and their ratio is not affected."
    )
    return StablePairs(
        start=phase.start,
        stop=phase.stop,
        measured=slice(settled, inside.stop),
        notices=(Notice.warning(Code.NO_STABLE_PHASE, sentence),),
    )
