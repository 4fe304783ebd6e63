"""Readings from a file or a pipe: a CSV column, JSON, or one number per line."""

from __future__ import annotations

import json
import re
import sys
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from benchrigor.cli.cells import (
    COUNT,
    READABLE,
    UNITS,
    are_times,
    check_width,
    figure_in_json,
    figures_of,
    is_header,
    is_like_number,
    is_missing,
    may_be_labels,
    times_in,
    unit_at_end,
    unit_in,
    without_comments,
)
from benchrigor.cli.options import ignored_lines, rows_to_read, skips_missing
from benchrigor.cli.output import remark
from benchrigor.cli.plain_columns import columns_of, values_of
from benchrigor.errors import InvalidInput
from benchrigor.files import decoded, readable
from benchrigor.formats.json_text import parse_json
from benchrigor.model import Notice
from benchrigor.model.codec import value_at
from benchrigor.model.commented_csv import is_number, rows_of
from benchrigor.model.series import Floats, as_series, short
from benchrigor.model.text import many
from benchrigor.units import Quantity, quantity_of

_FEWEST_WHOLE = 2  # lines before one that is unfinished
_MANY = 20  # with this number of lines, a whole last one is rarely the shortest
# One number with a comma, or whole numbers in several cells.
_ONE_OR_SEVERAL = re.compile(r"[-+]?(\d+,\d+(e[-+]?\d+)?|\d{1,3}(,\d{3})+)", re.IGNORECASE)
_SAMPLE = 100  # lines that show what separates the cells
_HEAD = 1 << 16  # bytes that show how a long table is written


def name_of(source: str) -> str:
    """Name the source of readings."""
    return "standard input" if source == "-" else source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedRounds:
    """The readings of a file, one series per round; a single series if rounds have no names.

    ``trials`` are the numbers of trials of shares, from cells such as 998/1000: then every row is a
    round. ``unit`` is the unit of the readings if cells have their own units, such as 487.5us, or a
    column says it.
    ``notices`` say what a tool tells of its runs.
    """

    series: tuple[Floats, ...]
    labels: tuple[str, ...] = ()
    unit: str = ""
    trials: tuple[float, ...] | None = None
    notices: tuple[Notice, ...] = ()


def read_rounds(
    source: str, column: str | None, by: str | None = None, unit: str = ""
) -> RecordedRounds:
    """Read readings from a file, or from standard input for "-", divided by the column ``by``.

    JSON (a list, an object that holds one, a list of objects, or an object per line) is recognised
    by its first character. All else is CSV (comma, semicolon, tab or spaces). Its first line is a
    header if it holds no number; all rows must have as many cells. A last line without a line break
    is reported, and not used if `_is_cut` shows that a part of it is missing. ``column`` is the
    name or number (from 0) of a CSV column, the key of JSON objects, or a path of keys and places
    such as results.0.times; None stands for the only one, or the only other one than ``by``. Cells
    that are times with their units are read in ``unit``, else in seconds.
    """
    name = name_of(source)
    (cells, *labels), of_column = _cells(source, [column], by)
    if isinstance(cells, np.ndarray):
        return RecordedRounds(series=(as_series(cells, name=name),))
    cells, of_cells = _in_one_unit(cells, unit, name)
    rounds: dict[str, list[Any]] = {} if labels else {"": cells}
    for label, cell in zip(*labels, cells, strict=True) if labels else ():
        rounds.setdefault(str(label), []).append(cell)
    counts = [COUNT.fullmatch(cell) if isinstance(cell, str) else None for cell in cells]
    if by is None and cells and all(counts):
        return _of_counts(cells, name)
    series = tuple(as_series(readings, name=name) for readings in rounds.values())
    labelled = tuple(rounds) if by is not None else ()
    return RecordedRounds(series=series, labels=labelled, unit=of_cells or of_column)


def read_columns(source: str, columns: Sequence[str | None]) -> list[Floats]:
    """Read several columns of numbers, as `read_rounds` reads one; times in seconds."""
    name = name_of(source)
    read = (_in_one_unit(column, "", name)[0] for column in _cells(source, columns)[0])
    return [as_series(column, name=name) for column in read]


