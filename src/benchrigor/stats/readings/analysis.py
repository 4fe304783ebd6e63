"""From readings to an Analysis, step by step: cut, fit, combine, predict, describe.

`Session`, `estimate_mean`, `estimate_quantile`, `estimate_invocations` and `compare` all end in
`estimate`, so the same readings give the same number through each of them. `look` makes the part
that a running session needs to decide; `report` adds the rest for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchrigor.errors import NotEstimable
from benchrigor.model import Analysis, Code, Estimate, Metric, Notice, Observed, StablePhase
from benchrigor.model.analysis import LevelFit, PhaseReason
from benchrigor.model.notice import Figure, Severity, is_of_modes, one_each
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.detector import name_averaging
from benchrigor.stats.estimators.multimodality import (
    find_modes,
    merge_near_modes,
    observe,
    tell_modes,
)
from benchrigor.stats.phases.chosen_phase import say_changed, say_moving
from benchrigor.stats.phases.stability_rules import Trend
from benchrigor.stats.phases.stable_phase import trimmed
from benchrigor.stats.readings.asked_readings import (
    Readings,
    early_size,
    needed_for_width,
    wanted_half_width,
)
from benchrigor.stats.series.interval import BLOCKS, MIN_FOR_VARIANCE, all_zero
from benchrigor.stats.statistics.statistic import (
    MINIMUM,
    Fitting,
    Quantile,
    Several,
)
from benchrigor.units import Direction, Quantity, show_duration, show_value

# Phases that count whole, as they are: nothing is fitted along with their level.
_AS_THEY_ARE = {PhaseReason.SLOW_NOISE, PhaseReason.LONGEST_SEGMENT}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimation:
    """An estimate with its intermediate results, or the Notices that say why there is none."""

    estimate: Estimate | None = None
    notices: tuple[Notice, ...] = ()
    phases: tuple[StablePhase, ...] = ()
    fits: tuple[LevelFit, ...] = ()
    values: tuple[float | None, ...] = ()  # of each invocation or piece; None if it allows none
    levels: tuple[float | None, ...] = ()  # of each piece
    n_kept: int = 0  # readings that are left

    def estimate_or_raise(self) -> Estimate:
        """Return the estimate, or raise NotEstimable with the last refusal."""
        if self.estimate is None:
            refusals = [notice for notice in self.notices if notice.severity is Severity.REFUSAL]
            raise NotEstimable(refusals[-1])
        return self.estimate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """Readings as they are cut."""

    readings: Readings
    phases: tuple[StablePhase, ...]

    @property
    def kept(self) -> tuple[Floats | None, ...]:
        """Series as they are cut, the whole ones without phases; None without a stable phase."""
        return _keep(self.readings.series, self.phases)

    @property
    def weights(self) -> Floats | None:
        """Weights of the readings of a single series that are left."""
        weights = self.readings.weights
        return None if weights is None else _keep((weights,), self.phases)[0]

    def fitting(self, transients: tuple[float, ...]) -> Fitting:
        """Return how levels are fitted: in blocks, or with these transients, as the phases ask."""
        options, reasons = self.readings.options, {phase.reason for phase in self.phases}
        in_blocks = PhaseReason.CHANGING_PACE in reasons
        is_moving = self.readings.is_searched and not reasons & _AS_THEY_ARE
        return Fitting(
            confidence=options.confidence,
            method=BLOCKS if in_blocks else options.method,
            autocorrelation_limit=options.autocorrelation_limit,
            transients=transients if is_moving and not in_blocks else (),
            shortest=0 if is_moving else MIN_FOR_VARIANCE,
        )


def estimate(readings: Readings) -> Estimation:
    """Cut, fit and combine readings."""
    unit = readings.unit
    if (why := unit.refusal(readings)) is not None:
        n = sum(values.size for values in readings.series) if readings.statistic.refusal else 0
        return Estimation(notices=(why, *_of_batches(readings)), n_kept=n)
    phases = readings.phases or (unit.cut(readings) if readings.searched else ())
    estimation = estimate_cut(Cut(readings=readings, phases=phases))
    notices = _once((*_phase_notices(phases), *estimation.notices))
    rejected, count = estimation.values.count(None), len(estimation.values)
    if rejected < count or not notices:  # otherwise they say why none counts
        notices = (*rejected_notices(rejected, count), *notices)
    if estimation.estimate is not None:
        notices += unit.tell(readings, phases)
    if readings.takes_longest and estimation.estimate is not None:
        longest = max(values.size for values in readings.series)
        method = name_averaging(estimation.estimate.method, longest)
        estimation = replace(estimation, estimate=replace(estimation.estimate, method=method))
    return replace(_add_notices(estimation, one_each(notices)), phases=phases)


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


def _keep(series: Sequence[Floats], phases: Sequence[StablePhase]) -> tuple[Floats | None, ...]:
    """Return the series as they are cut, or the whole ones if no phases were looked for."""
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


def estimate_cut(cut: Cut) -> Estimation:
    """Estimate the statistic of readings that are cut."""
    estimation = cut.readings.unit.combine(cut)
    notices = estimation.notices
    if estimation.estimate is not None:
        notices = (*notices, *_of_batches(cut.readings))
    n_kept = sum(series.size for series in cut.kept if series is not None)
    return replace(_add_notices(estimation, notices), n_kept=n_kept)


def combine_one(cut: Cut, fitting: Fitting) -> Estimation:
    """Estimate the statistic of a single series."""
    (series,) = cut.kept
    fits: tuple[LevelFit, ...] = ()
    if series is None:
        return Estimation()
    try:
        estimate, fits = cut.readings.statistic.of_series(series, fitting, cut.weights)
        estimate = cut.readings.number(estimate)
    except NotEstimable as error:
        return Estimation(fits=fits, notices=(notice_of(error),))
    return Estimation(estimate=estimate, fits=fits, notices=estimate.notices)


def combine_several(cut: Cut, fitting: Fitting) -> Estimation:
    """Estimate the statistic of each series, and combine their values."""
    fits: list[LevelFit] = []
    values: list[float | None] = []
    refusals: list[Notice] = []
    for series in cut.kept:
        value = None
        try:
            if series is not None:
                value, found = cut.readings.statistic.of_each(series, fitting)
                fits += found
        except NotEstimable as error:
            refusals.append(notice_of(error))
        values.append(value)
    estimation = Estimation(fits=tuple(fits), values=tuple(values))
    counted = [
        (series, value)
        for series, value in zip(cut.kept, values, strict=True)
        if series is not None and value is not None
    ]
    if not counted:
        return replace(estimation, notices=tuple(refusals[:1]))
    several = Several(
        series=[series for series, _ in counted],
        values=[value for _, value in counted],
        fits=estimation.fits,
        fitting=fitting,
        unit=cut.readings.unit.kind.noun,
    )
    try:
        estimate = cut.readings.number(cut.readings.statistic.of_several(several))
    except NotEstimable as error:
        return replace(estimation, notices=(notice_of(error),))
    return replace(estimation, estimate=estimate, notices=estimate.notices)


def rejected_notices(rejected: int, total: int) -> tuple[Notice, ...]:
    """Say how many invocations do not count; if none does, the refusal of their phases tells."""
    if rejected in {0, total}:
        return ()
    return (Notice.of(Code.ROUNDS_REJECTED, rejected=rejected, rounds=total),)


def _of_batches(readings: Readings) -> tuple[Notice, ...]:
    """Warn of a quantile, or of the least, of readings that are averages."""
    calls, statistic = readings.batch, readings.statistic
    if calls == 1 or (statistic.q is None and statistic is not MINIMUM):
        return ()
    if statistic.q is not None:
        return (warn_of_batches(calls),)
    return (Notice.of(Code.BATCHED, "minimum", calls=calls),)


def warn_of_batches(calls: int) -> Notice:
    """Warn of quantiles of averages."""
    return Notice.of(Code.BATCHED, calls=calls)


def notice_of(error: NotEstimable) -> Notice:
    """Return the Notice of the error."""
    assert isinstance(error.notice, Notice)  # noqa: S101  # for the type checker: errors lie below
    return error.notice


_SEVERAL_MODES = 0.01  # chance of taking one mode for several


def look(readings: Readings) -> Analysis:
    """Estimate the statistic, and predict how many readings the target takes."""
    unit = readings.unit
    analysis = unit.estimate(readings)
    known = analysis.estimate
    if known is None or any(phase.reason is PhaseReason.CHANGING_PACE for phase in analysis.phases):
        return analysis  # blocks of a changing pace differ, however many readings they hold
    wanted = wanted_half_width(known, analysis.metric, readings.options)
    needed = unit.needed(readings, analysis, known.half_width / wanted) if wanted > 0.0 else None
    return analysis if needed is None else replace(analysis, required=int(needed + 1.0 - 1e-9))


def report(readings: Readings, looked: Analysis | None = None) -> Analysis:
    """Add to a look at the same readings what only people read."""
    analysis = readings.unit.complete(readings, looked or look(readings))
    if readings.whole is not None and analysis.disturbed and analysis.disturbed.matters:
        beside = replace(analysis.disturbed, estimate=look(readings.whole).estimate)
        analysis = replace(analysis, disturbed=beside)
    if analysis.estimate is not None:
        return analysis
    return replace(analysis, observed=observed_of(readings, analysis.phases))


def observed_of(readings: Readings, phases: tuple[StablePhase, ...] = ()) -> Observed | None:
    """Describe readings, or the speeds of rounds of various work; None without any."""
    series = readings.unit.shown(readings)
    return observe(series, phases, batch=readings.batch) if series.size else None


def estimate_statistic(readings: Readings) -> Analysis:
    """Cut, fit and combine the readings; times that are all 0 are not a measurement."""
    metric, n = readings.metric, sum(values.size for values in readings.series)
    analysis = Analysis(
        metric=metric,
        kind=readings.unit.kind,
        n=n,
        notices=(*readings.notices, *_taken_by_time(readings)),
        disturbed=readings.disturbed,
    )
    if metric.kind is Quantity.TIME and not any(row.any() for row in readings.series):
        return replace(analysis, notices=(*analysis.notices, all_zero(n)))
    estimation = estimate(readings)
    told = (in_units(notice, metric, readings.busy_s, n) for notice in estimation.notices)
    notices = (*analysis.notices, *told)
    return replace(
        analysis,
        phases=estimation.phases,
        fits=estimation.fits,
        n_kept=estimation.n_kept,
        estimate=estimation.estimate and replace(estimation.estimate, notices=notices),
        notices=notices,
        levels=estimation.levels,
    )


def _taken_by_time(readings: Readings) -> tuple[Notice, ...]:
    """Warn of rates that are averaged over time because some are 0."""
    number = readings.rates_of_0
    if not number or readings.weights is not None:
        return ()
    return (Notice.of(Code.RATE_OF_0, readings=number, metric_=readings.metric.name),)


def needed_units(readings: Readings, analysis: Analysis, excess: float) -> float:
    """Return the units in all that make the interval narrower by the factor ``excess``."""
    unit, known = readings.unit, analysis.estimate
    assert known is not None  # noqa: S101  # for the type checker
    least, units = unit.evidence(readings.options.preset), unit.inferred(analysis)
    needed = needed_for_width(known, excess, units, least)
    return min(needed, early_size(excess, units, least)) if readings.is_forced else needed


def describe(readings: Readings, analysis: Analysis) -> Analysis:
    """Add median and floor, and say which readings count."""
    series = (readings.whole or readings).series
    analysis = replace(analysis, selection=analysis.select([row.size for row in series]))
    if analysis.estimate is None or not readings.statistic.follows_pace:
        return analysis
    best = 0.9 if readings.metric.direction is Direction.HIGHER else 0.1
    asked = (replace(readings, statistic=Quantile(q)) for q in (0.5, best))
    typical, floor = (
        estimate_cut(Cut(readings=quantile, phases=analysis.phases)).estimate for quantile in asked
    )
    return replace(analysis, typical=typical, floor=floor)


def kept_of(readings: Readings, analysis: Analysis) -> Floats | None:
    """Return what is left of a single series; None without a stable phase."""
    return Cut(readings=readings, phases=analysis.phases).kept[0]


def tell_of_modes(readings: Readings, analysis: Analysis) -> Analysis:
    """Add the modes of a single series, and a Notice of several beside a mean."""
    values = kept_of(readings, analysis)
    if values is None or not readings.statistic.follows_pace:
        return analysis
    modes = merge_near_modes(find_modes(values, _SEVERAL_MODES))
    analysis = replace(analysis, modes=modes)
    if len(modes) < 2 or readings.statistic.q is not None:
        return analysis
    notice = tell_modes(values, modes, readings.metric.unit)
    if not is_of_modes(notice):
        return replace(analysis, notices=(*analysis.notices, notice))
    notices = (notice, *analysis.notices)
    estimate = analysis.estimate and replace(analysis.estimate, notices=notices)
    return replace(analysis, notices=notices, estimate=estimate)


def in_units(notice: Notice, metric: Metric, measured_s: float, n: int) -> Notice:
    """Show the ends of a movement in the unit of a metric, and how long readings take.

    ``measured_s`` is the time that the ``n`` readings took, 0 if it is not known.
    """
    known = notice.evidence
    if notice.code is Code.NO_STABLE_PHASE and {"first", "last"} <= known.keys():
        trend = Trend(first=_number(known["first"]), last=_number(known["last"]))
        return say_moving(trend, known, metric.unit)
    if notice.code is Code.TOO_WIDE:
        return Notice.of(notice.code, **known, unit_=metric.unit)
    if notice.code is Code.CHANGING_PACE and measured_s:
        ends = _number(known["least"]), _number(known["greatest"])
        return say_changed(*ends, int(known["changes"] or 0), show_value(measured_s, "s"))
    if notice.code is Code.FEW_IN_TAIL and measured_s and "required" in known:
        lasting = show_duration(_number(known["required"]) * measured_s / n)
        return replace(notice, sentence=f"{notice.sentence.removesuffix('.')}, and take {lasting}.")
    return notice


def _number(figure: Figure) -> float:
    return float(figure or 0.0)
