"""Cells of tables: a number, a time with its unit, counts of trials, or empty."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from benchrigor.errors import InvalidInput
from benchrigor.model.commented_csv import is_number
from benchrigor.model.series import short
from benchrigor.units import has_time_unit, time_in

COUNT = re.compile(r"[0-9]{1,15}/[0-9]{1,15}")  # successes/trials
# Texts that people read as numbers: with a decimal comma, with marks between thousands.
_LIKE_NUMBER = re.compile(r"[-+\u2212]?[\d.,'\u2019_\u00a0\u202f]*\d(e[-+]?\d+)?", re.IGNORECASE)
_BEGINS_LIKE_NUMBER = re.compile(r"\W*\d")  # 12ms, $5, 0x10
_BEFORE_UNIT = re.compile(r".*[\d.]\s*")


def is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether the cells of a first line are names, not numbers in any notation.

    A time with its unit is a reading if another is below it: 5m may be the name of an average.
    """
    is_reading = len(first) == 1 and _BEGINS_LIKE_NUMBER.match(first[0])
    times = (has_time_unit(a) and has_time_unit(b) for a, b in zip(first, second, strict=False))
    return not is_reading and not any(map(is_like_number, first)) and not any(times)


def is_like_number(cell: str) -> bool:
    """Return whether people take a cell for a number, or for counts; _1 is a name."""
    if "\t" in cell or cell.startswith("_"):
        return False
    return any((is_number(cell), COUNT.fullmatch(cell), _LIKE_NUMBER.fullmatch(cell.strip())))


def is_missing(cell: object) -> bool:
    """Return whether a cell stands for a missing reading."""
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in {"", "n/a", "na"})


def figures_of(cells: Sequence[tuple[int, str]], name: str) -> list[float | str]:
    """Return the numbers in pairs of line and cell; if all are counts or times, their texts."""
    figures = [_figure(cell, f"{name} line {line}") for line, cell in cells]
    if set(map(type, figures)) != {float}:
        kinds = [_kind(figure) for figure in figures]
        for (line, cell), kind in zip(cells, kinds, strict=True):
            if kind != kinds[0]:
                raise InvalidInput(
                    f"{name} line {line} has {short(cell)}, expected {kinds[0]}, as in line "
                    f"{cells[0][0]}"
                )
    return figures


def _figure(cell: str, place: str) -> float | str:
    """Return the number in a cell, or its counts or its time as they are."""
    expected = "a number; --missing skip leaves it out" if is_missing(cell) else "a number"
    if is_number(cell):
        if math.isfinite(number := float(cell)):
            return number
        expected = "a finite number"
    elif COUNT.fullmatch(cell) or has_time_unit(cell):
        return cell
    elif _BEGINS_LIKE_NUMBER.match(cell):
        expected = "a number of digits and a decimal point, such as 1234.5"
    raise InvalidInput(f"{place} has {short(cell)}, expected {expected}")


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
