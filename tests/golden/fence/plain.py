"""Results as plain data, ready for JSON: what of them is recorded, and in which shape."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from benchrigor.errors import BenchrigorError, NotEstimable
from benchrigor.model import Round, RunRecord

__all__ = ["attempted", "plain"]

LEFT_OUT = frozenset({"schema", "method_version", "provenance", "run_id", "sentence", "names"})
"""What changes with every version, machine and run; and what is for people alone: sentences, and
the names of compared sides."""

LONG = 40
"""A longer series of numbers is told by a few sums."""


def attempted(func: Callable[..., object], *args: object, **options: object) -> object:
    """Call a function; where it refuses, that is its result."""
    try:
        return func(*args, **options)
    except NotEstimable as refusal:
        return {"refused": refusal.notice}
    except BenchrigorError as error:
        return {"raised": type(error).__name__}


def plain(item: object) -> Any:
    """Turn a result into dicts, lists, strings, numbers, booleans and None."""
    if isinstance(item, enum.Enum):
        return item.value
    if item is None or isinstance(item, str | bool | int | float):
        return item
    if isinstance(item, np.generic):
        return item.item()
    if isinstance(item, RunRecord):
        return _plain_fields({**item.to_dict(), "rounds": _told(item.rounds)})
    if dataclasses.is_dataclass(item):
        return _plain_fields({each.name: getattr(item, each.name) for each in _fields(item)})
    if isinstance(item, Mapping):
        return _plain_fields(item)
    if isinstance(item, np.ndarray):
        return _plain_items(item.tolist())
    if isinstance(item, Iterable):
        return _plain_items(item)
    raise TypeError(f"{item!r} is nothing that a record can hold")


def _fields(item: Any) -> tuple[dataclasses.Field[Any], ...]:
    return tuple(each for each in dataclasses.fields(item) if not each.name.startswith("_"))


def _plain_fields(fields: Mapping[Any, object]) -> dict[str, Any]:
    return {str(key): plain(value) for key, value in fields.items() if key not in LEFT_OUT}


def _plain_items(items: Iterable[object]) -> Any:
    found = [plain(each) for each in items]
    numbers = all(isinstance(each, int | float) for each in found)
    return _summary(found) if numbers and len(found) > LONG else found


def _summary(numbers: list[float]) -> dict[str, Any]:
    """Tell a long series by its size, its ends, and sums that notice a change of value or place."""
    return {
        "size": len(numbers),
        "first": numbers[0],
        "last": numbers[-1],
        "sum": _total(numbers),
        "sum_by_place": _total([place * each for place, each in enumerate(numbers)]),
    }


def _total(numbers: list[float]) -> float:
    """Add up exactly: integers stay such, and floats lose nothing to rounding."""
    return sum(numbers) if all(isinstance(each, int) for each in numbers) else math.fsum(numbers)


def _told(rounds: tuple[Round, ...]) -> dict[str, Any]:
    """Return what was asked in the rounds of a run, and how much was told, without the readings."""
    return {
        "n": len(rounds),
        "work": [each.plan.work for each in rounds if each.plan.work is not None],
        "asked": [each.plan.readings for each in rounds],
        "seeds": [each.plan.seed for each in rounds],
        "told": [each.n_readings for each in rounds],
        "elapsed_ns": sum(each.elapsed_ns for each in rounds),
        "facts": {name: value for each in rounds for name, value in each.facts.items()},
        "codes": sorted({notice.code for each in rounds for notice in each.notices}),
    }
