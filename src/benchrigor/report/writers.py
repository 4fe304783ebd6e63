"""Records as files that other tools read: histories, a suite of pyperf, and CSV."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.formats.fields import in_base_unit
from benchrigor.formats.pyperf import WARNINGS, warnings_as_text
from benchrigor.model import Analysis, Estimate, Metric, Notice, RunRecord
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.notice import weakening
from benchrigor.model.one_line import OneLine
from benchrigor.model.run import Provenance
from benchrigor.model.text import no_number, refusal_of
from benchrigor.model.text_tables import csv_text
from benchrigor.report.fact import by_sentence
from benchrigor.report.figures import Labelled, Row, label_readings, reading_rows
from benchrigor.safe_text import escaped
from benchrigor.session.pairs.compared_sides import refuse_errors
from benchrigor.units import Direction, Quantity

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


_UNITS = {"s": "second", "B": "byte", "": "integer"}
_OURS = ("name", "unit", "loops", "inner_loops")  # metadata that describe the values


def for_pyperf(records: Sequence[RunRecord], metric: str | None) -> Document:
    """Return a suite: the readings that count as values, all others as warm-up.

    A restarted round is a run; rounds that continue one series are one run.
    """
    import pyperf  # type: ignore[import-untyped]  # noqa: PLC0415  # it takes 0.1 s

    problems = list[str]()
    known, remarks = with_readings(records)
    benchmarks = [attempt(problems, _benchmark, record, metric) for record in known]
    refuse(problems)
    text = io.StringIO()
    try:
        pyperf.BenchmarkSuite(benchmarks).dump(text)
    except ValueError as error:  # names that differ in spaces around them
        raise InvalidInput(f"the suite is refused by pyperf: {error}") from error
    whole = tuple(
        f"{record.name} has no number: all of its readings are values"
        for record in known
        if record.estimate(metric) is None
    )
    return Document(text=text.getvalue(), size=len(known), remarks=(*remarks, *whole))


def _benchmark(record: RunRecord, metric: str | None) -> Any:
    """Return a benchmark of one metric; InvalidInput if pyperf cannot hold it."""
    import pyperf  # noqa: PLC0415  # loaded

    analysis = record.analysis(metric)
    if analysis is None:
        raise InvalidInput(f"{record.name} has no readings")
    unit, factor = _unit(record.name, analysis)
    own = {"name": escaped(record.name), "unit": unit}
    common = {**_metadata_of(_metadata(record, analysis)), **own}
    try:
        runs = [
            pyperf.Run(
                values,
                warmups=[(loops, value) for value in warmups],
                metadata={**_metadata_of(facts), **common, "loops": loops},
                collect_metadata=False,
            )
            for values, warmups, loops, facts in _runs(record, analysis, factor)
        ]
        if not any(run.values for run in runs):
            raise InvalidInput(f"{record.name} has no readings that count")
        return pyperf.Benchmark(runs)
    except (ValueError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{record.name} is refused by pyperf: {error}") from error


def _unit(name: str, analysis: Analysis) -> tuple[str, float]:
    """Return pyperf's unit of readings, and the factor that converts to it."""
    metric = analysis.metric
    unit, factor = in_base_unit(metric.unit)
    is_other = metric.direction is Direction.HIGHER
    is_other |= unit == "s" and metric.kind is not Quantity.TIME
    if is_other or unit not in _UNITS:
        way = "" if metric.direction is None else f" ({metric.direction} is better)"
        raise InvalidInput(
            f"{metric.name} of {name} is in {metric.unit or 'no unit'}{way}, expected a time, "
            "bytes or a number that is better if lower: pyperf has no other unit"
        )
    return _UNITS[unit], factor


def _runs(
    record: RunRecord, analysis: Analysis, factor: float
) -> Iterator[tuple[list[float], list[float], int, Mapping[str, Any]]]:
    """Yield values, warm-up, calls per reading and other facts, by process."""
    rounds = list(label_readings(record, analysis))
    groups = [[round_] for round_ in rounds] if record.options.rounds == "restarted" else [rounds]
    for group in groups:
        values, warmups = _parts(group, takes_all=analysis.estimate is None)
        if not values.size and not warmups.size:
            continue
        facts = {key: value for part in group for key, value in part.round.facts.items()}
        loops = facts.get("inner_loop")
        calls = loops if isinstance(loops, int) and loops > 0 else 1
        yield (values * factor).tolist(), (warmups * factor).tolist(), calls, facts


def _parts(group: Iterable[Labelled], *, takes_all: bool) -> tuple[Any, Any]:
    """Return the readings that count, all without a number, and the others."""
    values, warmups = [np.empty(0)], [np.empty(0)]
    for part in group:
        kept = np.array(part.kept, dtype=bool) | takes_all
        values.append(part.values[kept])
        warmups += [part.warm_up, part.values[~kept]]
    return np.concatenate(values), np.concatenate(warmups)


