"""The line through amounts of work: overhead, speed, and what supports it or contradicts it."""

from __future__ import annotations

from collections.abc import Sequence

from benchrigor.model import Analysis, Code, Estimate, RunRecord, WpsFit
from benchrigor.model.text import no_number, show_estimate, show_overhead
from benchrigor.report.fact import Depth, Fact, known, step
from benchrigor.report.facts.number_facts import show_figures
from benchrigor.stats.series.interval import scale
from benchrigor.stats.series.subsessions import MERGED, SUBSESSIONS
from benchrigor.units import (
    Scale,
    counted,
    first_few,
    many,
    percent,
    scale_for,
    show_amount,
    show_value,
)

_MOST_NAMED = 6
_NOTABLE = 1.05  # Autocorrelation that inflates the variance by less is not reported
_WHY = {
    Code.SHORT_ROUNDS: "too short",
    Code.PILOT_ROUNDS: "to find the amounts",
    Code.FURTHER_ROUNDS: "of larger amounts",
    Code.SMALL_WORK: "with too little work",
}


def facts_of_work(analysis: Analysis, record: RunRecord) -> list[Fact]:
    """Return the figures of a line through work and duration, and the steps to them."""
    fit, unit = analysis.wps, analysis.metric.unit
    used, took = _used(analysis), _durations(record, unit)
    planned = record.options.work_order if record.elapsed_s else "recorded"
    facts = [
        Fact("used", Depth.DETAILS, "used", used, analysis.n_kept),
        Fact("amounts", Depth.DETAILS, "amounts", _amounts(analysis, record)),
        step(
            "rounds of work",
            f"{many(len(record.whole_rounds), 'round')} of {took}." * bool(took),
            ("order", f"{planned}: if amounts only rose, drift would look like work"),
        ),
        step(
            "rounds that count",
            f"Used: {used}.",
            ("reason", "amount, place or an early end, never the duration: noise chooses none"),
        ),
    ]
    if fit is None:
        why = f"No line can be drawn: {no_number(analysis.notices)}"
        return known(*facts, step("line", why, ("observed", show_figures(analysis.observed, unit))))
    overhead, checks = f"{show_overhead(fit.overhead)} in each round", _checks(analysis, fit)
    naive = f"all work over all time: {show_value(fit.naive_speed, unit)}"
    slope, per = _per_unit(fit, unit)
    line = f"duration = overhead + work / speed. Overhead {show_overhead(fit.overhead)}, time "
    line += f"{show_value(slope.value, 's')} per {per}"
    return known(
        Fact("overhead", Depth.PAGE, "overhead", overhead, fit.overhead),
        Fact("naive speed", Depth.DETAILS, "overhead", naive, fit.naive_speed),
        *facts,
        *(Fact("check", Depth.DETAILS, "line", f"{name}: {text}") for name, text in checks),
        step("line", f"A straight line is drawn through {many(fit.n, 'round')}: {line}."),
        step("speed", _speed(analysis, fit), *_errors(fit, slope, per)),
        step("checks", "What supports the line, or does not:", *checks),
    )


def _used(analysis: Analysis) -> str:
    """Say how many rounds do not count, by the reasons in Notices."""
    numbers = {notice.code: notice.evidence.get("rounds") for notice in analysis.notices}
    why = [f"{numbers[code]} {text}" for code, text in _WHY.items() if numbers.get(code)]
    if analysis.disturbed is not None:
        why.append(f"{analysis.disturbed.left_out} with delay")
    left_out = f"; left out: {', '.join(why)}" if why else ""
    return f"{counted(analysis.n_kept)} of {many(analysis.n, 'round')}{left_out}"


def _amounts(analysis: Analysis, record: RunRecord) -> str:
    """Say which amounts the line goes through, and up to which amount others were tried."""
    left_out, unit = set(analysis.left_out), analysis.metric.unit
    work = works_of(record)
    fitted = [amount for index, amount in enumerate(work) if index not in left_out]
    if not fitted or analysis.wps is None:
        return ""
    further = f", tested up to {show_amount(max(work), unit)}" if max(work) > max(fitted) else ""
    return f"{show_amounts(fitted, unit)}{further}"


def works_of(record: RunRecord) -> list[float]:
    """Return the amounts of the rounds that were not cut."""
    planned = (done.plan.work for done in record.whole_rounds)
    return [amount for amount in planned if amount is not None]


