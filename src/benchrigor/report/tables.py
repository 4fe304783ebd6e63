"""Many numbers as tables: suites of benchmarks, and runs of a ranking, a file or of commands."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from benchrigor.errors import BenchrigorError
from benchrigor.layout import table
from benchrigor.model import Estimate, Metric, RunRecord
from benchrigor.model.comparison import SuiteComparison, Verdict, mean_change
from benchrigor.model.notice import Code
from benchrigor.model.run import FILE
from benchrigor.model.text import (
    PEAK_MEMORY,
    say_end,
    show_peak_memory,
    show_plus_minus,
    show_short,
)
from benchrigor.report.fact import (
    Depth,
    Fact,
    by_sentence,
    chosen,
    chosen_of_run,
    known,
    list_rows,
    sentence,
    sentence_of,
    warn,
)
from benchrigor.report.facts.number_facts import just_now, notes_on, show_number
from benchrigor.stats.readings.asked_readings import asked_half_width
from benchrigor.units import counted, first_few, many, percent, show_value

_LISTED_FILES = 10  # names of benchmarks that a file lacks
_MARK = "~"  # Before an observed median in place of an estimate
_MOST_SENTENCES = 4
_LISTED = 4  # commands that missed the target
_TIME = "time"


def facts_of_suites(suites: SuiteComparison) -> list[Fact]:
    """Return a table like pyperf's, the rules of verdicts, missing benchmarks and warnings.

    For two files, changes have intervals; more files leave no room for intervals.
    """
    names, files = suites.names, [*suites.refused]
    columns = [
        ["benchmark", *names, "geometric mean"],
        [suites.baseline, *(_base(suites, name) for name in names), ""],
    ]
    for file in files:
        cells, mean = [_cells(suites, file, name) for name in names], mean_of(suites, file)
        if len(files) == 1:
            changes, verdicts = zip(*cells, strict=True)
            columns += [[file, *changes, mean], ["verdict", *verdicts, ""]]
        else:
            short = (", ".join((change.partition(" [")[0], verdict)) for change, verdict in cells)
            columns.append([file, *(cell.strip(", ") for cell in short), mean])
    rows = [*zip(*columns, strict=True)]
    shown = table(rows if suites.families else rows[:-1], "<" * len(columns))
    return known(
        list_rows("benchmarks", shown),
        *(sentence("rule", text) for text in said_of(suites)),
        *map(warn, warnings_of(suites)),
    )


def said_of(suites: SuiteComparison) -> Iterator[str]:
    """Count the verdicts by kind, state their rules, and name the missing benchmarks."""
    for file, family in suites.families.items():
        counts = Counter(family.verdicts.values())
        shown = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
        scopes = {one.scope for one in family.comparisons.values()}
        yield f"{file}: {shown}{f' in {max(scopes)}' if any(scopes) else ''}"
    yield from _say_rule(suites)
    for file, names in suites.missing.items():
        if names:
            yield f"Not in {file}: {first_few(names, _LISTED_FILES)}."


def warnings_of(suites: SuiteComparison) -> Iterator[str]:
    """Yield every warning once, with its benchmarks unless it concerns all."""
    return by_sentence(_warnings_of(suites), len(suites.names))


def mean_of(suites: SuiteComparison, file: str) -> str:
    """Show the geometric mean of the ratios of a file."""
    family = suites.families.get(file)
    if family is None or family.summary is None:
        return ""
    first = next(iter(family.comparisons.values()))
    return mean_change(family.summary, first.readings_in, first.direction)


def _base(suites: SuiteComparison, name: str) -> str:
    """Show the figure of a benchmark in the first file."""
    for family in suites.families.values():
        found = family.comparisons.get(name)
        if found is not None and found.baseline is not None:
            return show_value(found.baseline.value, found.readings_in)
    return held_in(suites, suites.baseline, name) or "no number"


def held_in(suites: SuiteComparison, file: str, name: str) -> str:
    """Show the first figure that a file without raw readings has of a benchmark."""
    figures = suites.figures[file].get(name, {})
    return next((f"{figure} {value:.4g}" for figure, value in figures.items()), "")


def _cells(suites: SuiteComparison, file: str, name: str) -> tuple[str, str]:
    """Show the change of a benchmark from the first file, and the verdict on it."""
    family = suites.families.get(file)
    if family is not None and name in family.comparisons:
        return family.comparisons[name].show_change(), str(family.verdicts[name])
    if name in suites.refused[file]:
        return held_in(suites, file, name) or "-", "no verdict"
    return "-", ""


def _say_rule(suites: SuiteComparison) -> Iterator[str]:
    families = suites.families.values()
    compared = [comparison for family in families for comparison in family.comparisons.values()]
    if not compared:
        return
    confidence, margin = percent(compared[0].confidence, digits=10), percent(compared[0].margin)
    rate = percent(next(iter(families)).rate)
    yield (
        f"{confidence} intervals, margin {margin}, false discoveries at most {rate} of "
        f"{many(len(compared), 'comparison')}"
    )


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

    A column has the times as measured just now where they differ from those at full speed. Warnings
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
    rows = [("name", "group", statistic, "just now", "readings", "ended")]
    for index, record in enumerate(records):
        place = f"{places[index]}. " if index < len(places) else ""
        group = groups[index] if groups else ""
        rows.append((f"{place}{record.name}", group, *_numbers(record), *_basis(record)))
    is_marked = any(row[2].startswith(_MARK) for row in rows)
    return known(
        list_rows("runs", table(rows, "<<<<><")),
        *_notes_on(rows[1:], statistic),
        sentence("observed", f"{_MARK} observed median, no interval" * is_marked),
        *map(warn, _warnings(records, worded, in_turn=in_turn)),
    )


def _notes_on(rows: Sequence[Sequence[str]], statistic: str) -> list[Fact]:
    """Explain the numbers of a table, of which the third column is at full speed."""
    corrected = statistic if any(row[2] and row[3] for row in rows) else ""
    notes = notes_on((cell for row in rows for cell in row[2:4]), corrected=corrected)
    return [sentence("columns", note) for note in notes]


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
    """Show the number of a run, or its readings in place of it, and what it was just now."""
    analysis = record.analysis()
    observed = None if analysis is None else analysis.observed
    if analysis is not None and analysis.headline is not None:
        now = just_now(analysis)
        return show_number(analysis, "mean"), _show_figure(now, analysis.metric.unit)
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


def facts_of_commands(
    records: Mapping[str, RunRecord],
    estimates: Mapping[str, Estimate | None],
    places: Mapping[str, str] | None = None,
    *,
    spent: Sequence[Metric] = (),
) -> list[Fact]:
    """Return headlines and measured times by command, and whether a target was reached.

    Parameters
    ----------
    records
        Of the commands by name; not empty.
    estimates
        The times that their ratios are of, None for those without a number.
    places
        Of a ranking; None to number the commands as they were given.
    spent
        Their processor times.
    """
    is_paced = _are_paced(records, estimates)
    statistic = next(iter(records.values())).options.statistic
    titles = [metric.name.removesuffix("_time") for metric in spent]
    rows: list[tuple[str, ...]] = [
        ("command", "", statistic, "just now", *titles, "memory", "failed")
    ]
    for index, (name, record) in enumerate(records.items(), start=1):
        estimate, numbers = estimates.get(name), ("", "no number")
        if estimate is not None:
            numbers = _numbers(record) if is_paced else ("", show_short(estimate, "s"))
        seconds = [_show_figure(record.estimate(metric.name), "s") for metric in spent]
        memory = show_peak_memory(record.facts) if PEAK_MEMORY in record.facts else ""
        place = f"{index}." if places is None else places.get(name, "-")
        rows.append((f"{place} {name}", "", *numbers, *seconds, memory, _failed(record)))
    return known(
        list_rows("commands", table(rows, "<" * len(rows[0]))),
        Fact("target", Depth.PAGE, "target", _target(records, estimates)),
        *_notes_on(rows[1:], statistic),
    )


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
        wanted = asked_half_width(own, analysis.metric, record.options) / abs(own.value)
        if own.relative_half_width > wanted:
            missed.append(f"{name} ({show_plus_minus(own.relative_half_width)})")
    if wanted == math.inf:
        return ""
    reached = f"missed by {first_few(missed, _LISTED)}" if missed else "reached"
    return f"{show_plus_minus(wanted)} of each time as it ran: {reached}"
