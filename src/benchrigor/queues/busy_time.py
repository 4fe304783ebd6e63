"""Items over the time in which a stage did not wait, phase by phase, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchrigor.model import Code, Notice
from benchrigor.model.series import Floats
from benchrigor.queues.arithmetic.moments import RIPE, Row, as_observations, batches_of, pool, ripen
from benchrigor.queues.arithmetic.rate_shift import FEWEST, find_shift
from benchrigor.queues.arithmetic.service_rate import Asked, busy_rate
from benchrigor.queues.data.service import ServiceRate

_BATCHES = 256  # batches of a phase; when there are more, neighbours are pooled
_FINER = 4  # the batches of a new phase are shorter by this factor
_CHECKS = 32  # the search for the end of a phase repeats when it has lasted a 32nd longer
_PIECE = 1024  # periods of a longer batch that are kept one by one until they make a piece of it
# A rate is restless if this number of ended phases lasted longer together than the one under way:
# simulated independent services never had as many, with stalls, a change or neither.
_RESTLESS = 5
_ALL = np.zeros(1, dtype=np.int64)


class BusyTime:
    """The default estimator; its options are those of `ServiceRateEstimator`."""

    def __init__(self, asked: Asked, *, most: int) -> None:
        self._rate = partial(busy_rate, asked=asked)
        self._ended: deque[ServiceRate] = deque(maxlen=most)
        self._began_s = 0.0
        self._batches = batches_of(np.zeros((Row.COUNT, 0)))
        # Periods of a batch, and of an observation of items and busy time.
        self._size = self._unit = 1
        self._open: Floats | None = None
        self._begun = np.zeros((Row.COUNT, 1))
        # Parts of the batch that is not full: observations, the next one, and single periods.
        self._loose = np.zeros((Row.COUNT, 0))

    def add(self, periods: Floats) -> None:
        """Take more periods, shape (Row.COUNT, n).

        Sums are built of the same pieces however periods are added, and rates are equal to the
        last digit.
        """
        rest = np.hstack([self._loose, periods])
        while (piece := min(self._size, _PIECE)) <= rest.shape[1]:
            number = 1
            if piece == self._size:
                number = min(rest.shape[1] // piece, self._until_next_check())
            self._take(rest[:, : number * piece])
            rest = rest[:, number * piece :]
        self._loose = rest.copy()  # a view would hold all of them

    def rates(self) -> list[ServiceRate]:
        """Return the rates of all phases, the one under way last."""
        now, ended = self._now(), list(self._ended)
        if not now.shape[1]:
            return ended
        return [*ended, _warn_if_restless(self._rate(now, began_s=self._began_s), ended)]

    def _take(self, periods: Floats) -> None:
        """Take whole batches, or a piece of the open one."""
        if periods.shape[1] >= self._size:
            units = _sum_up(periods, self._unit)
            starts = np.arange(0, units.shape[1], self._size // self._unit, dtype=np.int64)
            batches = units if self._unit == self._size else pool(units, starts)
        else:
            self._join(periods)
            if self._open is None or self._open[Row.PERIODS, 0] < self._size:
                return
            batches, self._open = self._open, None
        self._batches = np.hstack([self._batches, batches])
        if _is_checked_at(self._batches.shape[1]):
            self._end_shifted_phase()
        if self._batches.shape[1] >= _BATCHES:
            self._pool()

    def _join(self, piece: Floats) -> None:
        """Add a piece to the open batch, or to an observation that is longer."""
        if self._unit > _PIECE:
            self._begun = self._begun + piece.sum(axis=1, keepdims=True)
            if self._begun[Row.PERIODS, 0] < self._unit:
                return
            units = as_observations(batches_of(self._begun))
            self._begun = np.zeros_like(self._begun)
        else:
            units = _sum_up(piece, self._unit)
        self._open = pool(units if self._open is None else np.hstack([self._open, units]), _ALL)

    def _until_next_check(self) -> int:
        """Return after how many batches the end of the phase is sought, or they are pooled."""
        number = int(self._batches.shape[1])
        later = max(number + 1, FEWEST)
        while later < _BATCHES and not _is_checked_at(later):
            later += 1
        return later - number

    def _end_shifted_phase(self) -> None:
        """End the phase if another one has begun."""
        busy = np.flatnonzero(self._batches[Row.BUSY] > 0.0)
        if busy.size:
            ripe, starts = ripen(self._batches[:, busy])
            place = find_shift(ripe)
            if place is not None:
                self._end_phase(int(busy[starts[place]]))

    def _end_phase(self, place: int) -> None:
        """End a phase before a batch; the next begins after it, for it may hold some of both."""
        self._ended.append(self._rate(self._batches[:, :place], began_s=self._began_s))
        self._began_s += float(self._batches[Row.WALL, : place + 1].sum())
        self._batches = self._batches[:, place + 1 :]
        self._size = max(self._unit, self._size // _FINER)

    def _pool(self) -> None:
        """Pool neighbours; as long as they hold few items, a pair becomes one observation."""
        ripe = self._unit < self._size or self._is_ripe()
        starts = np.arange(0, self._batches.shape[1], 2, dtype=np.int64)
        self._batches = pool(self._batches, starts)
        self._size *= 2
        if not ripe:
            self._batches = as_observations(self._batches)
            self._unit = self._size

    def _is_ripe(self) -> bool:
        busy = self._batches[:, self._batches[Row.BUSY] > 0.0]
        return bool(busy.shape[1]) and ripen(busy, items=RIPE)[0] is busy

    def _now(self) -> Floats:
        """Return all batches of the phase under way; an unfinished one joins the last full one."""
        rest = [] if self._open is None else [self._open]
        begun = self._begun + self._loose.sum(axis=1, keepdims=True)
        if begun[Row.PERIODS, 0]:
            rest.append(as_observations(batches_of(begun)))
        batches = np.hstack([self._batches, *rest])
        full = max(self._batches.shape[1], min(batches.shape[1], 1))
        return pool(batches, np.arange(full, dtype=np.int64)) if full else batches


def _sum_up(periods: Floats, size: int) -> Floats:
    """Return every ``size`` periods as one observation."""
    starts = np.arange(0, periods.shape[1], size, dtype=np.int64)
    return as_observations(batches_of(np.add.reduceat(periods, starts, axis=1)))


def _is_checked_at(number: int) -> bool:
    """Whether to look for the end of a phase of ``number`` batches."""
    return number % max(1, number // _CHECKS) == 0


def _warn_if_restless(rate: ServiceRate, ended: Sequence[ServiceRate]) -> ServiceRate:
    """Return the rate under way, with a Notice if phases follow one another too fast."""
    last = ended[-_RESTLESS:]
    if len(last) < _RESTLESS:
        return rate
    before_s = rate.start_s - last[0].start_s
    if rate.length_s >= before_s:
        return rate
    values = [phase.estimate.value if phase.estimate else 0.0 for phase in last]
    notice = Notice.warning(
        Code.RESTLESS_RATE,
        f"The last {_RESTLESS} of {len(ended)} phases that ended lasted {before_s:.3g} s together, "
        f"this one {rate.length_s:.3g} s so far: the rate keeps changing, and this is its present "
        "value. Take all phases together, or watch in longer periods.",
        phases=len(ended),
        before_s=before_s,
        lowest=min(values),
        highest=max(values),
    )
    return replace(rate, notices=(*rate.notices, notice))
