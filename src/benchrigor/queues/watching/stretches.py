"""Sums over stretches of time, few of them at any time, however long that is."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Floats

__all__ = ["Stretches"]

_MOST = 256
"""Stretches that are kept; when there are as many, neighbours are taken together."""


class Stretches:
    """Adds up what periods hold, in stretches of equally many.

    Parameters
    ----------
    columns
        How many numbers a period holds: when it began, and what is summed up.

    Attributes
    ----------
    rows
        Of each stretch that is full: when it began, and its sums; shape (stretches, columns).

    Examples
    --------
    >>> stretches = Stretches(2)
    >>> stretches.add(np.column_stack([np.arange(300.0), np.ones(300)]))
    >>> stretches.rows.shape, stretches.rows[1].tolist()
    ((150, 2), [2.0, 2.0])
    """

    def __init__(self, columns: int) -> None:
        self.rows: Floats = np.zeros((0, columns))
        self._open: Floats = np.zeros((0, columns))
        self._taken, self._size = 0, 1

    def add(self, periods: Floats) -> None:
        """Add periods, shape (n, columns); a count that is NaN makes its sum so."""
        while periods.shape[0]:
            room = self._size - self._taken
            if self._taken or periods.shape[0] < room:
                self._fill(periods[:room])
                periods = periods[room:]
            else:
                fitting = (_MOST - self.rows.shape[0]) * self._size
                whole = min(periods.shape[0] // self._size * self._size, fitting)
                self._append(_pooled(periods[:whole], self._size))
                periods = periods[whole:]

    def _fill(self, periods: Floats) -> None:
        """Add to the stretch that is open, no more than it has room for."""
        together = np.vstack([self._open, periods])
        self._open = _pooled(together, together.shape[0])
        self._taken += periods.shape[0]
        if self._taken == self._size:
            self._append(self._open)
            self._open, self._taken = self._open[:0], 0

    def _append(self, rows: Floats) -> None:
        self.rows = np.vstack([self.rows, rows])
        if self.rows.shape[0] == _MOST:
            self.rows = _pooled(self.rows, 2)
            self._size *= 2


def _pooled(rows: Floats, number: int) -> Floats:
    """Take so many successive rows together; the first one tells when they began."""
    groups = rows.reshape(-1, number, rows.shape[1])
    sums: Floats = groups.sum(axis=1)
    sums[:, 0] = groups[:, 0, 0]
    return sums
