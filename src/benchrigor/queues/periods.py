"""Successive periods of a stage: one table, from the sampler to estimators, files and pictures.

A table is a structured array with a row for every period, or for every stretch of several. NaN is
what is not known. Its fields add up, but for beginnings and servers.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

NOTHING = 1e-9  # seconds below which a time is the rounding of a difference, and counts as 0

_FIELDS = {  # and their values where nobody gives any
    "start_s": 0.0,  # since watching began
    "period_s": np.nan,  # the realised width
    "servers": 1.0,  # threads or processes that serve side by side
    "items": np.nan,
    "blocked_s": 0.0,  # time that all servers together waited
    "cpu_s": np.nan,
    "delay_s": np.nan,  # time that the stage waited for a processor
    "bytes": np.nan,
    "given": np.nan,  # items written, of a stage that reads and writes
    "whole": True,  # whether the same threads served all the time
}
# Of periods whose time of waiting is known, else 0: their items, and the time that was no waiting.
_DERIVED = ("served", "busy_s")

PeriodTable: TypeAlias = npt.NDArray[np.void]


def table_of(*, arrived: Any = (), **columns: Any) -> PeriodTable:
    """Return a table of its columns, shape (n,), or one number for all.

    ``arrived`` are the items that entered the queues which the stage reads, shape (queues, n).
    """
    fields: list[Any] = [(name, np.float64) for name in (*_FIELDS, *_DERIVED)]
    fields.append(("arrived", np.float64, (len(arrived),)))
    table = np.empty(np.size(columns["items"]), dtype=fields)
    for name, value in _FIELDS.items():
        table[name] = columns.get(name, value)
    is_known = ~np.isnan(table["blocked_s"])
    table["served"] = np.where(is_known, table["items"], 0.0)
    waited_s = np.where(table["blocked_s"] > NOTHING, table["blocked_s"], 0.0)
    busy_s = np.maximum(table["servers"] * table["period_s"] - waited_s, 0.0)
    table["busy_s"] = np.where(is_known, busy_s, 0.0)
    for queue, items in enumerate(arrived):
        table["arrived"][:, queue] = items
    return table


def join(table: PeriodTable, starts: Any) -> PeriodTable:
    """Join groups of successive rows, which begin at given ones, ascending from 0."""
    fields = table.dtype.itemsize // table["start_s"].itemsize
    numbers = table.view(np.float64).reshape(table.size, fields)
    joined: PeriodTable = np.add.reduceat(numbers, starts, axis=0).view(table.dtype).ravel()
    for name in ("start_s", "servers"):
        joined[name] = table[name][starts]
    return joined


class PooledPeriods:
    """Stretches of equally many periods; when they are too many, neighbours are joined.

    Parameters
    ----------
    empty
        A table without rows, of the queues that periods have.
    """

    def __init__(self, empty: PeriodTable, *, most: int = 256) -> None:
        self._most, self._size, self._taken = most, 1, 0
        self.full = empty  # the stretches that are full
        self._open = empty

    def add(self, periods: PeriodTable) -> None:
        """Add successive periods."""
        while periods.size:
            room = (self._most - self.full.size) * self._size - self._taken
            self._fill(periods[:room])
            periods = periods[room:]

    def all(self) -> PeriodTable:
        """Return all stretches, including the one that is not full yet."""
        return np.concatenate([self.full, self._open])

    def _fill(self, periods: PeriodTable) -> None:
        """Add periods, no more than there is room for."""
        together = np.concatenate([self._open, periods])
        starts = np.arange(self._open.size - self._taken, together.size, self._size)
        sums = join(together, np.maximum(starts, 0))
        number, self._taken = divmod(self._taken + periods.size, self._size)
        self.full, self._open = np.concatenate([self.full, sums[:number]]), sums[number:]
        if self.full.size == self._most:
            self.full = join(self.full, np.arange(0, self._most, 2))
            self._size *= 2
