"""The sheets of runs, comparisons, families and suites, and of any result that has a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from typing import Any

from benchrigor.model import Analysis, Comparison, RunRecord, Verdict
from benchrigor.model.analysis import Kind
from benchrigor.model.comparison import Family, SuiteComparison
from benchrigor.model.one_line import Reported
from benchrigor.model.run import Provenance
from benchrigor.report.fact import Depth, Fact, facts_of, known
from benchrigor.report.facts.comparison_facts import line_of_comparison
from benchrigor.report.facts.number_facts import label_of
from benchrigor.report.html import (
    BAD,
    DOUBTFUL,
    GOOD,
    Chapter,
    Picture,
    Sheet,
    chapters_of,
)
from benchrigor.report.plots.number_plots import (
    estimates_so_far,
    plot_convergence,
    plot_distribution,
    plot_forest,
)
from benchrigor.report.plots.run_plots import plot_trace
from benchrigor.report.tables import facts_of_runs
from benchrigor.session.measuring import RunRecords
from benchrigor.units import many, percent, show_duration

TONES = {Verdict.BETTER: GOOD, Verdict.WORSE: BAD, Verdict.UNDECIDED: DOUBTFUL}
_TRACE = (
    "Readings that count are dark, those that other programs disturbed purple, others pale. Phases "
    "and rounds that do not count are shaded."
)
_LONGEST = 400  # characters of an answer
_MOST_DRAWN = 50  # benchmarks of a file: to draw more takes longer than readers wait


def sheet_of_run(record: RunRecord, *, pictures: int | None = None) -> Sheet:
    """Return the sheet of a run; ``pictures`` is the most that it has, for one of many."""
    facts, environment = facts_of(record), [*_of_place(record.provenance)]
    place = Chapter(heading="Environment", facts=environment, is_closed=True)
    analysis = record.analysis()
    return Sheet(
        name=record.name,
        asked=_asked_of(record, analysis),
        answer=_answer_of(record, facts, analysis),
        tone="" if analysis is not None and analysis.headline is not None else DOUBTFUL,
        chapters=[*chapters_of(facts), *([place] if environment else [])],
        pictures=[*islice(_pictures_of(record), pictures)],
        notices=record.notices,
    )


def sheet_of_comparison(comparison: Comparison) -> Sheet:
    """Return the sheet of a comparison of two sides."""
    old, new = comparison.names or ("the baseline", "the candidate")
    return replace(
        sheet_of_facts(comparison),
        name=f"{new} against {old}",
        asked=f"Does {new} differ from {old} by more than {percent(comparison.margin)}?",
        answer=line_of_comparison(comparison, _LONGEST),
        tone=TONES.get(comparison.verdict, ""),
        pictures=forest_of({new: comparison}, {new: comparison.verdict}),
    )


def sheet_of_family(family: Family) -> Sheet:
    """Return the sheet of comparisons that are judged together."""
    return replace(
        sheet_of_facts(family),
        name=many(len(family.comparisons), "comparison"),
        asked="Which of them differ, judged together?",
        tone=_tone_of(family.verdicts.values()),
        pictures=forest_of(family.comparisons, family.verdicts),
    )


def sheet_of_suites(suites: SuiteComparison) -> Sheet:
    """Return the sheet of files that are compared with the first one."""
    others = ", ".join(suites.refused)
    verdicts = [kind for family in suites.families.values() for kind in family.verdicts.values()]
    return replace(
        sheet_of_facts(suites),
        name=f"{others} against {suites.baseline}",
        asked=f"Which benchmarks of {others} differ from those of {suites.baseline}?",
        tone=_tone_of(verdicts),
        pictures=[
            replace(picture, title=f"{picture.title} in {file}")
            for file, family in suites.families.items()
            for picture in forest_of(family.comparisons, family.verdicts)
        ],
    )


def sheet_of_ranking(records: RunRecords) -> Sheet:
    """Return the sheet of runs that took turns, the best first."""
    return replace(
        sheet_of_facts(records),
        name=many(len(records), "run"),
        asked="Which is the best?",
        members=[sheet_of_run(record) for record in records.values()],
    )


def sheet_of_runs(records: Sequence[RunRecord], name: str) -> Sheet:
    """Return the sheet of the benchmarks of a file, each with its own."""
    some = f", the first {_MOST_DRAWN} with pictures" * (len(records) > _MOST_DRAWN)
    return Sheet(
        name=name,
        asked="What are their numbers?",
        answer=f"{many(len(records), 'benchmark')} of {name}{some}",
        chapters=chapters_of(facts_of_runs(records)),
        members=[
            sheet_of_run(record, pictures=int(index < _MOST_DRAWN))
            for index, record in enumerate(records)
        ],
    )


def sheet_of_facts(result: Reported) -> Sheet:
    """Return the sheet of a result that has no question of its own: its line, and its facts."""
    return Sheet(
        name=type(result).__name__,
        asked="",
        answer=repr(result),
        chapters=chapters_of(facts_of(result)),
        notices=getattr(result, "notices", ()),
    )


def _tone_of(verdicts: Any) -> str:
    """Return the colour of the worst verdict."""
    found = {TONES.get(verdict, "") for verdict in verdicts}
    return next((tone for tone in (BAD, DOUBTFUL, GOOD) if tone in found), "")


def _asked_of(record: RunRecord, analysis: Analysis | None) -> str:
    """Ask for the number of a run: the statistic, how narrow, and within what budget."""
    options = record.options
    what = "number" if analysis is None else f"{label_of(analysis, record)}"
    asked = f"What is the {what} of {record.name}"
    if record.elapsed_s and options.target is not None:
        asked += f", to ±{percent(options.target)} at {percent(options.confidence, digits=10)}"
        asked += f", within {show_duration(options.budget_s)}"
    return f"{asked}?"


def _answer_of(record: RunRecord, facts: Sequence[Fact], analysis: Analysis | None) -> str:
    """Answer in a sentence: the number with its interval, or why there is none."""
    number = next((fact for fact in facts if fact.key in {"number", "no number", "speed"}), None)
    if number is None or analysis is None:
        return str(record)
    metric = "" if number.label == analysis.metric.name else f" {analysis.metric.name}"
    return f"The {number.label}{metric} is {number.text}."


def _of_place(provenance: Provenance | None) -> Iterator[Fact]:
    """Yield all that is known of the place of a run, by the names of its fields."""
    for field in fields(provenance) if provenance is not None else ():
        value, rows = getattr(provenance, field.name), tuple[tuple[str, ...], ...]()
        if isinstance(value, Mapping):
            rows = tuple((name, str(item)) for name, item in value.items())
            value = many(len(rows), "entry").replace("entrys", "entries") if rows else ""
        elif isinstance(value, tuple):
            value = ", ".join(map(str, value))
        label = field.name.replace("_", " ")
        text = "" if value is None else str(value)
        yield from known(Fact(field.name, Depth.DETAILS, label, text, rows=rows))


def _pictures_of(record: RunRecord) -> Iterator[Picture]:
    """Yield the pictures of a run: its readings or work line, their distribution, convergence."""
    analysis = record.analysis()
    if analysis is None or not record.counted().size:
        return
    if analysis.kind is Kind.WORK:
        words = (
            "Each round by its amount of work and its duration; the slope of the line gives the "
        )
        words += "speed. Hollow rounds do not count."
        yield Picture(title="The work line", words=words, draw=partial(plot_trace, record))
    else:
        words = _TRACE
        yield Picture(title="Readings in time order", words=words, draw=partial(plot_trace, record))
        words = "How many readings that count have which value, with the interval of the number."
        words += " Dotted: the modes, with their shares." * (len(analysis.modes) > 1)
        draw = partial(plot_distribution, record)
        yield Picture(title="Distribution", words=words, draw=draw)
    found = [] if analysis.estimate is None else estimates_so_far(record, analysis)
    if len(found) > 1:
        words = "The number and its interval, as the first readings that count give them. Dashed: "
        words += "as narrow as it was asked to be."
        across = f"{analysis.kind.noun}s that count"
        draw = partial(plot_convergence, found, analysis.metric, record.options, across=across)
        yield Picture(title="Convergence", words=words, draw=draw)


def forest_of(
    comparisons: Mapping[str, Comparison], verdicts: Mapping[str, Verdict]
) -> list[Picture]:
    """Return the picture of comparisons, if any has a ratio."""
    if not any(comparison.ratio for comparison in comparisons.values()):
        return []
    words = (
        "The change of each with its interval, the worst first. Changes within the shaded margin "
    )
    words += "do not matter."
    draw = partial(plot_forest, comparisons, verdicts)
    return [Picture(title="Changes", words=words, draw=draw)]
