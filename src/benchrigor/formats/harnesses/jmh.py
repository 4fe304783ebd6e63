"""The JSON of JMH (`-rf json`): iterations in forks, each of which is a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats import fields
from benchrigor.formats.fields import object_at, scaled, taken
from benchrigor.model import Floats, Metric
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import check_items, short
from benchrigor.units import Quantity

TOOL = "jmh"
_VM = ("jvm", "jdkVersion", "vmName", "vmVersion", "jvmArgs", "threads", "forks")


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    return isinstance(data, list) and data != [] and fields.are_objects(data, "primaryMetric")


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the benchmarks; of throughput more is better, and iterations take equal times."""
    for index, each in enumerate(data):
        here = f"{place}[{index}]"
        mode, name = (taken(each, key, str, here) for key in ("mode", "benchmark"))
        parameters = object_at(each, "params")
        shown = ", ".join(f"{key}={value}" for key, value in parameters.items())
        yield Recorded(
            name=f"{name} {mode} ({shown})" if shown else f"{name} {mode}",
            tool=TOOL,
            unit="fork",
            parameters=parameters,
            provenance=fields.provenance_of(
                {key: each.get(key) for key in _VM},
                packages={TOOL: str(each.get("jmhVersion", "unknown"))},
            ),
            **_held(each, "throughput" if mode == "thrpt" else "time", here),
        )


def _held(data: Mapping[str, Any], name: str, place: str) -> dict[str, Any]:
    primary = taken(data, "primaryMetric", dict, place)
    metric, forks = _forks(primary, name, f"{place} primaryMetric")
    if not forks:
        means = {key: primary.get(key) for key in ("score", "scoreError")}
        return {"metrics": (metric,), **fields.only_summary(means, "run JMH with -rf json")}
    metrics, series = [metric], [{metric.name: each} for each in forks]
    for key, second in object_at(data, "secondaryMetrics").items():
        try:
            other, more = _forks(second, key, place, must_satisfy=False)
        except InvalidInput:  # such as "NaN", of what a profiler could not see
            continue
        if len(more) == len(forks):
            series = [{**a, key: b} for a, b in zip(series, more, strict=True)]
            metrics.append(other)
    return {"metrics": tuple(metrics), "rounds": fields.rounds_of((each, {}) for each in series)}


def _forks(
    data: Mapping[str, Any], name: str, place: str, *, must_satisfy: bool = True
) -> tuple[Metric, list[Floats]]:
    """Return a metric, and its iterations in each fork."""
    unit, factor = fields.in_base_unit(taken(data, "scoreUnit", str, place))
    is_rate = name == "throughput"
    averaging = "arithmetic" if is_rate else "auto"
    metric = Metric(name=name, unit=unit, must_satisfy=must_satisfy, averaging=averaging)
    if is_rate and metric.kind is not Quantity.RATE:
        raise InvalidInput(f"{place} is throughput in {short(unit)}, expected one such as ops/s")
    raw = data.get("rawData") or [
        [_mean(each, f"{place} rawDataHistogram") for each in fork]
        for fork in data.get("rawDataHistogram") or ()
    ]
    forks = enumerate(raw)
    return metric, [scaled(fork, factor, f"{place} rawData[{index}]") for index, fork in forks]


def _mean(histogram: Sequence[Sequence[float]], place: str) -> float:
    """Return the total of sampled calls over their number: a histogram knows no order."""
    try:
        values, counts = zip(*histogram, strict=True)
    except (TypeError, ValueError) as error:
        found = short(histogram)
        raise InvalidInput(f"{place} has {found}, expected pairs of value and count") from error
    calls, each = scaled(counts, 1.0, f"{place} counts"), scaled(values, 1.0, f"{place} values")
    check_items(calls, calls >= 1.0, "1 call or more", name=f"{place} counts")
    return float((each * calls).sum() / calls.sum())
