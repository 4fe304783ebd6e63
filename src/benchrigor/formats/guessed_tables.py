"""Tables of unknown form: separator, header, units, and a cut end are guessed; or JSON.

A cell is a number, a time with its unit, counts of trials, or empty.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, groupby, islice, zip_longest
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.formats import vegeta
from benchrigor.formats.fields import parse_json
from benchrigor.formats.recognition import TOOLS
from benchrigor.model.codec import value_at
from benchrigor.model.series import LARGEST, short
from benchrigor.model.text_tables import (
    Dialect,
    LastLine,
    Problems,
    Row,
    Table,
    is_missing,
    is_number,
    wrong_width,
)
from benchrigor.units import Quantity, direction_of, has_time_unit, quantity_of, time_in

READABLE = f"columns of cells, JSON, or results of {', '.join(TOOLS)}"
_UNITS = frozenset({"unit", "units"})  # names of the column that has the unit of the readings
_SOME = 5  # labels that an error lists
COUNT = re.compile(r"[0-9]{1,15}/[0-9]{1,15}")  # successes/trials
# Texts that people read as numbers: with a decimal comma, with marks between thousands.
_LIKE_NUMBER = re.compile(r"[-+\u2212]?[\d.,'\u2019_\u00a0\u202f]*\d(e[-+]?\d+)?", re.IGNORECASE)
_BEGINS_LIKE_NUMBER = re.compile(r"\W*\d")
_WITH_UNIT = re.compile(r".+[(\[]([^()\[\]]+)[)\]]")
_BEFORE_UNIT = re.compile(r".*[\d.]\s*")
_FEWEST_WHOLE = 2  # lines before one that is unfinished
_MANY = 20  # with this number of lines, a whole last one is rarely the shortest
_FEWEST = 2  # rows of a table under a text
# One number with a comma, or whole numbers in several cells.
_ONE_OR_SEVERAL = re.compile(r"[-+]?(\d+,\d+(e[-+]?\d+)?|\d{1,3}(,\d{3})+)", re.IGNORECASE)
_USABLE = f"a number below {LARGEST:g} in size"
SAMPLE = 100  # lines that show what separates the cells


def chosen(
    table: Table, wanted: Sequence[str | None], by: str | None = None, *, flag: str = "--column"
) -> list[str]:
    """Return the names of columns that are given by name or number; None for the only other."""
    names = [*table.columns]
    if not names:
        raise InvalidInput(f"{table.name} has no columns of readings, expected {READABLE}")
    numbered = dict(zip(map(str, range(len(names))), names, strict=True))
    wanted = [key if key in table.columns else numbered.get(key or "", key) for key in wanted]
    others = [key for key in names if key not in wanted]
    unknown = next((key for key in wanted if key is not None and key not in names), None)
    if unknown is not None or (None in wanted and len(others) != 1):
        some = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        found = "" if unknown is None else f", found {unknown!r}"
        found += f"; or it is not a table: expected {READABLE}" if names[0] == "0" else ""
        option = flag if unknown is None or unknown != by else "--round"
        raise InvalidInput(f"{table.name} has the columns {some}: choose one with {option}{found}")
    chosen = [others[0] if key is None else key for key in wanted]
    if by is not None and chosen[-1] in chosen[:-1]:
        raise InvalidInput(
            f"--round is {by!r}, which holds the readings, expected another of {table.name}"
        )
    return chosen


def table_in(text: str, asked: Sequence[str | None], name: str) -> Table:
    """Return the table in a text; ``asked`` are columns, which may be paths in JSON."""
    read = _from_json if text.lstrip()[0] in "[{" else _from_csv
    return read(text, asked, name)


def _from_json(text: str, asked: Sequence[str | None], name: str) -> Table:
    found = parse_json(text, name)
    data = with_paths(found.data, asked)
    if isinstance(data, dict):
        columns = {key: value for key, value in data.items() if isinstance(value, list)}
    elif data and all(isinstance(row, dict) for row in data):
        columns = {key: [row.get(key) for row in data] for key in dict.fromkeys(chain(*data))}
    else:
        columns = {"0": data}
    are_lines = bool(found.lines) and isinstance(data, list)
    rows = found.lines if are_lines else range(max(map(len, columns.values()), default=0))
    last = found.unfinished
    return Table(name=name, columns=columns, rows=rows, are_items=not are_lines, unfinished=last)


def with_paths(data: Any, keys: Sequence[str | None]) -> Any:
    """Return JSON with the values at dotted paths also under the path as a key."""
    rows = [row for row in (data if isinstance(data, list) else [data]) if isinstance(row, dict)]
    for path in (key for key in keys if key is not None and "." in key):
        for row in rows:
            with suppress(LookupError):
                row.setdefault(path, value_at(row, path))
        if isinstance(data, list) and path.partition(".")[0].isdigit():
            with suppress(LookupError):
                return {path: value_at(data, path)}
    return data


def _from_csv(text: str, asked: Sequence[str | None], name: str) -> Table:
    rows, mark, unfinished = _rows(text, name)
    (line, first), (_, second) = rows[0], rows[1 if len(rows) > 1 else 0]
    has_header = _is_header(first, second if len(rows) > 1 else ())
    if has_header and len(rows) == 1:
        raise InvalidInput(
            f"{name} has {short(','.join(first))} and no line after it, expected {READABLE}"
        )
    if not has_header and [*map(bool, first)] != [*map(bool, second)] and not all(first):
        raise InvalidInput(
            f"{name} line {line} has an empty cell, expected a name or a number in each; "
            "leave a header of numbers out with --ignore-lines"
        )
    if not has_header and len(asked) == 1:
        _check_commas(text, line, name)
    times = Counter(first)  # columns with the same name are chosen by number
    known = vegeta.COLUMNS if vegeta.knows(first) else ()
    header = first if has_header else known[: len(first)]
    names = [
        cell if times[cell] == 1 or known else str(at)
        for at, cell in zip_longest(range(len(first)), header)
    ]
    below = rows[1:] if has_header else rows
    columns = {key: [cells[at] for _, cells in below] for at, key in enumerate(names)}
    lines = [line for line, _ in below]
    return Table(name=name, columns=columns, rows=lines, mark=mark, unfinished=unfinished)


def _rows(text: str, name: str) -> tuple[list[Row], str, LastLine | None]:
    """Return rows, what separates their cells, and a last line that has not ended.

    The rows are not blank and have the same width.
    """
    lines = [line.strip(" ") for line in text.splitlines()]
    data = [line for line in lines if not line.startswith("#")]
    mark = _delimiter(data if any(data) else lines, name)
    kept = [*Dialect(mark=mark).rows(_with_header(lines, mark), name)]
    if not kept:
        raise InvalidInput(f"{name} has nothing but empty cells, expected readings")
    place, first = kept[0]
    is_alone = all(len(row) == 1 for _, row in kept[1:])
    if mark == " " and is_alone and not any(map(is_like_number, first)):
        kept[0] = (place, [" ".join(first)])  # a name of several words
    (number, row), unfinished = kept[-1], None
    if not text.endswith("\n") and number == len(lines):
        is_cut = len(kept) > _FEWEST_WHOLE and _is_cut([cells for _, cells in kept])
        unfinished = LastLine(number=number, text=mark.join(row), is_used=not is_cut)
        kept = kept[:-1] if is_cut else kept
    _check_width(kept, mark, name)
    width = len(kept[0][1])
    if width > 1 and not any(cells[-1] for _, cells in kept):  # all lines end in a separator
        return [(line, cells[:-1]) for line, cells in kept], "", unfinished
    return kept, mark if mark != " " or width == 1 else "", unfinished


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether the cells of a first line are names, not numbers in any notation.

    A time with its unit is a reading if another is below it: 5m may be the name of an average.
    """
    is_reading = len(first) == 1 and begins_like_number(first[0])
    times = (has_time_unit(a) and has_time_unit(b) for a, b in zip(first, second, strict=False))
    return not is_reading and not any(map(is_like_number, first)) and not any(times)


