"""From readings to an Analysis, step by step: cut, fit, combine, predict, describe.

`Session`, `estimate_mean`, `estimate_quantile`, `estimate_invocations` and `compare` all end in
`estimate`, so the same readings give the same number through each of them. `look` makes the part
that a running session needs to decide; `report` adds the rest for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchrigor.errors import NotEstimable
from benchrigor.model import Analysis, Code, Estimate, Metric, Notice, Observed, StablePhase
from benchrigor.model.analysis import PhaseReason
from benchrigor.model.notice import Figure, Severity, is_of_modes, one_each
from benchrigor.stats.changepoints.detector import name_averaging
from benchrigor.stats.multimodality import (
    find_modes,
    merge_near_modes,
    observe,
    tell_modes,
)
from benchrigor.stats.phases.chosen_phase import say_changed, say_moving
from benchrigor.stats.phases.stability_rules import Trend
from benchrigor.stats.readings.asked_readings import (
    Readings,
    early_size,
    needed_for_width,
    wanted_half_width,
)
from benchrigor.stats.series.interval import MIN_FOR_VARIANCE, all_zero
from benchrigor.stats.statistic import MINIMUM, Quantile
from benchrigor.units import Direction, Quantity, show_duration, show_value


def estimate(readings: Readings) -> Analysis:
    """Cut, fit and combine the readings; times that are all 0 are not a measurement."""
    unit, n = readings.unit, sum(values.size for values in readings.series)
    said = (*readings.notices, *_taken_by_time(readings))
    if readings.metric.kind is Quantity.TIME and not any(row.any() for row in readings.series):
        return readings.analysis(notices=(*said, all_zero(n)))
    if (why := unit.refusal(readings)) is not None:
        found = readings.analysis(n_kept=n if readings.statistic.refusal else 0)
        notices = (why, *_of_batches(readings))
    else:
        if not readings.phases and readings.searched:
            readings = replace(readings, phases=unit.cut(readings))
        found = estimate_cut(readings)
        notices = _once((*_phase_notices(readings.phases), *found.notices))
        rejected, count = found.levels.count(None), len(found.levels)
        if rejected < count or not notices:  # otherwise they say why none counts
            notices = (*rejected_notices(rejected, count), *notices)
        if found.estimate is not None:
            notices += unit.tell(readings)
        notices = one_each(notices)
    told = (in_units(notice, readings.metric, readings.busy_s, n) for notice in notices)
    if readings.takes_longest and (known := found.estimate) is not None:
        longest = max(values.size for values in readings.series)
        method = name_averaging(known.method, longest)
        found = replace(found, estimate=replace(known, method=method))
    return _saying(found, (*said, *told))


def _saying(analysis: Analysis, notices: tuple[Notice, ...]) -> Analysis:
    """Put the notices on the analysis and on its estimate."""
    estimate = analysis.estimate and replace(analysis.estimate, notices=notices)
    return replace(analysis, estimate=estimate, notices=notices)


def estimated(analysis: Analysis) -> Estimate:
    """Return the estimate of an analysis, or raise NotEstimable with the last refusal."""
    if analysis.estimate is None:
        refusals = [notice for notice in analysis.notices if notice.severity is Severity.REFUSAL]
        raise NotEstimable(refusals[-1])
    return analysis.estimate


def _once(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Keep the first Notice of each code."""
    first: dict[Code, Notice] = {}
    for notice in notices:
        first.setdefault(notice.code, notice)
    return tuple(first.values())


def _phase_notices(phases: Sequence[StablePhase]) -> tuple[Notice, ...]:
    """Return the notices of the first phase that is measured, or else of the first one."""
    measured = [phase for phase in phases if phase.n >= MIN_FOR_VARIANCE]
    return next((phase.notices for phase in (*measured, *phases)), ())


def estimate_cut(readings: Readings) -> Analysis:
    """Estimate the statistic of readings that are cut."""
    found = readings.unit.combine(readings)
    n_kept = sum(series.size for series in readings.kept if series is not None)
    found = replace(found, n_kept=n_kept, phases=readings.phases)
    if found.estimate is None:
        return found
    return _saying(found, (*found.estimate.notices, *_of_batches(readings)))


def rejected_notices(rejected: int, total: int) -> tuple[Notice, ...]:
    """Say how many invocations do not count; if none does, their phases are refused."""
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
    wanted = wanted_half_width(known, analysis.metric, readings.options.target)
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
    cut = replace(readings, phases=analysis.phases)
    typical = estimate_cut(replace(cut, statistic=Quantile(0.5))).estimate
    floor = estimate_cut(replace(cut, statistic=Quantile(best))).estimate
    return replace(analysis, typical=typical, floor=floor)


def tell_of_modes(readings: Readings, analysis: Analysis) -> Analysis:
    """Add the modes of a single series, and a Notice of several next to a mean."""
    (values,) = replace(readings, phases=analysis.phases).kept
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
