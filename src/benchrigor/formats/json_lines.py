"""Our own form of JSON lines: an object per line with a name, and a value or several values.

A line with ``values`` is a process of its own; lines with a ``value`` continue one series. ``unit``
describes both as ``--unit`` does. Lines may also be saved records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats import saved_records
from benchrigor.formats.fields import one_series, restarted, scaled, taken
from benchrigor.model import RunRecord
from benchrigor.model.metric import describe_metric
from benchrigor.model.recorded import Recorded

TOOL = "JSON lines"


def are_format(lines: Sequence[Any]) -> bool:
    """Return whether objects, one per line, have the keys of this format."""
    return all(
        isinstance(each, Mapping)
        and (
            saved_records.is_format(each) or ("name" in each and {"value", "values"} & each.keys())
        )
        for each in lines
    )


def read_lines(lines: Sequence[Any], place: str) -> Iterator[Recorded | RunRecord]:
    """Read the benchmarks in the order of their first lines."""
    rows: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for number, each in enumerate(lines, 1):
        here = f"{place} object {number}"
        if saved_records.is_format(each):
            yield from saved_records.read(each, "", here)
        else:
            rows.setdefault(taken(each, "name", str, here), []).append((here, each))
    for name, several in rows.items():
        units = sorted({str(each.get("unit", "")) for _, each in several})
        kinds = {"values" in each for _, each in several}
        if len(units) > 1 or len(kinds) > 1:
            raise InvalidInput(f"{place} has {name!r} in several units or forms, expected one")
        metric = describe_metric("value", units[0])
        told: dict[str, Any] = {"name": name, "metrics": (metric,), "tool": TOOL}
        if kinds == {True}:
            series = [scaled(each["values"], 1.0, f"{here} values") for here, each in several]
            rounds = restarted(metric, ((values, (), {}) for values in series))
            yield Recorded(**told, rounds=rounds, unit="process")
        else:
            values = scaled(
                [each.get("value") for _, each in several], 1.0, f"{place} {name} value"
            )
            yield Recorded(**told, rounds=one_series(metric, values))
