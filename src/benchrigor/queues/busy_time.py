"""Items over the time in which a stage did not wait, phase by phase, in bounded memory."""

from __future__ import annotations

from collections import deque

import numpy as np

from benchrigor.model import Floats, ServiceRate
from benchrigor.stats.rateshifts import find_shift
from benchrigor.stats.servicerates import busy_rate
from benchrigor.stats.tallies import RIPE, Row, matured, observed, pooled, tallied

__all__ = ["BusyTime"]

_BATCHES = 256
"""Stretches that a phase is kept in; when there are more, neighbours are pooled."""
_FINER = 4
"""A new phase begins with stretches so many times shorter."""
_LOOKS = 32
"""A phase's end is looked for each time that it has lasted a 32nd longer."""
_PHASES = 1000
"""Phases that are remembered."""
_ALL = np.zeros(1, dtype=np.int64)


class BusyTime:
    """The default estimator: items over period minus blocked time.

    Parameters
    ----------
    servers, target, confidence
        As `ServiceRateEstimator` has them.
    """

    def __init__(self, *, servers: int, target: float, confidence: float) -> None:
        self._servers, self._target, self._confidence = servers, target, confidence
        self._ended: deque[ServiceRate] = deque(maxlen=_PHASES)
        self._began_s = 0.0
        self._batches = tallied(np.zeros((Row.COUNT, 0)))
        self._size = self._unit = 1
        self._open: Floats | None = None
        self._loose = np.zeros((Row.COUNT, 0))

    def add(self, periods: Floats) -> None:
        """Take more periods, the first eight rows of their tallies, shape (8, n)."""
        while periods.shape[1]:
            taken = 0 if self._open is None else int(self._open[Row.PERIODS, 0])
            room = self._size - taken - self._loose.shape[1]
            self._fill(periods[:, :room])
            periods = periods[:, room:]

    def rates(self) -> list[ServiceRate]:
        """Return the rate of each phase, the one under way last."""
        now = self._now()
        return [*self._ended, self._rate(now)] if now.shape[1] else list(self._ended)

    def _fill(self, periods: Floats) -> None:
        """Add periods to the open batch, and close it when it has all of its own."""
        self._loose = np.hstack([self._loose, periods])
        whole = self._loose.shape[1] // self._unit * self._unit
        if not whole:
            return
        starts = np.arange(0, whole, self._unit, dtype=np.int64)
        units = observed(tallied(np.add.reduceat(self._loose[:, :whole], starts, axis=1)))
        self._loose = self._loose[:, whole:]
        if self._open is not None:
            units = np.hstack([self._open, units])
        self._open = units if units.shape[1] == 1 else pooled(units, _ALL)
        if self._open[Row.PERIODS, 0] == self._size:
            self._batches = np.hstack([self._batches, self._open])
            self._open = None
            number = self._batches.shape[1]
            if number % max(1, number // _LOOKS) == 0:
                self._look()
            if self._batches.shape[1] >= _BATCHES:
                self._pool()

    def _look(self) -> None:
        """See whether another phase has begun."""
        busy = np.flatnonzero(self._batches[Row.BUSY] > 0.0)
        if busy.size:
            ripe, starts = matured(self._batches[:, busy])
            place = find_shift(ripe)
            if place is not None:
                self._end_phase(int(busy[starts[place]]))

    def _end_phase(self, place: int) -> None:
        """End a phase before a batch; the next begins behind it, for it may hold some of both."""
        self._ended.append(self._rate(self._batches[:, :place]))
        self._began_s += float(self._batches[Row.WALL, : place + 1].sum())
        self._batches = self._batches[:, place + 1 :]
        self._size = max(self._unit, self._size // _FINER)

    def _pool(self) -> None:
        """Pool neighbours; while their counts are small, what they come to is one observation."""
        ripe = self._unit < self._size or self._is_ripe()
        starts = np.arange(0, self._batches.shape[1], 2, dtype=np.int64)
        self._batches = pooled(self._batches, starts)
        self._size *= 2
        if not ripe:
            self._batches = observed(self._batches)
            self._unit = self._size

    def _is_ripe(self) -> bool:
        busy = self._batches[:, self._batches[Row.BUSY] > 0.0]
        return bool(busy.shape[1]) and matured(busy, items=RIPE)[0] is busy

    def _now(self) -> Floats:
        """Return all stretches of the phase under way; unfinished ones join the last whole one."""
        rest = [] if self._open is None else [self._open]
        if self._loose.shape[1]:
            rest.append(observed(tallied(self._loose.sum(axis=1, keepdims=True))))
        found = np.hstack([self._batches, *rest])
        whole = max(self._batches.shape[1], min(found.shape[1], 1))
        return pooled(found, np.arange(whole, dtype=np.int64)) if found.shape[1] else found

    def _rate(self, tallies: Floats) -> ServiceRate:
        return busy_rate(
            tallies,
            began_s=self._began_s,
            servers=self._servers,
            target=self._target,
            confidence=self._confidence,
        )
