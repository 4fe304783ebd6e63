"""Cells of tables: a number, a time with its unit, counts of trials, or empty."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, islice

from benchrigor.errors import InvalidInput
from benchrigor.formats.recognition import TOOLS
from benchrigor.model.commented_csv import is_number
from benchrigor.model.series import short
from benchrigor.model.text import many
from benchrigor.units import has_time_unit, time_in

READABLE = f"columns of cells, JSON, or results of {', '.join(TOOLS)}"
UNITS = frozenset({"unit", "units"})  # names of the column that has the unit of the readings
_SOME = 5  # labels that an error lists
_FEWEST = 2  # rows of a table under a text
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


def figure_in_json(value: object, index: int, name: str) -> object:
    """Return the number in a text of JSON, and any other value but a truth as it is."""
    if isinstance(value, bool):
        raise InvalidInput(f"{name}[{index}] is {str(value).lower()}, expected a number")
    return float(value) if isinstance(value, str) and is_number(value) else value


def unit_in(columns: Mapping[str, Sequence[object]], used: Sequence[str], name: str) -> str:
    """Return the unit that a column names, "" if none does; refuse rows that another tells apart.

    Labels tell rows apart that come back, or that name benchmarks, unless they name the rounds.
    Other labels in blocks may be phases of one series. No number has two units.
    """
    unit = ""
    for key, cells in columns.items():
        several, is_unit = dict.fromkeys(map(str, cells)), key.lower() in UNITS
        if not _are_texts(cells) or (key in used and not is_unit):
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


def without_comments(lines: Sequence[str], delimiter: str) -> list[str]:
    """Return lines, with comments blank; a first one that may be the header stays."""
    mark = None if delimiter == " " else delimiter
    first = next(at for at, line in enumerate(lines) if line)
    below = (line for line in lines[first + 1 :] if line and line[0] != "#")
    rows = [[cell.strip() for cell in line.split(mark)] for line in islice(below, 2)]
    width = len(rows[0]) if rows else 1
    has_header = len(rows) > 1 and is_header(*rows) and not any(map(is_missing, rows[0]))
    may_be = not has_header and width in {1, len(lines[first].split(mark))}
    return [
        line if line[:1] != "#" or (may_be and at == first) else "" for at, line in enumerate(lines)
    ]


def check_width(rows: Sequence[tuple[int, list[str]]], delimiter: str, name: str) -> None:
    """Refuse rows with more or fewer cells than the first."""
    place, first = rows[0]
    widths = [len(row) for _, row in rows]
    has_numbers = any(_BEGINS_LIKE_NUMBER.match(cell) for _, row in rows for cell in row)
    is_long = len(rows) > _FEWEST
    [(_, most)] = Counter(widths).most_common(1)
    if is_long and (not has_numbers or 2 * most < len(rows)):
        raise InvalidInput(f"{name} is no table, expected one reading per line, {READABLE}")
    before = next(
        at for at in reversed(range(len(rows))) if at == 0 or widths[at - 1] != widths[-1]
    )
    cure = "separate the cells of all rows alike"
    if delimiter == ",":
        cure = "write decimals with a point, and quote cells that hold a comma"
    above = f"; leave text above a table out with --ignore-lines {rows[before - 1][0]}"
    above = above if 0 < before <= len(rows) - _FEWEST else ""
    other = f"; or it is no table: expected {READABLE}" if delimiter == " " else ""
    for line, row in rows:
        if len(row) != len(first):
            raise InvalidInput(
                f"{name} line {line} has {many(len(row), 'cell')}, expected {len(first)} as in "
                f"line {place}; {cure}{above}{other}"
            )


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
