"""The JSON of pytest-benchmark: the rounds of a test continue one series in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchrigor.formats.fields import (
    TIME,
    calls,
    one_series,
    only_summary,
    optional,
    provenance_of,
    scaled,
    taken,
)
from benchrigor.model import Provenance
from benchrigor.model.recorded import Recorded

TOOL = "pytest-benchmark"
_MEANS = ("mean", "stddev", "median", "min", "max", "rounds")


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    return isinstance(data, Mapping) and {"machine_info", "benchmarks"} <= data.keys()


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the tests; a reading is the time of a call, averaged over the calls of a round."""
    where = _provenance(data, place)
    for index, each in enumerate(taken(data, "benchmarks", list, place)):
        here = f"{place} benchmarks[{index}]"
        stats = taken(each, "stats", dict, here)
        extra = optional(each, "extra_info", dict) or {}
        told: dict[str, Any] = {
            "name": each.get("fullname") or taken(each, "name", str, here),
            "tool": TOOL,
            "metrics": (TIME,),
            "provenance": where,
            "parameters": {**(optional(each, "params", dict) or {}), **extra},
        }
        if not stats.get("data"):
            means = {key: stats.get(key) for key in _MEANS}
            notice = only_summary("pytest", means, "with --benchmark-save-data or --benchmark-json")
            yield Recorded(**told, rounds=(), notices=(notice,))
            continue
        values = scaled(taken(stats, "data", list, here), 1.0, f"{here} stats.data")
        loops = calls(stats, "iterations", f"{here} stats")
        yield Recorded(**told, rounds=one_series(TIME, values, inner_loop=loops))


def _provenance(data: Mapping[str, Any], place: str) -> Provenance:
    machine = taken(data, "machine_info", dict, place)
    commit = optional(data, "commit_info", dict) or {}
    cpu = optional(machine, "cpu", dict) or {}
    python = (machine.get("python_implementation"), machine.get("python_version"))
    return provenance_of(
        {**machine, "commit": commit},
        host=machine.get("node"),
        system=f"{machine.get('system', '')} {machine.get('release', '')}".strip(),
        cpu=cpu.get("brand_raw") or machine.get("processor"),
        cores=cpu.get("count"),
        python=" ".join(str(each) for each in python if each),
        packages={TOOL: str(data.get("version", "unknown"))},
        commit=commit.get("id"),
        started_at=data.get("datetime"),
    )
