"""Our own form of JSON lines: an object per line with a name, a unit, and a value or several.

A line with ``values`` is a process of its own; lines with a ``value`` continue one series. ``unit``
describes both as ``--unit`` does. They may also be the items of a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import (
    A_NUMBER,
    A_TIME,
    Parsed,
    are_objects,
    check,
    one_series,
    only_summary,
    rounds_of,
    scale,
)
from benchrigor.model.metric import A_DURATION, describe_metric
from benchrigor.model.run import Recorded
from benchrigor.model.text_tables import Part, Problems
from benchrigor.units import Quantity

TOOL = "JSON lines"
_CURE = "give the file that these numbers were made of"


def is_format(data: object) -> bool:
    """Return whether JSON is such an object, or a list of them."""
    return bool(data) and are_format(data if isinstance(data, list) else [data])


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the list as its lines."""
    return read_lines(Parsed(data=data if isinstance(data, list) else [data]), place)


def are_format(lines: Sequence[Any]) -> bool:
    """Return whether objects, one per line, have the keys of this format."""
    return are_objects(lines, "name", "unit") and all({"value", "values"} & {*i} for i in lines)


def read_lines(found: Parsed, place: str) -> Iterator[Recorded]:
    """Read the benchmarks in the order of their first lines."""
    part = Part({"value": A_NUMBER}, partial(found.table, place, ["value"]))
    place_of, rows = part.table.place, dict[str, list[int]]()
    for index, item in enumerate(found.data):
        check(item, {"name": str}, place_of(index))
        rows.setdefault(item["name"], []).append(index)
    problems = Problems()
    for name, indices in rows.items():
        several = [found.data[index] for index in indices]
        units = sorted({str(item["unit"]) for item in several})
        kinds = {"values" in item for item in several}
        if len(units) > 1 or len(kinds) > 1:
            raise InvalidInput(f"{place} has {name!r} in several units or forms, expected one")
        metric = describe_metric("value", units[0])
        if any("range" in item for item in several):  # numbers for github-action-benchmark
            means = only_summary({"value": several[-1].get("value")}, _CURE)
            yield Recorded(name=name, metrics=(metric,), tool=TOOL, **means)
            continue
        if kinds == {True}:
            series = [
                scale(found.data[at]["values"], 1.0, f"{place_of(at)} values") for at in indices
            ]
            rounds, unit = rounds_of(({"value": values}, {}) for values in series), "process"
        else:
            is_time = metric.kind is Quantity.TIME
            kind, expected = (A_TIME, A_DURATION) if is_time else (A_NUMBER, A_NUMBER.expected)
            values = part.columns["value"][indices]
            part.tell(problems, np.array(indices)[~kind.fit(values)], "value", expected)
            if problems.told:
                continue
            rounds, unit = one_series(metric, values), "series"
        yield Recorded(name=name, metrics=(metric,), rounds=rounds, tool=TOOL, unit=unit)
    problems.refuse()
