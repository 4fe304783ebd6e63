"""Commented CSV: lines ``# key: value``, a header that names the columns, and rows of values.

Segment profiles and recordings of queues are such files, and explain their own names.
"""

from __future__ import annotations

import csv
import itertools
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model.series import short

LINES_AT_ONCE = 65_536  # Lines that are held as text at once
_LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A column of numbers within limits."""

    least: float = -_LARGEST
    most: float = _LARGEST
    may_miss: bool = False  # Whether NaN stands for a number that is not known
    # Whether whole numbers stay integers: nanoseconds since 1970 have more digits than a float.
    whole: bool = False

    @property
    def expected(self) -> str:
        """The values that the column may hold, in words."""
        if self.most == _LARGEST:
            return "a finite number"
        return f"a number from {self.least:g} to {self.most:g}"


class Labels:
    """A column of labels: distinct labels are kept once, and a row holds an index."""

    def __init__(self) -> None:
        self._indices: defaultdict[str, int] = defaultdict()
        self._indices.default_factory = self._indices.__len__

    @property
    def distinct(self) -> list[str]:
        """The labels, in the order in which they first appear."""
        return list(self._indices)

    def coded(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the indices of the labels."""
        indices = map(self._indices.__getitem__, map(str.strip, texts))
        return np.fromiter(indices, dtype=np.int64, count=len(texts))


class CommentedCsv:
    r"""An open file: comments and header at once, rows part by part.

    Examples
    --------
    >>> table = CommentedCsv(["# unit: s\n", "name,time\n", "a,1\n", "b,2\n"], name="run.csv")
    >>> table.comments, table.header
    ({'unit': 's'}, ('name', 'time'))
    >>> (part,) = table.parts({"name": Labels(), "time": Numbers()})
    >>> part.columns["time"]
    array([1., 2.])
    >>> print(part.misfit(1, "time", "1"))
    run.csv, line 4, column time: '2', expected 1
    """

    def __init__(self, lines: Iterable[str], *, name: str, whole_lines: bool = False) -> None:
        self.name = name
        self.comments: dict[str, str] = {}
        self.header: tuple[str, ...] = ()
        self.line = 0  # Number of the last line read, first the header
        # Number of a last line without its line break; with ``whole_lines`` it does not count, else
        # it must not end within a number.
        self.unfinished: int | None = None
        self._lines, self._whole_lines = iter(lines), whole_lines
        self._line_of: dict[str, int] = {}
        while not self.header and (read := self._next_lines(1)):
            self._read_head(read)

    def place_of(self, comment: str) -> str:
        """Return file and line of a comment, for errors."""
        return f"{self.name}, line {self._line_of[comment]}"

    def parts(self, columns: Mapping[str, Numbers | Labels]) -> Iterator[Part]:
        """Yield successive rows; columns are keyed as the header names them."""
        first = self.line + 1
        while lines := self._next_lines(LINES_AT_ONCE):
            if not lines[-1].endswith("\n"):
                self.unfinished = self.line
                self._end(lines, ends_in_number=isinstance([*columns.values()][-1], Numbers))
            if not all(map(str.isspace, lines)):
                yield Part(lines, columns, name=self.name, first=first)
            first = self.line + 1

    def _read_head(self, lines: list[str]) -> None:
        """Take a comment, the header, or nothing from a line."""
        lines[0] = lines[0].removeprefix("\ufeff")
        if lines[0].startswith("#"):
            key, _, value = lines[0][1:].partition(":")
            self.comments[key.strip()] = value.strip()
            self._line_of[key.strip()] = self.line
        else:
            for _, cells in rows_of(lines, self.name, first=self.line):
                self.header = tuple(map(str.strip, cells))

    def _next_lines(self, number: int) -> list[str]:
        try:
            lines = list(itertools.islice(self._lines, number))
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{self.name} is no text in UTF-8: {error}") from error
        except OSError as error:
            raise InvalidInput(f"{self.name} cannot be read: {error.strerror}") from error
        self.line += len(lines)
        return lines

    def _end(self, lines: list[str], *, ends_in_number: bool) -> None:
        """Drop a last line without its line break, or refuse one that shows that it was cut."""
        if self._whole_lines:
            lines.pop()
        elif ends_in_number and lines[-1].rstrip().endswith("."):
            raise InvalidInput(
                f"{self.name} line {self.line} is unfinished: {short(lines[-1])} ends in a point "
                "and has no line break; leave the line out, or write the file again"
            )


