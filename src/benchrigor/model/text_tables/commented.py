"""Commented CSV: lines ``# key: value``, a header that names the columns, and rows of values.

Segment profiles and recordings of queues are such files, and explain their own names.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model.text_tables.plain_columns import load_columns
from benchrigor.model.text_tables.rows import (
    LastLine,
    Row,
    equally_wide,
    is_number,
    misfit,
    rows_of,
)

LINES_AT_ONCE = 65_536  # Lines that are held as text at once
_LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A column of numbers within limits."""

    least: float = -_LARGEST
    most: float = _LARGEST
    counts: bool = False  # Whether only whole numbers fit
    may_miss: bool = False  # Whether NaN stands for a number that is not known
    # Whether whole numbers stay integers: nanoseconds since 1970 have more digits than a float.
    whole: bool = False

    @property
    def plain(self) -> type:
        """The kind of number, for `load_columns`."""
        return int if self.whole else float

    def coded(self, cells: npt.NDArray[Any] | Sequence[str]) -> npt.NDArray[Any]:
        """Return numbers; a text that is none becomes infinite, which never fits."""
        if isinstance(cells, np.ndarray):
            return cells
        if self.whole and all(text.isascii() and text.strip().isdecimal() for text in cells):
            with suppress(OverflowError):
                return np.array([*map(int, cells)], dtype=np.int64)
        return np.array([float(text) if is_number(text) else math.inf for text in cells])

    def fit(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which numbers are within the limits."""
        fits = (values >= self.least) & (values <= self.most)
        if self.counts:
            fits &= values == np.floor(values)
        return np.asarray(fits | (self.may_miss & np.isnan(values)))

    @property
    def expected(self) -> str:
        """The values that the column may hold, in words."""
        if self.most == _LARGEST:
            return "a finite number"
        return f"a {'whole ' * self.counts}number from {self.least:g} to {self.most:g}"


class Labels:
    """A column of labels: distinct labels are kept once, and a row holds an index."""

    plain = object  # the kind of text, for `load_columns`

    def __init__(self) -> None:
        self._indices: defaultdict[str, int] = defaultdict()
        self._indices.default_factory = self._indices.__len__

    @property
    def distinct(self) -> list[str]:
        """The labels, in the order in which they first appear."""
        return list(self._indices)

    def coded(self, cells: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the indices of the labels."""
        indices = map(self._indices.__getitem__, map(str.strip, cells))
        return np.fromiter(indices, dtype=np.int64, count=len(cells))


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
    run.csv line 4 has '2' for time, expected 1
    """

    def __init__(self, lines: Iterable[str], *, name: str) -> None:
        self.name = name
        self.comments: dict[str, str] = {}
        self.head: Row = (0, [])
        self.line = 0  # Number of the last line read, first the header
        self.unfinished: LastLine | None = None  # It does not count
        self._lines = iter(lines)
        self._line_of: dict[str, int] = {}
        while not self.header and (read := self._next_lines(1)):
            self._read_head(read)

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
            raise misfit(self.place_of(comment), text, kind.expected, comment)
        return float(values[0])

    def place_of(self, comment: str) -> str:
        """Return file and line of a comment, for errors."""
        return f"{self.name} line {self._line_of[comment]}"

    def parts(self, columns: Mapping[str, Numbers | Labels]) -> Iterator[Part]:
        """Yield successive rows; columns are keyed as the header names them."""
        while lines := self._next_lines(LINES_AT_ONCE):
            first = self.line - len(lines) + 1
            if not lines[-1].endswith(("\n", "\r")):
                self.unfinished = LastLine(number=self.line, text=lines.pop())
            if not all(map(str.isspace, lines)):
                yield Part(self, lines, columns, first)

    def _read_head(self, lines: list[str]) -> None:
        """Take a comment, the header, or nothing from a line."""
        lines[0] = lines[0].removeprefix("\ufeff")
        if lines[0].startswith("#"):
            key, _, value = lines[0][1:].partition(":")
            self.comments[key.strip()] = value.strip()
            self._line_of[key.strip()] = self.line
        else:
            for line, cells in rows_of(lines, self.name, first=self.line):
                self.head = line, [*map(str.strip, cells)]

    def _next_lines(self, number: int) -> list[str]:
        try:
            lines = list(itertools.islice(self._lines, number))
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{self.name} is no text in UTF-8: {error}") from error
        except OSError as error:
            raise InvalidInput(f"{self.name} cannot be read: {error.strerror}") from error
        self.line += len(lines)
        return lines


class Part:
    """Successive rows of a table: arrays by column, labels as their indices."""

    def __init__(
        self,
        table: CommentedCsv,
        lines: list[str],
        kinds: Mapping[str, Numbers | Labels],
        first: int,
    ) -> None:
        self._name, self._header = table.name, table.head
        self._lines, self._first = lines, first
        read = load_columns(lines, [kind.plain for kind in kinds.values()]) or self._texts()
        self.columns: dict[str, npt.NDArray[Any]] = {}
        for (column, kind), cells in zip(kinds.items(), read, strict=True):
            values = self.columns[column] = kind.coded(cells)
            if isinstance(kind, Numbers) and not (fits := kind.fit(values)).all():
                raise self.misfit(int(np.argmin(fits)), column, kind.expected)
        self.n = len(values)

    def misfit(self, row: int, column: str, expected: str) -> InvalidInput:
        """Return the error for a cell that does not fit, with its line and its text."""
        line, cells = next(itertools.islice(self._rows(), row, None))
        cell = cells[self._header[1].index(column)].strip()
        return misfit(f"{self._name} line {line}", cell, expected, column)

    def _texts(self) -> list[tuple[str, ...]]:
        """Return the columns as texts; InvalidInput for a row that is not as wide as the header."""
        _, *rows = equally_wide(itertools.chain([self._header], self._rows()), self._name)
        return list(zip(*(cells for _, cells in rows), strict=True))

    def _rows(self) -> Iterator[Row]:
        return rows_of(self._lines, self._name, first=self._first)
