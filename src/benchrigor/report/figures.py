"""Numbers and verdicts as plain rows: Markdown for people, CSV for other programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchrigor.model import Analysis, Comparison, Estimate, Notice, Round, RunRecord
from benchrigor.model.analysis import PhaseLabel
from benchrigor.model.comparison import Family, Ranked, SuiteComparison
from benchrigor.model.one_line import OneLine
from benchrigor.model.readings import WARM_UP, Reason, readings_of
from benchrigor.model.series import Floats
from benchrigor.model.text import show_interval
from benchrigor.model.text_tables import csv_text
from benchrigor.report.fact import chosen, chosen_of_run, sentence_of
from benchrigor.report.tables import held_in, mean_of, said_of, warnings_of
from benchrigor.safe_text import escaped
from benchrigor.stats.figures_at_full_speed import AT_FULL_SPEED
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


Row = tuple[Any, ...]
_PHASES = {
    Reason.KEPT: "stable",
    Reason.MARGIN: "stable",
    Reason.WARM_UP: "warm-up",
    Reason.COLD: "warm-up",
    Reason.COOL_DOWN: "cool-down",
    Reason.DISTURBED: "left out",
    Reason.RED_ROUND: "red round",
}  # others are of another phase


def reading_rows(record: RunRecord) -> Iterator[Row]:
    """Yield a row per metric and reading, and whether the reading counts for the number."""
    yield ("metric", "unit", "round", "index", "value", "phase", "kept")
    for analysis in record.analyses:
        yield from _of_metric(record, analysis)


def round_rows(record: RunRecord) -> Iterator[Row]:
    """Yield a row per round; rounds of various work count if the line goes through them."""
    yield ("round", "work", "duration_s", "elapsed_s", "readings", "delay_s", "counts")
    left_out = {place for analysis in record.analyses for place in analysis.left_out}
    counted = (round_.plan.index for round_ in record.whole_rounds)
    counts = {index for place, index in enumerate(counted) if place not in left_out}
    for round_ in record.rounds:
        delays = round_.delays
        yield (
            round_.plan.index,
            round_.plan.work,
            round_.duration_s,
            round_.elapsed_ns / 1e9,
            round_.n_readings,
            None if delays is None else float(sum(map(np.sum, delays.seconds.values()))),
            _word(round_.plan.index in counts),
        )


def summary_rows(record: RunRecord) -> Iterator[Row]:
    """Yield a row per metric: its number, or empty cells, and its Notices."""
    fields = ("value", "low", "high", "confidence", "n", "n_effective", "method")
    yield ("metric", "unit", "kind", "statistic", *fields, "notices")
    for analysis in record.analyses:
        notices = (*record.session_notices, *analysis.notices)
        yield (
            analysis.metric.name,
            analysis.metric.unit,
            str(analysis.kind),
            analysis.statistic(record.options.statistic) or "mean",
            *_number(analysis, fields, record.options.statistic),
            " ".join(dict.fromkeys(str(notice.code) for notice in notices)),
        )


def _number(analysis: Analysis, fields: Sequence[str], statistic: str) -> tuple[object, ...]:
    """Return these fields of the estimate; of a minimum, only its value and how many there are."""
    observed = analysis.observed
    if statistic == "min" and observed is not None:
        known = {"value": observed.least, "n": observed.n}
        return tuple(known.get(field) for field in fields)
    return tuple(getattr(analysis.estimate, field, None) for field in fields)


TABLES: dict[str, Callable[[RunRecord], Iterator[Row]]] = {
    "readings.csv": reading_rows,
    "rounds.csv": round_rows,
    "summary.csv": summary_rows,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labelled(OneLine):
    """The readings of a metric in a round, with their phases and use.

    Parameters
    ----------
    round
        Their round.
    values
        The readings, in the unit of the metric, shape (n,).
    phases
        Their phases, n words; empty words if there was no search for phases.
    kept
        Whether they count for the number, shape (n,).
    warm_up
        Earlier values that another tool took as warm-up, shape (m,).
    """

    round: Round
    values: Floats
    phases: list[str]
    kept: list[bool]
    warm_up: Floats


def label_readings(record: RunRecord, analysis: Analysis) -> Iterator[Labelled]:
    """Yield the readings of a metric by round, with why they count or do not."""
    name, start = analysis.metric.name, 0
    selection = record.selection(name)
    reasons = None if selection is None else selection.reasons
    words = np.array([_PHASES.get(reason, "other") for reason in Reason])
    if not analysis.phases:
        words[[Reason.KEPT, Reason.UNSTEADY]] = ""
    for round_ in record.rounds:
        values = readings_of(round_, name)
        values = np.empty(0) if values is None else values
        here = slice(start, start + values.size)
        phases, kept = [""] * values.size, [False] * values.size
        if reasons is not None:
            kept = (reasons[here] == Reason.KEPT).tolist()
            phases = words[reasons[here]].tolist()
        start += values.size
        warm_up = round_.unit_readings.get(f"{WARM_UP}{name}", np.empty(0))
        yield Labelled(round=round_, values=values, phases=phases, kept=kept, warm_up=warm_up)


def _of_metric(record: RunRecord, analysis: Analysis) -> Iterator[Row]:
    """Yield the readings of a metric; warm-up values of another tool have indices below 0."""
    name, unit = analysis.metric.name, analysis.metric.unit
    for part in label_readings(record, analysis):
        where = (name, unit, part.round.plan.index)
        for index, value in enumerate(part.warm_up.tolist(), start=-part.warm_up.size):
            yield (*where, index, value, str(PhaseLabel.WARM_UP), _word(False))
        rows = zip(part.values.tolist(), part.phases, map(_word, part.kept), strict=True)
        for index, row in enumerate(rows):
            yield (*where, index, *row)


def _word(value: bool) -> str:  # a cell, not an option
    return "yes" if value else "no"
