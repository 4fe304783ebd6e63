"""Sums over stretches of time, few of them at any time, however long that is."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Stretches"]

_MOST = 256
"""Stretches that are kept; when there are as many, neighbours are taken together."""


class Stretches:
    """Adds up what periods hold, in stretches of equally many.

    Attributes
    ----------
    rows
        Of each stretch that is full: when it began, and its sums.

    Examples
    --------
    >>> stretches = Stretches()
    >>> for number in range(256):
    ...     stretches.add(number, (1.0, 2.0))
    >>> len(stretches.rows), stretches.rows[1]
    (128, [2, 2.0, 4.0])
    """

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self._open: list[float] = []
        self._periods, self._size = 0, 1

    def add(self, start_s: float, counts: Iterable[float]) -> None:
        """Add a period that began at ``start_s``; a count that is NaN makes its sum so."""
        row = [start_s, *counts]
        self._open = _together(self._open, row) if self._open else row
        self._periods += 1
        if self._periods == self._size:
            self.rows.append(self._open)
            self._open, self._periods = [], 0
        if len(self.rows) == _MOST:
            pairs = zip(self.rows[::2], self.rows[1::2], strict=True)
            self.rows = [_together(*pair) for pair in pairs]
            self._size *= 2


def _together(first: list[float], other: list[float]) -> list[float]:
    return [first[0], *(a + b for a, b in zip(first[1:], other[1:], strict=True))]
