"""Successive periods of a stage: as arrays, and pooled if they are many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats
from benchrigor.queues.rates import ServiceRateEstimator

_UNKNOWN = np.nan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Periods(OneLine):
    """Successive periods of a stage; one number stands for all of them, NaN for unknown."""

    period_s: Any  # realised widths, in seconds, shape (n,) as all others
    items: Any
    blocked_s: Any = 0.0  # time that all servers together waited
    # Whether the stage waited at all; if ``blocked_s`` is 0 its time is unknown.
    blocked: Any = False
    cpu_s: Any = _UNKNOWN
    delay_s: Any = _UNKNOWN  # time that the stage waited for a processor
    bytes: Any = _UNKNOWN
    start_s: Any = 0.0  # beginnings of the periods, in seconds since watching began
    given: Any = _UNKNOWN  # items written, of a stage that reads and writes
    arrived: Any = ()  # items that entered the queues that the stage reads, shape (queues, n)
    whole: Any = True  # whether the same threads served all the time
    servers: int = 1

    def __post_init__(self) -> None:
        n = np.size(self.items)
        for name in _COLUMNS:
            values = np.asarray(getattr(self, name), dtype=_KINDS.get(name, np.float64))
            object.__setattr__(self, name, np.broadcast_to(values, n))
        queues = [np.broadcast_to(np.asarray(row, dtype=np.float64), n) for row in self.arrived]
        object.__setattr__(self, "arrived", np.array(queues).reshape(len(queues), n))

    @property
    def n(self) -> int:
        """How many periods there are."""
        return int(self.items.size)

    def part(self, which: Any) -> Periods:
        """Return some of the periods, by a slice or by flags."""
        return self._with(lambda values: values[..., which])

    @classmethod
    def end_to_end(cls, blocks: Sequence[Periods]) -> Periods:
        """Put blocks with one number of servers one after the other."""
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(block, name) for block in blocks], axis=-1)
            for name in _ARRAYS
        }
        return replace(blocks[0], **arrays)

    def joined(self) -> Periods:
        """Return all of them as one period."""
        sums = self._with(lambda values: values.sum(axis=-1, keepdims=True))
        return replace(sums, start_s=self.start_s[:1], whole=self.whole.all())

    def without_times(self) -> Periods:
        """Return the same, with processor times that are unknown."""
        return replace(self, cpu_s=_UNKNOWN, delay_s=_UNKNOWN)

    def tell(self, estimator: ServiceRateEstimator) -> None:
        """Pass all of them to an estimator."""
        estimator.tell_many(
            self.items,
            self.period_s,
            self.blocked_s,
            self.blocked,
            cpu_s=self.cpu_s,
            delay_s=self.delay_s,
        )

    def _with(self, change: Callable[[Any], Any]) -> Periods:
        arrays: dict[str, Any] = {name: change(getattr(self, name)) for name in _ARRAYS}
        return replace(self, **arrays)


_KINDS = {"blocked": np.bool_, "whole": np.bool_}
_ARRAYS = tuple(field.name for field in fields(Periods) if field.name != "servers")
_COLUMNS = tuple(name for name in _ARRAYS if name != "arrived")


class PooledPeriods:
    """Sums over stretches of equally many periods; when they are too many, neighbours are pooled.

    The first row is when a stretch began, the others are sums.
    """

    def __init__(self, rows: int, *, most: int = 256) -> None:
        self._most, self._size = most, 1
        # The stretches that are full, shape (rows, stretches).
        self.full: Floats = np.zeros((rows, 0))
        self._open, self._taken = self.full, 0

    def add(self, columns: Floats) -> None:
        """Add successive periods, shape (rows, n)."""
        while columns.shape[1]:
            room = (self._most - self.full.shape[1]) * self._size - self._taken
            self._fill(columns[:, :room])
            columns = columns[:, room:]

    def all(self) -> Floats:
        """Return all stretches, including the one that is not full yet."""
        return np.hstack([self.full, self._open])

    def _fill(self, columns: Floats) -> None:
        """Add periods, no more than there is room for."""
        together = np.hstack([self._open, columns])
        starts = np.arange(self._open.shape[1] - self._taken, together.shape[1], self._size)
        sums = sum_up(together, np.maximum(starts, 0))
        number, self._taken = divmod(self._taken + columns.shape[1], self._size)
        self.full = np.hstack([self.full, sums[:, :number]])
        self._open = sums[:, number:]
        if self.full.shape[1] == self._most:
            self.full = sum_up(self.full, np.arange(0, self._most, 2))
            self._size *= 2


def sum_up(columns: Floats, starts: Any) -> Floats:
    """Sum up groups of successive stretches, which begin at given columns."""
    sums: Floats = np.add.reduceat(columns, starts, axis=1)
    sums[0] = columns[0, starts]
    return sums
