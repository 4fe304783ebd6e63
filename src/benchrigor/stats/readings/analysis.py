"""From readings to an Analysis, step by step: every step adds to it.

`look` makes the part that a running session needs to decide; `report` adds the rest for people.
"""

from __future__ import annotations

from dataclasses import replace

from benchrigor.model import Analysis, Code, Metric, Notice, Observed, StablePhase
from benchrigor.model.analysis import PhaseReason
from benchrigor.model.notice import Figure, is_of_modes
from benchrigor.model.series import Floats
from benchrigor.model.text import many, say_too_wide, show_duration, show_value
from benchrigor.stats.estimators.multimodality import (
    find_modes,
    merge_near_modes,
    observe,
    tell_modes,
)
from benchrigor.stats.phases.chosen_phase import say_changed, say_moving
from benchrigor.stats.phases.stability_rules import Trend
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.readings.estimation import Cut, estimate, estimate_cut
from benchrigor.stats.readings.evidence import early_size, needed_for_width, wanted_half_width
from benchrigor.stats.series.level import all_zero
from benchrigor.stats.statistics.statistic import Quantile
from benchrigor.units import Direction, Quantity

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
    sentence = (
        f"{many(number, 'reading')} of {readings.metric.name!r} "
        f"{'is' if number == 1 else 'are'} 0 or less, so all are taken for equal times, and their "
        "mean is arithmetic. Readings of equal work have a harmonic mean, where none is 0 or less."
    )
    return (Notice.warning(Code.RATE_OF_0, sentence, readings=number),)


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
    cut = Cut.of(readings, analysis.phases)
    typical, floor = (
        estimate_cut(replace(cut, statistic=Quantile(q))).estimate for q in (0.5, best)
    )
    return replace(analysis, typical=typical, floor=floor)


def kept_of(readings: Readings, analysis: Analysis) -> Floats | None:
    """Return what is left of a single series; None without a stable phase."""
    return Cut.of(readings, analysis.phases).kept[0]


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
        return replace(notice, sentence=say_moving(trend, metric.unit))
    if notice.code is Code.TOO_WIDE:
        value, low, high = (_number(known[name]) for name in ("value", "low", "high"))
        return replace(notice, sentence=say_too_wide(value, low, high, metric.unit))
    if notice.code is Code.CHANGING_PACE and measured_s:
        ends = _number(known["least"]), _number(known["greatest"])
        return replace(notice, sentence=say_changed(*ends, show_value(measured_s, "s")))
    if notice.code is Code.FEW_IN_TAIL and measured_s and "required" in known:
        lasting = show_duration(_number(known["required"]) * measured_s / n)
        return replace(notice, sentence=f"{notice.sentence.removesuffix('.')}, and take {lasting}.")
    return notice


def _number(figure: Figure) -> float:
    return float(figure or 0.0)