def show_amounts(work: Sequence[float], unit: str) -> str:
    """Show the smallest and the largest amount."""
    return f"{show_amount(min(work), unit)} to {show_amount(max(work), unit)}"


def _durations(record: RunRecord, unit: str) -> str:
    """Say which amounts of work took how long; empty if no round has both."""
    took = [done.duration_s for done in record.whole_rounds if done.plan.work is not None]
    if not took:
        return ""
    amounts = show_amounts(works_of(record), unit)
    return f"{amounts} of work took {show_value(min(took), 's')} to {show_value(max(took), 's')}"


def _checks(analysis: Analysis, fit: WpsFit) -> tuple[tuple[str, str], ...]:
    """Return what supports the line, and what contradicts it, by name."""
    point = "subsession" if MERGED in fit.slope.method else "round"
    error = percent(round(fit.prediction_error, 9))  # rounding errors alone count as 0
    checks = {"fit": f"the others predict each {point} to {error} of the mean duration"}
    if fit.bend is not None:
        ends = (fit.bend.value, fit.bend.low, fit.bend.high)
        bend, low, high = (percent(round(end, 9) + 0.0, digits=2) for end in ends)
        checks["bend"] = f"time per work changes by {bend} [{low}, {high}] up to the largest amount"
    checks["growth"] = grown(fit)
    merged = analysis.subsessions
    if merged is not None and merged.size is None:
        checks["neighbours"] = f"rounds correlate by {merged.autocorrelation:.2f}"
    elif merged is not None:
        size = f"means of {merged.size} " if merged.size != 1 else ""
        checks["neighbours"] = f"{size}correlate by {merged.autocorrelation:.2f}"
    if outliers := outlying(analysis):
        names = first_few([*map(str, outliers)], _MOST_NAMED)
        checks["far from it"] = f"round{'' if len(outliers) == 1 else 's'} {names}"
    return tuple((name, text) for name, text in checks.items() if text)


def grown(fit: WpsFit) -> str:
    """Say how duration grows with work; empty if that is unknown."""
    if fit.growth is None:
        return ""
    value, low, high = (f"{x:.2f}" for x in (fit.growth.value, fit.growth.low, fit.growth.high))
    shape = {None: "too vague to name", "other": "no law with a name"}
    return f"duration grows as work^{value} [{low}, {high}]: {shape.get(fit.shape, fit.shape)}"


def outlying(analysis: Analysis) -> tuple[int, ...]:
    """Return the indices, among all rounds, of those that lie far from the line."""
    kept = [index for index in range(analysis.n) if index not in set(analysis.left_out)]
    return tuple(kept[index] for index in analysis.wps.outliers) if analysis.wps else ()


# The steps of an explanation


def _per_unit(fit: WpsFit, unit: str) -> tuple[Estimate, str]:
    """Return the slope per unit of work that people use, and that unit."""
    work = scale_for(fit.naive_speed, unit) if unit == "B/s" else Scale(factor=1.0, name="")
    return scale(fit.slope, 1.0 / work.factor), work.name.removesuffix("/s") or "unit of work"


def _speed(analysis: Analysis, fit: WpsFit) -> str:
    if fit.speed is None:
        return "The time per work may be 0 or less, so the speed has no interval."
    speed = show_estimate(fit.speed, analysis.metric.unit)
    return f"The reciprocal of the time per work is the speed: {speed}."


def _errors(fit: WpsFit, slope: Estimate, per: str) -> tuple[tuple[str, str], ...]:
    """Say what noise the interval allows for."""
    freedom, size = slope.degrees_of_freedom, many(fit.merged, "round")
    student = f", Student t with {freedom:.3g} degrees of freedom" if freedom else ""
    if MERGED in fit.slope.method:
        noise = f"least squares of the means of every {size}: neighbours hardly correlate"
    elif SUBSESSIONS in fit.slope.method:
        noise = f"from lines without each of the subsessions of {size} in turn"
    else:
        noise = "may differ from round to round (standard errors HC3)"
        if fit.inflation >= _NOTABLE:
            noise += f"; autocorrelation inflates the variance {fit.inflation:.3g}-fold"
    return (f"time per {per}", f"{show_estimate(slope, 's')}{student}"), ("noise", noise)
