"""Why this number: every step from the raw readings to the interval."""

from __future__ import annotations

import math

from benchrigor.layout import Part, page, wrapped
from benchrigor.model import (
    Analysis,
    Estimate,
    Interference,
    RunRecord,
    StablePhase,
    WpsFit,
)
from benchrigor.model.analysis import Kind, LevelFit, PhaseReason
from benchrigor.model.text import (
    counted,
    false_alarms,
    first_few,
    many,
    percent,
    show_estimate,
    show_overhead,
    show_value,
)
from benchrigor.report.figure_text import (
    durations_of,
    grown,
    name_fit,
    name_rounds,
    outlying,
    say_prediction,
    show_figures,
    show_levels,
)
from benchrigor.report.pace_text import (
    explain_pace,
    explain_pressure,
    pressure_of_run,
    show_total,
    with_waiting,
)
from benchrigor.report.text import (
    NOTABLE,
    cold,
    meaning,
    phase_table,
    piece_levels,
    say_cut,
    why_left_out,
)
from benchrigor.stats.readings.evidence import asked_half_width
from benchrigor.stats.series.interval import scale
from benchrigor.stats.series.level import BLOCKS
from benchrigor.stats.series.subsessions import MERGED, SUBSESSIONS
from benchrigor.stats.statistics.proportion import WILSON, whole_of
from benchrigor.stats.statistics.rate import HARMONIC
from benchrigor.stats.statistics.statistic import TRIMMED
from benchrigor.units import Scale, scale_for, statistic_of

_MOST_PHASES = 12
_UNFITTED = (PhaseReason.CHANGING_PACE, PhaseReason.LONGEST_SEGMENT)  # beside no transients

_Step = str | tuple[str, list[Part]]  # a sentence, or one with a table below it


def explain(record: RunRecord, metric: str | None = None) -> str:
    """Explain step by step how the number of a metric came about.

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
    >>> record = br.measure(dict, name="dict()", budget_s=0.05)
    >>> print(explain(record).splitlines()[0])
    How the time of dict() came about
    """
    analysis = record.analysis(metric)
    if analysis is None:
        return page([f"{record.name}: nothing was measured, so there is nothing to explain."])
    steps: list[_Step] = [
        *(_of_pairs if analysis.kind is Kind.WORK else _of_readings)(analysis, record),
        *explain_pace(analysis, record.options.statistic),
        *_stop(analysis, record),
        *_light(record.interference),
        *explain_pressure(pressure_of_run(record)),
        *dict.fromkeys(f"Notice: {each}" for each in (*record.session_notices, *analysis.notices)),
    ]
    lines = [*wrapped(f"How the {analysis.metric.name} of {record.name} came about"), ""]
    for number, step in enumerate(steps, 1):
        text, rows = (step, []) if isinstance(step, str) else step
        lines += [*wrapped(text, f"{number:>2}. "), *rows]
    return page(lines)


def _of_readings(analysis: Analysis, record: RunRecord) -> list[_Step]:
    """Explain the steps from readings to their mean or quantile."""
    return [
        _readings(analysis, record),
        *_phases(analysis, record),
        *_level(analysis, record),
        *_subsessions(analysis),
        _interval(analysis),
    ]


def _of_pairs(analysis: Analysis, record: RunRecord) -> list[_Step]:
    """Explain the steps from pairs of work amount and duration to the speed."""
    steps: list[_Step] = [_pairs(analysis, record), _say_what_is_left_out(analysis, record)]
    if analysis.wps is None:
        return [
            *steps,
            f"No line can be drawn, so there is no interval.{_say_observed(analysis)}",
        ]
    return [*steps, *_line(analysis, analysis.wps), _checks(analysis, analysis.wps)]


def _pairs(analysis: Analysis, record: RunRecord) -> str:
    durations = durations_of(record, analysis.metric.unit)
    if not durations:
        return "No round has a work amount and a duration yet."
    order = f"are planned in {record.options.work_order} order"
    if not record.elapsed_s:  # recorded elsewhere
        order = "stand in the order in which they were run"
    return (
        f"{many(len(record.whole_rounds), 'round')} of {durations}. Amounts {order}: if they only "
        "rose, a drift in time would look like work."
    )


