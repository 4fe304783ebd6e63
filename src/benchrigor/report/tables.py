"""Many numbers as tables: suites of benchmarks, and runs of a ranking, a file or of commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from benchrigor.errors import BenchrigorError
from benchrigor.layout import Part, table
from benchrigor.model import Estimate, Metric, RunRecord
from benchrigor.model.comparison import Comparison, Family, Ranked, SuiteComparison, Verdict
from benchrigor.model.notice import Code, Notice, Severity, is_of_modes
from benchrigor.model.run import FILE
from benchrigor.model.text import (
    PEAK_MEMORY,
    no_number,
    say_end,
    show_peak_memory,
    show_plus_minus,
    show_short,
)
from benchrigor.report.fact import (
    ADVICE,
    Depth,
    Fact,
    Figure,
    advised,
    by_sentence,
    chosen,
    chosen_of_run,
    head,
    known,
    list_rows,
    sentence,
    sentence_of,
    told_by,
    warn,
)
from benchrigor.report.facts.comparison_facts import (
    facts_of_family,
    geometric_mean,
    judged,
    rule_of_verdicts,
)
from benchrigor.report.facts.number_facts import (
    AS_MEASURED,
    as_measured,
    notes_on,
    show_number,
)
from benchrigor.stats.readings.asked_readings import wanted_half_width
from benchrigor.units import counted, first_few, percent, show_value

if TYPE_CHECKING:
    from benchrigor.session.pairs.ranking import Ranking

_LISTED_FILES = 10  # names of benchmarks that a file lacks
_MARK = "~"  # Before an observed median in place of an estimate
_MOST_SENTENCES = 4
_LISTED = 4  # commands that missed the target
_TIME = "time"


def facts_of_suites(suites: SuiteComparison) -> list[Fact]:
    """Return a table like pyperf's, the rules of verdicts, missing benchmarks and warnings.

    For two files, changes have intervals; more files leave no room for intervals.
    """
    files = [*suites.refused]
    names = ("benchmark", suites.baseline, *files, "verdict" * (len(files) == 1))
    figures = {(figure.name, figure.file): figure for figure in _figures_of(suites)}
    rows = [(name, *_cells_of(figures, name, suites)) for name in suites.names]
    return known(
        list_rows("benchmarks", table([names, *rows], "<" * len(names)), figures.values()),
        *(sentence("rule", text) for text in _said_of(suites)),
        *map(warn, by_sentence(_warnings_of(suites), len(suites.names))),
        *_each_file(suites),
    )


def _each_file(suites: SuiteComparison) -> Iterator[Fact]:
    """Yield the comparisons of each file by itself, or why it has none, for a whole report."""
    for file, refused in suites.refused.items():
        family = suites.families.get(file)
        if family is not None:
            yield from _table_within(family, f"{file} against {suites.baseline}", Depth.DETAILS)
            continue
        for name, notice in refused.items():
            yield from told_by((), [notice], f"{name} in {file}: ")


def _table_within(family: Family, title: str, depth: Depth) -> list[Fact]:
    """Return the table of a family below another table, which has its rows of values."""
    facts = [list_rows("title", ["", title]), *facts_of_family(family)]
    return [replace(fact, depth=depth, figures=()) for fact in facts]


def _cells_of(
    figures: Mapping[tuple[str, str], Figure], name: str, suites: SuiteComparison
) -> list[str]:
    """Show a benchmark in the first file, its change in each other one, and the verdict on it."""
    base = figures[name, suites.baseline]
    first = base.instead
    if base.estimate is not None:
        first = show_value(base.estimate.value, base.unit)
    lacking = Figure(name=name, instead="-")
    found = [figures.get((name, file), lacking) for file in suites.refused]
    changes = [figure.change or figure.instead for figure in found]
    if len(found) == 1:
        return [first, *changes, found[0].verdict]
    short = (change.partition(" [")[0] for change in changes)
    cells = (f"{change}, {figure.verdict}" for change, figure in zip(short, found, strict=True))
    return [first, *(cell.strip(", ") for cell in cells), ""]


def _said_of(suites: SuiteComparison) -> Iterator[str]:
    """Count the verdicts by kind, state their rules, and name the missing benchmarks."""
    for file, family in suites.families.items():
        scopes = {one.scope for one in family.comparisons.values()}
        where = f" in {max(scopes)}" if any(scopes) else ""
        yield "; ".join(filter(None, (f"{file}: {family.counts}{where}", geometric_mean(family))))
    yield rule_of_verdicts(suites.families.values())
    for file, names in suites.missing.items():
        if names:
            yield f"Not in {file}: {first_few(names, _LISTED_FILES)}."


def _figures_of(suites: SuiteComparison) -> Iterator[Figure]:
    """Yield a row per benchmark and file, with its ratio to the first file and its verdict."""
    for name in suites.names:
        found = {
            file: family.comparisons[name]
            for file, family in suites.families.items()
            if name in family.comparisons
        }
        usual, first = Figure(name=name), next(iter(found.values()), None)
        if first is not None:
            usual = replace(usual, statistic=first.statistic, unit=first.readings_in)
        for file in (suites.baseline, *suites.refused):
            held = suites.figures[file].get(name, {}).items()
            shown = next((f"{figure} {value:.4g}" for figure, value in held), "")
            row = replace(usual, file=file, instead=shown or "no number")
            if file == suites.baseline:
                yield replace(row, estimate=None if first is None else first.baseline)
            elif (pair := found.get(file)) is not None:
                yield judged(row, pair, suites.families[file].verdicts[name])
            elif name in suites.refused[file]:
                yield replace(row, instead=shown or "-", verdict="no verdict")


def _warnings_of(suites: SuiteComparison) -> Iterator[tuple[str, str]]:
    """Yield the warnings of comparisons, or their cures, with the names of benchmarks."""
    for name in suites.names:
        notices = [
            notice
            for family in suites.families.values()
            if name in family.comparisons
            for notice in family.comparisons[name].notices
        ]
        refused = [found[name] for found in suites.refused.values() if name in found]
        sentences = [sentence_of(note) or note.sentence for note in (*chosen(notices), *refused)]
        yield from ((sentence, name) for sentence in dict.fromkeys(sentences))


def facts_of_runs(
    records: Sequence[RunRecord],
    *,
    places: Sequence[int] = (),
    groups: Sequence[str] = (),
    in_turn: bool = False,
    worded: Callable[[str], str] = str,
) -> list[Fact]:
    """Return a table of runs: name, number, readings, and how the run ended.

    A column has the times as measured where they differ from those at full speed. Warnings
    stand below the table, once for all runs that they concern.

    Parameters
    ----------
    records
        Of finished runs, in the order in which they are shown.
    places
        Of a ranking, one per record: they stand before the names.
    groups
        That the records are of, one per record: they have a column if any has a name.
    in_turn
        Whether the runs took turns.
    worded
        Puts the names of options into sentences as the reader gives them.

    Examples
    --------
    >>> import benchrigor as br
    >>> record = br.measure(dict, name="dict()", budget_s=0.05)
    >>> facts_of_runs([record])[0].key
    'runs'
    """
    statistics = {record.options.statistic for record in records}
    statistic = next(iter(statistics)) if len(statistics) == 1 else "estimate"
    rows = [("name", "group", statistic, AS_MEASURED, "readings", "ended")]
    for index, record in enumerate(records):
        place = f"{places[index]}. " if index < len(places) else ""
        group = groups[index] if groups else ""
        rows.append((f"{place}{record.name}", group, *_numbers(record), *_basis(record)))
    is_marked = any(row[2].startswith(_MARK) for row in rows)
    notes = [
        *_notes_on(rows[1:], statistic),
        *[f"{_MARK} observed median, no interval"] * is_marked,
    ]
    return known(
        list_rows("runs", [*table(rows, "<<<<><"), *notes]),
        *map(warn, _warnings(records, worded, in_turn=in_turn)),
    )


def _notes_on(rows: Sequence[Sequence[str]], statistic: str) -> list[str]:
    """Explain the numbers of a table; those in its third column are at full speed."""
    corrected = statistic if any(row[2] and row[3] for row in rows) else ""
    return notes_on((cell for row in rows for cell in row[2:4]), corrected=corrected)


def facts_of_ranking(runs: Mapping[str, RunRecord]) -> list[Fact]:
    """Return sentences on how much faster the best run is, and a table of runs, best first."""
    if not runs:
        return [sentence("runs", "no runs")]
    from benchrigor.session.pairs.run_comparison import rank_runs  # noqa: PLC0415  # slow to load

    numbered = {name: run for name, run in runs.items() if run.estimate() is not None}
    places = dict[str, int]()
    with suppress(BenchrigorError):  # runs that are not comparable have no order
        ranked = rank_runs(numbered)[0] if numbered else ()
        places = {one.name: one.place for one in ranked}
    others = [run for name, run in runs.items() if name not in places]
    ordered = [*(runs[name] for name in places), *others]
    shown = facts_of_runs(ordered, places=[*places.values()], in_turn=True)
    return [*_compare_best(runs, [*places]), *shown]


def _compare_best(runs: Mapping[str, RunRecord], ranked: Sequence[str]) -> Iterator[Fact]:
    """Say how much faster the best run is than the next ones."""
    from benchrigor.session.pairs.run_comparison import compare_runs  # noqa: PLC0415  # likewise

    for name in ranked[1 : 1 + _MOST_SENTENCES]:
        with suppress(BenchrigorError):
            found = replace(compare_runs(runs[name], runs[ranked[0]]), scope="")  # run in turn
            yield sentence("comparison", str(found))


def _numbers(record: RunRecord) -> tuple[str, str]:
    """Show the number of a run, or its readings in place of it, and the number as measured."""
    analysis = record.analysis()
    observed = None if analysis is None else analysis.observed
    if analysis is not None and analysis.headline is not None:
        as_run = _show_figure(as_measured(analysis), analysis.metric.unit)
        return show_number(analysis, "mean"), as_run
    if analysis is None or observed is None:
        return "no number", ""
    if record.options.statistic == "min":
        return show_value(observed.least, analysis.metric.unit), ""
    return f"{_MARK}{show_value(observed.median, analysis.metric.unit)}", ""


def _show_figure(estimate: Estimate | None, unit: str) -> str:
    return "" if estimate is None else show_value(estimate.value, unit)


def _basis(record: RunRecord) -> tuple[str, str]:
    """Show how many readings a number is of, and how the run ended."""
    analysis = record.analysis()
    is_recorded = record.subject.get("kind") == FILE and record.decision is None
    ending = "recorded" if is_recorded else say_end(record.decision)
    if analysis is None or not (analysis.headline or analysis.observed):
        return "", ending
    n = analysis.n if analysis.headline or not analysis.observed else analysis.observed.n
    return counted(n), ending


def _warnings(
    records: Sequence[RunRecord], worded: Callable[[str], str], *, in_turn: bool
) -> Iterator[str]:
    """Say once what weakens numbers, but for what their endings say, and which they are."""
    ends = (run.decision.reason if run.decision else None for run in records)
    said = (
        (worded(sentence_of(notice, in_turn=in_turn, reason=reason)), run.name)
        for run, reason in zip(records, ends, strict=True)
        for notice in chosen_of_run(run)
        if notice.code is not Code.NOT_CONVERGED
    )
    return by_sentence(said, len(records))


def facts_of_places(
    places: Sequence[Ranked], notices: Sequence[Notice], *, statistic: str | None, unit: str
) -> list[Fact]:
    """Return the places of a ranking, with their Notices, and Notices of all together."""
    figure = Figure(name="", statistic=statistic or "mean", unit=unit)
    figures = [
        replace(figure, name=one.name, place=f"{one.place}.", estimate=one.estimate)
        for one in places
    ]
    levels = (f"{percent(one.estimate.confidence, digits=10)} interval" for one in places)
    rows = [("", "name", "estimate", next(levels, ""))]
    rows += [(row.place, row.name, *row.shown) for row in figures]
    own = [(one.name, notice) for one in places for notice in one.estimate.notices]
    # A Notice of the ranking names the results with modes.
    every = [*notices, *(notice for _, notice in own if not is_of_modes(notice))]
    return [
        list_rows("places", table(rows, "><<<"), figures),
        *told_by((), notices),
        *(fact for name, notice in own for fact in told_by((), [notice], f"{name}: ")),
        *advised(every),
    ]


def facts_of_commands(
    records: Mapping[str, RunRecord], found: Family | Ranking, *, spent: Sequence[Metric] = ()
) -> list[Fact]:
    """Return how commands compare, their headlines and measured times, and what to do.

    Parameters
    ----------
    records
        Of the commands by name; not empty.
    found
        Their ranking, or their comparisons with a baseline, judged together.
    spent
        Their processor times.
    """
    ordered, changes = records, list[Fact]()
    if isinstance(found, Family):
        compared, verdicts = found.comparisons, found.verdicts
        places = {name: f"{number}." for number, name in enumerate(records, start=1)}
        first = next(iter(compared.values()))
        estimates = {name: pair.candidate for name, pair in compared.items()}
        estimates |= {first.names[0]: first.baseline}
        title = f"change from {first.names[0]}"
        changes = _table_within(replace(found, notices=()), title, Depth.PAGE)
    else:
        compared, places = found.against_first, {one.name: f"{one.place}." for one in found.places}
        best = (one.name for one in found.places if one.place == 1)
        verdicts = dict.fromkeys(best, Verdict.UNDECIDED)
        estimates = {one.name: one.estimate for one in found.places}
        ordered = {name: records[name] for name in dict.fromkeys([*places, *records])}
    heads = [*_answers(compared, verdicts)]
    lines = [*[""] * bool(heads), *_table_of_commands(ordered, estimates, places, spent)]
    figures = [
        Figure(
            name=name,
            statistic=record.options.statistic,
            estimate=estimates.get(name),
            unit="s",
            ratio=compared[name].ratio if name in compared else None,
            verdict=str(found.verdicts.get(name, "")) if isinstance(found, Family) else "",
        )
        for name, record in ordered.items()
    ]
    return [
        *heads,
        list_rows("commands", lines, figures),
        *known(Fact("target", Depth.PAGE, "target", _target(records, estimates))),
        *changes,
        *told_by((), found.notices),
        *advised(found.notices, in_turn=True),
        *(
            Fact(ADVICE, Depth.PAGE, "", f"{name}: {no_number(lacking.notices)}", Severity.WARNING)
            for name, record in records.items()
            if (lacking := record.analysis()) and lacking.estimate is None and lacking.notices
        ),
    ]


def _answers(compared: Mapping[str, Comparison], verdicts: Mapping[str, Verdict]) -> Iterator[Fact]:
    """Say how commands compare with the baseline or the fastest one, judged together."""
    for name, comparison in islice(compared.items(), _MOST_SENTENCES):
        yield head(str(replace(comparison, verdict=verdicts.get(name, comparison.verdict))))
    more = len(compared) - _MOST_SENTENCES
    yield from [sentence("more", f"and {more} more")] * (more > 0)


def _table_of_commands(
    records: Mapping[str, RunRecord],
    estimates: Mapping[str, Estimate | None],
    places: Mapping[str, str],
    spent: Sequence[Metric],
) -> list[Part]:
    """Return a row of numbers for each command, in order."""
    is_paced = _are_paced(records, estimates)
    statistic = next(iter(records.values())).options.statistic
    titles = [metric.name.removesuffix("_time") for metric in spent]
    rows: list[tuple[str, ...]] = [
        ("command", "", statistic, AS_MEASURED, *titles, "memory", "failed")
    ]
    for name, record in records.items():
        estimate, numbers = estimates.get(name), ("", "no number")
        if estimate is not None:
            numbers = _numbers(record) if is_paced else ("", show_short(estimate, "s"))
        seconds = [_show_figure(record.estimate(metric.name), "s") for metric in spent]
        memory = show_peak_memory(record.facts) if PEAK_MEMORY in record.facts else ""
        place = places.get(name, "-")
        rows.append((f"{place} {name}", "", *numbers, *seconds, memory, _failed(record)))
    return [*table(rows, "<" * len(rows[0])), *_notes_on(rows[1:], statistic)]


def _failed(record: RunRecord) -> str:
    """Say how many runs of a command failed."""
    if "failed_runs" not in record.facts:
        return ""
    typical = show_value(float(record.facts["failed_time_s"] or 0.0), "s")
    return f"{record.facts['failed_runs']} runs, after {typical}"


def _are_paced(records: Mapping[str, RunRecord], estimates: Mapping[str, Estimate | None]) -> bool:
    """Return whether all commands that have a number have one at full speed.

    A command without it would seem slower than the others.
    """
    times = [record.analysis(_TIME) for name, record in records.items() if estimates.get(name)]
    return all(analysis.pace is not None for analysis in times if analysis is not None)


def _target(records: Mapping[str, RunRecord], estimates: Mapping[str, Estimate | None]) -> str:
    """Show the target for the intervals of times, and the commands that missed it."""
    missed, wanted = list[str](), math.inf
    for name, record in records.items():
        analysis = record.analysis(_TIME)
        if not estimates.get(name) or analysis is None or not (own := analysis.estimate):
            continue
        wanted = wanted_half_width(own, analysis.metric, record.options.asked) / abs(own.value)
        if own.relative_half_width > wanted:
            missed.append(f"{name} ({show_plus_minus(own.relative_half_width)})")
    if wanted == math.inf:
        return ""
    reached = f"missed by {first_few(missed, _LISTED)}" if missed else "reached"
    return f"{show_plus_minus(wanted)} of each time as measured: {reached}"
