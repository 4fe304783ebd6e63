"""Facts as Markdown for people, and their rows of values as CSV for other programs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchrigor.model import Analysis, Round, RunRecord
from benchrigor.model.analysis import PhaseLabel
from benchrigor.model.comparison import WORST_FIRST
from benchrigor.model.one_line import OneLine
from benchrigor.model.readings import WARM_UP, Reason, readings_of
from benchrigor.model.series import Floats
from benchrigor.model.text import show_interval
from benchrigor.model.text_tables import csv_text
from benchrigor.report.fact import ADVICE, HEAD, Depth, Fact, Figure
from benchrigor.safe_text import escaped
from benchrigor.units import many, percent

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TEXTS = ("name", "file", "metric", "place", "statistic")
# An underscore within a word is not markup.
_SPECIAL = re.compile(r"[&<>\\`*~|$\[]|(?<![^\W_])_|_(?![^\W_])")
_LONGEST = 65_000  # characters: a page of GitHub takes 65,536


def markdown_of(facts: Sequence[Fact]) -> str:
    r"""Return facts in Markdown: heads, a table of the columns that are not empty, and a list.

    Where a page of GitHub has no room for all rows of the table, those of the worst verdicts stay.

    Examples
    --------
    >>> figure = Figure(name="a|b <i>", verdict="worse")
    >>> print(markdown_of([Fact("sides", Depth.PAGE, "", "", figures=(figure,))]))
    | Name | Mean | Verdict |
    |:---|---:|:---|
    | a\|b &lt;i&gt; | no number | worse |
    """
    figures = figures_in(facts)
    text = _markdown(facts, figures)
    kept = _worst_first(figures) if len(text) > _LONGEST else []
    while kept and len(text) > _LONGEST:
        kept = kept[: len(kept) * 3 // 4]
        shown = [row for rows in kept for row in rows]
        text = _markdown(facts, shown, rest=len(figures) - len(shown))
    return text


def _worst_first(figures: Iterable[Figure]) -> list[list[Figure]]:
    """Return the rows of each name, the worst verdict first."""
    rows = defaultdict[str, list[Figure]](list)
    for figure in figures:
        rows[figure.name].append(figure)
    places = {str(verdict): place for place, verdict in enumerate(WORST_FIRST)}
    return sorted(
        rows.values(), key=lambda its: min(places.get(row.verdict, len(places)) for row in its)
    )


def _markdown(facts: Sequence[Fact], figures: Sequence[Figure], *, rest: int = 0) -> str:
    """Return facts in Markdown with these rows; ``rest`` rows are left out."""
    heads = [f"**{harmless(fact.text)}**" for fact in facts if fact.key == HEAD]
    table = _table_of(figures)
    notes = [f"- {harmless(fact.text)}" for fact in facts if _is_note(fact)]
    more = [f"- and {many(rest, 'more row')}: --csv"] * bool(rest)
    return "\n".join(_apart(*([head] for head in heads), table, [*notes, *more]))


def figures_in(facts: Iterable[Fact]) -> list[Figure]:
    """Return the rows of all facts."""
    return [figure for fact in facts for figure in fact.figures]


def _is_note(fact: Fact) -> bool:
    """Whether a fact is a sentence below a table; of a run its advice is, and no Notice."""
    is_shown = fact.depth is Depth.PAGE or fact.key == ADVICE
    return is_shown and bool(fact.text) and not fact.label and fact.key != HEAD


def _apart(*blocks: Sequence[str]) -> list[str]:
    """Put an empty line between blocks that are not empty."""
    return [line for block in blocks if block for line in ("", *block)][1:]


def _table_of(figures: Sequence[Figure]) -> list[str]:
    statistics = {row.statistic for row in figures}
    levels = {row.estimate.confidence for row in figures if row.estimate is not None}
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
    cells = [(name, side, *map(cell, figures)) for name, side, cell in columns]
    rows = [*zip(*(column for column in cells if any(column[2:])), strict=True)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if lines:
        lines[1] = f"|{'|'.join(rows[1])}|"
    return lines


def harmless(text: str) -> str:
    """Return a text that Markdown shows as it is, in a cell: no markup, HTML, or line break."""
    return _SPECIAL.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), escaped(text))


def csv_of(facts: Iterable[Fact]) -> str:
    """Return all rows with all digits, one per line; the columns are always the same.

    Examples
    --------
    >>> figure = Figure(name="a, b", verdict="worse")
    >>> print(csv_of([Fact("sides", Depth.PAGE, "", "", figures=(figure,))]).splitlines()[1])
    "a, b",,,,mean,,,,,,,,,,,worse
    """
    rows = [_digits(figure) for figure in (*figures_in(facts), Figure(name=""))]
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
