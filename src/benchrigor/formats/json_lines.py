"""Our own form of JSON lines: an object per line with a name, a unit, and a value or several.

A line with ``values`` is a process of its own; lines with a ``value`` continue one series. ``unit``
describes both as ``--unit`` does. Lines may also be saved records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats import saved_records
from benchrigor.formats.fields import are_objects, one_series, rounds_of, scaled, taken
from benchrigor.model import RunRecord
from benchrigor.model.metric import describe_metric
from benchrigor.model.recorded import Recorded

TOOL = "JSON lines"


def are_format(lines: Sequence[Any]) -> bool:
    """Return whether objects, one per line, have the keys of this format."""
    kinds = (("name", "unit", "value"), ("name", "unit", "values"), saved_records.KEYS)
    return all(any(are_objects([each], *keys) for keys in kinds) for each in lines)


def read_lines(lines: Sequence[Any], place: str) -> Iterator[Recorded | RunRecord]:
    """Read the benchmarks in the order of their first lines, behind saved records."""
    rows: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for number, each in enumerate(lines, 1):
        here = f"{place} object {number}"
        if saved_records.is_format(each):
            yield from saved_records.read(each, "", here)
        else:
            rows.setdefault(taken(each, "name", str, here), []).append((here, each))
    for name, several in rows.items():
        units = sorted({str(each["unit"]) for _, each in several})
        kinds = {"values" in each for _, each in several}
        if len(units) > 1 or len(kinds) > 1:
            raise InvalidInput(f"{place} has {name!r} in several units or forms, expected one")
        metric = describe_metric("value", units[0])
        if kinds == {True}:
            series = [scaled(each["values"], 1.0, f"{here} values") for here, each in several]
            rounds, unit = rounds_of(({"value": each}, {}) for each in series), "process"
        else:
            column = [each.get("value") for _, each in several]
            rounds, unit = (
                one_series(metric, scaled(column, 1.0, f"{place} {name} value")),
                "series",
            )
        yield Recorded(name=name, metrics=(metric,), rounds=rounds, tool=TOOL, unit=unit)
