"""The points of k6, as JSON lines or CSV: requests by name, each metric a series of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchrigor.formats.fields import only_summary, optional, scaled, taken
from benchrigor.formats.load_tools.tables import failed, number, rows_in
from benchrigor.model import Metric, Round, RoundPlan
from benchrigor.model.recorded import Recorded
from benchrigor.units import Direction

TOOL = "k6"
HEADER = "metric_name,timestamp,metric_value"
_DURATIONS = ("http_req_", "iteration_duration", "group_duration", "ws_", "grpc_req_", "browser_")
_NO_TREND = {
    *("http_reqs", "http_req_failed", "iterations", "vus", "vus_max", "data_sent", "checks"),
    *("data_received", "dropped_iterations", "ws_sessions", "ws_msgs_sent", "ws_msgs_received"),
}
_FIRST = ("http_req_duration", "grpc_req_duration", "iteration_duration")
_UNITS = {"time": ("s", 1e-3), "data": ("B", 1.0)}
_FAILED = "http_req_failed"
_OF_TEST = "k6"  # name of what belongs to no request

Point = tuple[str, str, float]  # request, metric, value


def is_format(data: object) -> bool:
    """Return whether JSON is a summary of k6, which has no points."""
    return isinstance(data, Mapping) and {"metrics", "root_group"} <= data.keys()


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Say that a summary holds no readings."""
    metrics = taken(data, "metrics", dict, place)
    name = next((each for each in _FIRST if each in metrics), _OF_TEST)
    held = optional(metrics, name, dict) or {}
    notice = only_summary("k6 run", optional(held, "values", dict) or held, "with --out json=FILE")
    metric = _metric(name, {}, must_satisfy=True)
    yield Recorded(name=_OF_TEST, metrics=(metric,), rounds=(), tool=TOOL, notices=(notice,))


def are_format(lines: Sequence[Any]) -> bool:
    """Return whether objects, one per line, are those of k6."""
    return all(
        isinstance(each, Mapping) and {"type", "metric", "data"} <= each.keys() for each in lines
    )


def read_lines(lines: Sequence[Any], place: str) -> Iterator[Recorded]:
    """Read points; a line of type Metric says what a metric contains."""
    kinds: dict[str, Mapping[str, Any]] = {}
    points = list[Point]()
    for index, each in enumerate(lines, 1):
        here, name = f"{place} object {index}", str(each["metric"])
        data = taken(each, "data", dict, here)
        if each["type"] == "Metric":
            kinds[name] = data
        elif each["type"] == "Point":
            value = scaled([data.get("value")], 1.0, f"{here} value")
            tags = optional(data, "tags", dict) or {}
            points.append((str(tags.get("name") or _OF_TEST), name, float(value[0])))
    return _recorded(points, kinds, place)


def is_text(text: str) -> bool:
    """Return whether a text is the CSV of k6."""
    return text.startswith(HEADER)


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the CSV, whose one column of values holds all metrics."""
    (_, header), *rows = rows_in(text, place)
    of_name = header.index("name") if "name" in header else None
    points = (
        (
            (row[of_name] if of_name is not None else "") or _OF_TEST,
            row[0],
            number(row[2], "metric_value", line, place),
        )
        for line, row in rows
    )
    return _recorded(points, {}, place)


def _recorded(
    points: Iterable[Point], kinds: Mapping[str, Mapping[str, Any]], place: str
) -> Iterator[Recorded]:
    held: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for request, metric, value in points:
        held[request][metric].append(value)
    for request, by_metric in held.items():
        trends = [each for each in by_metric if _is_trend(each, kinds)]
        trends.sort(key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
        if not trends:
            continue
        metrics = [_metric(each, kinds, must_satisfy=each == trends[0]) for each in trends]
        series = {
            name: scaled(by_metric[name], _scale(name, kinds)[1], f"{place} {request} {name}")
            for name in trends
        }
        errors = by_metric.get(_FAILED, [])
        yield Recorded(
            name=request,
            metrics=tuple(metrics),
            rounds=(Round(plan=RoundPlan(index=0), elapsed_ns=0, unit_readings=series),),
            tool=TOOL,
            notices=failed(sum(map(bool, errors)), len(errors), _FAILED),
        )


def _is_trend(name: str, kinds: Mapping[str, Mapping[str, Any]]) -> bool:
    kind = kinds.get(name, {}).get("type")
    return name not in _NO_TREND if kind is None else kind == "trend"


def _scale(name: str, kinds: Mapping[str, Mapping[str, Any]]) -> tuple[str, float]:
    contains = kinds.get(name, {}).get("contains")
    if contains is None:  # the CSV does not say it
        contains = "time" if name.startswith(_DURATIONS) else "default"
    return _UNITS.get(contains, ("", 1.0))


def _metric(name: str, kinds: Mapping[str, Mapping[str, Any]], *, must_satisfy: bool) -> Metric:
    unit = _scale(name, kinds)[0]
    way = Direction.LOWER if unit else None
    return Metric(name=name, unit=unit, direction=way, must_satisfy=must_satisfy)