def _metadata(record: RunRecord, analysis: Analysis) -> dict[str, Any]:
    """Return the provenance in pyperf's words, and our number with its interval."""
    where, number = record.provenance or Provenance(), analysis.estimate
    implementation, _, version = where.python.partition(" ")
    return {
        "hostname": where.host,
        "platform": where.system,
        "cpu_model_name": where.cpu,
        "cpu_count": where.cores,
        "python_implementation": implementation.lower(),
        "python_version": version,
        "commit_id": where.commit,
        "load_avg_1min": where.load_before,
        **where.environment,
        "date": _date(where.started_at),
        "benchrigor_metric": analysis.metric.name,
        "benchrigor_tool": record.subject.get("tool"),
        WARNINGS: warnings_as_text(record.session_notices),
        "benchrigor_notices": " ".join(dict.fromkeys(str(note.code) for note in record.notices)),
        **{
            f"benchrigor_{field}": getattr(number, field, None)
            for field in ("value", "low", "high", "confidence", "method")
        },
    }


def _date(text: str) -> str | None:
    """Return a moment in UTC as pyperf reads it; None if the text is not a moment."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(sep=" ")


def _metadata_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that pyperf takes as metadata."""
    return {
        key: value for key, value in facts.items() if key not in _OURS and _is_taken(key, value)
    }


def _is_taken(key: str, value: object) -> bool:
    import pyperf  # noqa: PLC0415  # loaded

    if isinstance(value, float) and not math.isfinite(value):
        return False
    try:
        if key == "date":
            datetime.fromisoformat(str(value))
        pyperf.Run([1.0], metadata={key: value}, collect_metadata=False)
    except (ValueError, TypeError):
        return False
    return True


_SUFFIXES = {".csv": "csv", ".bmf.json": "bencher", ".json": "pyperf"}  # the first that fits


def for_tables(records: Sequence[RunRecord], metric: str | None) -> Document:
    """Return all readings of all records, one a line, with their benchmark in front."""
    known, remarks = with_readings(records)
    return Document(text=csv_text(_rows(known, metric)), size=len(known), remarks=remarks)


def _rows(records: Sequence[RunRecord], metric: str | None) -> Iterator[Row]:
    for place, record in enumerate(records):
        head, *rows = reading_rows(record)
        if place == 0:
            yield ("benchmark", *head)
        yield from ((record.name, *row) for row in rows if metric in (None, row[0]))


FORMATS: dict[str, Callable[[Sequence[RunRecord], str | None], Document]] = {
    "pyperf": for_pyperf,
    "csv": for_tables,
    "bencher": for_bencher,
    "github": for_github,
}


def format_of(name: str) -> str:
    """Return the format for the name of a file.

    >>> format_of("a.json"), format_of("a.json.gz"), format_of("a.CSV"), format_of("a.bmf.json")
    ('pyperf', 'pyperf', 'csv', 'bencher')
    """
    ending = PurePath(name.lower().removesuffix(".gz")).name
    for suffix, form in _SUFFIXES.items():
        if ending.endswith(suffix):
            return form
    endings, words = ", ".join(_SUFFIXES), ", ".join(FORMATS)
    raise InvalidInput(f"{name} names no format, expected {endings}, or --to and one of {words}")


def write_records(records: Sequence[RunRecord], to: str, metric: str | None = None) -> Document:
    """Return records as a file of a format; ``metric`` chooses one of several metrics.

    Raises
    ------
    InvalidInput
        When the format cannot hold one of them, or two have one name.
    NotEstimable
        When the format holds numbers, and no record has one.
    NotComparable
        When most runs of one failed, and the format cannot say so.
    """
    names = [record.name for record in records]
    double = [name for name, times in Counter(names).items() if times > 1]
    problems = [
        f"there are two benchmarks named {name!r}, expected each name once" for name in double
    ]
    for record in records:
        attempt(problems, record.analysis, metric)
    refuse(problems)
    if FORMATS[to] is not for_pyperf:  # its metadata keeps the warnings of a file
        cure = f", or convert to pyperf: {to} has no place for failures"
        refuse_errors(((record.name, record.session_notices) for record in records), cure)
    document = FORMATS[to](records, metric)
    told = ((notice.sentence, record.name) for record in records for notice in _told(record, to))
    return replace(document, remarks=(*by_sentence(told, len(records)), *document.remarks))


def _told(record: RunRecord, to: str) -> tuple[Notice, ...]:
    """Return the warnings of a run, and of its numbers where the format holds these."""
    has_numbers = FORMATS[to] in (for_bencher, for_github)
    return weakening(record.notices if has_numbers else record.session_notices)