class Part:
    """Successive rows of a table: arrays by column, labels as their indices."""

    def __init__(
        self, lines: list[str], kinds: Mapping[str, Numbers | Labels], *, name: str, first: int
    ) -> None:
        self._lines, self._kinds, self._name, self._first = lines, kinds, name, first
        columns = zip(kinds.items(), self._load() or self._split(), strict=True)
        self.columns: dict[str, npt.NDArray[Any]] = {
            column: kind.coded(values) if isinstance(kind, Labels) else values
            for (column, kind), values in columns
        }
        self.n = len(next(iter(self.columns.values())))
        self._check_limits()

    def misfit(self, row: int, column: str, expected: str) -> InvalidInput:
        """Return the error for a cell that does not fit, with its line and its text."""
        line, cells = next(itertools.islice(self._rows(), row, None))
        return self._error(line, column, cells, expected)

    def _load(self) -> list[Any] | None:
        """Return the columns; None if there is more in them than numpy understands.

        A million rows take a quarter of the time that `csv` takes for them.
        """
        if any('"' in line for line in self._lines):
            return None
        names = [str(number) for number in range(len(self._kinds))]
        for whole in ("i8", "f8"):
            kinds = [
                "O" if isinstance(kind, Labels) else whole if kind.whole else "f8"
                for kind in self._kinds.values()
            ]
            dtype = np.dtype(list(zip(names, kinds, strict=True)))
            with suppress(ValueError, DeprecationWarning), warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)  # of digits that are cut off
                table = np.loadtxt(self._lines, dtype, comments=None, delimiter=",", ndmin=1)
                return [table[name] for name in names]
        return None

    def _split(self) -> list[Any]:
        """Return the columns, or raise naming the first line that does not fit."""
        rows = []
        for line, cells in self._rows():
            if len(cells) != len(self._kinds):
                values = f"{len(cells)} value{'s' * (len(cells) != 1)}"
                raise InvalidInput(
                    f"{self._name}, line {line}: {values}, expected {len(self._kinds)} as in the "
                    "header"
                )
            for (column, kind), text in zip(self._kinds.items(), cells, strict=True):
                if isinstance(kind, Numbers) and not is_number(text):
                    raise self._error(line, column, cells, kind.expected)
            rows.append(cells)
        return [
            texts if isinstance(kind, Labels) else np.array(list(map(float, texts)))
            for kind, texts in zip(self._kinds.values(), zip(*rows, strict=True), strict=True)
        ]

    def _check_limits(self) -> None:
        for column, kind in self._kinds.items():
            if isinstance(kind, Numbers):
                values = self.columns[column]
                fits = (values >= kind.least) & (values <= kind.most)
                fits |= kind.may_miss & np.isnan(values)
                if not fits.all():
                    raise self.misfit(int(np.argmin(fits)), column, kind.expected)

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        return rows_of(self._lines, self._name, first=self._first)

    def _error(self, line: int, column: str, cells: Sequence[str], expected: str) -> InvalidInput:
        text = cells[list(self._kinds).index(column)].strip()
        return InvalidInput(
            f"{self._name}, line {line}, column {column}: {short(text)}, expected {expected}"
        )


def rows_of(
    lines: Iterable[str], name: str, *, first: int = 1, **dialect: Any
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with their line numbers.

    A quoted cell ends in its line: a quote that is never closed would join the lines after it.
    """
    for number, line in enumerate(lines, start=first):
        try:
            (cells,) = csv.reader([line], strict=True, **dialect)
        except csv.Error as error:
            found = str(error)
            if "unexpected end" in found:
                found = f"{short(line.strip())}, a quote that its line does not close"
            raise InvalidInput(
                f"{name} line {number} is no CSV: {found}; expected each quoted cell whole in one "
                'line, as "a, b", and a quote within it doubled'
            ) from error
        if len(cells) > 1 or "".join(cells).strip():
            yield number, cells


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


def is_number(text: str) -> bool:
    """Return whether a cell is a number; nan and inf are numbers, too."""
    try:
        float(text)
    except ValueError:
        return False
    # Python takes 1_000 for a number, and digits of all scripts; other programs do not.
    return text.isascii() and "_" not in text
