"""Rows of a recording as numbers, and the words for those that are none."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model.series import short
from benchrigor.queues.recording.recording_head import Head

__all__ = ["Places", "Rows"]

_LARGEST = 1e100
_SIGNED = ("t",)
_MAY_MISS = ("cpu_s", "delay_s")

Places = npt.NDArray[np.int64]


class Rows:
    r"""Some successive rows of a recording.

    Parameters
    ----------
    lines
        Their text; blank lines do not count.
    head
        What the columns are.
    name
        Of the file, for errors.
    first
        Number of the first line.

    Raises
    ------
    InvalidInput
        Naming line and column of the first cell that is no number which its column may hold.

    Examples
    --------
    >>> head = Head(columns=("period_s", "items", "blocked"), lines=1)
    >>> rows = Rows(["0.1,20,0\n", "\n", "0.1,19,1\n"], head=head, name="run.csv", first=2)
    >>> rows.table["items"]
    array([20., 19.])
    >>> print(rows.misfit(1, "items", "20"))
    run.csv, line 4, column items: '19', expected 20
    """

    def __init__(self, lines: Sequence[str], *, head: Head, name: str, first: int) -> None:
        self._lines, self._head, self._name, self._first = lines, head, name, first
        blank = all(map(str.isspace, lines))
        self.table = np.zeros(0, dtype=self._kind("f8")) if blank else self._parsed()
        self._check()

    def ends(self) -> dict[str, Places]:
        """Return which rows are of which end, ends in the order in which they first appear."""
        if not self.table.size:
            return {}
        if "end" not in self._head.columns:
            return {"": np.arange(self.table.size)}
        names = self.table["end"].tolist()
        numbers: dict[str, int] = {}
        number_of = {
            text: numbers.setdefault(text.strip(), len(numbers)) for text in dict.fromkeys(names)
        }
        if "" in numbers:
            unnamed = next(row for row, name in enumerate(names) if not name.strip())
            raise self.misfit(unnamed, "end", "a name")
        if len(numbers) < 2:
            return {name: np.arange(len(names)) for name in numbers}
        codes = np.fromiter(map(number_of.__getitem__, names), dtype=np.int64, count=len(names))
        order = np.argsort(codes, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(codes))[:-1])
        return dict(zip(numbers, groups, strict=True))

    def misfit(self, row: int, column: str, expected: str) -> InvalidInput:
        """Return the error for a cell that does not fit, with its line and its text."""
        numbers = [number for number, line in enumerate(self._lines) if not line.isspace()]
        cells = next(csv.reader([self._lines[numbers[row]]]))
        text = cells[self._head.columns.index(column)].strip()
        return self._error(numbers[row], f", column {column}: {short(text)}, expected {expected}")

    def _parsed(self) -> npt.NDArray[Any]:
        """Return the table; nanoseconds as whole numbers where they are, lest digits get lost."""
        try:
            return self._read(self._lines, "i8")
        except (ValueError, DeprecationWarning):
            # Blank lines are rare: they are taken out only where they are in the way.
            texts = [line for line in self._lines if not line.isspace()]
        try:
            return self._read(texts, "f8")
        except ValueError as error:
            raise self._misfitting(str(error)) from error

    def _read(self, texts: Sequence[str], time: str) -> npt.NDArray[Any]:
        return np.loadtxt(
            texts, dtype=self._kind(time), delimiter=",", comments=None, quotechar='"', ndmin=1
        )

    def _kind(self, time: str) -> npt.DTypeLike:
        kinds = {"end": "O", "t_ns": time}
        return np.dtype([(name, kinds.get(name, "f8")) for name in self._head.columns])

    def _misfitting(self, reason: str) -> InvalidInput:
        """Return the error for the first line that is no row of numbers."""
        columns = self._head.columns
        for number, line in enumerate(self._lines):
            cells = [] if line.isspace() else next(csv.reader([line]))
            if cells and len(cells) != len(columns):
                values = f"{len(cells)} value{'s' * (len(cells) != 1)}"
                return self._error(number, f": {values}, expected {len(columns)} as in the header")
            for name, cell in zip(columns, cells, strict=False):
                if name != "end" and not _is_number(cell):
                    words = f", column {name}: {short(cell.strip())}, expected a number"
                    return self._error(number, words)
        return InvalidInput(f"{self._name}, from line {self._first} on: {reason}")

    def _check(self) -> None:
        """Refuse numbers that no counter has."""
        for name in self._head.columns:
            if name == "end":
                continue
            role, values = self._head.role(name), self.table[name]
            fits = np.abs(values) < _LARGEST
            if role not in _SIGNED:
                fits &= values >= 0
            if role in _MAY_MISS:
                fits |= np.isnan(values)
            if not fits.all():
                least = f"-{_LARGEST:g}" if role in _SIGNED else "0"
                expected = f"a number from {least} to {_LARGEST:g}"
                raise self.misfit(int(np.argmin(fits)), name, expected)

    def _error(self, line: int, words: str) -> InvalidInput:
        return InvalidInput(f"{self._name}, line {self._first + line}{words}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    # Python takes 1_000 for a number, and digits of all scripts; other programs do not.
    return text.isascii() and "_" not in text
