"""Reports of one page: the answer, up to eight rows, and advice.

The rest is in the whole report, `render`, and in `explain`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from benchrigor.layout import Line, Page, Part, page, row
from benchrigor.model import (
    Analysis,
    Code,
    Comparison,
    Decision,
    Estimate,
    Notice,
    Options,
    Round,
    RunRecord,
    Verdict,
)
from benchrigor.model.analysis import Kind
from benchrigor.model.comparison import show_difference
from benchrigor.model.notice import Severity, is_of_modes
from benchrigor.model.run_line import AT_FULL_SPEED, just_now
from benchrigor.model.sentence import show_change
from benchrigor.model.text import (
    PEAK_MEMORY,
    counted,
    many,
    no_number,
    percent,
    say_end,
    show_added,
    show_chance,
    show_duration,
    show_estimate,
    show_interval,
    show_modes,
    show_peak_memory,
    show_plus_minus,
    show_value,
)
from benchrigor.report.comparison_text import show_basis, show_more
from benchrigor.report.figure_text import show_amounts, show_figures, subsessions_of_rounds
from benchrigor.report.notice_lines import chosen, chosen_of_run, is_undisturbed, marked, warnings
from benchrigor.session.conditions.red_rounds import is_disturbed
from benchrigor.stats.estimators import pace
from benchrigor.stats.readings.evidence import asked_half_width

MOST_ROWS = 8
_MOST_METRICS = 3
_VERDICTS = {
    Verdict.BETTER: "better: by more than the margin of {}",
    Verdict.WORSE: "worse: by more than the margin of {}",
    Verdict.DIFFERENT: "different by more than the margin of {}; which way is better is not known",
    Verdict.EQUIVALENT: "equivalent: the difference is within the margin of {}",
    Verdict.UNDECIDED: "undecided: the difference may be within the margin of {}, or beyond",
}
_COLOURS = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.UNDECIDED: "yellow"}


def run_page(record: RunRecord) -> Page:
    """Return the page of a run: its line, up to eight rows, and what to do.

    Parameters
    ----------
    record
        Of a finished or a running session.

    Examples
    --------
    >>> import benchrigor as br
    >>> record = br.measure(dict, name="dict()", budget_s=0.05)
    >>> run_page(record).startswith("dict()  ")
    True
    """
    rows: list[Part] = []
    for analysis in record.analyses[:_MOST_METRICS]:
        rows += _metric(analysis, record)
    if more := len(record.analyses) - _MOST_METRICS:
        rows += row("metrics", [f"{more} more: --details"] if more > 0 else [])
    if record.first_call_s is not None:
        shown = show_value(record.first_call_s, "s")
        rows += row("first", [f"{shown}, the first call of a fresh process in the median"])
    rows += row("data", [_data(record)])
    rows += row("machine", [_machine(record)])
    if PEAK_MEMORY in record.facts:
        rows += row("memory", [f"at its peak {show_peak_memory(record.facts)}"])
    head = Line(str(record), hanging=2, style="bold")
    reason = record.decision.reason if record.decision else None
    return page([head, *rows[:MOST_ROWS], *warnings(_notices(record), reason=reason)])


def comparison_page(comparison: Comparison, *, whole: bool = False) -> Page:
    """Return the page of a comparison: its sentence, up to eight rows, and what to do.

    Parameters
    ----------
    comparison
        Of two sides.
    whole
        With all that is known instead.
    """
    more: list[Part] = []
    told = warnings(chosen(_without_missed_targets(comparison)), of_pairs=comparison.paired)
    if whole:
        more = [part for label, text in _more(comparison) for part in row(label, [text], width=11)]
        told = [part for notice in comparison.notices for part in marked(notice)]
    return page(
        [
            Line(str(comparison), hanging=2, style="bold"),
            *_verdict(comparison),
            *row("why", [_why(comparison)], width=11),
            *_sides(comparison),
            *row("difference", [show_difference(comparison)], width=11),
            *more,
            *row("data", [_evidence(comparison), _times_apart(comparison)], width=11),
            *told,
        ]
    )


def _more(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what only the whole page of a comparison has."""
    if comparison.median_ratio is not None:
        unit, way = comparison.readings_in, comparison.direction
        change = show_change(comparison.median_ratio, unit, way)
        yield "median", f"of the ratios of pairs: {change}"
    if comparison.p_value is not None:
        chance = show_chance(comparison.p_value).lstrip("=")
        yield "p-value", f"{chance} (of no difference at all)"
    if comparison.reason is not None:
        yield "ended", say_end(Decision(stop=True, reason=comparison.reason))


