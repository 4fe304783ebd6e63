"""Tables whose form nobody told: separator, header and a cut end are guessed; and JSON as one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from benchrigor.cli.cells import (
    READABLE,
    are_times,
    begins_like_number,
    is_like_number,
    is_missing,
    unit_at_end,
)
from benchrigor.cli.output import remark
from benchrigor.errors import InvalidInput
from benchrigor.formats.json_text import parse_json
from benchrigor.model.codec import value_at
from benchrigor.model.series import short
from benchrigor.model.text_tables.rows import Row, is_number, rows_of, wrong_width
from benchrigor.units import has_time_unit

_FEWEST_WHOLE = 2  # lines before one that is unfinished
_MANY = 20  # with this number of lines, a whole last one is rarely the shortest
_FEWEST = 2  # rows of a table under a text
# One number with a comma, or whole numbers in several cells.
_ONE_OR_SEVERAL = re.compile(r"[-+]?(\d+,\d+(e[-+]?\d+)?|\d{1,3}(,\d{3})+)", re.IGNORECASE)
SAMPLE = 100  # lines that show what separates the cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns of cells by their names, and where their rows stand in a file."""

    name: str
    columns: Mapping[str, list[Any]]
    rows: Sequence[int]  # numbers of lines, or of items in JSON
    is_json: bool = False
    mark: str = ""
    is_narrowed: bool = False  # whether an empty last column is left out

    def place(self, row: int) -> str:
        """Return the place of a row, for errors."""
        number = self.rows[row]
        return f"{self.name}[{number}]" if self.is_json else f"{self.name} line {number}"

    def chosen(
        self, wanted: Sequence[str | None], by: str | None = None, *, flag: str = "--column"
    ) -> list[str]:
        """Return the names of columns that are given by name or number; None for the only other."""
        names = [*self.columns]
        if not names:
            raise InvalidInput(f"{self.name} has no columns of readings, expected {READABLE}")
        numbered = dict(zip(map(str, range(len(names))), names, strict=True))
        wanted = [key if key in self.columns else numbered.get(key or "", key) for key in wanted]
        others = [key for key in names if key not in wanted]
        unknown = next((key for key in wanted if key is not None and key not in names), None)
        if unknown is not None or (None in wanted and len(others) != 1):
            some = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            found = "" if unknown is None else f", found {unknown!r}"
            found += f"; or it is no table: expected {READABLE}" if names[0] == "0" else ""
            option = flag if unknown is None or unknown != by else "--round"
            raise InvalidInput(
                f"{self.name} has the columns {some}: choose one with {option}{found}"
            )
        chosen = [others[0] if key is None else key for key in wanted]
        if by is not None and chosen[-1] in chosen[:-1]:
            raise InvalidInput(
                f"--round is {by!r}, which holds the readings, expected another of {self.name}"
            )
        return chosen

    def with_rows(self, kept: Sequence[int]) -> Table:
        """Return the table with some of its rows."""
        columns = {key: [cells[at] for at in kept] for key, cells in self.columns.items()}
        return replace(self, columns=columns, rows=[self.rows[at] for at in kept])


def table_in(text: str, asked: Sequence[str | None], name: str) -> Table:
    """Return the table in a text; ``asked`` are columns, which may be paths in JSON."""
    read = _from_json if text.lstrip()[0] in "[{" else _from_csv
    return read(text, asked, name)


def _from_json(text: str, asked: Sequence[str | None], name: str) -> Table:
    found = parse_json(text, name)
    if found.unfinished is not None:
        report_unfinished(name, *found.unfinished, is_used=False)
    data = with_paths(found.data, asked)
    if isinstance(data, dict):
        columns = {key: value for key, value in data.items() if isinstance(value, list)}
    elif data and all(isinstance(row, dict) for row in data):
        columns = {key: [row.get(key) for row in data] for key in data[0]}
    else:
        columns = {"0": data}
    most = max(map(len, columns.values()), default=0)
    return Table(name=name, columns=columns, rows=range(most), is_json=True)


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
    rows, mark, is_narrowed = _rows(text, name)
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
    names = [cell if has_header and times[cell] == 1 else str(at) for at, cell in enumerate(first)]
    below = rows[1:] if has_header else rows
    columns = {key: [cells[at] for _, cells in below] for at, key in enumerate(names)}
    lines = [line for line, _ in below]
    return Table(name=name, columns=columns, rows=lines, mark=mark, is_narrowed=is_narrowed)


