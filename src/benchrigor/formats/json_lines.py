"""Our own form of JSON lines: an object per line with a name, a unit, and a value or several.

A line with ``values`` is a process of its own; lines with a ``value`` continue one series. ``unit``
describes both as ``--unit`` does. They may also be the items of a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import are_objects, check, one_series, only_summary, rounds_of, scale
from benchrigor.model.metric import describe_metric
from benchrigor.model.recorded import Recorded

TOOL = "JSON lines"
_CURE = "give the file that these numbers were made of"


def is_format(data: object) -> bool:
    """Return whether JSON is such an object, or a list of them."""
    return bool(data) and are_format(data if isinstance(data, list) else [data])


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the list as its lines."""
    return read_lines(data if isinstance(data, list) else [data], place)


def are_format(lines: Sequence[Any]) -> bool:
    """Return whether objects, one per line, have the keys of this format."""
    return are_objects(lines, "name", "unit") and all({"value", "values"} & {*i} for i in lines)


def read_lines(lines: Sequence[Any], place: str) -> Iterator[Recorded]:
    """Read the benchmarks in the order of their first lines."""
    rows: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for number, item in enumerate(lines, 1):
        check(item, {"name": str}, f"{place} object {number}")
        rows.setdefault(item["name"], []).append((f"{place} object {number}", item))
    for name, several in rows.items():
        units = sorted({str(row["unit"]) for _, row in several})
        kinds = {"values" in row for _, row in several}
        if len(units) > 1 or len(kinds) > 1:
            raise InvalidInput(f"{place} has {name!r} in several units or forms, expected one")
        metric = describe_metric("value", units[0])
        if any("range" in row for _, row in several):  # numbers for github-action-benchmark
            means = only_summary({"value": several[-1][1].get("value")}, _CURE)
            yield Recorded(name=name, metrics=(metric,), tool=TOOL, **means)
            continue
        if kinds == {True}:
            series = [scale(row["values"], 1.0, f"{here} values") for here, row in several]
            rounds, unit = rounds_of(({"value": values}, {}) for values in series), "process"
        else:
            values = scale([row.get("value") for _, row in several], 1.0, f"{place} {name} value")
            rounds, unit = one_series(metric, values), "series"
        yield Recorded(name=name, metrics=(metric,), rounds=rounds, tool=TOOL, unit=unit)
