"""The JSON of pyperf, read by pyperf itself (version "1.0" of its format)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, are_objects, parse_json, provenance_of, rounds_of, scale
from benchrigor.model import Metric, Notice
from benchrigor.model.codec import decode, encode
from benchrigor.model.notice import weakening
from benchrigor.model.readings import WARM_UP
from benchrigor.model.run import Recorded
from benchrigor.model.series import LARGEST, short
from benchrigor.units import Direction

TOOL = "pyperf"
WARNINGS = "benchrigor_warnings"  # metadata: the warnings of a file that we converted
_METRICS = {
    "second": TIME,
    "byte": Metric(name="memory", unit="B"),
    "integer": Metric(name="value", direction=Direction.LOWER),  # as pyperf compares all units
}


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    if not isinstance(data, Mapping) or not isinstance(data.get("benchmarks"), list):
        return False
    return are_objects(data["benchmarks"], "runs") and "version" in data


def read(data: Any, text: str, place: str) -> Iterator[Recorded]:
    """Read the benchmarks; every run is a process, and calibrations keep their warm-up."""
    if data["version"] != "1.0":
        raise InvalidInput(f"{place} has version {data['version']!r} of pyperf, expected '1.0'")
    import pyperf  # type: ignore[import-untyped]  # noqa: PLC0415  # it takes 0.2 s

    try:
        suite = pyperf.BenchmarkSuite.loads(text) if data["benchmarks"] else ()
        dated = [(benchmark, benchmark.get_dates()) for benchmark in suite]
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise InvalidInput(f"{place} is refused by pyperf: {error!r}") from error
    for benchmark, dates in dated:
        common, metric = benchmark.get_metadata(), _METRICS[benchmark.get_unit()]
        implementation = common.get("python_implementation", "")
        yield Recorded(
            name=str(benchmark.get_name()),
            metrics=(metric,),
            rounds=rounds_of(
                _round(run, common, metric, f"{place} {short(benchmark.get_name())} run {number}")
                for number, run in enumerate(benchmark.get_runs(), 1)
            ),
            tool=TOOL,
            unit="process",
            notices=_warnings(common.get(WARNINGS), f"{place} {WARNINGS}"),
            provenance=provenance_of(
                common,
                host=common.get("hostname"),
                system=common.get("platform"),
                cpu=common.get("cpu_model_name"),
                cores=common.get("cpu_count"),
                python=f"{implementation} {common.get('python_version', '')}".strip(),
                packages={TOOL: str(common.get("perf_version", "unknown"))},
                started_at=dates[0] if dates else None,
            ),
        )


def warnings_as_text(notices: Iterable[Notice]) -> str:
    """Return the warnings among Notices as metadata; empty without any."""
    told = encode(weakening(notices))
    return json.dumps(told) if told else ""


def _warnings(told: object, place: str) -> tuple[Notice, ...]:
    """Return the warnings that `warnings_as_text` wrote."""
    if told is None:
        return ()
    return decode(tuple[Notice, ...], parse_json(str(told), place).data, where=place)


def _round(run: Any, common: Mapping[str, Any], metric: Metric, place: str) -> Any:
    """Return readings and warm-up of a process, and the metadata that other processes lack."""
    warm_up = [value for _, value in run.warmups]
    facts = {key: value for key, value in run.get_metadata().items() if key not in common}
    if metric is TIME:
        facts["inner_loop"] = min(run.get_total_loops(), int(LARGEST))
    values = scale(run.values, 1.0, place) if run.values else ()  # it takes those without end
    return {metric.name: values, f"{WARM_UP}{metric.name}": warm_up}, facts
