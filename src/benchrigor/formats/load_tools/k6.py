"""The points of k6, as JSON lines or CSV: a series per request name and metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchrigor.formats.fields import (
    are_objects,
    check,
    object_at,
    only_summary,
    rounds_of,
    scale,
    warn_of_failures,
)
from benchrigor.model import Metric
from benchrigor.model.recorded import Recorded
from benchrigor.model.text_tables.rows import named_rows, number_in

TOOL = "k6"  # also the name of points without a request
_HEADER = ("metric_name", "timestamp", "metric_value")
_DURATIONS = ("http_req_", "iteration_duration", "group_duration", "ws_", "grpc_req_", "browser_")
_NO_TREND = {
    *("http_reqs", "http_req_failed", "iterations", "vus", "vus_max", "data_sent", "checks"),
    *("data_received", "dropped_iterations", "ws_sessions", "ws_msgs_sent", "ws_msgs_received"),
}
_FIRST = ("http_req_duration", "grpc_req_duration", "iteration_duration")
_UNITS = {"time": ("s", 1e-3), "data": ("B", 1.0)}
_COUNTS = ("passes", "fails")
_CURE = "run k6 run with --out json=FILE"

Request = tuple[str, ...]  # method, name, status
Point = tuple[Request, str, float]  # request, metric, value
Kinds = Mapping[str, Mapping[str, Any]]  # data of the lines that describe metrics


def is_format(data: object) -> bool:
    """Return whether JSON is a summary of k6, which has no points."""
    return are_objects([data], "metrics", "root_group")


def read(data: Any, *_: str) -> Iterator[Recorded]:
    """Say that a summary holds no readings."""
    metrics = object_at(data, "metrics")
    name = next((metric for metric in _FIRST if metric in metrics), TOOL)
    summary = object_at(metrics, name)
    means = only_summary(object_at(summary, "values") or summary, _CURE)
    metric = Metric(name=name, unit=_scale(name, {})[0])
    # A rate counts what is true: checks that passed, and requests that failed.
    for key, failed in (("checks", "fails"), ("http_req_failed", "passes")):
        told = object_at(metrics, key)
        counts = {
            key: n for key, n in {**told, **object_at(told, "values")}.items() if key in _COUNTS
        }
        if len(counts) == 2 and all(isinstance(n, int) for n in counts.values()):
            means["notices"] += warn_of_failures(counts[failed], sum(counts.values()), key)
    yield Recorded(name=TOOL, metrics=(metric,), tool=TOOL, **means)


def are_format(lines: Sequence[Any]) -> bool:
    """Return whether k6 wrote these objects, one per line."""
    return are_objects(lines, "type", "metric", "data")


def read_lines(lines: Sequence[Any], place: str) -> Iterator[Recorded]:
    """Read points; a line of type Metric describes a metric."""
    kinds: dict[str, Mapping[str, Any]] = {}
    points = list[Point]()
    for index, line in enumerate(lines, 1):
        here, name = f"{place} object {index}", str(line["metric"])
        check(line, {"data": dict}, here)
        data = line["data"]
        if line["type"] == "Metric":
            kinds[name] = data
        elif line["type"] == "Point":
            value = float(scale([data.get("value")], 1.0, f"{here} value")[0])
            points.append((_request(object_at(data, "tags")), name, value))
    return _by_request(points, kinds, place)


def is_text(text: str) -> bool:
    """Return whether a text is the CSV of k6."""
    return text.startswith(",".join(_HEADER))


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the CSV; its one column of values holds all metrics."""
    name, _, value = _HEADER
    points = (
        (_request(row), row[name], number_in(row[value], line, value))
        for line, row in named_rows(text, place)
    )
    return _by_request(points, {}, place)


def _request(tags: Mapping[str, Any]) -> Request:
    """Return what a point is of: an error has another duration than an answer, POST than GET."""
    words = (tags.get(key) for key in ("method", "name", "status"))
    return tuple("" if word is None else str(word) for word in words)


def _by_request(points: Iterable[Point], kinds: Kinds, place: str) -> Iterator[Recorded]:
    grouped: dict[Request, dict[str, list[float]]] = {}
    for key, metric, value in points:
        grouped.setdefault(key, {}).setdefault(metric, []).append(value)
    checks = [value for by_metric in grouped.values() for value in by_metric.get("checks", [])]
    sent: dict[Request, list[float]] = {}  # whether requests failed, whatever their status
    for key, by_metric in grouped.items():
        sent.setdefault(key[:2], []).extend(by_metric.get("http_req_failed", []))
    for key, by_metric in grouped.items():
        request = " ".join(filter(None, key)) or TOOL
        trends = [name for name in by_metric if _is_trend(name, kinds)]
        trends.sort(key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
        if not trends:
            continue
        scales = {name: _scale(name, kinds) for name in trends}
        series = {
            name: scale(by_metric[name], factor, f"{place} {request} {name}")
            for name, (_, factor) in scales.items()
        }
        failed, is_error = sum(map(bool, sent[key[:2]])), any(by_metric.get("http_req_failed", []))
        yield Recorded(
            name=request,
            metrics=tuple(
                Metric(name=name, unit=unit, must_satisfy=name == trends[0])
                for name, (unit, _) in scales.items()
            ),
            rounds=rounds_of([(series, {})]),
            tool=TOOL,
            notices=warn_of_failures(failed, len(sent[key[:2]]), "http_req_failed", counts=is_error)
            if failed
            else warn_of_failures(checks.count(0.0), len(checks), "checks of the whole file"),
        )


def _is_trend(name: str, kinds: Kinds) -> bool:
    kind = object_at(kinds, name).get("type")
    return name not in _NO_TREND if kind is None else kind == "trend"


def _scale(name: str, kinds: Kinds) -> tuple[str, float]:
    """Return unit and factor of a metric, by its name if the file does not describe it."""
    usual = "time" if name.startswith(_DURATIONS) else "default"
    return _UNITS.get(str(object_at(kinds, name).get("contains", usual)), ("", 1.0))