def _with_header(lines: Sequence[str], mark: str) -> list[str]:
    """Return lines; if a first comment may be the header, a blank before it, which is not read."""
    split_at = None if mark == " " else mark
    first = next(at for at, line in enumerate(lines) if line)
    below = (line for line in lines[first + 1 :] if line and line[0] != "#")
    rows = [[cell.strip() for cell in line.split(split_at)] for line in islice(below, 2)]
    width = len(rows[0]) if rows else 1
    has_header = len(rows) > 1 and _is_header(*rows) and not any(map(is_missing, rows[0]))
    may_be = not has_header and width in {1, len(lines[first].split(split_at))}
    return [*lines[:first], f"{' ' * may_be}{lines[first]}", *lines[first + 1 :]]


def _delimiter(lines: Sequence[str], name: str) -> str:
    """Return the separator by which rows have one width and most cells are numbers."""
    sample = list(islice(filter(str.strip, lines), SAMPLE))

    def fit(mark: str) -> tuple[bool, float]:
        try:
            rows = [row for _, row in Dialect(mark=mark).rows(sample, name)]
        except InvalidInput:  # quotes that are closed by another mark
            return False, -1.0
        widths = set(map(len, rows))
        numbers = (sum(map(is_like_number, row)) / len(row) for row in rows)
        return len(widths) == 1 and widths != {1}, sum(numbers)

    marks = [mark for mark in "\t;," if any(mark in line for line in lines)]
    spaces = [] if any(mark in sample[0] for mark in marks) else [" "]
    return max([*marks, *spaces], key=fit)


