"""From readings to an estimate: trim, fit, combine.

`Session`, `estimate_mean`, `estimate_quantile`, `estimate_invocations` and `compare` all end here,
so the same readings give the same number through each of them. A `Policy` holds all their
differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import ChangePoints, Code, Estimate, Notice, StablePhase
from benchrigor.model.analysis import Kind, LevelFit, PhaseReason
from benchrigor.model.notice import Severity, one_each
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.detector import MIN_FOR_CHANGES
from benchrigor.stats.changepoints.edm import name_averaging
from benchrigor.stats.estimators.order_statistics import quantile_of, quantile_value
from benchrigor.stats.estimators.proportion import (
    MIN_IN_TAIL,
    WILSON,
    are_outcomes,
    combine_shares,
    estimate_outcomes,
)
from benchrigor.stats.estimators.rate import (
    HARMONIC,
    are_equal,
    averaged_as,
    reciprocal,
    weighted_mean,
)
from benchrigor.stats.estimators.variance_components import INVOCATION_MEANS, combine_values
from benchrigor.stats.phases.chosen_phase import few_in_order
from benchrigor.stats.phases.cold_readings import (
    behind_cold,
    cold_first,
    first_piece,
    measured_from,
    whole_piece,
)
from benchrigor.stats.phases.longest_segment import longest_segment
from benchrigor.stats.phases.one_pace import choose_at_one_pace
from benchrigor.stats.phases.policy import Policy
from benchrigor.stats.phases.rounds_cut import cut_rounds
from benchrigor.stats.phases.trimming import measured_phase, phase_by_shares, short_run, trimmed
from benchrigor.stats.series.interval import (
    LONG_RUN_VARIANCE,
    estimate_level,
)
from benchrigor.stats.series.level import (
    MIN_FOR_AUTOCORRELATION,
    MIN_FOR_VARIANCE,
    fit_level,
    too_few,
)
from benchrigor.stats.series.remembered import remembered
from benchrigor.stats.series.subsessions import SUBSESSIONS, fit_merged
from benchrigor.stats.series.wall_time_blocks import BLOCKS, block_starts, fit_blocks

_SEVERAL = (Kind.INVOCATIONS, Kind.PIECES)  # of several series


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimation:
    """An estimate with its intermediate results, or the Notices that say why there is none."""

    estimate: Estimate | None = None
    notices: tuple[Notice, ...] = ()
    phases: tuple[StablePhase, ...] = ()
    kept: tuple[Floats | None, ...] = ()  # trimmed series; None without a stable phase
    fits: tuple[LevelFit, ...] = ()
    # Of each invocation, of a harmonic mean its reciprocal; None if it allows none.
    values: tuple[float | None, ...] = ()

    def levels(self, policy: Policy) -> tuple[float | None, ...]:
        """Return the values in the unit of the readings."""
        if policy.harmonic and policy.q is None:
            return tuple(value and 1.0 / value for value in self.values)
        return self.values

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
    if judged and not policy.share and (moving := few_in_order(series[0])):
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
    if policy.method != LONG_RUN_VARIANCE or policy.share:
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
    """Fit and combine trimmed series."""
    estimation = _combined(kept, policy, weights)
    measured = [series for series in kept if series is not None]
    inverted = policy.harmonic and policy.q is None and estimation.estimate is not None
    if inverted and are_equal(*measured):
        # The reciprocal of a reciprocal is rounded.
        equal = _combined(kept, replace(policy, harmonic=False), weights)
        assert equal.estimate is not None  # noqa: S101  # for the type checker
        estimation = replace(
            estimation, estimate=averaged_as(HARMONIC, equal.estimate), notices=equal.notices
        )
    notices = estimation.notices
    if estimation.estimate is not None and policy.q is not None and policy.batch > 1:
        notices = (*notices, warn_of_batches(policy.batch))
    return replace(_add_notices(estimation, notices), kept=tuple(kept))


def _combined(kept: Sequence[Floats | None], policy: Policy, weights: Floats | None) -> Estimation:
    if policy.kind in _SEVERAL:
        return _over_series(kept, policy)
    series = kept[0]
    return Estimation() if series is None else _of_series(series, policy, weights)


def _of_series(series: Floats, policy: Policy, weights: Floats | None) -> Estimation:
    transients, confidence = policy.transients(1), policy.confidence
    fits: tuple[LevelFit, ...] = ()
    try:
        if policy.q is not None:
            starts = block_starts(series) if policy.method == BLOCKS else None
            estimate = quantile_of(
                series, policy.q, confidence, transients=transients, blocks=starts
            )
        elif policy.share and weights is None and are_outcomes(series):
            estimate = estimate_outcomes(series, confidence)
        elif policy.share:
            estimate = combine_shares(series, weights, confidence)
        elif weights is not None:
            estimate = weighted_mean(series, weights, confidence)
        else:
            fits = (_fit(series, policy, transients),)
            estimate = _invert(_level(fits[0], series, policy), policy)
        estimate = policy.number(estimate)
    except NotEstimable as error:
        return Estimation(fits=fits, notices=(notice_of(error),))
    return Estimation(estimate=estimate, fits=fits, notices=estimate.notices)


def _level(fit: LevelFit, series: Floats, policy: Policy) -> Estimate:
    """Return the estimate of a level; of blocks that of this time, which lies among them."""
    values = 1.0 / series if policy.harmonic else series
    least, most = float(values.min()), float(values.max())
    estimate = estimate_level(fit, policy.confidence, positive=least >= 0.0)
    if policy.method == BLOCKS:
        return replace(estimate, low=max(estimate.low, least), high=min(estimate.high, most))
    return estimate


def _fit(series: Floats, policy: Policy, transients: tuple[float, ...]) -> LevelFit:
    values = 1.0 / series if policy.harmonic else series
    if policy.method == BLOCKS:
        return fit_blocks(values, block_starts(values))
    if policy.method != SUBSESSIONS:
        return fit_level(values, transients=transients)
    if policy.kind is Kind.INVOCATIONS:
        return fit_level(values)
    return fit_merged(values, limit=policy.autocorrelation_limit)


_fit_round = remembered(_fit)


def _invert(estimate: Estimate, policy: Policy) -> Estimate:
    return reciprocal(estimate) if policy.harmonic else estimate


def _mean(series: Floats) -> float:
    return float(series[0] if are_equal(series) else series.mean())


def _over_series(kept: Sequence[Floats | None], policy: Policy) -> Estimation:
    transients = policy.transients(len(kept))
    fits: list[LevelFit] = []
    values: list[float | None] = []
    refusals: list[Notice] = []
    for series in kept:
        value = None
        try:
            if series is not None and policy.q is not None:
                value = quantile_value(series, policy.q, transients=transients)
            elif series is not None and policy.kind is Kind.PIECES:
                value = _mean(1.0 / series if policy.harmonic else series)
            elif series is not None and series.size < MIN_FOR_VARIANCE and policy.trim is not True:
                # A command that is run once gives an invocation of one reading.
                value = float(1.0 / series[0] if policy.harmonic else series[0])
            elif series is not None and policy.share:
                value = _mean(series)
            elif series is not None:
                fits.append(_fit_round(series, policy, transients))
                value = fits[-1].level
        except NotEstimable as error:
            refusals.append(notice_of(error))
        values.append(value)
    estimation = Estimation(fits=tuple(fits), values=tuple(values))
    if values.count(None) == len(values):
        return replace(estimation, notices=tuple(refusals[:1]))
    try:
        estimate = policy.number(_combine(kept, estimation, policy))
    except NotEstimable as error:
        return replace(estimation, notices=(notice_of(error),))
    return replace(estimation, estimate=estimate, notices=estimate.notices)


def _combine(kept: Sequence[Floats | None], estimation: Estimation, policy: Policy) -> Estimate:
    """Combine the values of the invocations that have one."""
    counted = [
        (series, value)
        for series, value in zip(kept, estimation.values, strict=True)
        if series is not None and value is not None
    ]
    unit = "piece" if policy.kind is Kind.PIECES else "invocation"
    if policy.share and policy.q is None and unit == "invocation":
        if len(counted) == 1:
            return _of_one(estimate_outcomes(counted[0][0], policy.confidence))
        sizes = np.array([float(series.size) for series, _ in counted])
        shares = combine_shares(np.array([value for _, value in counted]), sizes, policy.confidence)
        return replace(shares, method=f"{WILSON}, {INVOCATION_MEANS}")
    if len(counted) > 1:
        values, harmonic = [value for _, value in counted], policy.harmonic and policy.q is None
        estimate = combine_values(values, policy.confidence, unit, harmonic=harmonic)
        if policy.q is None:
            return estimate
        shortest = min(series.size for series, _ in counted)
        thin = _thin_tail(shortest, policy.q, unit)
        return replace(estimate, notices=(*thin, *estimate.notices))
    confidence, transients = policy.confidence, policy.transients(len(kept))
    if policy.q is not None:
        return _of_one(quantile_of(counted[0][0], policy.q, confidence, transients=transients))
    if not estimation.fits:
        raise NotEstimable(too_few(1, MIN_FOR_VARIANCE))
    return _invert(_of_one(_level(estimation.fits[0], counted[0][0], policy)), policy)


def _of_one(inner: Estimate) -> Estimate:
    """Turn the estimate of a series into the estimate over one invocation."""
    sentence = "One invocation: the interval holds for this process only."
    only = Notice.warning(Code.THIS_PROCESS_ONLY, sentence, invocations=1)
    return replace(inner, n=1, n_effective=1.0, notices=(only, *inner.notices))


def rejected_notices(rejected: int, total: int) -> tuple[Notice, ...]:
    """Say how many invocations do not count; if none does, the refusal of their phases tells."""
    if rejected in {0, total}:
        return ()
    sentence = f"{rejected} of {total} rounds have no stable phase and do not count."
    return (Notice.warning(Code.ROUNDS_REJECTED, sentence, rejected=rejected, rounds=total),)


def _thin_tail(shortest: int, q: float, unit: str) -> Iterator[Notice]:
    """Warn if the shortest invocation has so few readings that its quantile is biased."""
    in_tail, wanted = shortest * min(q, 1.0 - q), MIN_IN_TAIL
    if in_tail < wanted:
        sentence = (
            f"The shortest {unit} has {shortest} readings, {in_tail:.2g} of them beyond the "
            f"{q * 100:g}% quantile: below {wanted} the quantile is biased."
        )
        yield Notice.warning(Code.FEW_IN_TAIL, sentence, n=shortest, in_tail=in_tail, wanted=wanted)


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