def _say_what_is_left_out(analysis: Analysis, record: RunRecord) -> str:
    if not analysis.left_out:
        return "All rounds count."
    number = len(analysis.left_out)
    why = ", ".join(why_left_out(analysis, record))
    return (
        f"{many(number, 'round')} {'does' if number == 1 else 'do'} not count"
        f"{f' ({why})' if why else ''}. Their amount or their place decides that; of their own "
        "duration only an early end counts, or noise would choose the rounds."
    )


def _line(analysis: Analysis, fit: WpsFit) -> list[str]:
    """Explain how the line was fitted, and how its slope becomes the speed."""
    observed = _say_observed(analysis)
    slope, per = _per_unit(fit, analysis.metric.unit)
    freedom = fit.slope.degrees_of_freedom
    student = f"Student t with {freedom:.3g} degrees of freedom" if freedom else "Its interval"
    steps = [
        f"The line through {many(fit.n, 'round')}: duration = overhead + work / speed. "
        f"Overhead {show_overhead(fit.overhead)}, "
        f"time {show_value(slope.value, 's')} per {per}.",
        _standard_errors(fit),
        f"{student} gives {show_estimate(slope, 's')} per {per}.",
    ]
    if fit.speed is None:
        return [*steps, f"This interval holds 0 or less, so the speed has no interval.{observed}"]
    shown = show_estimate(fit.speed, analysis.metric.unit)
    return [*steps, f"The reciprocals are the speed: {shown}, an asymmetric interval."]


def _standard_errors(fit: WpsFit) -> str:
    """Explain what noise the standard errors of the line allow for."""
    varied, rounds = "Noise may differ from round to round", many(fit.merged, "round")
    if MERGED in fit.slope.method:
        return (
            f"It goes through the means of every {rounds}: times per work of neighbouring means "
            "hardly correlate (standard errors of least squares)."
        )
    if SUBSESSIONS in fit.slope.method:
        return (
            f"{varied}. In subsessions of {rounds} neighbours count as uncorrelated: how the line "
            "moves without each of them in turn gives the standard errors."
        )
    successive = (
        f"autocorrelation of successive rounds inflates the variance {fit.inflation:.3g}-fold"
        if fit.inflation >= NOTABLE
        else "successive rounds are not autocorrelated: each counts in full"
    )
    return f"{varied} (standard errors of type HC3); {successive}."


def _per_unit(fit: WpsFit, unit: str) -> tuple[Estimate, str]:
    """Return the slope per unit of work that people use, and that unit."""
    work = scale_for(fit.naive_speed, unit) if unit == "B/s" else Scale(factor=1.0, name="")
    return scale(fit.slope, 1.0 / work.factor), work.name.removesuffix("/s") or "unit of work"


def _checks(analysis: Analysis, fit: WpsFit) -> str:
    """Say what supports the line, and what contradicts it."""
    parts = [f"each {name_fit(fit)} is predicted from the others to {say_prediction(fit)}"]
    if fit.bend is not None:
        ends = (fit.bend.value, fit.bend.low, fit.bend.high)
        bend, low, high = (percent(round(end, 9) + 0.0, digits=2) for end in ends)
        parts.append(
            "from the smallest to the largest amount the time per unit of work changes by "
            f"{bend} [{low}, {high}]"
        )
    if fit.growth is not None:
        parts.append(grown(fit))
    if outliers := outlying(analysis):
        verb = "lies" if len(outliers) == 1 else "lie"
        parts.append(f"{name_rounds(outliers)} {verb} far from the line")
    return f"Checks of the line: {'; '.join(parts)}."


def _readings(analysis: Analysis, record: RunRecord) -> str:
    red = len(record.rounds) - len(record.counted_rounds)
    more = f"; {red} more, with too much interference, are left out" if red else ""
    rounds = many(len(record.counted_rounds), "round")
    were = "was" if analysis.taken == 1 else "were"
    taken = f"{many(analysis.taken, 'reading')} {were} taken in {rounds}{more}."
    if (disturbed := analysis.disturbed) is None:
        return taken
    waiting = with_waiting(analysis)
    return (
        f"{taken} During {counted(disturbed.left_out)} of them, which do not count, more than a "
        f"thousandth of the time was run delay{f' ({waiting})' if waiting else ''}. Long readings "
        "are hit more often: the others count so that each length keeps its share."
    )


def _say_observed(analysis: Analysis) -> str:
    """Show the observed figures; empty for old records, which lack them."""
    if (observed := analysis.observed) is None:
        return ""
    unit = analysis.metric.unit
    levels = show_levels(observed, unit)
    return f" Observed: {show_figures(observed, unit)}{levels and f'; levels {levels}'}."