def _in_one_unit(cells: Any, unit: str, name: str) -> tuple[Any, str]:
    """Return times with their own units in one unit, and that unit; other cells without a unit."""
    if isinstance(cells, np.ndarray) or not are_times(cells):
        return cells, ""
    unit = unit or "s"
    return times_in(unit, cells, name), unit


def _of_counts(cells: Sequence[str], name: str) -> RecordedRounds:
    """Return the shares of counts such as 998/1000, and their trials."""
    counts = [tuple(map(int, cell.split("/"))) for cell in cells]
    for cell, (successes, trials) in zip(cells, counts, strict=True):
        if not 0 < trials >= successes:
            raise InvalidInput(f"{name} has {cell!r}, expected successes/trials, such as 998/1000")
    return RecordedRounds(
        series=tuple(np.array([successes / trials]) for successes, trials in counts),
        trials=tuple(float(trials) for _, trials in counts),
    )


_Lists = tuple[list[Any], str]  # columns, and the unit that another one names


def _cells(source: str, columns: Sequence[str | None], by: str | None = None) -> _Lists:
    """Read columns of figures from a file, and the labels in the column ``by`` after them."""
    name = name_of(source)
    raw = _bytes(source, name)
    if (
        by is None
        and not (ignored_lines() or rows_to_read())
        and (plain := _plain(raw, columns, name) or _plain_lines(raw, columns, name))
    ):
        return plain, ""
    text = _text(raw, name)
    if not text.strip():
        raise InvalidInput(f"{name} is empty, expected readings")
    read = _from_json if text.lstrip()[0] in "[{" else _from_csv
    return read(text, columns, by, name)


def _plain(raw: bytes, wanted: Sequence[str | None], name: str) -> list[Any]:
    """Read columns of a long table if its rows are proved plain; else return an empty list."""
    head = raw[:_HEAD].removeprefix(BOM_UTF8)
    lines = head[: head.rfind(b"\n") + 1].split(b"\n")[:-1]
    if (
        len(raw) <= _HEAD
        or len(lines) <= 2 * _SAMPLE
        or not head.isascii()
        or head.lstrip()[:1] in b"[{"
    ):
        return []
    text = b"\n".join([*lines, b""]).decode().replace("\r\n", "\n")
    if "\0" in text or len(text.splitlines()) != len(lines):
        return []
    try:
        table = _table(text, wanted, None, name)
    except InvalidInput:  # the careful reader names the problem, of the whole file
        return []
    start, row = table.rows[0]
    beside = [row[index + 1].strip() for index in table.indices if index + 1 < len(row)]
    others = [at for at in range(len(row)) if at not in table.indices]
    columns = ([row[at] for _, row in table.rows] for at in others)
    has_labels = any(may_be_labels(cells, raw, start) for cells in columns)
    has_units = any(quantity_of(cell) is Quantity.TIME for cell in beside)
    has_units = has_units or not UNITS.isdisjoint(map(str.lower, table.columns))
    if has_units or has_labels or table.is_narrowed or (table.mark == " " and len(row) > 1):
        return []
    first = len(raw[:_HEAD]) - len(head) + sum(len(line) + 1 for line in lines[: start - 1])
    return columns_of(memoryview(raw)[first:], table.indices, width=len(row), mark=table.mark)


def _plain_lines(raw: bytes, wanted: Sequence[str | None], name: str) -> list[Any]:
    """Read a key of many flat JSON objects, one per line; else return an empty list."""
    if len(raw) <= _HEAD or not raw.startswith(b"{") or len(wanted) > 1:
        return []
    try:
        head = [json.loads(line) for line in raw[:_HEAD].split(b"\n")[:-1]]
        (key,) = _chosen(wanted, list(head[0]), name, "keys", None)
        others = [[row.get(each) for row in head] for each in head[0] if each != key]
    except (ValueError, LookupError, AttributeError):  # the careful reader names the problem
        return []
    has_units = not UNITS.isdisjoint(map(str.lower, head[0]))
    if has_units or any(may_be_labels(cells, raw, 1) for cells in others):
        return []
    return values_of(memoryview(raw), key)


