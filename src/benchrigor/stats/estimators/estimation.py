"""From readings to an estimate: trim, fit, combine.

`Session`, `estimate_mean`, `estimate_quantile`, `estimate_invocations` and `compare` all end here,
so the same readings give the same number through each of them. A `Policy` holds all their
differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchrigor.errors import NotEstimable
from benchrigor.model import ChangePoints, Code, Estimate, Notice, StablePhase
from benchrigor.model.analysis import Kind, LevelFit, PhaseReason
from benchrigor.model.notice import Severity, one_each
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.detector import MIN_FOR_CHANGES
from benchrigor.stats.changepoints.edm import name_averaging
from benchrigor.stats.phases.chosen_phase import choose_at_one_pace, few_in_order
from benchrigor.stats.phases.rounds_cut import cut_rounds
from benchrigor.stats.phases.stable_phase import longest_segment
from benchrigor.stats.phases.trimming import (
    behind_cold,
    cold_first,
    first_piece,
    measured_from,
    measured_phase,
    phase_by_shares,
    short_run,
    trimmed,
    whole_piece,
)
from benchrigor.stats.series.interval import LONG_RUN_VARIANCE
from benchrigor.stats.series.level import BLOCKS, MIN_FOR_AUTOCORRELATION, MIN_FOR_VARIANCE
from benchrigor.stats.statistics.statistic import Policy, Several

_SEVERAL = (Kind.INVOCATIONS, Kind.PIECES)  # of several series


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimation:
    """An estimate with its intermediate results, or the Notices that say why there is none."""

    estimate: Estimate | None = None
    notices: tuple[Notice, ...] = ()
    phases: tuple[StablePhase, ...] = ()
    kept: tuple[Floats | None, ...] = ()  # trimmed series; None without a stable phase
    fits: tuple[LevelFit, ...] = ()
    values: tuple[float | None, ...] = ()  # of each invocation or piece; None if it allows none

    def estimate_or_raise(self) -> Estimate:
        """Return the estimate, or raise NotEstimable with the last refusal."""
        if self.estimate is None:
            refusals = [notice for notice in self.notices if notice.severity is Severity.REFUSAL]
            raise NotEstimable(refusals[-1])
        return self.estimate


def estimate(
    series: Sequence[Floats],
    policy: Policy,
    phases: Sequence[StablePhase] | None = None,
    weights: Floats | None = None,
) -> Estimation:
    """Trim, fit and combine one series, or one per invocation; ``phases`` if they are known.

    ``weights`` are what the readings of one series count in its mean.
    """
    looked_for = policy.trim is True and policy.kind not in _SEVERAL
    judged = looked_for and not policy.takes_longest
    if judged and policy.statistic.follows_pace and (moving := few_in_order(series[0])):
        return Estimation(notices=(moving,))
    if phases is None:
        phases = trim(series, policy) if policy.trim else ()
    policy = adapt(policy, phases)
    kept_weights = None if weights is None else keep((weights,), phases)[0]
    estimation = estimate_kept(keep(series, phases), policy, kept_weights)
    notices = _once((*_phase_notices(phases), *estimation.notices))
    rejected, count = estimation.values.count(None), len(estimation.values)
    if rejected < count or not notices:  # otherwise they say why none counts
        notices = (*rejected_notices(rejected, count), *notices)
    if estimation.estimate is not None and looked_for and policy.kind is Kind.UNIT_READINGS:
        notices += short_run(series[0].size)
    if policy.takes_longest and estimation.estimate is not None:
        method = name_averaging(estimation.estimate.method, max(values.size for values in series))
        estimation = replace(estimation, estimate=replace(estimation.estimate, method=method))
    return replace(_add_notices(estimation, one_each(notices)), phases=tuple(phases))


def phase_of(series: Floats, policy: Policy) -> StablePhase:
    """Find the stable phase of one series to measure."""
    points = None if policy.detector is None else policy.detector(series)
    if points is not None and policy.takes_longest:
        return longest_segment(series, points)
    return measured_phase(series, policy, points)


def _add_notices(estimation: Estimation, notices: tuple[Notice, ...]) -> Estimation:
    """Put the notices on the estimation and on its estimate."""
    estimate = estimation.estimate and replace(estimation.estimate, notices=notices)
    return replace(estimation, estimate=estimate, notices=notices)


def _once(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Keep the first Notice of each code."""
    first: dict[Code, Notice] = {}
    for notice in notices:
        first.setdefault(notice.code, notice)
    return tuple(first.values())


def trim(
    series: Sequence[Floats], policy: Policy, change_points: ChangePoints | None = None
) -> tuple[StablePhase, ...]:
    """Cut each series as asked, or find its stable phase; none if there are too few readings."""
    if not isinstance(policy.trim, bool):
        return tuple(phase_by_shares(values, policy.trim) for values in series)
    if policy.takes_longest or (policy.detector and policy.kind is Kind.INVOCATIONS):
        return tuple(phase_of(values, policy) for values in series)
    if policy.kind is Kind.INVOCATIONS:
        if len(series) == 1:
            return _chosen(series[0], policy)
        return cut_rounds(series, policy)
    if policy.kind is Kind.PIECES:
        one = replace(policy, kind=Kind.UNIT_READINGS)
        first = first_piece(series[0], trim(series[:1], one, change_points))
        return (first, *later_pieces(series[1:], policy))
    found = _searched(series[0], policy, change_points)
    cold = None if policy.higher else cold_first(series[0])
    if cold is None or (found and measured_from(found[0]) != 0):
        return found
    points = change_points and change_points.within(1, series[0].size)
    rest = replace(policy, references=None)  # they are along the whole series
    return (behind_cold(series[0], cold, _searched(series[0][1:], rest, points)),)


