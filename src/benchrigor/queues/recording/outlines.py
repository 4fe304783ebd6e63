"""What an end did over time, in few enough stretches for memory and a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchrigor.model.series import Floats
from benchrigor.queues.periods import Periods, PooledPeriods, sum_up

_MOST = 4096  # stretches that are kept; pooling halves their number
_START, _WALL, _ITEMS, _BYTES, _CAPACITY, _WAITED, _COUNTED = range(7)
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretches:
    """Successive stretches of time, shape (n,)."""

    start_s: Floats  # seconds since the first period
    stop_s: Floats
    # Items per second of the time in which the end did not wait; NaN if it always did.
    rates: Floats
    # Share of the time in which it waited, or of the periods if only these are known.
    waiting: Floats


class Outline:
    """Remembers periods in bounded memory, ever more of them in one stretch."""

    def __init__(self) -> None:
        self._pooled = PooledPeriods(_COUNTED + 1, most=_MOST)
        self._stop_s = 0.0

    def add(self, periods: Periods) -> None:
        """Take more periods."""
        stop_s = self._stop_s + np.cumsum(periods.period_s)
        capacity_s = periods.servers * periods.period_s
        # Periods with an unknown time of waiting do not count.
        unknown = periods.blocked & (periods.blocked_s == 0.0)
        self._pooled.add(
            np.vstack(
                [
                    stop_s - periods.period_s,
                    periods.period_s,
                    periods.items,
                    periods.bytes,
                    capacity_s,
                    np.where(unknown, capacity_s, periods.blocked_s),
                    np.where(unknown, 0.0, periods.items),
                ]
            )
        )
        self._stop_s = float(stop_s[-1]) if periods.n else self._stop_s

    def stretches(self, most: int = 400) -> Stretches:
        """Return the time in up to ``most`` stretches."""
        sums = self._pooled.all()
        group = max(1, -(-sums.shape[1] // most))
        if group > 1:
            sums = sum_up(sums, np.arange(0, sums.shape[1], group))
        busy = sums[_CAPACITY] - sums[_WAITED]
        is_busy = busy > _ROUNDING * sums[_CAPACITY]
        # Capacity over wall time is the number of servers.
        served = sums[_COUNTED] * sums[_CAPACITY] / sums[_WALL]
        return Stretches(
            start_s=sums[_START],
            stop_s=sums[_START] + sums[_WALL],
            rates=np.divide(served, busy, out=np.full(busy.size, np.nan), where=is_busy),
            waiting=sums[_WAITED] / sums[_CAPACITY],
        )

    def throughput(self, start_s: float, stop_s: float) -> tuple[float, float | None]:
        """Return items per second between two times since the first period, and mean bytes of one.

        Waiting is included. The bytes are None if they were not counted, or no item passed.
        """
        sums = self._pooled.all()
        middle_s = sums[_START] + sums[_WALL] / 2.0
        inside = (middle_s >= start_s) & (middle_s <= stop_s)
        whole = sums[:, inside if inside.any() else slice(None)].sum(axis=1)
        wall_s, items, size = whole[[_WALL, _ITEMS, _BYTES]].tolist()
        known = items > 0.0 and math.isfinite(size) and size > 0.0
        return items / wall_s, size / items if known else None
