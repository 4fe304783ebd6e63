"""What an end did over time, in so few stretches that they fit into memory and a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchrigor.model import Floats
from benchrigor.queues.recording.recorded_periods import Periods

__all__ = ["Outline", "Stretches", "Window"]

_MOST = 2048
_WALL, _ITEMS, _BYTES, _CAPACITY, _WAITED, _COUNTED = range(6)
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretches:
    """Successive stretches of time; arrays of shape (n,).

    Parameters
    ----------
    start_s, stop_s
        When they began and ended, in seconds since the first period.
    rates
        Items over the time in which the end did not wait, per second; NaN where it always did.
    waiting
        Share of the time in which it waited: 0 to 1. Where it is only known whether a period had
        any waiting, the share of those that had.
    """

    start_s: Floats
    stop_s: Floats
    rates: Floats
    waiting: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What passed within a stretch of time.

    Parameters
    ----------
    items_per_s
        Items that passed per second, waiting or not.
    item_bytes
        Bytes of one item, in the mean; None where nobody counted them, or no item passed.
    """

    items_per_s: float
    item_bytes: float | None


class Outline:
    """Remembers periods, ever more of them in one stretch, in bounded memory.

    Examples
    --------
    >>> outline = Outline()
    >>> outline.add(Periods(period_s=np.array([0.1, 0.1]), items=np.array([8.0, 6.0]),
    ...                     blocked=np.array([False, True]), blocked_s=np.array([0.0, 0.025])))
    >>> outline.stretches().rates
    array([80., 80.])
    >>> outline.window(0.0, 0.2).items_per_s
    70.0
    """

    def __init__(self) -> None:
        self._sums = np.zeros((_COUNTED + 1, 0))
        self._loose = np.zeros((_COUNTED + 1, 0))
        self._unit = 1

    def add(self, periods: Periods) -> None:
        """Take more periods."""
        self._loose = np.hstack([self._loose, _sums_of(periods)])
        whole = self._loose.shape[1] // self._unit * self._unit
        self._sums = np.hstack([self._sums, _joined(self._loose[:, :whole], self._unit)])
        self._loose = self._loose[:, whole:]
        while self._sums.shape[1] >= 2 * _MOST:
            self._sums = _joined(self._sums, 2)
            self._unit *= 2

    def stretches(self, most: int = 400) -> Stretches:
        """Return what happened over time, in about so many stretches at most."""
        sums = self._all()
        group = -(-sums.shape[1] // most)
        sums = _joined(sums, group) if group > 1 else sums
        stop_s = np.cumsum(sums[_WALL])
        busy = sums[_CAPACITY] - sums[_WAITED]
        is_busy = busy > _ROUNDING * sums[_CAPACITY]
        # Of one server: as many side by side serve as much faster.
        served = sums[_COUNTED] * sums[_CAPACITY] / sums[_WALL]
        return Stretches(
            start_s=stop_s - sums[_WALL],
            stop_s=stop_s,
            rates=np.divide(served, busy, out=np.full(busy.size, np.nan), where=is_busy),
            waiting=sums[_WAITED] / sums[_CAPACITY],
        )

    def window(self, start_s: float, stop_s: float) -> Window:
        """Return what passed between two times, in seconds since the first period."""
        sums = self._all()
        middle_s = np.cumsum(sums[_WALL]) - sums[_WALL] / 2.0
        inside = (middle_s >= start_s) & (middle_s <= stop_s)
        found = sums[:, inside if inside.any() else slice(None)].sum(axis=1)
        wall_s, items, size = found[:_CAPACITY].tolist()
        known = items > 0.0 and math.isfinite(size)
        return Window(items_per_s=items / wall_s, item_bytes=size / items if known else None)

    def _all(self) -> Floats:
        loose = self._loose
        rest = loose.sum(axis=1, keepdims=True) if loose.shape[1] else loose
        return np.hstack([self._sums, rest])


def _sums_of(periods: Periods) -> Floats:
    capacity = periods.servers * periods.period_s
    waited, counted = periods.blocked_s, periods.items
    if waited is None:  # periods do not count of which it is not known how long it waited
        waited, counted = capacity * periods.blocked, periods.items * ~periods.blocked
    size = np.full(periods.n, np.nan) if periods.bytes is None else periods.bytes
    return np.vstack([periods.period_s, periods.items, size, capacity, waited, counted])


def _joined(sums: Floats, number: int) -> Floats:
    """Add up each ``number`` of neighbours; those left over at the end are one more."""
    if number == 1 or not sums.shape[1]:
        return sums
    starts = np.arange(0, sums.shape[1], number)
    found: Floats = np.add.reduceat(sums, starts, axis=1)
    return found