def _searched(
    series: Floats, policy: Policy, change_points: ChangePoints | None
) -> tuple[StablePhase, ...]:
    """Find the stable phase of a single series; none if there are too few readings."""
    fewest = MIN_FOR_AUTOCORRELATION if policy.kind is Kind.READINGS else MIN_FOR_CHANGES
    if series.size < fewest:
        return ()
    if change_points is None and policy.detector is not None:
        change_points = policy.detector(series)
    return _chosen(series, policy, change_points)


def _chosen(
    series: Floats, policy: Policy, change_points: ChangePoints | None = None
) -> tuple[StablePhase]:
    """Choose the readings to measure; shares and subsessions have no average over time."""
    phase = measured_phase(series, policy, change_points)
    if policy.method != LONG_RUN_VARIANCE or not policy.statistic.follows_pace:
        return (phase,)
    return (choose_at_one_pace(series, phase, policy),)


def later_pieces(series: Sequence[Floats], policy: Policy) -> tuple[StablePhase, ...]:
    """Cut pieces after the first as asked, or take them whole: the first had the warm-up."""
    if isinstance(policy.trim, bool) and not policy.takes_longest:
        return tuple(map(whole_piece, series))
    return trim(series, policy)


def adapt(policy: Policy, phases: Sequence[StablePhase]) -> Policy:
    """Return the policy that the phases ask for: blocks, or no transients fitted along."""
    reasons = {phase.reason for phase in phases if policy.kind is not Kind.PIECES}
    if reasons & {PhaseReason.SLOW_NOISE, PhaseReason.LONGEST_SEGMENT}:
        policy = replace(policy, trim=False)
    return replace(policy, method=BLOCKS) if PhaseReason.CHANGING_PACE in reasons else policy


def keep(series: Sequence[Floats], phases: Sequence[StablePhase]) -> tuple[Floats | None, ...]:
    """Return the trimmed series, or the whole ones if no phases were looked for."""
    if not phases:
        return tuple(series)
    return tuple(
        None if phase.start is None else trimmed(values, phase)
        for values, phase in zip(series, phases, strict=True)
    )


def _phase_notices(phases: Sequence[StablePhase]) -> tuple[Notice, ...]:
    """Return the notices of the first phase that is measured, or else of the first one."""
    measured = [phase for phase in phases if phase.n >= MIN_FOR_VARIANCE]
    return next((phase.notices for phase in (*measured, *phases)), ())


def estimate_kept(
    kept: Sequence[Floats | None], policy: Policy, weights: Floats | None = None
) -> Estimation:
    """Estimate the statistic of trimmed series."""
    estimation = Estimation()
    if policy.kind in _SEVERAL:
        estimation = _over_series(kept, policy)
    elif kept[0] is not None:
        estimation = _of_series(kept[0], policy, weights)
    notices = estimation.notices
    if estimation.estimate is not None and policy.statistic.q is not None and policy.batch > 1:
        notices = (*notices, warn_of_batches(policy.batch))
    return replace(_add_notices(estimation, notices), kept=tuple(kept))


def _of_series(series: Floats, policy: Policy, weights: Floats | None) -> Estimation:
    fits: tuple[LevelFit, ...] = ()
    try:
        estimate, fits = policy.statistic.of_series(series, policy, weights)
        estimate = policy.number(estimate)
    except NotEstimable as error:
        return Estimation(fits=fits, notices=(notice_of(error),))
    return Estimation(estimate=estimate, fits=fits, notices=estimate.notices)


def _over_series(kept: Sequence[Floats | None], policy: Policy) -> Estimation:
    policy, statistic = replace(policy, several=len(kept) > 1), policy.statistic
    fits: list[LevelFit] = []
    values: list[float | None] = []
    refusals: list[Notice] = []
    for series in kept:
        value = None
        try:
            if series is not None:
                value, found = statistic.of_each(series, policy)
                fits += found
        except NotEstimable as error:
            refusals.append(notice_of(error))
        values.append(value)
    estimation = Estimation(fits=tuple(fits), values=tuple(values))
    counted = [
        (series, value)
        for series, value in zip(kept, values, strict=True)
        if series is not None and value is not None
    ]
    if not counted:
        return replace(estimation, notices=tuple(refusals[:1]))
    several = Several(
        series=[series for series, _ in counted],
        values=[value for _, value in counted],
        fits=estimation.fits,
        policy=policy,
    )
    try:
        estimate = policy.number(statistic.of_several(several))
    except NotEstimable as error:
        return replace(estimation, notices=(notice_of(error),))
    return replace(estimation, estimate=estimate, notices=estimate.notices)


def rejected_notices(rejected: int, total: int) -> tuple[Notice, ...]:
    """Say how many invocations do not count; if none does, the refusal of their phases tells."""
    if rejected in {0, total}:
        return ()
    sentence = f"{rejected} of {total} rounds have no stable phase and do not count."
    return (Notice.warning(Code.ROUNDS_REJECTED, sentence, rejected=rejected, rounds=total),)


def warn_of_batches(calls: int) -> Notice:
    """Warn of quantiles of averages."""
    sentence = (
        f"Each reading averages {calls} calls: quantiles of averages lie nearer to the mean than "
        "those of single calls."
    )
    return Notice.warning(Code.BATCHED, sentence, calls=calls)


def notice_of(error: NotEstimable) -> Notice:
    """Return the Notice of the error."""
    assert isinstance(error.notice, Notice)  # noqa: S101  # for the type checker: errors lie below
    return error.notice