def _rows(text: str, name: str) -> tuple[list[Row], str, bool]:
    """Return rows, what separates their cells, and whether an empty last column is left out.

    The rows are not blank and have the same width.
    """
    lines = [line.strip(" ") for line in text.splitlines()]
    data = [line for line in lines if not line.startswith("#")]
    mark = _delimiter(data if any(data) else lines, name)
    lines = _without_comments(lines, mark)
    rows = rows_of(lines, name, delimiter=mark, skipinitialspace=True)
    stripped = ((line, [*map(str.strip, cells)]) for line, cells in rows)
    kept = [(line, cells) for line, cells in stripped if any(cells)]
    if not kept:
        raise InvalidInput(f"{name} has nothing but empty cells, expected readings")
    place, first = kept[0]
    is_alone = all(len(row) == 1 for _, row in kept[1:])
    if mark == " " and is_alone and not any(map(is_like_number, first)):
        kept[0] = (place, [" ".join(first)])  # a name of several words
    number, row = kept[-1]
    if not text.endswith("\n") and number == len(lines):
        is_cut = len(kept) > _FEWEST_WHOLE and _is_cut([cells for _, cells in kept])
        report_unfinished(name, number, mark.join(row), is_used=not is_cut)
        kept = kept[:-1] if is_cut else kept
    _check_width(kept, mark, name)
    is_narrowed = len(kept[0][1]) > 1 and not any(cells[-1] for _, cells in kept)
    if is_narrowed:  # all lines end in a separator
        kept = [(line, cells[:-1]) for line, cells in kept]
    return kept, mark, is_narrowed


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether the cells of a first line are names, not numbers in any notation.

    A time with its unit is a reading if another is below it: 5m may be the name of an average.
    """
    is_reading = len(first) == 1 and begins_like_number(first[0])
    times = (has_time_unit(a) and has_time_unit(b) for a, b in zip(first, second, strict=False))
    return not is_reading and not any(map(is_like_number, first)) and not any(times)


def _without_comments(lines: Sequence[str], mark: str) -> list[str]:
    """Return lines, with comments blank; a first one that may be the header stays."""
    split_at = None if mark == " " else mark
    first = next(at for at, line in enumerate(lines) if line)
    below = (line for line in lines[first + 1 :] if line and line[0] != "#")
    rows = [[cell.strip() for cell in line.split(split_at)] for line in islice(below, 2)]
    width = len(rows[0]) if rows else 1
    has_header = len(rows) > 1 and _is_header(*rows) and not any(map(is_missing, rows[0]))
    may_be = not has_header and width in {1, len(lines[first].split(split_at))}
    return [
        line if line[:1] != "#" or (may_be and at == first) else "" for at, line in enumerate(lines)
    ]


def _delimiter(lines: Sequence[str], name: str) -> str:
    """Return the separator by which rows have one width and most cells are numbers."""
    sample = list(islice(filter(str.strip, lines), SAMPLE))

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


def report_unfinished(name: str, number: int, line: str, *, is_used: bool) -> None:
    """Say that a last line has no line break at its end, as when its writer was cut off."""
    how = "is unfinished and not used"
    if is_used:
        how = "has no line break, is perhaps unfinished, but used"
    remark(f"{name} line {number} {how}: {short(line)}")


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
        raise InvalidInput(f"{name} is no table, expected one reading per line, {READABLE}")
    before = next(
        at for at in reversed(range(len(rows))) if at == 0 or widths[at - 1] != widths[-1]
    )
    cure = "separate the cells of all rows alike"
    if mark == ",":
        cure = "write decimals with a point, and quote cells that hold a comma"
    above = f"; leave text above a table out with --ignore-lines {rows[before - 1][0]}"
    above = above if 0 < before <= len(rows) - _FEWEST else ""
    other = f"; or it is no table: expected {READABLE}" if mark == " " else ""
    for row in rows:
        if len(row[1]) != widths[0]:
            raise wrong_width(row, rows[0], name, f"; {cure}{above}{other}")
