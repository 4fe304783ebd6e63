"""A run: its facts, its page, its whole report, and how its number came about."""

from __future__ import annotations

from dataclasses import replace

from benchrigor.layout import Page, page, wrapped
from benchrigor.model import Analysis, Code, Notice, RunRecord
from benchrigor.model.notice import Severity
from benchrigor.model.text import say_end, show_estimate
from benchrigor.report.fact import (
    Depth,
    Fact,
    Figure,
    advised,
    chosen_of_run,
    deeper,
    head,
    known,
    list_rows,
    page_of,
    step,
    steps_of,
    told_by,
)
from benchrigor.report.facts.machine_facts import facts_of_machine, facts_of_pace
from benchrigor.report.facts.number_facts import facts_of_line, facts_of_number, head_of, target_of
from benchrigor.report.facts.reading_facts import facts_of_basis, taken_of
from benchrigor.session.red_rounds import is_disturbed
from benchrigor.units import many, show_duration, show_value

_MOST_METRICS = 3


def facts_of_run(record: RunRecord) -> list[Fact]:
    """Return all that was found in a run, in the order of its report."""
    several = len(record.analyses) > 1
    facts, notices = [*facts_of_line(record), head(head_of(record))], list[Fact]()
    for index, analysis in enumerate(record.analyses):
        own = _of_metric(analysis, record)
        notices += told_by(own, analysis.notices, f"{analysis.metric.name}: " * several)
        facts += own if index < _MOST_METRICS else deeper(own)
    of_run, reason = _of_run(record), record.decision.reason if record.decision else None
    return [
        *facts,
        *of_run,
        list_rows("numbers", (), _figures(record)),
        *told_by(of_run, record.session_notices),
        *notices,
        *advised(_asking(record), most=1, reason=reason),
    ]


def _figures(record: RunRecord) -> list[Figure]:
    """Return the numbers by metric."""
    figure = Figure(name=record.name, statistic=record.options.statistic)
    figures = [
        replace(
            figure,
            metric=analysis.metric.name if len(record.analyses) > 1 else "",
            estimate=analysis.headline,
            unit=analysis.metric.unit,
        )
        for analysis in record.analyses
    ]
    return figures or [figure]


def render(record: RunRecord) -> Page:
    """Return the whole report of a run as plain text, up to 79 columns wide.

    Parameters
    ----------
    record
        Of a finished or a running session.

    Examples
    --------
    >>> import benchrigor as br
    >>> record = br.measure(dict, name="dict()", budget_s=0.05)
    >>> render(record).startswith("dict()  ")
    True
    """
    return page_of(record, Depth.DETAILS)


def explain(record: RunRecord, metric: str | None = None) -> str:
    """Explain in up to ten steps how the number of a metric came about.

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
    notices = dict.fromkeys(map(str, (*record.session_notices, *analysis.notices)))
    steps = [
        *_of_metric(analysis, record),
        *known(step("ending", _ending(analysis, record))),
        *facts_of_machine(record),
        *([step("notices", "What to know about it:", *zip(notices))] if notices else []),
    ]
    title = f"How the {analysis.metric.name} of {record.name} came about"
    return page([*wrapped(title), "", *steps_of(steps)])


def _of_metric(analysis: Analysis, record: RunRecord) -> list[Fact]:
    """Return the number of a metric, its basis, and the steps to it."""
    return [
        *facts_of_number(analysis, record),
        *facts_of_basis(analysis, record),
        *facts_of_pace(analysis, record.options.statistic),
    ]


def _of_run(record: RunRecord) -> list[Fact]:
    """Return the facts of all metrics together."""
    metrics, first_s, done = len(record.analyses), record.first_call_s, record.throughput
    several = f"{metrics}; a page shows {_MOST_METRICS}" * (metrics > _MOST_METRICS)
    first = "" if first_s is None else f"{show_value(first_s, 's')} in the median, of a process"
    red = len(record.rounds) - len(record.counted_rounds)
    left_out = f", {red} red left out" if red else ""
    # Readings that were recorded elsewhere took no time here.
    ended = f"{say_end(record.decision)}; {many(len(record.rounds), 'round')}{left_out}"
    return known(
        Fact("metrics", Depth.PAGE, "metrics", several, metrics),
        Fact("first call", Depth.DETAILS, "first call", first, first_s),
        Fact("throughput", Depth.DETAILS, "done", show_estimate(*done) if done else "", done),
        Fact("data", Depth.PAGE, "data", _data(record)),
        Fact("ended", Depth.DETAILS, "ended", ended if record.elapsed_s else ""),
        *facts_of_machine(record),
    )


def _data(record: RunRecord) -> str:
    """Say how much was measured."""
    analysis = record.analysis()
    if analysis is None:
        return ""
    shown = taken_of(analysis, record)
    if not record.elapsed_s:  # recorded elsewhere
        return shown
    here = next((notice.sentence for notice in record.session_notices if _is_here(notice)), "")
    return "; ".join(filter(None, (shown, show_duration(record.elapsed_s), here)))


def _is_here(notice: Notice) -> bool:
    """Whether a Notice says why fresh processes did not measure."""
    return notice.code is Code.THIS_PROCESS_ONLY and notice.severity is Severity.NOTE


def _ending(analysis: Analysis, record: RunRecord) -> str:
    if record.decision is None or record.decision.reason is None:
        return "The session is still running." * bool(record.elapsed_s)
    target = target_of(analysis, record)
    return f"The session ended: {say_end(record.decision)}{f'; target {target}' * bool(target)}."


def _asking(record: RunRecord) -> list[Notice]:
    """Return the Notices that ask for something; a machine that took little disturbed little."""
    is_calm = record.interference is not None and not is_disturbed(record.interference)
    hidden = {Code.HARDLY_UNDISTURBED} if is_calm else set()
    return [notice for notice in chosen_of_run(record) if notice.code not in hidden]
