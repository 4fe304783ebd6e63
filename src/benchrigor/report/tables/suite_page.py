"""Suites of benchmarks beside the first one: a row for each benchmark, a column for each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchrigor.layout import Page, page, table, wrapped
from benchrigor.model import Verdict
from benchrigor.model.comparison import SuiteComparison, mean_change
from benchrigor.model.text import first_few, many, percent, show_value
from benchrigor.report.notice_lines import chosen, sentence_of
from benchrigor.report.run_table import warnings_of

_LISTED = 10  # names of benchmarks that a file lacks


def suite_page(suites: SuiteComparison) -> Page:
    """Return a table like that of pyperf, and below it what is judged, missing and doubtful.

    Of two files the change has its interval; of more there is no room for it.
    """
    header, rows = (
        ["benchmark", suites.baseline],
        [[name, _base(suites, name)] for name in suites.names],
    )
    files = [*suites.refused]
    means = ["geometric mean", ""]
    for file in files:
        family = suites.families.get(file)
        cells = [_cells(suites, file, name) for name in suites.names]
        first = next(iter(family.comparisons.values())) if family else None
        mean = ""
        if family and first and family.summary:
            mean = mean_change(family.summary, first.readings_in, first.direction)
        if len(files) == 1:
            header += [file, "verdict"]
            means += [mean, ""]
            rows = [[*row, *cell] for row, cell in zip(rows, cells, strict=True)]
        else:
            header.append(file)
            means.append(mean)
            short = (", ".join((change.partition(" [")[0], verdict)) for change, verdict in cells)
            rows = [[*row, cell.strip(", ")] for row, cell in zip(rows, short, strict=True)]
    lines = table([header, *rows, *([means] if any(means[2:]) else [])], "<" * len(header))
    for file, family in suites.families.items():
        counts = Counter(family.verdicts.values())
        shown = ", ".join(f"{counts[each]} {each}" for each in Verdict if counts[each])
        lines += wrapped(f"{file}: {shown}", hanging=2)
    lines += [line for each in _judged(suites) for line in wrapped(each, hanging=2)]
    for file, names in suites.missing.items():
        if names:
            lines += wrapped(f"Not in {file}: {first_few(names, _LISTED)}.", hanging=2)
    told = [*_told(suites)]
    return page([*lines, *warnings_of(told, len(suites.names))])


def _base(suites: SuiteComparison, name: str) -> str:
    """Show what the first file has of a benchmark."""
    for family in suites.families.values():
        found = family.comparisons.get(name)
        if found is not None and found.baseline is not None:
            return show_value(found.baseline.value, found.readings_in)
    return _held(suites, suites.baseline, name) or "no number"


def _held(suites: SuiteComparison, file: str, name: str) -> str:
    """Show the first figure that a file without raw readings has of a benchmark."""
    figures = suites.figures[file].get(name, {})
    return next((f"{figure} {value:.4g}" for figure, value in figures.items()), "")


def _cells(suites: SuiteComparison, file: str, name: str) -> tuple[str, str]:
    """Show the change of a benchmark from the first file, and the verdict on it."""
    family = suites.families.get(file)
    if family is not None and name in family.comparisons:
        return family.comparisons[name].show_change(), str(family.verdicts[name])
    if name in suites.refused[file]:
        return _held(suites, file, name), "no verdict"
    return "", "-"


def _judged(suites: SuiteComparison) -> Iterator[str]:
    families = suites.families.values()
    compared = [each for family in families for each in family.comparisons.values()]
    if not compared:
        return
    confidence, margin = percent(compared[0].confidence, digits=10), percent(compared[0].margin)
    rate = percent(next(iter(families)).rate)
    yield (
        f"{confidence} intervals, margin {margin}, false discoveries at most {rate} of "
        f"{many(len(compared), 'comparison')}"
    )


def _told(suites: SuiteComparison) -> Iterator[tuple[str, str]]:
    """Yield what weakens comparisons, or is to be done about them, with their names."""
    for name in suites.names:
        notices = [
            notice
            for family in suites.families.values()
            if name in family.comparisons
            for notice in family.comparisons[name].notices
        ]
        refused = [each[name] for each in suites.refused.values() if name in each]
        sentences = [sentence_of(each) or each.sentence for each in (*chosen(notices), *refused)]
        yield from ((each, name) for each in dict.fromkeys(sentences))
