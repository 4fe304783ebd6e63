"""Rows of a table in text: the only reader and writer of CSV, and the words of its errors."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model.one_line import OneLine
from benchrigor.model.plain_columns import plain_columns
from benchrigor.model.series import LARGEST, Ints, short

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


LINES_AT_ONCE = 16_384  # Lines that are held as text at once
_MOST_TOLD = 5  # problems with cells that an error lists in full


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A column of numbers within limits."""

    least: float = -sys.float_info.max
    most: float = sys.float_info.max
    counts: bool = False  # Whether only whole numbers fit
    may_miss: bool = False  # Whether a number may not be known
    # Whether whole numbers stay integers: nanoseconds since 1970 have more digits than a float.
    whole: bool = False

    @property
    def plain(self) -> type:
        """The kind of number, for `plain_columns`."""
        return int if self.whole else float

    def coded(self, cells: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return numbers; NaN for a missing one, infinity for other text, which never fits."""
        if isinstance(cells, np.ndarray):
            return cells
        if self.whole and all(str(cell).isascii() and str(cell).isdecimal() for cell in cells):
            with suppress(OverflowError):
                return np.array([*map(int, cells)], dtype=np.int64)
        return np.array([*map(_number, cells)], dtype=np.float64)

    def fit(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which numbers are within the limits."""
        fits = (values >= self.least) & (values <= self.most)
        if self.counts:
            fits &= values == np.floor(values)
        return np.asarray(fits | (self.may_miss & np.isnan(values)))

    @property
    def expected(self) -> str:
        """The values that the column may hold, in words."""
        if self.most >= LARGEST:
            return "a finite number" + " of 0 or more" * (self.least == 0.0)
        return f"a {'whole ' * self.counts}number from {self.least:g} to {self.most:g}"


def _number(cell: object) -> float:
    if is_missing(cell):
        return math.nan
    if isinstance(cell, str):
        return float(cell) if is_number(cell) else math.inf
    return float(cell) if isinstance(cell, int | float) and cell is not True else math.inf


class Labels:
    """A column of labels: distinct labels are kept once, and a row holds an index."""

    plain = object  # the kind of text, for `plain_columns`

    def __init__(self) -> None:
        self._indices: defaultdict[str, int] = defaultdict()
        self._indices.default_factory = self._indices.__len__

    @property
    def distinct(self) -> list[str]:
        """The labels, in the order in which they first appear."""
        return list(self._indices)

    def coded(self, cells: Sequence[Any]) -> npt.NDArray[np.int64]:
        """Return the indices of the labels."""
        if not {str}.issuperset(map(type, cells)):
            cells = ["" if cell is None else str(cell) for cell in cells]
        codes = {cell: self._indices[cell.strip()] for cell in dict.fromkeys(cells)}
        return np.fromiter(map(codes.__getitem__, cells), dtype=np.int64, count=len(cells))


Kinds = Mapping[str, Numbers | Labels]


Rows = Sequence[int] | Ints


class Problems:
    """Problems with the cells of one input: the first ones, and how many more."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._more = 0

    def add(self, bad: Any, say: Callable[[Any], str]) -> None:
        """Take the bad ones of some cells, and what makes a sentence of one."""
        room = _MOST_TOLD - len(self.told)
        self.told += map(say, bad[:room])
        self._more += len(bad[room:])

    def refuse(self) -> None:
        """Raise InvalidInput if there are any."""
        if self.told:
            more = [f"{self._more:,} more cells or rows do not fit"] * bool(self._more)
            raise InvalidInput([*self.told, *more])


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns of cells by their names, and where their rows stand in a file.

    A cell is a text, or a value of JSON.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    rows: Sequence[int]  # numbers of lines, or of items in JSON
    are_items: bool = False
    mark: str = ""  # what separates the cells of all rows, and nothing else does
    unfinished: LastLine | None = None

    def place(self, row: int) -> str:
        """Return the place of a row, for errors."""
        number = self.rows[row]
        return f"{self.name}[{number}]" if self.are_items else f"{self.name} line {number}"

    def with_rows(self, kept: Sequence[int]) -> Table:
        """Return the table with some of its rows."""
        columns = {key: [cells[at] for at in kept] for key, cells in self.columns.items()}
        return replace(self, columns=columns, rows=[self.rows[at] for at in kept])

    def misfit(self, row: int, key: str, expected: str, *, of: str = "") -> str:
        """Return the problem with a cell, for errors that name its column or do not."""
        return misfit(self.place(row), self.columns[key][row], expected, of)


class Part:
    """Rows of a table: arrays by column, labels as their indices.

    ``table`` makes the rows as they stand in the file; ``plain`` are their columns if known before.
    """

    def __init__(self, kinds: Kinds, table: Callable[[], Table], plain: Sequence[Any] = ()) -> None:
        self._make_table, self._kinds = table, kinds
        read = plain or map(self._cells, kinds)
        self.columns: dict[str, npt.NDArray[Any]] = {
            column: kind.coded(cells)
            for (column, kind), cells in zip(kinds.items(), read, strict=True)
        }
        self.n = next(iter(self.columns.values())).size

    def _cells(self, column: str) -> Sequence[Any]:
        return self.table.columns.get(column) or [None] * len(self.table.rows)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the cells row by row, labels as texts; of a column that is not there, empty."""
        columns = []
        for column, kind in self._kinds.items():
            columns.append(self.columns[column].tolist())
            if isinstance(kind, Labels):
                distinct = kind.distinct
                columns[-1] = [distinct[index] for index in columns[-1]]
        return zip(*columns, strict=True)

    @cached_property
    def table(self) -> Table:
        """The rows as they stand in the file."""
        return self._make_table()

    def check(self, problems: Problems) -> None:
        """Add the cells that do not fit their columns to the problems so far."""
        for column, kind in self._kinds.items():
            if isinstance(kind, Numbers) and not (fits := kind.fit(self.columns[column])).all():
                self.tell(problems, np.flatnonzero(~fits), column, kind.expected)

    def tell(self, problems: Problems, rows: Rows, column: str, expected: str) -> None:
        """Add the cells of some rows to the problems so far."""
        problems.add(rows, lambda row: self.table.misfit(row, column, expected, of=column))

    def refuse(self, rows: Rows, column: str, expected: str) -> None:
        """Raise InvalidInput for the cells of some rows, unless there are none."""
        if len(rows):
            problems = Problems()
            self.tell(problems, rows, column, expected)
            problems.refuse()


class TextTable:
    r"""An open file: comments and header at once, rows part by part.

    The first mark by which a format ``knows`` the cells of the header separates all cells. The
    columns have these ``names`` if a first row that the format knows stands in place of a header.

    Examples
    --------
    >>> lines = ["# unit: s\n", "name;time\n", "a;1\n", "b;2\n"]
    >>> table = TextTable(lines, name="run.csv", knows=lambda cells: "time" in cells)
    >>> table.comments, table.header
    ({'unit': 's'}, ('name', 'time'))
    >>> (part,) = table.parts({"name": Labels(), "time": Numbers()})
    >>> part.columns["time"]
    array([1., 2.])
    >>> part.refuse([1], "time", "1")
    Traceback (most recent call last):
    ...
    benchrigor.errors.InvalidInput: run.csv line 4 has '2' for time, expected 1
    """

    def __init__(
        self,
        lines: Iterable[str],
        *,
        name: str,
        knows: Callable[[Sequence[str]], object],
        names: Sequence[str] = (),
        spans_lines: bool = False,
    ) -> None:
        self.name = name
        self.comments: dict[str, str] = {}
        self.head: Row = (0, [])
        self.line = 0  # Number of the last line read, first the header
        self.unfinished: LastLine | None = None  # It does not count
        self._knows, self._dialect = knows, Dialect(spans_lines=spans_lines)
        self._lines = iter(lines)
        self._line_of: dict[str, int] = {}
        while not self.header and (read := self._next_lines(1)):
            self._read_head(read[0].removeprefix("\ufeff"))
            if self.header and names:
                n = len(self.header)
                self.head = self.line, [*names[:n], *map(str, range(len(names), n))]
                self._lines, self.line = chain(read, self._lines), self.line - 1

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.head[1])

    def number(self, comment: str, kind: Numbers) -> float | None:
        """Return the number in a comment, read as a cell; None without such a comment."""
        if (text := self.comments.get(comment)) is None:
            return None
        values = kind.coded([text])
        if not kind.fit(values).all():
            raise InvalidInput(misfit(self.place_of(comment), text, kind.expected, comment))
        return float(values[0])

    def place_of(self, comment: str) -> str:
        """Return file and line of a comment, for errors."""
        return f"{self.name} line {self._line_of[comment]}"

    def parts(self, kinds: Kinds) -> Iterator[Part]:
        """Yield successive rows by some columns, keyed as the header names them.

        InvalidInput lists all cells that do not fit, after the parts before the first of them.
        """
        problems = Problems()
        while lines := self._next_lines(LINES_AT_ONCE):
            while self._dialect.spans_lines and sum(line.count('"') for line in lines) % 2:
                if not (rest := self._next_lines(LINES_AT_ONCE)):
                    break
                lines += rest  # of a cell over several lines
            first = self.line - len(lines) + 1
            if not lines[-1].endswith(("\n", "\r")):
                self.unfinished = LastLine(number=self.line, text=lines.pop())
            if not all(map(str.isspace, lines)):
                part = self._part(kinds, lines, first, problems)
                part.check(problems)
                if part.n and not problems.told:
                    yield part
        problems.refuse()

    def _part(self, kinds: Kinds, lines: list[str], first: int, problems: Problems) -> Part:
        def careful() -> Table:
            rows = [*self._dialect.rows(lines, self.name, first=first)]
            problems.add(
                [row for row in rows if len(row[1]) != len(self.header)],
                lambda row: wrong_width(row, self.head, self.name),
            )
            kept = [(line, cells) for line, cells in rows if len(cells) == len(self.header)]
            columns = {
                column: [cells[at] for _, cells in kept] for at, column in enumerate(self.header)
            }
            return Table(name=self.name, columns=columns, rows=[line for line, _ in kept])

        places = dict(zip(self.header, range(len(self.header)), strict=True))
        if not places.keys() >= kinds.keys():
            return Part(kinds, careful)
        wanted = [(places[column], kind.plain) for column, kind in kinds.items()]
        text, mark = "".join(lines).encode(errors="surrogatepass"), self._dialect.mark
        return Part(kinds, careful, plain_columns(text, wanted, width=len(places), mark=mark))

    def _read_head(self, line: str) -> None:
        """Take a comment, the header, or nothing from a line."""
        if line.startswith("#"):
            key, _, value = (part.strip() for part in line[1:].partition(":"))
            if value and key in self.comments:
                raise InvalidInput(
                    f"{self.name} line {self.line} says {key!r} again, expected it once, as on "
                    f"line {self._line_of[key]}"
                )
            self.comments[key], self._line_of[key] = value, self.line
            return
        spans_lines = self._dialect.spans_lines
        self._dialect = Dialect(mark=mark_by(line, self._knows) or ",", spans_lines=spans_lines)
        self.head = next(self._dialect.rows([line], self.name, first=self.line), self.head)

    def _next_lines(self, number: int) -> list[str]:
        try:
            lines = list(islice(self._lines, number))
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{self.name} is not text in UTF-8 or UTF-16: {error}") from error
        except OSError as error:
            raise InvalidInput(f"{self.name} cannot be read: {error.strerror}") from error
        self.line += len(lines)
        return lines
