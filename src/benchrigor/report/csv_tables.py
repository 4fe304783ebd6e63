"""A run as tables for other programs: its readings, its rounds, its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchrigor.model import Analysis, Round, RunRecord
from benchrigor.model.analysis import PhaseLabel
from benchrigor.model.one_line import OneLine
from benchrigor.model.readings import WARM_UP, readings_of
from benchrigor.model.selection import Reason
from benchrigor.model.series import Floats

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
