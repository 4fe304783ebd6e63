"""Suites of benchmarks next to the first one: a row per benchmark, a column per file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchrigor.layout import Page, page, table, wrapped
from benchrigor.model.comparison import SuiteComparison, Verdict, mean_change
from benchrigor.report.notice_lines import by_sentence, chosen, sentence_of
from benchrigor.units import first_few, many, percent, show_value

_LISTED = 10  # names of benchmarks that a file lacks


def suite_page(suites: SuiteComparison) -> Page:
    """Return a table like pyperf's, and below it rules, missing benchmarks and warnings.

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
    lines = table(rows if suites.families else rows[:-1], "<" * len(columns))
    lines += [part for sentence in said_of(suites) for part in wrapped(sentence, hanging=2)]
    for warning in warnings_of(suites):
        lines += wrapped(warning, "! ", style="yellow")
    return page(lines)


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
            yield f"Not in {file}: {first_few(names, _LISTED)}."


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
