"""From readings to an estimate, the one way behind every door: trim, fit, combine.

`Session`, `estimate_mean`, `estimate_quantile`, `estimate_invocations` and `compare` all end here,
so that the same readings give the same number through each of them. A `Policy` holds all in
which they may differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import (
    ChangePoints,
    Code,
    Estimate,
    Floats,
    Kind,
    LevelFit,
    Notice,
    Severity,
    StablePhase,
)
from benchrigor.stats.estimators.order_statistics import quantile_of, quantile_value
from benchrigor.stats.estimators.proportion import FEWEST_IN_TAIL
from benchrigor.stats.estimators.rate import reciprocal
from benchrigor.stats.phases.common_warm_up import common_phases
from benchrigor.stats.phases.trimming import FEWEST_CUT, bearable_phase, short_run, trimmed
from benchrigor.stats.series.interval import METHOD, estimate_level, student_t
from benchrigor.stats.series.level import FEW, FEWEST, fit_level, too_few
from benchrigor.stats.series.subsessions import MERGING, fit_merged
from benchrigor.stats.series.transients import COMPLETE, TRANSIENTS

__all__ = [
    "ENOUGH",
    "INVOCATION_MEANS",
    "Estimation",
    "Policy",
    "batched",
    "combine_levels",
    "combine_values",
    "estimate",
    "estimate_kept",
    "keep",
    "notice_of",
    "rejected_notices",
    "trim",
]

INVOCATION_MEANS = "invocation means"
ENOUGH = 10
"""Below so many invocations a rare memory layout or code path is easily missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is estimated of readings, and how."""

    kind: Kind = Kind.UNIT_READINGS
    """One series of unit readings, one reading a round, or a series for each invocation."""
    q: float | None = None
    """Share of readings below the quantile; None for the mean."""
    confidence: float = 0.95
    trim: bool = False
    """Estimate the stable phase, not all readings."""
    method: str = METHOD
    harmonic: bool = False
    """The mean of rates over equal work: the mean of their reciprocals, inverted."""
    batch: int = 1
    """Calls that each reading averages."""

    def transients(self, series: int) -> tuple[float, ...]:
        """Return the time constants of what is fitted beside the level of each series.

        Invocations are cut by what they have in common, which shows more than one series does;
        a single one may end in a cool-down that nothing shows. Single readings have no warm-up.
        """
        if not self.trim or self.kind is Kind.READINGS:
            return ()
        return COMPLETE if series == 1 else TRANSIENTS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimation:
    """An estimate with what it is made of, or the Notices that say why there is none."""

    estimate: Estimate | None = None
    notices: tuple[Notice, ...] = ()
    phases: tuple[StablePhase, ...] = ()
    kept: tuple[Floats | None, ...] = ()
    """What is kept of each series; None where it has no stable phase."""
    fits: tuple[LevelFit, ...] = ()
    values: tuple[float | None, ...] = ()
    """The mean or quantile of each invocation; None where it allows none."""

    def required(self) -> Estimate:
        """Return the estimate, or raise NotEstimable with the Notice that says most."""
        if self.estimate is None:
            refusals = [each for each in self.notices if each.severity is Severity.REFUSAL]
            raise NotEstimable(refusals[-1])
        return self.estimate


def estimate(
    series: Sequence[Floats], policy: Policy, phases: Sequence[StablePhase] | None = None
) -> Estimation:
    """Trim, fit and combine one series, or one per invocation; ``phases`` where they are known."""
    if phases is None:
        phases = trim(series, policy) if policy.trim else ()
    found = estimate_kept(keep(series, phases), policy)
    rejected = rejected_notices(found.values.count(None), len(found.values))
    notices = _once((*rejected, *_phase_notices(phases), *found.notices))
    if found.estimate is not None and policy.trim and policy.kind is Kind.UNIT_READINGS:
        notices += short_run(series[0].size)
    return replace(
        found,
        estimate=found.estimate and replace(found.estimate, notices=notices),
        notices=notices,
        phases=tuple(phases),
    )


def _once(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Keep the first Notice of each code."""
    first: dict[Code, Notice] = {}
    for each in notices:
        first.setdefault(each.code, each)
    return tuple(first.values())


def trim(
    series: Sequence[Floats], policy: Policy, change_points: ChangePoints | None = None
) -> tuple[StablePhase, ...]:
    """Find the stable phase of each series; none where readings are too few to look for it."""
    if policy.kind is Kind.INVOCATIONS:
        return _invocation_phases(series, policy.confidence)
    fewest = FEW if policy.kind is Kind.READINGS else FEWEST_CUT
    if series[0].size < fewest:
        return ()
    return (bearable_phase(series[0], policy.confidence, change_points),)