def _is_cut(rows: Sequence[list[str]]) -> bool:
    """Return whether the last row, which has no line break, is incomplete.

    It has fewer cells than the first row, or its last cell is not a number, ends in a point, or
    lacks the decimals that all others have, or it is the shortest of many rows.
    """
    first, *others, last = rows
    if len(last) < len(first):
        return True
    ends, end = [row[-1] for row in others], last[-1]
    if are_times(ends):  # 12m may be the beginning of 12ms
        return not are_times([end]) or unit_at_end(end) not in set(map(unit_at_end, ends))
    if all(map(is_number, ends)) and (
        not is_number(end)
        or (end.endswith(".") and not any(cell.endswith(".") for cell in ends))
        or ("." not in end and all("." in cell for cell in ends))
    ):
        return True
    sizes = [sum(map(len, row)) for row in others]
    return len(others) >= _MANY and sum(map(len, last)) < min(sizes)


def _check_commas(text: str, line: int, name: str) -> None:
    """Refuse lines that are one number with a comma, or several whole numbers."""
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    if all(map(_ONE_OR_SEVERAL.fullmatch, lines)):
        raise InvalidInput(
            f"{name} line {line} has {lines[0]!r}, which is one number with a comma, or several "
            "cells: write decimals with a point, or name the columns in a first line"
        )


def _check_width(rows: Sequence[Row], mark: str, name: str) -> None:
    """Refuse rows with more or fewer cells than the first."""
    widths = [len(row) for _, row in rows]
    has_numbers = any(begins_like_number(cell) for _, row in rows for cell in row)
    is_long = len(rows) > _FEWEST
    [(_, most)] = Counter(widths).most_common(1)
    if is_long and (not has_numbers or 2 * most < len(rows)):
        raise InvalidInput(f"{name} is not a table, expected one reading per line, {READABLE}")
    before = next(
        at for at in reversed(range(len(rows))) if at == 0 or widths[at - 1] != widths[-1]
    )
    cure = "separate the cells of all rows in one way"
    if mark == ",":
        cure = "write decimals with a point, and quote cells that hold a comma"
    above = f"; leave text above a table out with --ignore-lines {rows[before - 1][0]}"
    above = above if 0 < before <= len(rows) - _FEWEST else ""
    other = f"; or it is not a table: expected {READABLE}" if mark == " " else ""
    for row in rows:
        if len(row[1]) != widths[0]:
            raise InvalidInput(wrong_width(row, rows[0], name, f"; {cure}{above}{other}"))


def is_like_number(cell: str) -> bool:
    """Return whether people take a cell for a number, or for counts; _1 is a name."""
    if "\t" in cell or cell.startswith("_"):
        return False
    return any((is_number(cell), COUNT.fullmatch(cell), _LIKE_NUMBER.fullmatch(cell.strip())))


def begins_like_number(cell: str) -> bool:
    """Return whether a cell begins with a number, such as 12ms, $5 and 0x10."""
    return _BEGINS_LIKE_NUMBER.match(cell) is not None