def _bytes(source: str, name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if source == "-" else readable(source).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}") from error


def _text(raw: bytes, name: str) -> str:
    try:
        text = decoded(raw)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is no text, expected {READABLE}: {error}") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidInput(f"{name} line {line} has a NUL byte, expected text in UTF-8")
    ignored = ignored_lines()
    lines = text.splitlines(keepends=True) if ignored else []
    if ignored and not any(map(str.strip, lines[ignored:])):
        raise InvalidInput(
            f"{name} has {many(len(lines), 'line')}, of which --ignore-lines leaves none to read"
        )
    # Blank lines in their place: errors count the lines of the whole file.
    return "\n" * ignored + "".join(lines[ignored:]) if ignored else text


def _from_json(text: str, columns: Sequence[str | None], by: str | None, name: str) -> _Lists:
    found = parse_json(text, name)
    if found.unfinished is not None:
        report_unfinished(name, *found.unfinished, is_used=False)
    asked = [*columns, by, *(key for key, _ in rows_to_read())]
    lists, unit = _lists_in(with_paths(found.data, asked), columns, by, name)
    for values in lists[: len(columns)]:
        values[:] = [figure_in_json(value, index, name) for index, value in enumerate(values)]
    return lists, unit


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


def has_path(source: str, path: str | None) -> bool:
    """Return whether a dotted path leads to readings in a file of JSON."""
    if path is None or "." not in path:
        return False
    with suppress(InvalidInput):
        data = with_paths(parse_json(_text(_bytes(source, source), source), source).data, [path])
        return path in (data[0] if isinstance(data, list) and data else data)
    return False


def _lists_in(data: Any, columns: Sequence[str | None], by: str | None, name: str) -> _Lists:
    keys = [*columns, *([] if by is None else [by])]
    is_table = isinstance(data, list) and bool(data) and all(isinstance(r, dict) for r in data)
    if not is_table and (rows_to_read() or skips_missing()):
        raise InvalidInput(
            f"{name} holds plain lists, which --where and --missing skip do not select from: "
            "expected a list of objects, or CSV"
        )
    if isinstance(data, dict):
        lists = [key for key, value in data.items() if isinstance(value, list)]
        chosen = [data[key] for key in _chosen(keys, lists, name, "lists", by)]
        if len(set(map(len, chosen))) > 1:
            raise InvalidInput(f"{name} has lists of different length, expected as many of each")
        return chosen, ""
    if is_table:
        named = _chosen(keys, list(data[0]), name, "keys", by)
        data = _choose_objects(data, named[: len(columns)], name)
        told = {key: [row.get(key) for row in data] for key in data[0]}
        unit = unit_in(told, named, name)
        for index, row in enumerate(data):
            for key in named:
                if key not in row:
                    raise InvalidInput(f"{name}[{index}] has no {key!r}")
        return [[row[key] for row in data] for key in named], unit
    unknown = next((key for key in keys if key is not None), None)
    if unknown is not None:
        raise InvalidInput(f"{name} is a plain list, which has no column {unknown!r}")
    return [data], ""


def _choose_objects(
    rows: Sequence[Mapping[str, Any]], readings: Sequence[str], name: str
) -> Sequence[Mapping[str, Any]]:
    """Return the objects that --where and --missing leave; InvalidInput if there are none."""
    kept = rows
    for key, value in rows_to_read():
        _chosen([key], list(rows[0]), name, "keys", None, flag="--where")
        kept = [row for row in kept if str(row.get(key)) == value]
    if skips_missing():
        kept = [row for row in kept if not any(is_missing(row.get(key)) for key in readings)]
    if not kept:
        raise InvalidInput(f"{name} has no row left by --where and --missing, expected one")
    return kept


