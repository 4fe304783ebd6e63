"""The JSON of google/benchmark (`--benchmark_out`): a row for each repetition, in one process."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import (
    TIME,
    calls,
    in_base_unit,
    one_each,
    only_summary,
    optional,
    provenance_of,
    scaled,
    taken,
)
from benchrigor.model import Code, Metric, Notice
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import short

TOOL = "google-benchmark"
_CPU = Metric(name="cpu time", unit="s", must_satisfy=False)
_NO_COUNTERS = {
    *("real_time", "cpu_time", "iterations", "repetitions", "repetition_index", "threads"),
    *("family_index", "per_family_instance_index", "items_per_second", "bytes_per_second"),
}


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    if not isinstance(data, Mapping) or not isinstance(data.get("benchmarks"), list):
        return False
    rows = [each for each in data["benchmarks"] if isinstance(each, Mapping)]
    return isinstance(data.get("context"), Mapping) and not any("runs" in each for each in rows)


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the repetitions; rows of means, complexity and errors are none."""
    context = data["context"]
    where = provenance_of(
        context,
        host=context.get("host_name"),
        cores=context.get("num_cpus"),
        started_at=context.get("date"),
        packages={TOOL: str(context.get("library_version", "unknown"))},
    )
    rows: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for index, each in enumerate(data["benchmarks"]):
        here = f"{place} benchmarks[{index}]"
        name = taken(each, "name", str, here)
        if {"big_o", "rms"} & each.keys():
            continue
        rows.setdefault(str(each.get("run_name", name)), []).append((here, each))
    for name, several in rows.items():
        repetitions = [each for each in several if each[1].get("run_type") != "aggregate"]
        failed = [row for _, row in repetitions if row.get("error_occurred")]
        good = [each for each in repetitions if not each[1].get("error_occurred")]
        first = several[0][1]
        told: dict[str, Any] = {"name": name, "tool": TOOL, "unit": "repetition"}
        told |= {"provenance": where}
        told["parameters"] = {key: first[key] for key in ("threads", "label") if key in first}
        if not good:
            yield Recorded(**told, metrics=(TIME,), rounds=(), notices=(_without(failed, several),))
            continue
        readings, metrics = _columns(good)
        facts = [{"inner_loop": calls(row, "iterations", here)} for here, row in good]
        yield Recorded(**told, metrics=metrics, rounds=one_each(readings, facts))


def _columns(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
) -> tuple[dict[str, Sequence[float]], tuple[Metric, ...]]:
    """Return times in seconds, and the user's counters that are finite in each row."""
    readings: dict[str, Sequence[float]] = {}
    for metric, key in ((TIME, "real_time"), (_CPU, "cpu_time")):
        if metric is TIME or all(_is_finite(row.get(key)) for _, row in rows):
            times = [scaled([row.get(key)], _factor(row, at), f"{at} {key}") for at, row in rows]
            readings[metric.name] = [float(each[0]) for each in times]
    metrics = [each for each in (TIME, _CPU) if each.name in readings]
    for key in rows[0][1]:
        values = [row.get(key) for _, row in rows]
        if key not in _NO_COUNTERS and all(map(_is_finite, values)):
            readings[key] = [float(str(value)) for value in values]
            metrics.append(Metric(name=key, must_satisfy=False))
    return readings, tuple(metrics)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _factor(row: Mapping[str, Any], place: str) -> float:
    unit, factor = in_base_unit(str(row.get("time_unit", "ns")))
    if unit != "s":
        raise InvalidInput(f"{place} has time_unit {short(unit)}, expected ns, us, ms or s")
    return factor


def _without(
    failed: Sequence[Mapping[str, Any]], several: Sequence[tuple[str, Mapping[str, Any]]]
) -> Notice:
    if failed:
        why = optional(failed[0], "error_message", str) or "no message"
        return Notice.refusal(Code.NO_RAW_READINGS, f"It failed: {why}.")
    means = {str(row.get("aggregate_name")): row.get("real_time") for _, row in several}
    return only_summary("it", means, "without --benchmark_report_aggregates_only")
