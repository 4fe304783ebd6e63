"""Rows of a table in text: the only reader and writer of CSV, and the words of its errors."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How the rows of a table are written: a mark separates their cells.

    Lines that begin with # are comments, and rows with nothing but empty cells are blank. A quoted
    cell ends in its line, unless it ``spans_lines``: a quote that is never closed would join the
    lines after it.
    """

    mark: str = ","
    spans_lines: bool = False

    def rows(self, lines: Iterable[str], name: str, *, first: int = 1) -> Iterator[Row]:
        """Yield the rows that are not blank, the blanks around their cells left out."""
        numbered = enumerate(lines, start=first)
        below = (line for _, line in numbered)
        how: Any = {"delimiter": self.mark, "skipinitialspace": True, "strict": True}
        for number, line in numbered:
            if line.startswith("#"):
                continue
            several = chain([line], below) if self.spans_lines else [line.strip(" \r\n")]
            try:
                cells = [*map(str.strip, next(csv.reader(several, **how), ()))]
            except csv.Error as error:
                found, whole = str(error), " whole in one line" * (not self.spans_lines)
                if "unexpected end" in found:
                    found = f"{short(line.strip())}, a quote that its line does not close"
                raise InvalidInput(
                    f"{name} line {number} is not CSV: {found}; expected each quoted cell{whole}, "
                    'as "a, b", and a quote within it doubled'
                ) from error
            if any(cells):
                yield number, cells


def mark_by(line: str, knows: Callable[[Sequence[str]], object]) -> str | None:
    """Return the mark that parts a line in cells that a format knows, or None."""
    for mark in ",;\t ":
        with suppress(InvalidInput):
            if any(knows(cells) for _, cells in Dialect(mark=mark).rows([line], "")):
                return mark
    return None


def cells_in(line: str) -> list[str] | None:
    """Return the cells of a line that need not be of a table; None if it does not close a quote.

    Commas separate them, or else white space; or semicolons, if these leave more numbers.
    """
    mark = "," if "," in line else None
    if ";" in line:
        mark = max(mark, ";", key=lambda each: _share_of_numbers(line.split(each)))
    if '"' not in line or not (mark or is_number(line.strip().strip('"'))):
        return line.split(mark)
    reader = csv.reader([line.strip(), ""], delimiter=mark or ",", skipinitialspace=True)
    try:
        cells = next(reader)
    except csv.Error:  # a cell too long for a number
        return []
    return cells if reader.line_num == 1 else None


def _share_of_numbers(cells: Sequence[str]) -> float:
    """Return the share of cells that are numbers, also with a decimal comma."""
    return sum(is_number(cell.strip().strip('"').replace(",", ".")) for cell in cells) / len(cells)


def wrong_width(row: Row, first: Row, name: str, cure: str = "") -> str:
    """Return the problem with a row that has more or fewer cells than the first."""
    (line, cells), (above, expected) = row, first
    n = f"{len(cells)} cell{'s' * (len(cells) != 1)}"
    return f"{name} line {line} has {n}, expected {len(expected)} as in line {above}{cure}"


def misfit(place: str, cell: object, expected: str, column: str = "") -> str:
    """Return the problem with a cell that does not fit; null, true and false as JSON has them."""
    of = f" for {column}" if column else ""
    shown = IN_JSON.get(repr(cell)) or short(cell)
    return f"{place} has {shown}{of}, expected {expected}"


IN_JSON = {"None": "null", "True": "true", "False": "false"}


def is_number(text: str) -> bool:
    """Return whether a cell is a number; nan and inf are numbers, too."""
    try:
        float(text)
    except ValueError:
        return False
    # Python takes 1_000 for a number, and digits of all scripts; other programs do not.
    return text.isascii() and "_" not in text


def is_missing(cell: object) -> bool:
    """Return whether a cell stands for a missing value: NaN and null mean the same."""
    if isinstance(cell, str):
        return cell.strip().lower() in {"", "n/a", "na", "nan", "null"}
    return cell is None or cell != cell  # noqa: PLR0124  # NaN


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