def _invocation_phases(series: Sequence[Floats], confidence: float) -> tuple[StablePhase, ...]:
    """Cut all invocations alike, or each for itself where only that leaves most of them.

    A busy machine favours the start of every round, which is no warm-up of the workload.
    """
    common = common_phases(series, confidence=confidence)
    if len(common) == 1 or any(phase.start is not None for phase in common):
        return common
    own = tuple(bearable_phase(each, confidence) for each in series)
    if 2 * sum(phase.n >= FEWEST for phase in own) <= len(own):
        return common
    sentence = "The rounds have no steady state in common: each is cut by itself."
    warning = replace(common[0].notices[0], severity=Severity.WARNING, sentence=sentence)
    return tuple(
        replace(phase, notices=(warning,)) if phase.start is not None else phase for phase in own
    )


def keep(series: Sequence[Floats], phases: Sequence[StablePhase]) -> tuple[Floats | None, ...]:
    """Return what is measured of each series; all of it where no phases were looked for."""
    if not phases:
        return tuple(series)
    return tuple(
        None if phase.start is None else trimmed(each, phase)
        for each, phase in zip(series, phases, strict=True)
    )


def _phase_notices(phases: Sequence[StablePhase]) -> tuple[Notice, ...]:
    """Return what the phases say: those that count, or else the first that does not."""
    counted = [phase for phase in phases if phase.n >= FEWEST]
    return next((phase.notices for phase in (*counted, *phases)), ())


def estimate_kept(kept: Sequence[Floats | None], policy: Policy) -> Estimation:
    """Fit and combine what trimming has left."""
    if policy.kind is Kind.INVOCATIONS:
        found = _over_invocations(kept, policy)
    elif (series := kept[0]) is None:
        found = Estimation()
    else:
        found = _of_series(series, policy, policy.transients(1))
    notices = found.notices
    if found.estimate is not None and policy.q is not None and policy.batch > 1:
        notices = (*notices, batched(policy.batch))
    estimate = found.estimate and replace(found.estimate, notices=notices)
    return replace(found, estimate=estimate, kept=tuple(kept), notices=notices)


def _of_series(series: Floats, policy: Policy, transients: tuple[float, ...]) -> Estimation:
    fits: tuple[LevelFit, ...] = ()
    try:
        if policy.q is not None:
            found = quantile_of(series, policy.q, policy.confidence, transients=transients)
        else:
            fits = (_fit(series, policy, transients),)
            found = _inverted(estimate_level(fits[0], policy.confidence), policy)
    except NotEstimable as error:
        return Estimation(fits=fits, notices=(notice_of(error),))
    return Estimation(estimate=found, fits=fits, notices=found.notices)


def _fit(series: Floats, policy: Policy, transients: tuple[float, ...]) -> LevelFit:
    values = 1.0 / series if policy.harmonic else series
    if policy.method != MERGING:
        return fit_level(values, transients=transients)
    return fit_level(values) if policy.kind is Kind.INVOCATIONS else fit_merged(values)


def _inverted(found: Estimate, policy: Policy) -> Estimate:
    return reciprocal(found) if policy.harmonic else found


def _over_invocations(kept: Sequence[Floats | None], policy: Policy) -> Estimation:
    transients = policy.transients(len(kept))
    fits: list[LevelFit] = []
    values: list[float | None] = []
    refusals: list[Notice] = []
    for series in kept:
        value = None
        try:
            if series is not None and policy.q is not None:
                value = quantile_value(series, policy.q, transients=transients)
            elif series is not None and series.size < FEWEST and not policy.trim:
                value = float(
                    1.0 / series[0] if policy.harmonic else series[0]
                )  # a command run once is an invocation of one reading
            elif series is not None:
                fits.append(_fit(series, policy, transients))
                value = fits[-1].level
        except NotEstimable as error:
            refusals.append(notice_of(error))
        values.append(value)
    counted = [value for value in values if value is not None]
    result = Estimation(fits=tuple(fits), values=tuple(values))
    if not counted:
        return replace(result, notices=tuple(refusals[:1]))
    try:
        found = _combined(kept, counted, result, policy, transients)
    except NotEstimable as error:
        return replace(result, notices=(notice_of(error),))
    return replace(result, estimate=found, notices=found.notices)


