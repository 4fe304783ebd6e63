"""Rows of a table in text: the only reader and writer of CSV, and the words of its errors."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

from benchrigor.errors import InvalidInput
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short

Row = tuple[int, list[str]]  # the number of the line in which it begins, and its cells


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLine(OneLine):
    """A last line without its line break: its writer was killed, or is still writing."""

    number: int
    text: str
    is_used: bool = False

    def __str__(self) -> str:
        how = "has no line break, is perhaps unfinished, but used"
        how = how if self.is_used else "is unfinished and not used"
        return f"line {self.number} {how}: {short(self.text)}"


def whole_lines(text: str) -> tuple[str, LastLine | None]:
    """Return the lines of a text that have ended, and the last one if it has not."""
    whole, end, last = text.rpartition("\n")
    return whole + end, LastLine(number=text.count("\n") + 1, text=last) if last else None


def rows_of(
    lines: Iterable[str], name: str, *, first: int = 1, spans_lines: bool = False, **dialect: Any
) -> Iterator[Row]:
    """Yield the rows that are not blank.

    A quoted cell ends in its line, unless it ``spans_lines``: a quote that is never closed would
    join the lines after it.
    """
    numbered = enumerate(lines, start=first)
    below = (line for _, line in numbered)
    for number, line in numbered:
        try:
            cells = next(
                csv.reader(chain([line], below) if spans_lines else [line], strict=True, **dialect)
            )
        except csv.Error as error:
            found, whole = str(error), " whole in one line" * (not spans_lines)
            if "unexpected end" in found:
                found = f"{short(line.strip())}, a quote that its line does not close"
            raise InvalidInput(
                f"{name} line {number} is no CSV: {found}; expected each quoted cell{whole}, as "
                '"a, b", and a quote within it doubled'
            ) from error
        if len(cells) > 1 or "".join(cells).strip():
            yield number, cells


def cells_in(line: str) -> list[str] | None:
    """Return the cells of a line that need not be of a table; None if it does not close a quote."""
    reader = csv.reader([line, ""], skipinitialspace=True)
    try:
        cells = next(reader)
    except csv.Error:  # a cell too long for a number
        return []
    return cells if reader.line_num == 1 else None


def equally_wide(rows: Iterable[Row], name: str) -> Iterator[Row]:
    """Yield rows; InvalidInput for one that has more or fewer cells than the first."""
    first: Row | None = None
    for row in rows:
        first = first or row
        if len(row[1]) != len(first[1]):
            raise wrong_width(row, first, name)
        yield row


def wrong_width(row: Row, first: Row, name: str, cure: str = "") -> InvalidInput:
    """Return the error for a row with more or fewer cells than the first."""
    (line, cells), (above, expected) = row, first
    n = f"{len(cells)} cell{'s' * (len(cells) != 1)}"
    return InvalidInput(
        f"{name} line {line} has {n}, expected {len(expected)} as in line {above}{cure}"
    )


def rows_in(text: str, name: str) -> Iterator[Row]:
    """Yield the rows of a text, all of one width; their cells may hold line breaks."""
    lines = io.StringIO(text, newline="")
    return equally_wide(rows_of(lines, name, spans_lines=True), name)


def named_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the rows below a header: their places, and their cells by the names in it."""
    rows = rows_in(text, name)
    first, header = next(rows)
    if twice := [column for column, number in Counter(header).items() if number > 1]:
        raise InvalidInput(f"{name} line {first} names {twice[0]!r} twice, expected it once")
    for line, cells in rows:
        yield f"{name} line {line}", dict(zip(header, cells, strict=True))


def misfit(place: str, cell: object, expected: str, column: str = "") -> InvalidInput:
    """Return the error for a cell that does not fit; null, true and false as JSON has them."""
    of = f" for {column}" if column else ""
    shown = IN_JSON.get(repr(cell)) or short(cell)
    return InvalidInput(f"{place} has {shown}{of}, expected {expected}")


IN_JSON = {"None": "null", "True": "true", "False": "false"}


def number_in(cell: str, place: str, column: str = "") -> float:
    """Return the number in a cell."""
    if not is_number(cell):
        raise misfit(place, cell, "a number", column)
    return float(cell)


def is_number(text: str) -> bool:
    """Return whether a cell is a number; nan and inf are numbers, too."""
    try:
        float(text)
    except ValueError:
        return False
    # Python takes 1_000 for a number, and digits of all scripts; other programs do not.
    return text.isascii() and "_" not in text


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV, numbers with all their digits."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_head(file: IO[str], comments: Mapping[str, object], header: Sequence[str]) -> Any:
    """Write comments and header, and return the `csv.writer` for the rows."""
    for key, value in comments.items():
        if value is not None and value != "":
            file.write(f"# {one_line(key)}: {one_line(value)}\n")
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(map(one_line, header))
    return rows


def one_line(value: object) -> str:
    """Keep a row to a line: so line tools read the file, and csv quotes no lone return."""
    return " ".join(str(value).splitlines())
