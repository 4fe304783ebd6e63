"""The JSON of JMH (`-rf json`): iterations in forks, which are processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats import fields
from benchrigor.formats.fields import check, object_at, scale
from benchrigor.model import Metric
from benchrigor.model.run import Recorded
from benchrigor.model.series import Floats, check_items, short
from benchrigor.units import Quantity

TOOL = "jmh"
_SHAPE = [{"mode": str, "benchmark": str, "primaryMetric": dict}]
_SCORE = {"scoreUnit": str, "rawData?": [list], "rawDataHistogram?": [[list]]}
_VM = ("jvm", "jdkVersion", "vmName", "vmVersion", "jvmArgs", "threads", "forks")


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    return isinstance(data, list) and data != [] and fields.are_objects(data, "primaryMetric")


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the benchmarks; a higher throughput is better, and its iterations take equal times."""
    check(data, _SHAPE, place)
    for index, benchmark in enumerate(data):
        here, mode, name = f"{place}[{index}]", benchmark["mode"], benchmark["benchmark"]
        parameters = object_at(benchmark, "params")
        threads = {key: benchmark[key] for key in ("threads",) if key in benchmark}
        shown = ", ".join(f"{key}={value}" for key, value in parameters.items())
        yield Recorded(
            name=f"{name} {mode} ({shown})" if shown else f"{name} {mode}",
            tool=TOOL,
            unit="fork",
            parameters={**parameters, **threads},
            provenance=fields.provenance_of(
                {key: benchmark.get(key) for key in _VM},
                packages={TOOL: str(benchmark.get("jmhVersion", "unknown"))},
            ),
            **_metrics_and_rounds(benchmark, "throughput" if mode == "thrpt" else "time", here),
        )


def _metrics_and_rounds(data: Mapping[str, Any], name: str, place: str) -> dict[str, Any]:
    primary = data["primaryMetric"]
    metric, forks = _forks(primary, name, f"{place} primaryMetric")
    if not forks:
        means = {key: primary.get(key) for key in ("score", "scoreError")}
        return {"metrics": (metric,), **fields.only_summary(means, "run JMH with -rf json")}
    metrics, series = [metric], [{metric.name: values} for values in forks]
    for key, second in object_at(data, "secondaryMetrics").items():
        try:
            other, more = _forks(second, key, place, must_satisfy=False)
        except InvalidInput:  # such as "NaN", from a profiler without a value
            continue
        if len(more) == len(forks):
            series = [{**a, key: b} for a, b in zip(series, more, strict=True)]
            metrics.append(other)
    rounds = fields.rounds_of((values, {}) for values in series)
    return {"metrics": tuple(metrics), "rounds": rounds}


def _forks(
    data: Mapping[str, Any], name: str, place: str, *, must_satisfy: bool = True
) -> tuple[Metric, list[Floats]]:
    """Return a metric, and its iterations by fork."""
    check(data, _SCORE, place)
    unit, factor = fields.in_base_unit(data["scoreUnit"])
    is_rate = name == "throughput"
    averaging = "arithmetic" if is_rate else "auto"
    metric = Metric(name=name, unit=unit, must_satisfy=must_satisfy, averaging=averaging)
    if is_rate and metric.kind is not Quantity.RATE:
        raise InvalidInput(f"{place} is throughput in {short(unit)}, expected one such as ops/s")
    raw = data.get("rawData") or [
        [_mean(histogram, f"{place} rawDataHistogram") for histogram in fork]
        for fork in data.get("rawDataHistogram") or ()
    ]
    forks = enumerate(raw)
    return metric, [scale(fork, factor, f"{place} rawData[{index}]") for index, fork in forks]


def _mean(histogram: Sequence[Sequence[float]], place: str) -> float:
    """Return the mean of sampled calls, since a histogram keeps no order of them."""
    try:
        values, counts = zip(*histogram, strict=True)
    except (TypeError, ValueError) as error:
        found = short(histogram)
        raise InvalidInput(f"{place} has {found}, expected pairs of value and count") from error
    calls, times = scale(counts, 1.0, f"{place} counts"), scale(values, 1.0, f"{place} values")
    check_items(calls, calls >= 1.0, "1 call or more", name=f"{place} counts")
    return float((times * calls).sum() / calls.sum())