def _combined(
    kept: Sequence[Floats | None],
    counted: list[float],
    result: Estimation,
    policy: Policy,
    transients: tuple[float, ...],
) -> Estimate:
    """Combine the values of the invocations that count."""
    if policy.q is None and len(counted) == 1 and not result.fits:
        raise NotEstimable(too_few(1, FEWEST))
    if policy.q is None and len(counted) == 1:
        return _inverted(combine_levels(result.fits, policy.confidence), policy)
    if policy.q is None:
        return _inverted(combine_values(counted, policy.confidence), policy)
    pieces = [
        series
        for series, value in zip(kept, result.values, strict=True)
        if series is not None and value is not None
    ]
    if len(counted) == 1:
        single = quantile_of(pieces[0], policy.q, policy.confidence, transients=transients)
        return _of_one(single)
    found = combine_values(counted, policy.confidence)
    return replace(found, notices=(*_thin_tails(pieces, policy.q), *found.notices))


def combine_levels(fits: Sequence[LevelFit], confidence: float) -> Estimate:
    """Combine the levels of one or more invocations into an estimate over invocations.

    Parameters
    ----------
    fits
        One per invocation, at least one.
    confidence
        Nominal coverage, in (0, 1).
    """
    if len(fits) == 1:
        return _of_one(estimate_level(fits[0], confidence))
    return combine_values([fit.level for fit in fits], confidence)


def combine_values(values: Sequence[float], confidence: float) -> Estimate:
    """Estimate the mean over invocations from one number of each, two at least: Student's t."""
    levels = np.array(values)
    count = levels.size
    alike = float(levels.min()) == float(levels.max())  # exactly, whatever rounding makes of it
    value = float(levels[0]) if alike else float(levels.mean())
    error = 0.0 if alike else float(levels.std(ddof=1)) / math.sqrt(count)
    reach = student_t(count - 1.0, confidence) * error
    return Estimate(
        value=value,
        low=value - reach,
        high=value + reach,
        confidence=confidence,
        n=count,
        n_effective=float(count),
        method=INVOCATION_MEANS,
        standard_error=error,
        degrees_of_freedom=count - 1.0,
        notices=_combination_notices(count, error, value),
    )


def _combination_notices(count: int, error: float, value: float) -> tuple[Notice, ...]:
    notices = []
    if error == 0.0:
        notices.append(
            Notice.warning(
                Code.CONSTANT,
                f"All {count} invocations are at {value!r}: the interval has no width.",
                n=count,
                value=value,
            )
        )
    if count < ENOUGH:
        notices.append(
            Notice.warning(
                Code.FEW_INVOCATIONS,
                f"Only {count} invocations: below {ENOUGH}, a rare case is easily missed.",
                invocations=count,
                wanted=ENOUGH,
            )
        )
    return tuple(notices)


def _of_one(inner: Estimate) -> Estimate:
    """Make an estimate over a single invocation of that of its readings."""
    only = Notice.warning(
        Code.THIS_PROCESS_ONLY,
        "One invocation: the interval is about this process only.",
        invocations=1,
    )
    return replace(inner, n=1, n_effective=1.0, notices=(only, *inner.notices))


def rejected_notices(rejected: int, total: int) -> tuple[Notice, ...]:
    """Say how many of so many invocations do not count; nothing when all of them do."""
    if rejected == 0:
        return ()
    make = Notice.refusal if rejected == total else Notice.warning
    sentence = f"No stable phase in {rejected} of {total} rounds: they do not count."
    return (make(Code.ROUNDS_REJECTED, sentence, rejected=rejected, rounds=total),)


def _thin_tails(pieces: Sequence[Floats], q: float) -> tuple[Notice, ...]:
    """Warn where invocations are too short for a quantile: its estimate is biased."""
    shortest = min(series.size for series in pieces)
    in_tail = shortest * min(q, 1.0 - q)
    if in_tail >= FEWEST_IN_TAIL:
        return ()
    notice = Notice.warning(
        Code.FEW_IN_TAIL,
        f"The shortest invocation has {shortest} readings, {in_tail:.2g} of them beyond the "
        f"{q * 100:g}% quantile: below {FEWEST_IN_TAIL} the quantile is biased.",
        n=shortest,
        in_tail=in_tail,
        wanted=FEWEST_IN_TAIL,
    )
    return (notice,)


def batched(calls: int) -> Notice:
    """Warn of quantiles of averages."""
    return Notice.warning(
        Code.BATCHED,
        f"Each reading averages {calls} calls: quantiles of averages lie nearer to the mean "
        "than those of single calls.",
        calls=calls,
    )


def notice_of(error: NotEstimable) -> Notice:
    """Return why nothing can be estimated."""
    assert isinstance(error.notice, Notice)  # noqa: S101  # for the type checker: errors lie below
    return error.notice