def _verdict(comparison: Comparison) -> list[Part]:
    verdict = comparison.verdict
    text = _VERDICTS[verdict].format(percent(comparison.margin))
    more = show_more(comparison)
    parts = [text, f"about {more} would decide" if more else ""]
    return row("verdict", parts, width=11, style=_COLOURS.get(verdict, ""))


def _sides(comparison: Comparison) -> list[Part]:
    lines: list[Part] = []
    names = comparison.names or ("", "")
    sides = (comparison.baseline, comparison.candidate)
    for role, name, side in zip(("baseline", "candidate"), names, sides, strict=True):
        if side is not None:
            is_moved = side.method.startswith(pace.AT_FULL_SPEED)
            where = pace.AT_FULL_SPEED if is_moved else ""
            when = "just now" if comparison.paired else where
            shown = f"{show_estimate(side, comparison.readings_in)} {when}".strip()
            lines += row(role, [f"{name}: {shown}" if name else shown], width=11)
    return lines


def _times_apart(comparison: Comparison) -> str:
    """Say of stored runs at one pace that they are of different times."""
    is_paced = any(notice.code is Code.AT_FULL_PACE for notice in comparison.notices)
    apart = "measured at different times: to be sure, measure both in turn (benchrigor ab)"
    return apart if is_paced else ""


def _why(comparison: Comparison) -> str:
    """Say why there is no ratio."""
    return "" if comparison.ratio is not None else no_number(comparison.notices)


def _evidence(comparison: Comparison) -> str:
    spent = "" if comparison.elapsed_s is None else f" in {show_duration(comparison.elapsed_s)}"
    return f"{show_basis(comparison)}{spent}"


def _without_missed_targets(comparison: Comparison) -> Iterable[Notice]:
    """Leave out a missed target if the verdict is clear: more readings would not change it."""
    if comparison.verdict is Verdict.UNDECIDED:
        return comparison.notices
    return (notice for notice in comparison.notices if notice.code is not Code.NOT_CONVERGED)


def _metric(analysis: Analysis, record: RunRecord) -> list[Part]:
    """Describe the number of a metric, and the measured one if it is at full speed."""
    headline, unit = analysis.headline, analysis.metric.unit
    measured = analysis.estimate
    if headline is None or measured is None:
        seen = analysis.observed
        why = row("why", [no_number(analysis.notices)])
        return why + row("observed", ["" if seen is None else show_figures(seen, unit)])
    several = len(record.analyses) > 1
    statistic = record.options.statistic if analysis.kind is not Kind.WORK else "mean"
    label = analysis.metric.name if several or analysis.kind is Kind.WORK else statistic.split()[0]
    is_moved = analysis.at_full_pace is not None
    where = f" {AT_FULL_SPEED}" if is_moved else ""
    is_warned = any(map(is_of_modes, analysis.notices))
    rows = row("modes", [_modes(analysis) * is_warned])
    rows += row(label, [_interval(headline, unit) + where])
    now = just_now(analysis)
    rows += row("just now", ["" if now is None else _interval(now, unit)])
    if several:
        return rows
    rows += row("target", [_target(measured, analysis, record.options, is_moved=is_moved)])
    if analysis.wps is not None:
        rows += row("overhead", [show_added(analysis.wps.overhead)])
    typical = analysis.typical
    if typical is not None and statistic == "mean" and not typical.notices and not is_moved:
        rows += row("median", [_interval(typical, unit)])
    return rows + row("modes", ["" if is_warned else _modes(analysis)])


