"""The numbers of records as JSON for those who keep histories: Bencher, github-action-benchmark."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Analysis, Estimate, Metric, Notice, RunRecord
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import no_number, refusal_of
from benchrigor.units import Direction

_TOOLS = {Direction.LOWER: "customSmallerIsBetter", Direction.HIGHER: "customBiggerIsBetter"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(OneLine):
    """A text for a file, and what its reader should know.

    Parameters
    ----------
    text
        The content.
    size
        How many benchmarks are in it.
    remarks
        Sentences: the records left out, and how to use the file.
    """

    text: str
    size: int
    remarks: tuple[str, ...] = ()


def with_readings(records: Sequence[RunRecord]) -> tuple[list[RunRecord], tuple[str, ...]]:
    """Return the records with raw readings, and remarks on the others; NotEstimable without any."""
    known = [record for record in records if record.rounds]
    if not known:
        raise NotEstimable(refusal_of(records[0].notices))
    return known, tuple(
        _say_left_out(record.name, record.notices) for record in records if not record.rounds
    )


def _say_left_out(name: str, notices: Sequence[Notice]) -> str:
    return f"{name} is left out: {no_number(notices)}"


def for_bencher(records: Sequence[RunRecord], metric: str | None) -> Document:
    """Return the Bencher Metric Format: a value and an interval per benchmark and measure.

    Bencher's own measures have its units: "latency" is in nanoseconds, "throughput" in ops/s.
    """
    known, remarks = _numbers(records, metric, every=True)
    measures: dict[str, dict[str, dict[str, float]]] = {}
    for record, analysis, number in known:
        measure, factor = _measure(analysis.metric)
        bounds = {"lower_value": number.low, "upper_value": number.high}
        finite = {key: factor * bound for key, bound in bounds.items() if math.isfinite(bound)}
        held = measures.setdefault(record.name, {})
        held[measure] = {"value": factor * number.value, **finite}
    return Document(text=_text_of(measures), size=len(measures), remarks=remarks)


def _measure(metric: Metric) -> tuple[str, float]:
    if metric.name == "time" and metric.is_duration:
        return "latency", 1e9
    return "throughput" if metric.unit == "ops/s" else metric.name, 1.0


def for_github(records: Sequence[RunRecord], metric: str | None) -> Document:
    """Return the list that github-action-benchmark takes; its tool says which way is better."""
    known, remarks = _numbers(records, metric, every=False)
    ways = {analysis.metric.direction: record.name for record, analysis, _ in known}
    if Direction.LOWER in ways and Direction.HIGHER in ways:
        raise InvalidInput(
            f"lower is better for {ways[Direction.LOWER]!r} and higher for "
            f"{ways[Direction.HIGHER]!r}, expected one direction in a file: write two"
        )
    tools = [_TOOLS[way] for way in ways if way is not None] or [" or ".join(_TOOLS.values())]
    benchmarks = [
        {
            "name": record.name,
            "unit": analysis.metric.unit,
            "value": number.value,
            "range": f"[{number.low:.6g}, {number.high:.6g}]",
            "extra": f"{number.confidence:.0%} interval, n={number.n}",
        }
        for record, analysis, number in known
    ]
    advice = f"Give it to github-action-benchmark as `tool: {tools[0]}`."
    return Document(text=_text_of(benchmarks), size=len(known), remarks=(*remarks, advice))


def _text_of(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _numbers(
    records: Sequence[RunRecord], metric: str | None, *, every: bool
) -> tuple[list[tuple[RunRecord, Analysis, Estimate]], tuple[str, ...]]:
    """Return headlines of one metric or all, and remarks on others; NotEstimable without any."""
    known, without = list[tuple[RunRecord, Analysis, Estimate]](), dict[str, Analysis]()
    for record in records:
        main = record.analysis(metric)
        wanted = record.analyses if every and metric is None else [main]
        for analysis in filter(None, wanted):
            number = analysis.headline
            if number is not None:
                known.append((record, analysis, number))
            elif analysis is main:
                without[record.name] = analysis
    if not known:
        raise NotEstimable(refusal_of(next(iter(without.values())).notices))
    return known, tuple(_say_left_out(name, analysis.notices) for name, analysis in without.items())
