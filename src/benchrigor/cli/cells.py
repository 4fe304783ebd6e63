"""Cells of tables: a number, a time with its unit, counts of trials, or empty."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.recognition import TOOLS
from benchrigor.model.series import short
from benchrigor.model.text_tables.rows import is_number, misfit
from benchrigor.units import Quantity, has_time_unit, quantity_of, time_in

READABLE = f"columns of cells, JSON, or results of {', '.join(TOOLS)}"
_UNITS = frozenset({"unit", "units"})  # names of the column that has the unit of the readings
_SOME = 5  # labels that an error lists
COUNT = re.compile(r"[0-9]{1,15}/[0-9]{1,15}")  # successes/trials
# Texts that people read as numbers: with a decimal comma, with marks between thousands.
_LIKE_NUMBER = re.compile(r"[-+\u2212]?[\d.,'\u2019_\u00a0\u202f]*\d(e[-+]?\d+)?", re.IGNORECASE)
_BEGINS_LIKE_NUMBER = re.compile(r"\W*\d")
_BEFORE_UNIT = re.compile(r".*[\d.]\s*")


def is_like_number(cell: str) -> bool:
    """Return whether people take a cell for a number, or for counts; _1 is a name."""
    if "\t" in cell or cell.startswith("_"):
        return False
    return any((is_number(cell), COUNT.fullmatch(cell), _LIKE_NUMBER.fullmatch(cell.strip())))


def begins_like_number(cell: str) -> bool:
    """Return whether a cell begins with a number, such as 12ms, $5 and 0x10."""
    return _BEGINS_LIKE_NUMBER.match(cell) is not None


def unit_in(columns: Mapping[str, Sequence[object]], used: Sequence[str], name: str) -> str:
    """Return the unit that a column names, "" if none does; refuse rows that another tells apart.

    Labels tell rows apart that come back, or that name benchmarks, unless they name the rounds.
    Other labels in blocks may be phases of one series. No number has two units.
    """
    unit = ""
    for (key, cells), before in zip(columns.items(), ["", *columns], strict=False):
        if {int, float}.issuperset(map(type, cells)):
            continue
        several = dict.fromkeys(map(str, cells))
        are_units = before in used and _are_several_times(list(several))
        is_unit = are_units or key.lower() in _UNITS
        if not are_units and (not _are_texts(cells) or (key in used and not is_unit)):
            continue
        if len(several) == 1:
            unit = str(cells[0]) if is_unit and "," not in str(cells[0]) else unit
            continue
        comes_back = len(several) < sum(1 for _ in groupby(cells))
        is_apart = comes_back or key.lower() in {"benchmark", "name"}
        if is_unit or (is_apart and 2 * len(several) <= len(cells)):
            some = ", ".join(map(repr, list(several)[:_SOME]))
            cure = "" if is_unit else f", or tell rounds apart with --round {key}"
            raise InvalidInput(
                f"{name} has rows of several {key}: {some}. Choose some with --where "
                f"{key}={cells[0]}{cure}"
            )
    return unit


def _are_several_times(cells: Sequence[str]) -> bool:
    """Return whether the first is a unit of time, and another one is, too."""
    is_time = (quantity_of(cell) is Quantity.TIME for cell in cells)
    return next(is_time, False) and any(is_time)


def may_be_units(key: str, cell: object, *, is_beside: bool) -> bool:
    """Return whether a column may have units, by its name or by a cell beside a reading."""
    return key.lower() in _UNITS or (is_beside and quantity_of(str(cell)) is Quantity.TIME)


def _are_texts(cells: Sequence[object]) -> bool:
    """Return whether cells are words or truths, none of them empty, a number or a time."""
    if not all(isinstance(cell, str | bool) and cell != "" for cell in cells):
        return False
    return not any(is_like_number(word) or has_time_unit(word) for word in set(map(str, cells)))


def may_be_labels(cells: Sequence[object], raw: bytes, first: int) -> bool:
    """Return whether labels in a column may come back, of which only the first cells are known.

    ``first`` is the line in which the rows begin.
    """
    several = set(map(str, cells))
    if len(several) == len(cells) or all(map(is_like_number, several)):
        return False
    (only, *others) = several
    as_written = max(raw.count(form.encode()) for form in (only, json.dumps(only)[1:-1]))
    return bool(others) or as_written <= raw.count(b"\n") - first


def is_missing(cell: object) -> bool:
    """Return whether a cell stands for a missing reading."""
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in {"", "n/a", "na"})


def figures_of(cells: Sequence[object], place: Callable[[int], str]) -> Sequence[Any]:
    """Return the numbers in the cells of rows; if all are counts or times, their texts."""
    if {int, float}.issuperset(map(type, cells)):
        return cells
    figures = [_figure(cell, place, row) for row, cell in enumerate(cells)]
    if set(map(type, figures)) != {float}:
        kinds = [_kind(figure) for figure in figures]
        for row, (cell, kind) in enumerate(zip(cells, kinds, strict=True)):
            if kind != kinds[0]:
                raise misfit(place(row), cell, f"{kinds[0]}, as in {place(0)}")
    return figures


def _figure(cell: object, place: Callable[[int], str], row: int) -> float | str:
    """Return the number in a cell, or its counts or its time as they are."""
    expected = "a number"
    if isinstance(cell, str):
        if is_number(cell):
            if math.isfinite(number := float(cell)):
                return number
            expected = "a finite number"
        elif COUNT.fullmatch(cell) or has_time_unit(cell):
            return cell
        elif begins_like_number(cell):
            expected = "a number of digits and a decimal point, such as 1234.5"
    elif isinstance(cell, float) or type(cell) is int:
        return float(cell)
    raise misfit(place(row), cell, expected + "; --missing skip leaves it out" * is_missing(cell))


def _kind(figure: float | str) -> str:
    if isinstance(figure, float):
        return "a number without a unit"
    return "counts of trials" if COUNT.fullmatch(figure) else "a time with its unit"


def are_times(cells: Sequence[object]) -> bool:
    """Return whether there are cells, and all are times with their units."""
    return bool(cells) and all(isinstance(cell, str) and has_time_unit(cell) for cell in cells)


def times_in(unit: str, cells: Sequence[str], name: str) -> list[float]:
    """Return times with units of their own in one unit."""
    if not has_time_unit(f"1{unit}"):
        raise InvalidInput(
            f"{name} has {short(cells[0])}, a time, and readings in {unit!r} are asked for: "
            "expected a unit of time, such as ms"
        )
    return [time_in(unit, cell) for cell in cells]


def unit_at_end(cell: str) -> str:
    """Return the letters at the end of a cell, ms of 487.5ms."""
    return _BEFORE_UNIT.sub("", cell)
