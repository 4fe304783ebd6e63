"""The points of k6, as JSON lines or CSV: a series per request name and metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.formats.fields import (
    A_NUMBER,
    Parsed,
    are_objects,
    begins_with,
    object_at,
    only_summary,
    parts_in,
    rounds_of,
    scale,
    warn_of_failures,
)
from benchrigor.model import Metric
from benchrigor.model.metric import A_DURATION
from benchrigor.model.run import Recorded
from benchrigor.model.text_tables import Labels, Problems

TOOL = "k6"  # also the name of points without a request
_HEADER = ("metric_name", "timestamp", "metric_value")
_IN_CSV = ("metric_name", "metric_value", "method", "name", "status")
_IN_JSON = ("metric", "data.value", "data.tags.method", "data.tags.name", "data.tags.status")
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
    # A rate counts true values: checks that passed, and requests that failed.
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


def read_lines(found: Parsed, place: str) -> Iterator[Recorded]:
    """Read points; a line of type Metric describes a metric."""
    kinds, points = dict[str, Mapping[str, Any]](), list[int]()
    for index, line in enumerate(found.data):
        if line["type"] == "Metric":
            kinds[str(line["metric"])] = object_at(line, "data")
        elif line["type"] == "Point":
            points.append(index)
    return _by_request(found.some(points), place, kinds, _IN_JSON)


def is_text(text: str) -> bool:
    """Return whether a text is the CSV of k6."""
    return begins_with(text, _knows)


def _knows(cells: Sequence[str]) -> bool:
    return tuple(cells[:3]) == _HEADER


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the CSV; its one column of values holds all metrics."""
    return _by_request(text, place, {}, _IN_CSV)


def _by_request(
    source: str | Parsed, place: str, kinds: Kinds, names: Sequence[str]
) -> Iterator[Recorded]:
    """Read points by their kind: an error has another duration than an answer, POST than GET.

    ``names`` are those of the columns of metrics, values, methods, names and statuses.
    """
    of_value = names[1]
    cells = {name: A_NUMBER if name == of_value else Labels() for name in names}
    grouped: dict[Request, dict[str, list[float]]] = {}
    problems = Problems()
    for part in parts_in(source, place, cells, knows=_knows):
        negative = list[int]()
        for row, (metric, value, *of_request) in enumerate(part.rows()):
            grouped.setdefault(tuple(of_request), {}).setdefault(metric, []).append(value)
            if value < 0.0 and _is_trend(metric, kinds) and _scale(metric, kinds)[0] == "s":
                negative.append(row)
        part.tell(problems, negative, of_value, A_DURATION)
    problems.refuse()
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