def _interval(estimate: Estimate, unit: str) -> str:
    """Show a number with its interval, and what that is."""
    if estimate.is_bracket:
        return show_interval(estimate, unit)
    value, _, interval = show_interval(estimate, unit).rpartition(" [")
    return f"{value}, {percent(estimate.confidence, digits=10)} confidence interval [{interval}"


def _target(estimate: Estimate, analysis: Analysis, options: Options, *, is_moved: bool) -> str:
    """Say how narrow the interval of the measured number was asked to be, and whether it is."""
    wanted = asked_half_width(estimate, analysis.metric, options)
    if not analysis.metric.must_satisfy or wanted == math.inf or estimate.value == 0.0:
        return ""
    reached = "missed" if estimate.half_width > wanted else "reached"
    within = show_plus_minus(estimate.relative_half_width)
    shown = show_plus_minus(wanted / abs(estimate.value))
    which = "without disturbed readings" if analysis.disturbed is not None else "measured"
    of = f" of the {show_value(estimate.value, analysis.metric.unit)} {which}" * is_moved
    return f"{shown}: {reached}, with {within}{of}"


def _modes(analysis: Analysis) -> str:
    return show_modes(analysis.modes, analysis.metric.unit) if len(analysis.modes) > 1 else ""


def _data(record: RunRecord) -> str:
    """Say how much was measured."""
    analysis = record.analysis()
    if analysis is None:
        return ""
    if analysis.kind is Kind.WORK:
        planned = [finished.plan.work for finished in record.rounds]
        work = [amount for amount in planned if amount is not None]
        shown = many(len(record.rounds), "round")
        shown += f" of work {show_amounts(work, analysis.metric.unit)}" if work else ""
        shown = "; ".join(filter(None, [shown, subsessions_of_rounds(analysis)]))
    else:
        shown = many(analysis.taken, "reading")
        loop = record.facts.get("inner_loop")
        shown += f" of {loop} calls each" if isinstance(loop, int) and loop > 1 else ""
        if analysis.kind is Kind.INVOCATIONS:
            shown += f" in {counted(len(record.rounds))} fresh processes"
        elif "startup_s" in record.facts:
            is_first = all(map(_is_first_call, record.rounds))
            shown += f", each {'the first call' if is_first else 'a call'} in a fresh process"
    if not record.elapsed_s:  # recorded elsewhere
        return shown
    here = next((notice.sentence for notice in record.session_notices if _is_here(notice)), "")
    return "; ".join(filter(None, (shown, show_duration(record.elapsed_s), here)))


def _is_first_call(finished: Round) -> bool:
    """Whether a fresh process gave no reading but its first call, which is often slower."""
    first = finished.facts.get("first_call_s")
    return all(readings.tolist() == [first] for readings in finished.unit_readings.values())


def _is_here(notice: Notice) -> bool:
    """Whether a Notice says why fresh processes did not measure."""
    return notice.code is Code.THIS_PROCESS_ONLY and notice.severity is Severity.NOTE


def _machine(record: RunRecord) -> str:
    """Say how busy the machine was, else how fast."""
    lost, where = record.interference, record.provenance
    if lost is not None and is_disturbed(lost):
        kept = ", left out of the number" * is_undisturbed(record)
        return f"busy: other programs took {lost.measured_percent:.0f}% of the time{kept}"
    about = "" if where is None else where.machine
    return "; ".join(part for part in (_state(record), about) if part)


def _notices(record: RunRecord) -> list[Notice]:
    """Return the Notices of the page; a machine that took little of the time disturbed little."""
    is_calm = record.interference is not None and not is_disturbed(record.interference)
    hidden = {Code.HARDLY_UNDISTURBED} if is_calm else set()
    shown = [notice for notice in chosen_of_run(record) if notice.code not in hidden]
    return sorted(shown, key=lambda notice: not is_of_modes(notice))


def _state(record: RunRecord) -> str:
    """Say at which share of its full speed the machine ran, where references tell it."""
    paces = [analysis.pace for analysis in record.analyses if analysis.at_full_pace is not None]
    return f"at {percent(paces[0].share, digits=2)} of its full speed" if paces and paces[0] else ""
