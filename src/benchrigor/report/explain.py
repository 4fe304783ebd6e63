"""Why this number: every step from the raw readings to the interval, retraced."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from benchrigor.model import (
    Analysis,
    Estimate,
    Interference,
    Kind,
    LevelFit,
    RunRecord,
    StablePhase,
    WpsFit,
)
from benchrigor.model.text import (
    counted,
    false_alarms,
    many,
    percent,
    show_amount,
    show_estimate,
    show_overhead,
    show_value,
)
from benchrigor.report.interference_text import is_estimated, show_parts, show_total
from benchrigor.report.lines import WIDTH
from benchrigor.report.text import (
    NOTABLE,
    cold,
    grown,
    outlying,
    predicted,
    rounds_named,
    why_left_out,
)
from benchrigor.units import Scale, scale_for

__all__ = ["explain"]

_MOST_PHASES = 12


def explain(record: RunRecord, metric: str | None = None) -> str:
    """Tell step by step how the number of a metric came about.

    Parameters
    ----------
    record
        Of a finished or a running session.
    metric
        Name; None for the first metric that must be satisfied.

    Raises
    ------
    InvalidInput
        When no metric has that name.

    Examples
    --------
    >>> import benchrigor as br
    >>> from benchrigor.testing import FakeClock, SyntheticWorkload
    >>> clock = FakeClock()
    >>> session = br.Session(name="synthetic", seed=1, clock=clock)
    >>> record = session.run(SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock))
    >>> print(explain(record).splitlines()[0])
    How the time of synthetic came about
    """
    analysis = record.analysis(metric)
    if analysis is None:
        return f"{record.name}: nothing was measured, so there is nothing to explain."
    steps = [
        *(_of_pairs if analysis.kind is Kind.WORK else _of_readings)(analysis, record),
        *_stop(analysis, record),
        *_light(record.interference),
        *(f"Notice: {notice}" for notice in (*record.session_notices, *analysis.notices)),
    ]
    title = f"How the {analysis.metric.name} of {record.name} came about"
    body = [_numbered(number, step) for number, step in enumerate(steps, 1)]
    return "\n".join([title, "", *body])


def _numbered(number: int, step: str) -> str:
    """Wrap a step to the width of a terminal; a table below its first line stays as it is."""
    text, _, table = step.partition("\n")
    wrapped = textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"{number:>2}. ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
    return f"{wrapped}\n{table}" if table else wrapped


def _of_readings(analysis: Analysis, record: RunRecord) -> list[str]:
    """Tell the steps from readings to their mean or quantile."""
    return [
        _readings(analysis, record),
        *_phases(analysis),
        *_level(analysis, record),
        *_subsessions(analysis),
        *_interval(analysis),
    ]


def _of_pairs(analysis: Analysis, record: RunRecord) -> list[str]:
    """Tell the steps from pairs of work amount and duration to the speed."""
    steps = [_pairs(analysis, record), *_left_out(analysis, record)]
    if analysis.wps is None:
        return [*steps, "No line can be drawn, so there is no interval."]
    return [*steps, *_line(analysis, analysis.wps), *_checks(analysis, analysis.wps)]


def _pairs(analysis: Analysis, record: RunRecord) -> str:
    work = [each.plan.work for each in record.counted_rounds if each.plan.work is not None]
    if not work:
        return "No round has told its work amount and duration yet."
    took = [each.duration_s for each in record.counted_rounds]
    unit, order = analysis.metric.unit, f"are planned in {record.options.work_order} order"
    if not record.elapsed_s:  # recorded elsewhere
        order = "stand in the order in which they were run"
    return (
        f"{many(len(work), 'round')} of {show_amount(min(work), unit)} to "
        f"{show_amount(max(work), unit)} of work took {show_value(min(took), 's')} to "
        f"{show_value(max(took), 's')}. Amounts {order}: were they rising, "
        "a drift in time would pass for work."
    )


def _left_out(analysis: Analysis, record: RunRecord) -> list[str]:
    if not analysis.left_out:
        return ["All rounds count."]
    number = len(analysis.left_out)
    why = ", ".join(why_left_out(analysis, record))
    return [
        f"{many(number, 'round')} {'does' if number == 1 else 'do'} not count"
        f"{f' ({why})' if why else ''}. Their amount or their place tells, and of their own "
        "duration only an early end, else noise would choose."
    ]


def _line(analysis: Analysis, fit: WpsFit) -> list[str]:
    """Tell how the line was fitted, and how its slope becomes the speed."""
    slope, per = _per_unit(fit, analysis.metric.unit)
    merged = f", {many(fit.merged, 'round')} summed into one each" if fit.merged > 1 else ""
    freedom = fit.slope.degrees_of_freedom
    student = f"Student t with {freedom:.3g} degrees of freedom" if freedom else "Its interval"
    successive = (
        f"autocorrelation of successive rounds counts {fit.inflation:.3g}-fold in the variance"
        if fit.inflation >= NOTABLE
        else "successive rounds are not autocorrelated: each counts in full"
    )
    said = [
        f"The line through {many(fit.n, 'round')}{merged}: duration = overhead + work / speed. "
        f"Overhead {show_overhead(fit.overhead)}, "
        f"time {show_value(slope.value, 's')} per {per}.",
        f"Noise may differ from round to round (standard errors of type HC3); {successive}.",
        f"{student} gives {show_estimate(slope, 's')} per {per}.",
    ]
    if fit.speed is None:
        return [*said, "These ends cannot be turned over: the speed has no interval."]
    shown = show_estimate(fit.speed, analysis.metric.unit)
    return [*said, f"Turned over, end by end: {shown}; so its halves differ in width."]


def _per_unit(fit: WpsFit, unit: str) -> tuple[Estimate, str]:
    """Return the slope per unit of work that people speak of, and that unit."""
    work = scale_for(fit.naive_speed, unit) if unit == "B/s" else Scale(factor=1.0, name="")
    value, low, high = (
        each / work.factor for each in (fit.slope.value, fit.slope.low, fit.slope.high)
    )
    name = work.name.removesuffix("/s") or "unit of work"
    return replace(fit.slope, value=value, low=low, high=high), name


def _checks(analysis: Analysis, fit: WpsFit) -> list[str]:
    """Tell what speaks for the line, and against it."""
    parts = [f"each round is predicted from the others to {predicted(fit)}"]
    if fit.bend is not None:
        ends = (fit.bend.value, fit.bend.low, fit.bend.high)
        bend, low, high = (percent(round(each, 9) + 0.0, digits=2) for each in ends)
        parts.append(
            "from the smallest to the largest amount the time per unit of work changes by "
            f"{bend} [{low}, {high}]"
        )
    if fit.growth is not None:
        parts.append(grown(fit))
    if far := outlying(analysis):
        verb = "lies" if len(far) == 1 else "lie"
        parts.append(f"{rounds_named(far)} {verb} far from the line")
    return [f"Checks of the line: {'; '.join(parts)}."]


def _readings(analysis: Analysis, record: RunRecord) -> str:
    red = len(record.rounds) - len(record.counted_rounds)
    beside = f"; {red} more lost too much to others and are left out" if red else ""
    rounds = many(len(record.counted_rounds), "round")
    return f"{counted(analysis.n)} readings were taken in {rounds}{beside}."


def _phases(analysis: Analysis) -> list[str]:
    if not analysis.phases:
        return ["Too few readings to look for change points: all of them are taken."]
    if len(analysis.phases) > 1:
        found = sum(phase.start is not None for phase in analysis.phases)
        return [
            f"A cut was sought that suits all rounds alike: it leaves a stable phase in {found} of "
            f"{len(analysis.phases)}."
        ]
    return [_change_points(analysis.phases[0]), _segments(analysis)]


def _change_points(stable: StablePhase) -> str:
    points = stable.change_points
    where = ", ".join(counted(index) for index in points.indices[:_MOST_PHASES])
    more = len(points.indices) - _MOST_PHASES
    tail = f" and {more} more" if more > 0 else ""
    found = f"Change points at {where}{tail}" if points.indices else "No change point"
    return (
        f"{found} ({false_alarms(points.level)}; "
        f"autocorrelation counted as {points.inflation:.3g}-fold)."
    )


def _segments(analysis: Analysis) -> str:
    stable, unit = analysis.phases[0], analysis.metric.unit
    rows = [
        f"\n      {each.label:<9} {counted(each.start):>9} to {counted(each.stop):>9}"
        f"   median {show_value(each.median, unit)}"
        for each in stable.phases[:_MOST_PHASES]
    ]
    if stable.start is None or stable.stop is None:
        return f"Phases; none of them may be measured ({stable.reason}):{''.join(rows)}"
    margin = stable.n - analysis.n_kept
    kept = f"{counted(analysis.n_kept)} of {counted(analysis.n)} readings are kept"
    if margin and len(stable.phases) == 1:
        kept += f"{cold(margin)}, are left out"
    elif margin:
        kept += f" ({counted(margin)} beside the cuts left out as a margin)"
    return f"Phases; {kept}:{''.join(rows)}"


def _level(analysis: Analysis, record: RunRecord) -> list[str]:
    found, statistic = analysis.estimate, record.options.statistic
    if found is not None and analysis.kind is Kind.INVOCATIONS and found.n > 1:
        return [_invocations(analysis, found, statistic)]
    if found is not None and statistic != "mean":
        return [_order(found, statistic, analysis)]
    if len(analysis.fits) != 1:
        return []
    fit = analysis.fits[0]
    if analysis.metric.averaging == "harmonic":
        level = f"{fit.level:.4g}, the mean of the reciprocals, turned over in the end"
    else:
        level = show_value(fit.level, analysis.metric.unit)
    if fit.transients:
        spans = " and ".join(f"{each:.3g}" for each in fit.transients)
        first = (
            f"Level {level}: fitted beside decaying transients with time constants of {spans} "
            "readings, which take up what is left of a warm-up too small to be seen."
        )
    else:
        first = f"Mean {level}."
    return [first, _correlation(fit)]


def _invocations(analysis: Analysis, found: Estimate, statistic: str) -> str:
    split = analysis.split
    parts = (
        ""
        if split is None or split.level == 0.0
        else f" They differ by {percent(split.between**0.5 / abs(split.level))} of the value, "
        f"single readings inside them by {percent(split.within**0.5 / abs(split.level))}."
    )
    what = "level" if statistic == "mean" else statistic
    return (
        f"Each of {counted(found.n)} invocations gives its {what}; the interval comes from the "
        f"spread of these.{parts}"
    )


def _order(found: Estimate, statistic: str, analysis: Analysis) -> str:
    beside = "; the weights of a fit beside decaying transients count" if analysis.phases else ""
    return (
        f"The {statistic} is where so many readings lie below{beside}. Its rank is uncertain by "
        f"the long-run variance of lying below: {counted(found.n)} readings are worth "
        f"{counted(found.n_effective)} independent ones. The ends are readings, too."
    )


def _correlation(fit: LevelFit) -> str:
    if fit.method == "subsessions":
        return (
            f"Neighbours in subsessions of {many(fit.batch, 'reading')} count as uncorrelated: "
            f"the long-run variance is {fit.inflation:.3g} times that of single readings."
        )
    if fit.order == 0:
        return "The readings are not autocorrelated: each counts in full."
    batched = f", fitted to batches of {counted(fit.batch)}," if fit.batch > 1 else ""
    return (
        f"An autoregressive model of order {fit.order}{batched} puts the long-run variance at "
        f"{fit.inflation:.3g} times the variance of single readings."
    )


def _subsessions(analysis: Analysis) -> list[str]:
    merged = analysis.subsessions
    if merged is None:
        return []
    if merged.size is None:
        return [
            "No subsession size brings the autocorrelation of neighbours within "
            f"{merged.limit:g} (single readings: {merged.autocorrelation:.2f})."
        ]
    return [
        f"Merged by {counted(merged.size)}, neighbours correlate by {merged.autocorrelation:.2f} "
        f"(limit {merged.limit:g}): {counted(merged.means.size)} subsessions."
    ]


def _interval(analysis: Analysis) -> list[str]:
    found, unit = analysis.estimate, analysis.metric.unit
    if found is None:
        return ["No interval can be given."]
    error, freedom = found.standard_error, found.degrees_of_freedom
    if error is None or freedom is None:
        return [f"{show_estimate(found, unit)}."]
    skewed = ""
    if analysis.fits and len(analysis.fits) == 1 and analysis.fits[0].skewness:
        skewed = f", corrected for a skewness of {analysis.fits[0].skewness:.2g}"
    return [
        f"Standard error {show_value(error, unit)}; Student t with {freedom:.3g} degrees of "
        f"freedom{skewed}: {show_estimate(found, unit)}."
    ]


def _stop(analysis: Analysis, record: RunRecord) -> list[str]:
    if record.decision is None or record.decision.reason is None:
        return ["The session is still running."] if record.elapsed_s else []
    found, target = analysis.estimate, record.options.target
    reason = str(record.decision.reason).replace("-", " ")
    if found is None or target is None:
        return [f"The session ended: {reason}."]
    return [
        f"The session ended: {reason}; half-width {percent(found.relative_half_width)} "
        f"of the value, wanted {percent(target)}."
    ]


def _light(found: Interference | None) -> list[str]:
    """Tell how the light came about, and what it does not see."""
    if found is None:
        return []
    sources = ", ".join(each for each, share in found.delays.items() if share)
    return [
        f"Lost to others, of {many(found.n, 'segment')}: {show_parts(found)}. "
        + (f"Measured delay ({sources}) is taken off first. " if sources else "")
        + (
            f"{found.flagged_percent:.1f}% lasted longer than median + 4 MAD of those that did "
            "the same, and by how much they did is lost."
            if is_estimated(found)
            else "None has enough others like it to tell whether it lasted longer than usual."
        ),
        f"{show_total(found)[2:].capitalize()} (green below 7.5%, red above 15%). What slows all "
        "segments alike does not show.",
    ]