def unit_in(columns: Mapping[str, Sequence[object]], used: Sequence[str], name: str) -> str:
    """Return the unit that a column names, "" if none does; refuse rows that another distinguishes.

    Labels distinguish rows that come back, or that name benchmarks, unless they name the rounds.
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
            cure = "" if is_unit else f", or name the rounds with --round {key}"
            raise InvalidInput(
                f"{name} has rows of several {key}: {some}. Choose some with --where "
                f"{key}={cells[0]}{cure}"
            )
    return unit


def unit_in_name(column: str) -> str:
    """Return the unit at the end of a name such as time (ms) or size [MB], or ""."""
    match = _WITH_UNIT.fullmatch(column.strip())
    unit = match[1].strip() if match else ""
    return unit if direction_of(unit) else ""


def _are_several_times(cells: Sequence[str]) -> bool:
    """Return whether the first is a unit of time, and another one is, too."""
    is_time = (quantity_of(cell) is Quantity.TIME for cell in cells)
    return next(is_time, False) and any(is_time)


def may_be_units(key: str, cell: object, *, is_beside: bool) -> bool:
    """Return whether a column may have units, by its name or by a cell next to a reading."""
    return key.lower() in _UNITS or (is_beside and quantity_of(str(cell)) is Quantity.TIME)


def _are_texts(cells: Sequence[object]) -> bool:
    """Return whether cells are words or truths, none of them empty, a number or a time."""
    if not all(isinstance(cell, str | bool) and cell != "" for cell in cells):
        return False
    return not any(is_like_number(word) or has_time_unit(word) for word in set(map(str, cells)))


def may_be_labels(cells: Sequence[object], raw: bytes, first: int) -> bool:
    """Return whether labels in a column may come back; only its first cells are known.

    ``first`` is the line in which the rows begin.
    """
    several = set(map(str, cells))
    if len(several) == len(cells) or all(map(is_like_number, several)):
        return False
    (only, *others) = several
    if others:
        return True
    # Part of another label, or of a name, is not a cell.
    end = rb'[,;\t\r\n"]' if re.search(rb"[,;\t]", raw[:1000]) else rb'[\s"]'
    forms = b"|".join(re.escape(form.encode()) for form in {only, json.dumps(only)[1:-1]})
    found = re.finditer(rb"(?<=" + end + rb") *(?:" + forms + rb") *(?=" + end + rb")", raw)
    return sum(1 for _ in found) <= raw.count(b"\n") - first


def figures_of(table: Table, key: str) -> Sequence[Any]:
    """Return the numbers in the cells of a column; if all are counts or times, their texts.

    InvalidInput lists all cells that are neither, or not of the kind of the first.
    """
    cells, problems = table.columns[key], Problems()
    are_numbers = bool(cells) and {int, float}.issuperset(map(type, cells))
    if are_numbers and np.abs(np.array(cells, np.float64)).max() <= LARGEST:
        return cells
    figures = [*map(_figure, cells)]
    misfits = [row for row, figure in enumerate(figures) if figure is None]
    problems.add(misfits, lambda row: table.misfit(row, key, _expected(cells[row])))
    problems.refuse()
    if not {float}.issuperset(map(type, figures)):
        kinds = [_kind(figure) for figure in figures]
        others = [row for row, kind in enumerate(kinds) if kind != kinds[0]]
        as_first = f"{kinds[0]}, as in {table.place(0)}"
        problems.add(others, lambda row: table.misfit(row, key, as_first))
        problems.refuse()
    return figures


def _figure(cell: object) -> float | str | None:
    """Return the number in a cell, or its counts or its time as they are; None if it is neither."""
    if isinstance(cell, str) and not is_number(cell):
        if COUNT.fullmatch(cell):
            successes, trials = map(int, cell.split("/"))
            return cell if 0 < trials >= successes else None
        return cell if has_time_unit(cell) and abs(time_in("s", cell)) <= LARGEST else None
    if isinstance(cell, str | float) or type(cell) is int:
        number = float(cell)
        return number if abs(number) <= LARGEST else None
    return None


def _expected(cell: object) -> str:
    """Return the form expected in place of a cell that has no figure."""
    if is_missing(cell):
        return "a number; --missing skip leaves it out"
    if isinstance(cell, str) and COUNT.fullmatch(cell):
        return "successes/trials, such as 998/1000"
    is_text = isinstance(cell, str) and not is_number(cell)
    if not is_text and not isinstance(cell, bool | list | dict):
        return "a finite number" if abs(float(cell)) == math.inf else _USABLE  # type: ignore[arg-type]
    if is_text and has_time_unit(str(cell)):
        return _USABLE
    if isinstance(cell, str) and begins_like_number(cell):
        return "a number of digits and a decimal point, such as 1234.5"
    return "a number"


def _kind(figure: float | str | None) -> str:
    if not isinstance(figure, str):
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
