"""Records as a suite of pyperf, made of its own classes (version "1.0" of its format)."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import in_base_unit
from benchrigor.formats.pyperf import WARNINGS, warnings_as_text
from benchrigor.model import Analysis, RunRecord
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.run import Provenance
from benchrigor.report.figures import Labelled, label_readings
from benchrigor.report.writers.histories import Document, with_readings
from benchrigor.safe_text import escaped
from benchrigor.units import Direction, Quantity

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
