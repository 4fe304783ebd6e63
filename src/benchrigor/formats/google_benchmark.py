"""The JSON of google/benchmark (`--benchmark_out`): a row per repetition, in one process."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats import fields
from benchrigor.formats.fields import TIME, check
from benchrigor.model import Metric
from benchrigor.model.run import Recorded
from benchrigor.model.series import short

TOOL = "google-benchmark"
_CURE = "run it without --benchmark_report_aggregates_only"
_PLACES = ("threads", "family_index", "per_family_instance_index")  # of benchmarks of one name
_NO_COUNTERS = {
    *("real_time", "iterations", "repetitions", "repetition_index", "threads", "family_index"),
    *("per_family_instance_index", "items_per_second", "bytes_per_second"),
}

# Before 1.5 rows do not say that they are aggregates: only their names end so.
_AGGREGATE = re.compile(r"(.+)_(mean|median|stddev|cv)")

Rows = Sequence[tuple[str, Mapping[str, Any]]]  # place, row


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    if not isinstance(data, Mapping) or not isinstance(data.get("benchmarks"), list):
        return False
    return isinstance(data.get("context"), Mapping)


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the repetitions; rows of means, complexity and errors do not count."""
    check(data, {"benchmarks": [{"name": str, "run_name?": str}]}, place)
    context, names = data["context"], {row["name"] for row in data["benchmarks"]}
    where = fields.provenance_of(
        context,
        host=context.get("host_name"),
        cores=context.get("num_cpus"),
        started_at=context.get("date"),
        packages={TOOL: str(context.get("library_version", "unknown"))},
    )
    rows: dict[tuple[str, tuple[str, ...]], list[tuple[str, Mapping[str, Any]]]] = {}
    for index, told in enumerate(data["benchmarks"]):
        row = _of_1_5(told, names)
        if not {"big_o", "rms"} & row.keys():
            of_means = row.get("run_type") == "aggregate"
            key = () if of_means else tuple(repr(row.get(each)) for each in _PLACES)
            name = row.get("run_name") or row["name"]
            rows.setdefault((name, key), []).append((f"{place} benchmarks[{index}]", row))
    measured = {name for name, key in rows if key}
    for (name, key), several in rows.items():
        if name in measured and not key:
            continue
        first = several[0][1]
        common: dict[str, Any] = {"name": name, "tool": TOOL, "unit": "repetition"}
        common["parameters"] = {key: first[key] for key in ("threads", "label") if key in first}
        repetitions = several if key else []
        good = [pair for pair in repetitions if not pair[1].get("error_occurred")]
        if good:
            result = _metrics_and_rounds(good)
            lost, total = len(repetitions) - len(good), len(repetitions)
            result["notices"] = fields.warn_of_failures(
                lost, total, "they gave no time", counts=False
            )
        elif repetitions:
            why = repetitions[0][1].get("error_message", "no message")
            result = {"metrics": (TIME,), **fields.no_rounds(f"It failed: {why}.")}
        else:
            means = {str(row.get("aggregate_name")): row.get("real_time") for _, row in several}
            result = {"metrics": (TIME,), **fields.only_summary(means, _CURE)}
        yield Recorded(**common, **result, provenance=where)


def _of_1_5(row: Mapping[str, Any], names: set[str]) -> Mapping[str, Any]:
    """Return a row that says which aggregate it is, as rows of version 1.5 do."""
    match = _AGGREGATE.fullmatch(row["name"])
    if "run_type" in row or match is None:
        return row
    name = match[1]
    if name not in names and not {f"{name}_mean", f"{name}_stddev"} <= names:
        return row
    return {**row, "run_type": "aggregate", "run_name": name, "aggregate_name": match[2]}


def _metrics_and_rounds(rows: Rows) -> dict[str, Any]:
    """Return times in seconds, and the counters that are finite in all rows."""
    is_kept = {key: all(_is_finite(row.get(key)) for _, row in rows) for key in rows[0][1]}
    names = [key for key, kept in is_kept.items() if kept and key not in _NO_COUNTERS]
    units = {name: "s" if name == "cpu_time" else "" for name in names}
    rounds = []
    for here, row in rows:
        unit, factor = fields.in_base_unit(str(row.get("time_unit", "ns")))
        if unit != "s":
            found = short(row["time_unit"])
            raise InvalidInput(f"{here} has time_unit {found}, expected ns, us, ms or s")
        time = fields.scale([row.get("real_time")], factor, f"{here} real_time")
        counts = {name: row[name] * (factor if units[name] else 1.0) for name in names}
        rounds.append(({"time": float(time[0]), **counts}, fields.calls(row, "iterations", here)))
    more = (Metric(name=name, unit=units[name], must_satisfy=False) for name in names)
    return {"metrics": (TIME, *more), "rounds": fields.rounds_of(rounds)}


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
