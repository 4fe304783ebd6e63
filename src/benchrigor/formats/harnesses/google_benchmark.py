"""The JSON of google/benchmark (`--benchmark_out`): a row per repetition, in one process."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats import fields
from benchrigor.formats.fields import TIME, require
from benchrigor.model import Metric
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import short

TOOL = "google-benchmark"
_CURE = "run it without --benchmark_report_aggregates_only"
_NO_COUNTERS = {
    *("real_time", "iterations", "repetitions", "repetition_index", "threads", "family_index"),
    *("per_family_instance_index", "items_per_second", "bytes_per_second"),
}

Rows = Sequence[tuple[str, Mapping[str, Any]]]  # place, row


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    if not isinstance(data, Mapping) or not isinstance(data.get("benchmarks"), list):
        return False
    return isinstance(data.get("context"), Mapping)


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the repetitions; rows of means, complexity and errors do not count."""
    context = data["context"]
    where = fields.provenance_of(
        context,
        host=context.get("host_name"),
        cores=context.get("num_cpus"),
        started_at=context.get("date"),
        packages={TOOL: str(context.get("library_version", "unknown"))},
    )
    rows: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for index, row in enumerate(data["benchmarks"]):
        here = f"{place} benchmarks[{index}]"
        name = require(row, "name", str, here)
        if not {"big_o", "rms"} & row.keys():
            rows.setdefault(str(row.get("run_name", name)), []).append((here, row))
    for name, several in rows.items():
        first = several[0][1]
        common: dict[str, Any] = {"name": name, "tool": TOOL, "unit": "repetition"}
        common["parameters"] = {key: first[key] for key in ("threads", "label") if key in first}
        repetitions = [pair for pair in several if pair[1].get("run_type") != "aggregate"]
        good = [pair for pair in repetitions if not pair[1].get("error_occurred")]
        if good:
            result = _metrics_and_rounds(good)
        elif repetitions:
            why = repetitions[0][1].get("error_message", "no message")
            result = {"metrics": (TIME,), **fields.no_rounds(f"It failed: {why}.")}
        else:
            means = {str(row.get("aggregate_name")): row.get("real_time") for _, row in several}
            result = {"metrics": (TIME,), **fields.only_summary(means, _CURE)}
        yield Recorded(**common, **result, provenance=where)


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