def _phases(analysis: Analysis, record: RunRecord) -> list[_Step]:
    if record.options.cut_shares is not None:
        kept = f"{counted(analysis.n_kept)} of {many(analysis.n, 'reading')} are kept"
        where = " of each round" if analysis.kind is Kind.INVOCATIONS else ""
        return [f"Cut{where}: {say_cut(record.options)}; {kept}."]
    if not analysis.n:
        return []
    if record.options.statistic == "min":
        return ["A minimum needs no stable phase: it is the least reading that counts."]
    if len(analysis.phases) > 1 and record.options.detector == "edm":
        kept = f"{counted(analysis.n_kept)} of {many(analysis.n, 'reading')} are kept"
        return [f"The longest segment of each round counts if it holds more than half; {kept}."]
    if analysis.kind is Kind.PIECES and analysis.phases:
        return [_pieces(analysis, record)]
    if not analysis.phases or analysis.phases[0].reason is PhaseReason.WHOLE:
        few = "Too few readings to look for change points"
        if analysis.n_kept == analysis.n:
            return [f"{few}: all of them are taken."]
        return [f"{few}: {counted(analysis.n_kept)} of {counted(analysis.n)} are taken."]
    if len(analysis.phases) > 1:
        stable = [phase for phase in analysis.phases if phase.start is not None]
        how = "All rounds are cut alike, where it suits them together"
        if len({phase.start for phase in stable}) > 1:
            how = "The rounds have no steady state in common, and each is cut by itself"
        return [f"{how}: that leaves a stable phase in {len(stable)} of {len(analysis.phases)}."]
    return [_change_points(analysis.phases[0]), _segments(analysis)]


def _pieces(analysis: Analysis, record: RunRecord) -> str:
    """Say which readings of a piece count, and show the levels of pieces."""
    return (
        f"They came in {many(len(analysis.phases), 'piece')}. The first one held the warm-up; of "
        "each of the others the first reading, or hundredth, is left out: caches are cold after a "
        f"pause. Levels: {', '.join(piece_levels(analysis, record))}."
    )


def _change_points(stable: StablePhase) -> str:
    points = stable.change_points
    where = first_few([*map(counted, points.indices)], _MOST_PHASES)
    head = f"Change points at {where}" if where else "No change point"
    return (
        f"{head} ({false_alarms(points.level)}; "
        f"autocorrelation inflates the variance {points.inflation:.3g}-fold)."
    )


def _segments(analysis: Analysis) -> _Step:
    stable, unit = analysis.phases[0], analysis.metric.unit
    rows = phase_table(stable, unit, _MOST_PHASES, indent=6)
    if stable.start is None:
        return f"Phases; none of them may be measured ({stable.reason}):", rows
    margin = stable.n - analysis.n_kept
    kept = f"{counted(analysis.n_kept)} of {counted(analysis.n)} readings are kept"
    if stable.reason is PhaseReason.CHANGING_PACE:
        kept += "; the pace changed, and none of them stands for the whole"
    elif margin and len(stable.phases) == 1:
        kept += f"{cold(margin)}, are left out"
    elif margin:
        kept += f" ({counted(margin)} beside the cuts are left out as a margin)"
    return f"Phases; {kept}:", rows


def _level(analysis: Analysis, record: RunRecord) -> list[str]:
    estimate, statistic = analysis.estimate, record.options.statistic
    if estimate is not None and analysis.kind is Kind.PIECES:
        return [
            f"The interval comes from the spread of the {many(estimate.n, 'level')} alone: "
            "readings of one piece know nothing of the pace of other minutes."
        ]
    if estimate is not None and analysis.kind is Kind.INVOCATIONS and estimate.n > 1:
        return [_invocations(analysis, estimate, statistic)]
    if estimate is not None and statistic_of(statistic)[0] == "quantile":
        beside = analysis.phases and record.options.cut_shares is None
        paced = beside and analysis.phases[0].reason in _UNFITTED
        weighted = ", weighted by a fit beside decaying transients" if beside and not paced else ""
        return [_quantile(estimate, statistic, weighted)]
    trimmed: list[str] = []
    if estimate is not None and TRIMMED in estimate.method:
        trimmed = [
            f"For the {statistic}, readings beyond this share at either end are drawn in to its "
            "border. The level and its interval are those of the mean of what this makes of "
            "them, with the degrees of freedom of the readings that are left."
        ]
    if len(analysis.fits) != 1:
        words = meaning(analysis)
        return [f"{words[0].upper()}{words[1:]}."] if words else []
    fit = analysis.fits[0]
    if estimate is not None and HARMONIC in estimate.method:
        level = f"{fit.level:.4g}, the mean of the reciprocals; its reciprocal is the estimate"
    else:
        level = show_value(fit.level, analysis.metric.unit)
    if not fit.transients:
        return [*trimmed, f"Mean {level}.", _correlation(fit)]
    spans = " and ".join(f"{transient:.3g}" for transient in fit.transients)
    return [
        *trimmed,
        f"Level {level}: fitted beside decaying transients with time constants of {spans} "
        "readings, which take up what is left of a warm-up too small to be seen.",
        _correlation(fit),
    ]


