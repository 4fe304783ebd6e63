"""Numbers and verdicts as plain rows: Markdown for people, CSV for other programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchrigor.control_characters import escaped
from benchrigor.model import Comparison, Estimate, Notice, RunRecord
from benchrigor.model.comparison import Family, Ranked, SuiteComparison
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import show_interval
from benchrigor.model.text_tables.rows import csv_text
from benchrigor.report.notice_lines import chosen, chosen_of_run, sentence_of
from benchrigor.report.tables.suite_page import held_in, mean_of, said_of, warnings_of
from benchrigor.stats.estimators.figures_at_full_speed import AT_FULL_SPEED
from benchrigor.units import percent

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TEXTS = ("name", "file", "metric", "place", "statistic")
# An underscore within a word is not markup.
_SPECIAL = re.compile(r"[&<>\\`*~|$\[]|(?<![^\W_])_|_(?![^\W_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(OneLine):
    """A number, or words instead of it, and its comparison; ``place`` is of a ranking."""

    name: str
    file: str = ""
    metric: str = ""
    place: str = ""
    statistic: str = "mean"
    estimate: Estimate | None = None
    instead: str = "no number"
    unit: str = ""
    ratio: Estimate | None = None
    verdict: str = ""
    scope: str = ""  # of the verdict, if not the code

    @property
    def shown(self) -> tuple[str, str]:
        """The value with its unit, and the interval."""
        if self.estimate is None:
            return self.instead, ""
        value, _, interval = show_interval(self.estimate, self.unit).rpartition(" [")
        is_moved = self.estimate.method.startswith(AT_FULL_SPEED)
        return f"{value} {AT_FULL_SPEED}" if is_moved else value, f"[{interval}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(OneLine):
    """The rows of a table, the notes below it, and a sentence above it."""

    rows: tuple[Figure, ...]
    notes: tuple[str, ...] = ()
    head: str = ""


def markdown_of(figures: Figures) -> str:
    r"""Return a table in Markdown, of columns that are not empty, and its notes as a list.

    Examples
    --------
    >>> print(markdown_of(Figures(rows=(Figure(name="a|b <i>", verdict="worse"),))))
    | Name | Mean | Verdict |
    |:---|---:|:---|
    | a\|b &lt;i&gt; | no number | worse |
    """
    statistics = {row.statistic for row in figures.rows}
    levels = {row.estimate.confidence for row in figures.rows if row.estimate is not None}
    value = statistics.pop().capitalize() if len(statistics) == 1 else "Value"
    interval = f"{percent(levels.pop(), digits=10)} interval" if len(levels) == 1 else "Interval"
    columns: tuple[tuple[str, str, Callable[[Figure], str]], ...] = (
        ("Place", ":---", lambda row: row.place),
        ("Name", ":---", lambda row: harmless(row.name)),
        ("File", ":---", lambda row: harmless(row.file)),
        ("Metric", ":---", lambda row: harmless(row.metric)),
        (value, "---:", lambda row: harmless(row.shown[0])),
        (interval, "---:", lambda row: row.shown[1]),
        ("Ratio", "---:", lambda row: show_interval(row.ratio, "") if row.ratio else ""),
        ("Verdict", ":---", lambda row: " in ".join(filter(None, (row.verdict, row.scope)))),
    )
    cells = [[cell(row) for row in figures.rows] for _, _, cell in columns]
    kept = [index for index, column in enumerate(cells) if any(column)]
    lines = [
        " | ".join(columns[index][0] for index in kept),
        *(" | ".join(row) for row in zip(*(cells[index] for index in kept), strict=True)),
    ]
    table = [f"| {line} |" for line in lines]
    table.insert(1, f"|{'|'.join(columns[index][1] for index in kept)}|")
    notes = [f"- {harmless(note)}" for note in figures.notes]
    head = [f"**{harmless(figures.head)}**", ""] if figures.head else []
    return "\n".join([*head, *table, *([""] if notes else []), *notes])


def harmless(text: str) -> str:
    """Return a text that Markdown shows as it is, in a cell: no markup, HTML, or line break."""
    return _SPECIAL.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), escaped(text))


def csv_of(figures: Figures) -> str:
    """Return all rows with all digits, one per line; the columns are always the same.

    Examples
    --------
    >>> print(csv_of(Figures(rows=(Figure(name="a, b", verdict="worse"),))).splitlines()[1])
    "a, b",,,,mean,,,,,,,,,,,worse
    """
    rows = [_digits(figure) for figure in (*figures.rows, Figure(name=""))]
    return csv_text([rows[-1], *(row.values() for row in rows[:-1])]).removesuffix("\n")


def _digits(figure: Figure) -> dict[str, object]:
    known, ratio = figure.estimate, figure.ratio
    return {
        **{name: escaped(getattr(figure, name)) for name in _TEXTS},
        **{name: getattr(known, name, None) for name in ("value", "low", "high", "confidence")},
        "unit": escaped(figure.unit),
        "n": known and known.n,
        "method": known and known.method,
        "ratio": ratio and ratio.value,
        "ratio_low": ratio and ratio.low,
        "ratio_high": ratio and ratio.high,
        "verdict": figure.verdict,
    }


def _below(rows: Iterable[Figure], notices: Iterable[Notice], *, in_turn: bool = False) -> Figures:
    """Return rows, and the sentences of a page about its Notices as notes."""
    said = (sentence_of(notice, in_turn=in_turn) for notice in notices)
    return Figures(rows=tuple(rows), notes=tuple(dict.fromkeys(said)))


def figures_of_pair(comparison: Comparison, labels: Sequence[str]) -> Figures:
    """Return the two sides of a comparison, with the ratio and the verdict next to the second."""
    side = Figure(name=labels[0], statistic=comparison.statistic, unit=comparison.readings_in)
    new = replace(side, name=labels[1], ratio=comparison.ratio, scope=comparison.scope)
    rows = (
        replace(side, estimate=comparison.baseline),
        replace(new, estimate=comparison.candidate, verdict=str(comparison.verdict)),
    )
    return _below(rows, chosen(comparison.notices), in_turn=comparison.paired)


def figures_of_ranking(
    places: Iterable[Ranked], notices: Iterable[Notice], *, statistic: str | None, unit: str
) -> Figures:
    """Return the places of a ranking."""
    row = Figure(name="", statistic=statistic or "mean", unit=unit)
    rows = (
        replace(row, name=place.name, place=f"{place.place}.", estimate=place.estimate)
        for place in places
    )
    return _below(rows, chosen(notices))


def figures_of_commands(
    records: Mapping[str, RunRecord],
    estimates: Mapping[str, Estimate | None],
    ratios: Mapping[str, Comparison],
    family: Family | None,
    notices: Iterable[Notice],
) -> Figures:
    """Return commands as they were given if one is the baseline, else the fastest first."""
    ordered = dict.fromkeys([*(() if family else estimates), *records])
    rows = (
        Figure(
            name=name,
            statistic=records[name].options.statistic,
            estimate=estimates.get(name),
            unit="s",
            ratio=ratios[name].ratio if name in ratios else None,
            verdict=str(family.verdicts.get(name, "")) if family else "",
        )
        for name in ordered
    )
    return _below(rows, chosen(notices), in_turn=True)


def figures_of_run(record: RunRecord) -> Figures:
    """Return the numbers of a run by metric."""
    row = Figure(name=record.name, statistic=record.options.statistic)
    rows = [
        replace(
            row,
            metric=analysis.metric.name if len(record.analyses) > 1 else "",
            estimate=analysis.headline,
            unit=analysis.metric.unit,
        )
        for analysis in record.analyses
    ]
    return _below(rows or [row], chosen_of_run(record))


def figures_of_suites(suites: SuiteComparison) -> Figures:
    """Return a row per benchmark and file, with its ratio to the first file and its verdict."""
    means = (
        f"{file}: geometric mean of the ratios: {mean}"
        for file in suites.families
        if (mean := mean_of(suites, file))
    )
    notes = (*means, *said_of(suites), *warnings_of(suites))
    return Figures(rows=tuple(_rows_of_suites(suites)), notes=notes)


def _rows_of_suites(suites: SuiteComparison) -> Iterator[Figure]:
    for name in suites.names:
        found = {
            file: family.comparisons[name]
            for file, family in suites.families.items()
            if name in family.comparisons
        }
        first = next(iter(found.values()), None)
        usual = Figure(name=name)
        if first is not None:
            usual = replace(usual, statistic=first.statistic, unit=first.readings_in)
        for file in (suites.baseline, *suites.refused):
            row = replace(usual, file=file, instead=held_in(suites, file, name) or "no number")
            if file == suites.baseline:
                yield replace(row, estimate=None if first is None else first.baseline)
            elif (pair := found.get(file)) is not None:
                row = replace(row, estimate=pair.candidate, ratio=pair.ratio, scope=pair.scope)
                yield replace(row, verdict=str(suites.families[file].verdicts[name]))
            elif name in suites.refused[file]:
                yield replace(row, verdict="no verdict")
