"""The JSON of pytest-benchmark: the rounds of a test continue one series in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchrigor.formats import fields
from benchrigor.formats.fields import TIME, check, object_at
from benchrigor.model.run import Provenance, Recorded

TOOL = "pytest-benchmark"
_MEANS = ("mean", "stddev", "median", "min", "max", "rounds")
_TEST = {"name": str, "fullname?": str, "stats": {"data?": list}}
_CURE = "run pytest with --benchmark-save-data or --benchmark-json"


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    return isinstance(data, Mapping) and {"machine_info", "benchmarks"} <= data.keys()


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the tests; a reading is the time of a call, averaged over the calls of a round."""
    where = _provenance(data)
    check(data, {"benchmarks": [_TEST]}, place)
    for index, test in enumerate(data["benchmarks"]):
        here, stats = f"{place} benchmarks[{index}]", test["stats"]
        common: dict[str, Any] = {"metrics": (TIME,), "tool": TOOL, "provenance": where}
        common["name"] = test.get("fullname") or test["name"]
        common["parameters"] = {**object_at(test, "params"), **object_at(test, "extra_info")}
        if not stats.get("data"):
            means = {key: stats.get(key) for key in _MEANS}
            yield Recorded(**common, **fields.only_summary(means, _CURE))
            continue
        values = fields.scale(stats["data"], 1.0, f"{here} stats.data")
        loops = fields.calls(stats, "iterations", f"{here} stats")
        yield Recorded(**common, rounds=fields.one_series(TIME, values, **loops))


def _provenance(data: Mapping[str, Any]) -> Provenance:
    machine, commit = object_at(data, "machine_info"), object_at(data, "commit_info")
    cpu = object_at(machine, "cpu")
    python = (machine.get("python_implementation"), machine.get("python_version"))
    system = (machine.get("system"), machine.get("release"))
    return fields.provenance_of(
        {**machine, "commit": commit},
        host=machine.get("node"),
        system=" ".join(str(word) for word in system if word),
        cpu=cpu.get("brand_raw") or machine.get("processor"),
        cores=cpu.get("count"),
        python=" ".join(str(word) for word in python if word),
        packages={TOOL: str(data.get("version", "unknown"))},
        commit=commit.get("id"),
        started_at=data.get("datetime"),
    )