def _invocations(analysis: Analysis, estimate: Estimate, statistic: str) -> str:
    split, spread = analysis.split, ""
    if split is not None and split.level != 0.0:
        between, within = (
            percent(variance**0.5 / abs(split.level)) for variance in (split.between, split.within)
        )
        spread = f" They differ by {between} of the value, single readings inside them by {within}."
    what = "level" if statistic == "mean" else statistic
    return (
        f"Each of {counted(estimate.n)} invocations gives its {what}; the interval comes from the "
        f"spread of these.{spread}"
    )


def _quantile(estimate: Estimate, statistic: str, weighted: str) -> str:
    return (
        f"The {statistic} is the reading below which that share of the readings lies{weighted}. "
        "The long-run variance of lying below makes its rank uncertain: "
        f"{counted(estimate.n)} readings have the effective sample size "
        f"{counted(estimate.n_effective)}. The ends of the interval are readings, too."
    )


def _correlation(fit: LevelFit) -> str:
    if fit.method == "subsessions":
        return (
            f"Neighbours in subsessions of {many(fit.batch, 'reading')} count as uncorrelated: "
            f"the long-run variance is {fit.inflation:.3g} times that of single readings."
        )
    if fit.method == BLOCKS:
        return (
            f"The variance between {counted(fit.degrees_of_freedom + 1.0)} blocks of equal time, "
            f"{fit.inflation:.3g} times what independent readings would have, makes the interval."
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


def _interval(analysis: Analysis) -> str:
    estimate, unit = analysis.estimate, analysis.metric.unit
    if estimate is None:
        return f"No interval can be given.{_say_observed(analysis)}"
    error, freedom = estimate.standard_error, estimate.degrees_of_freedom
    if error is None or freedom is None:
        return f"{show_estimate(estimate, unit)}."
    if estimate.method.startswith(WILSON):
        return (
            f"Interval of Wilson for {counted(estimate.n_effective)} effective outcomes: "
            f"{show_estimate(estimate, unit)}."
        )
    skewed = ""
    if len(analysis.fits) == 1 and analysis.fits[0].skewness:
        skewed = f", corrected for a skewness of {analysis.fits[0].skewness:.2g}"
    return (
        f"Standard error {show_value(error, unit)}; Student t with {freedom:.3g} degrees of "
        f"freedom{skewed}: {show_estimate(estimate, unit)}."
    )


def _stop(analysis: Analysis, record: RunRecord) -> list[str]:
    if record.decision is None or record.decision.reason is None:
        return ["The session is still running."] if record.elapsed_s else []
    estimate = analysis.estimate
    ending = f"The session ended: {str(record.decision.reason).replace('-', ' ')}"
    if estimate is None:
        return [f"{ending}."]
    whole, name = whole_of(estimate)
    wanted = asked_half_width(estimate, analysis.metric, record.options)
    if wanted == math.inf or whole == 0.0:
        return [f"{ending}."]
    return [
        f"{ending}; half-width {percent(estimate.half_width / whole)} of the {name}, wanted "
        f"{percent(wanted / whole)}."
    ]


def _light(interference: Interference | None) -> list[str]:
    """Explain the light and its thresholds."""
    if interference is None:
        return []
    sources = ", ".join(source for source, share in interference.delays.items() if share)
    by = f" by measured delay ({sources})" if sources and not interference.percent else ""
    return [
        f"{show_total(interference)[2:].capitalize()}{by}: green below 7.5%, red above 15%. Long "
        "readings count as the program's own, and what slows all of them alike does not show."
    ]
