"""The JSON of JMH (`-rf json`): iterations in forks, each of which is a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import (
    in_base_unit,
    only_summary,
    optional,
    provenance_of,
    scaled,
    taken,
)
from benchrigor.model import Floats, Metric, Round, RoundPlan
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import check_items, short
from benchrigor.units import Direction

TOOL = "jmh"
_RATE = "thrpt"
_VM = ("jvm", "jdkVersion", "vmName", "vmVersion", "jvmArgs", "threads", "forks")


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    if not isinstance(data, list) or not data:
        return False
    return all(isinstance(each, Mapping) and "primaryMetric" in each for each in data)


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the benchmarks; of throughput more is better, and iterations take equal times."""
    for index, each in enumerate(data):
        here = f"{place}[{index}]"
        mode, name = (taken(each, key, str, here) for key in ("mode", "benchmark"))
        parameters = optional(each, "params", dict) or {}
        shown = ", ".join(f"{key}={value}" for key, value in parameters.items())
        primary = taken(each, "primaryMetric", dict, here)
        told: dict[str, Any] = {
            "name": f"{name} {mode} ({shown})" if shown else f"{name} {mode}",
            "tool": TOOL,
            "unit": "fork",
            "parameters": parameters,
            "provenance": provenance_of(
                {key: each.get(key) for key in _VM},
                packages={TOOL: str(each.get("jmhVersion", "unknown"))},
            ),
        }
        metric, factor = _metric("throughput" if mode == _RATE else "time", primary, here)
        forks = _forks(primary, factor, f"{here} primaryMetric")
        if not forks:
            means = {key: primary.get(key) for key in ("score", "scoreError")}
            notice = only_summary("JMH", means, "with -rf json")
            yield Recorded(**told, metrics=(metric,), rounds=(), notices=(notice,))
            continue
        series, metrics = {metric.name: forks}, [metric]
        for key, second in (optional(each, "secondaryMetrics", dict) or {}).items():
            try:
                other, factor = _metric(key, second, here, must_satisfy=False)
                values = _forks(second, factor, f"{here} {key}")
            except InvalidInput:  # such as "NaN", of what a profiler could not see
                continue
            if len(values) == len(forks):
                series[other.name] = values
                metrics.append(other)
        yield Recorded(**told, metrics=tuple(metrics), rounds=_rounds(series))


def _metric(
    name: str, data: Mapping[str, Any], place: str, *, must_satisfy: bool = True
) -> tuple[Metric, float]:
    unit, factor = in_base_unit(taken(data, "scoreUnit", str, f"{place} {name}"))
    is_rate = name == "throughput"
    averaging = "arithmetic" if is_rate else "auto"
    made = Metric(name=name, unit=unit, must_satisfy=must_satisfy, averaging=averaging)
    if is_rate and made.direction is not Direction.HIGHER:
        raise InvalidInput(
            f"{place} has throughput in {short(unit)}, expected a unit such as ops/s"
        )
    return made, factor


def _forks(data: Mapping[str, Any], factor: float, place: str) -> list[Floats]:
    """Return the iterations of each fork; one of sampled calls is their total over their number."""
    if sampled := optional(data, "rawDataHistogram", list):
        return [
            scaled([_mean(each, place) for each in fork], factor, f"{place} rawDataHistogram")
            for fork in sampled
        ]
    raw = optional(data, "rawData", list) or []
    return [scaled(fork, factor, f"{place} rawData[{index}]") for index, fork in enumerate(raw)]


def _mean(histogram: Sequence[Sequence[float]], place: str) -> float:
    try:
        values, counts = zip(*histogram, strict=True)
    except (TypeError, ValueError) as error:
        found = short(histogram)
        raise InvalidInput(f"{place} has {found}, expected pairs of value and count") from error
    calls, each = scaled(counts, 1.0, f"{place} counts"), scaled(values, 1.0, f"{place} values")
    check_items(calls, calls >= 1.0, "1 call or more", name=f"{place} counts")
    return float((each * calls).sum() / calls.sum())


def _rounds(series: Mapping[str, Sequence[Floats]]) -> tuple[Round, ...]:
    n = min(map(len, series.values()))
    return tuple(
        Round(
            plan=RoundPlan(index=index),
            elapsed_ns=0,
            unit_readings={name: forks[index] for name, forks in series.items()},
        )
        for index in range(n)
    )
