"""The JSON of pyperf, read by pyperf itself (version "1.0" of its format)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, provenance_of, restarted
from benchrigor.model import Metric
from benchrigor.model.recorded import Recorded
from benchrigor.units import Direction

TOOL = "pyperf"
KEYS = ("a list of benchmarks with runs", "version")
_METRICS = {
    "second": TIME,
    "byte": Metric(name="memory", unit="B"),
    "integer": Metric(name="value", direction=Direction.LOWER),  # as pyperf compares all units
}
_KNOWN = {
    "host": "hostname",
    "system": "platform",
    "cpu": "cpu_model_name",
    "cores": "cpu_count",
    "started_at": "date",
}


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    if not isinstance(data, Mapping) or not isinstance(data.get("benchmarks"), list):
        return False
    return all(isinstance(each, Mapping) and "runs" in each for each in data["benchmarks"]) and (
        "machine_info" not in data and "version" in data
    )


def read(data: Any, text: str, place: str) -> Iterator[Recorded]:
    """Read the benchmarks; each run is a process, and calibrations keep their warm-up."""
    if data["version"] != "1.0":
        raise InvalidInput(f"{place} has version {data['version']!r} of pyperf, expected '1.0'")
    if not data["benchmarks"]:
        raise InvalidInput(f"{place} holds no benchmarks, expected one at least")
    import pyperf  # type: ignore[import-untyped]  # noqa: PLC0415  # it takes 0.2 s

    try:
        suite = pyperf.BenchmarkSuite.loads(text)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{place} is refused by pyperf: {error!r}") from error
    for benchmark in suite.get_benchmarks():
        common = benchmark.get_metadata()
        metric = _METRICS[benchmark.get_unit()]
        rounds = (
            (run.values, [value for _, value in run.warmups], _facts(run, common, metric))
            for run in benchmark.get_runs()
        )
        implementation = common.get("python_implementation", "")
        yield Recorded(
            name=benchmark.get_name(),
            metrics=(metric,),
            rounds=restarted(metric, rounds),
            tool=TOOL,
            unit="process",
            provenance=provenance_of(
                common,
                python=f"{implementation} {common.get('python_version', '')}".strip(),
                packages={TOOL: str(common.get("perf_version", "unknown"))},
                **{field: common.get(key) for field, key in _KNOWN.items()},
            ),
        )


def _facts(run: Any, common: Mapping[str, Any], metric: Metric) -> dict[str, Any]:
    """Return what is told of one process only, and how many calls each of its times averages."""
    own = {key: value for key, value in run.get_metadata().items() if key not in common}
    return {**own, "inner_loop": run.get_total_loops()} if metric is TIME else own