def report_unfinished(name: str, number: int, line: str, *, is_used: bool) -> None:
    """Say that a last line has no line break at its end, as when its writer was cut off."""
    how = "is unfinished and not used"
    if is_used:
        how = "has no line break, is perhaps unfinished, but used"
    remark(f"{name} line {number} {how}: {short(line)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Rows of cells below the header, with the numbers of their lines, and the columns meant."""

    rows: list[tuple[int, list[str]]]
    columns: list[str]
    indices: list[int]
    mark: str
    is_narrowed: bool  # Whether an empty last column is left out


def _table(text: str, wanted: Sequence[str | None], by: str | None, name: str) -> _Table:
    """Return the table in a text, with the indices of the wanted columns."""
    rows, mark, is_narrowed = _rows(text, name)
    first = [cell.strip() for cell in rows[0][1]]
    has_header = is_header(first, rows[1][1] if len(rows) > 1 else ())
    if has_header and len(rows) == 1:
        raise InvalidInput(
            f"{name} has {short(','.join(first))} and no line after it, expected {READABLE}"
        )
    second = [cell.strip() for cell in rows[1][1]] if len(rows) > 1 else []
    if not has_header and [*map(bool, first)] != [*map(bool, second)] and not all(first):
        raise InvalidInput(
            f"{name} line {rows[0][0]} has an empty cell, expected a name or a number in each; "
            "leave a header of numbers out with --ignore-lines"
        )
    numbers = [str(number) for number in range(len(first))]
    # Columns with the same name are chosen by number.
    times = Counter(first)
    columns = [
        cell if has_header and times[cell] == 1 else number
        for number, cell in zip(numbers, first, strict=True)
    ]
    numbered = dict(zip(numbers, columns, strict=True))
    names = [*wanted, *([] if by is None else [by])]
    names = [key if key in columns else numbered.get(key or "", key) for key in names]
    if not has_header and len(names) == 1:
        _check_commas(text, rows[0][0], name)
    chosen = _chosen(names, columns, name, "columns", by)
    indices = [columns.index(key) for key in chosen]
    rows = rows[1:] if has_header else rows
    return _Table(rows=rows, columns=columns, indices=indices, mark=mark, is_narrowed=is_narrowed)


def _from_csv(text: str, wanted: Sequence[str | None], by: str | None, name: str) -> _Lists:
    table = _table(text, wanted, by, name)
    rows, cells = table.rows, list[list[Any]]()
    for key, value in rows_to_read():
        at = table.columns.index(
            _chosen([key], table.columns, name, "columns", None, flag="--where")[0]
        )
        rows = [(line, row) for line, row in rows if row[at].strip() == value]
    if skips_missing():
        readings = table.indices[: len(wanted)]
        rows = [
            (line, row) for line, row in rows if not any(is_missing(row[at]) for at in readings)
        ]
    if not rows:
        raise InvalidInput(f"{name} has no row left by --where and --missing, expected one")
    columns = {key: [row[at].strip() for _, row in rows] for at, key in enumerate(table.columns)}
    used = [table.columns[at] for at in table.indices]
    unit = unit_in(columns, used, name)
    for number, index in enumerate(table.indices):
        column = [(line, row[index].strip()) for line, row in rows]
        if number < len(wanted):
            _check_units(rows, index, name)
            cells.append(figures_of(column, name))
            continue
        unnamed = next((line for line, cell in column if not cell), None)
        if unnamed is not None:
            raise InvalidInput(f"{name} line {unnamed} has '', expected the name of a round")
        cells.append([cell for _, cell in column])
    return cells, unit


def _check_units(rows: Sequence[tuple[int, list[str]]], index: int, name: str) -> None:
    """Refuse numbers in different units of time, which the next column names."""
    if index + 1 == len(rows[0][1]):
        return
    first, *others = ((line, row[index + 1].strip()) for line, row in rows)
    if quantity_of(first[1]) is not Quantity.TIME:
        return
    for line, unit in others:
        if unit != first[1] and quantity_of(unit) is Quantity.TIME:
            raise InvalidInput(
                f"{name} line {line} has a number in {unit!r}, expected {first[1]!r} as in line "
                f"{first[0]}"
            )


def _rows(text: str, name: str) -> tuple[list[tuple[int, list[str]]], str, bool]:
    """Return rows with their line numbers, the separator, and whether an empty column is left out.

    The rows are not blank and have the same width. Only the last column may be left out.
    """
    lines = [line.strip(" ") for line in text.splitlines()]
    data = [line for line in lines if not line.startswith("#")]
    delimiter = _delimiter(data if any(data) else lines, name)
    lines = without_comments(lines, delimiter)
    rows = rows_of(lines, name, delimiter=delimiter, skipinitialspace=True)
    kept = [(line, row) for line, row in rows if any(map(str.strip, row))]
    if not kept:
        raise InvalidInput(f"{name} has nothing but empty cells, expected readings")
    place, first = kept[0]
    is_alone = all(len(row) == 1 for _, row in kept[1:])
    if delimiter == " " and is_alone and not any(map(is_like_number, first)):
        kept[0] = (place, [" ".join(first)])  # a name of several words
    number, row = kept[-1]
    if not text.endswith("\n") and number == len(lines):
        is_cut = len(kept) > _FEWEST_WHOLE and _is_cut([r for _, r in kept])
        report_unfinished(name, number, delimiter.join(row), is_used=not is_cut)
        kept = kept[:-1] if is_cut else kept
    check_width(kept, delimiter, name)
    is_narrowed = len(kept[0][1]) > 1 and not any(row[-1].strip() for _, row in kept)
    if is_narrowed:
        kept = [(line, row[:-1]) for line, row in kept]  # all lines end in a delimiter
    return kept, delimiter, is_narrowed


def _is_cut(rows: Sequence[list[str]]) -> bool:
    """Return whether the last row, which has no line break, is incomplete.

    It has fewer cells than the first row, or its last cell is not a number, ends in a point, or
    lacks the decimals that all others have, or it is the shortest of many rows.
    """
    first, *others, last = rows
    if len(last) < len(first):
        return True
    ends, end = [row[-1].strip() for row in others], last[-1].strip()
    if are_times(ends):  # 12m may be the beginning of 12ms
        return not are_times([end]) or unit_at_end(end) not in set(map(unit_at_end, ends))
    if all(map(is_number, ends)):
        if not is_number(end):
            return True
        if end.endswith(".") and not any(cell.endswith(".") for cell in ends):
            return True
        if all("." in cell for cell in ends) and "." not in end:
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


def _delimiter(lines: Sequence[str], name: str) -> str:
    """Return the separator by which rows have one width and most cells are numbers."""
    sample = list(islice(filter(str.strip, lines), _SAMPLE))

    def fit(mark: str) -> tuple[bool, float]:
        try:
            rows = [row for _, row in rows_of(sample, name, delimiter=mark, skipinitialspace=True)]
        except InvalidInput:  # quotes that are closed by another mark
            return False, -1.0
        widths = set(map(len, rows))
        numbers = (sum(map(is_like_number, row)) / len(row) for row in rows)
        return len(widths) == 1 and widths != {1}, sum(numbers)

    marks = [mark for mark in "\t;," if any(mark in line for line in lines)]
    spaces = [] if any(mark in sample[0] for mark in marks) else [" "]
    return max([*marks, *spaces], key=fit)


def _chosen(
    wanted: Sequence[str | None],
    names: Sequence[str],
    name: str,
    kind: str,
    by: str | None,
    *,
    flag: str = "--column",
) -> list[str]:
    """Return the chosen columns; None stands for the only other one."""
    others = [key for key in names if key not in wanted]
    if not names:
        raise InvalidInput(f"{name} has no {kind} of readings, expected {READABLE}")
    unknown = next((key for key in wanted if key is not None and key not in names), None)
    if unknown is not None or (None in wanted and len(others) != 1):
        some = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        found = "" if unknown is None else f", found {unknown!r}"
        found += f"; or it is no table: expected {READABLE}" if names[0] == "0" else ""
        option = flag if unknown is None or unknown != by else "--round"
        raise InvalidInput(f"{name} has the {kind} {some}: choose one with {option}{found}")
    chosen = [others[0] if key is None else key for key in wanted]
    if by is not None and chosen[-1] in chosen[:-1]:
        raise InvalidInput(
            f"--round is {by!r}, which holds the readings, expected another of {name}"
        )
    return chosen
