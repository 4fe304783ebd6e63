"""Items over the time in which a stage did not wait, phase by phase, in bounded memory."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.series import Floats
from benchrigor.queues.data import RateReason, ServiceRate
from benchrigor.queues.periods import (
    BORDERS,
    BUSY_TIME,
    RIPE,
    Asked,
    PeriodTable,
    empty,
    join,
    pool,
    ripen,
    rows_of,
    service_moments,
    service_rate,
    stack,
)
from benchrigor.stats.series.interval import scale, student_t
from benchrigor.stats.statistic import estimate_rate

_FEWEST = 10  # batches below which an interval is too rough to stop by
_BATCHES = 256  # batches of a phase; when there are more, neighbours are pooled
_FINER = 4  # the batches of a new phase are shorter by this factor
_CHECKS = 32  # the search for the end of a phase repeats when it has lasted a 32nd longer
_PIECE = 1024  # periods of a longer batch that are kept one by one until they make a piece of it
# A rate is restless if this number of ended phases lasted longer together than the one under way:
# simulated independent services never had as many, with stalls, a change or neither.
_RESTLESS = 5


class BusyTime:
    """The default estimator; its options are as in `ServiceRateEstimator`."""

    def __init__(self, asked: Asked, *, most: int) -> None:
        self._rate = partial(busy_rate, asked=asked)
        self._ended: deque[ServiceRate] = deque(maxlen=most)
        self._began_s = 0.0
        self._batches = empty()
        # Periods of a batch, and of an observation of items and busy time.
        self._size = self._unit = 1
        self._open = empty()
        self._begun = empty()
        # Parts of the batch that is not full: observations, the next one, and single periods.
        self._loose = empty()

    def add(self, periods: PeriodTable) -> None:
        """Take more periods.

        Sums are built of the same pieces however periods are added, and rates are equal to the
        last digit.
        """
        rest = stack(self._loose, periods)
        while (piece := min(self._size, _PIECE)) <= rest.size:
            number = 1
            if piece == self._size:
                number = min(rest.size // piece, self._until_next_check())
            self._take(rest[: number * piece])
            rest = rest[number * piece :]
        self._loose = stack(rest)  # a view would hold all of them

    def rates(self) -> list[ServiceRate]:
        """Return the rates of all phases, the one under way last."""
        now, ended = self._now(), list(self._ended)
        if not now.size:
            return ended
        return [*ended, _warn_if_restless(self._rate(now, began_s=self._began_s), ended)]

    def _take(self, periods: PeriodTable) -> None:
        """Take whole batches, or a piece of the open one."""
        if periods.size >= self._size:
            units = _sum_up(periods, self._unit)
            starts = np.arange(0, units.size, self._size // self._unit)
            batches = units if self._unit == self._size else pool(units, starts)
        else:
            self._join(periods)
            if self._open["periods"].sum() < self._size:
                return
            batches, self._open = self._open, empty()
        self._batches = stack(self._batches, batches)
        if _is_checked_at(self._batches.size):
            self._end_shifted_phase()
        if self._batches.size >= _BATCHES:
            self._pool()

    def _join(self, piece: PeriodTable) -> None:
        """Add a piece to the open batch, or to an observation that is longer."""
        if self._unit > _PIECE:
            self._begun = join(stack(self._begun, piece))
            if self._begun["periods"][0] < self._unit:
                return
            units, self._begun = self._begun, empty()
        else:
            units = _sum_up(piece, self._unit)
        self._open = pool(stack(self._open, units))

    def _until_next_check(self) -> int:
        """Return after how many batches the end of the phase is sought, or they are pooled."""
        number = self._batches.size
        later = max(number + 1, FEWEST)
        while later < _BATCHES and not _is_checked_at(later):
            later += 1
        return later - number

    def _end_shifted_phase(self) -> None:
        """End the phase if another one has begun."""
        busy = np.flatnonzero(self._batches["busy_s"] > 0.0)
        if busy.size:
            ripe, starts = ripen(rows_of(self._batches, busy))
            place = find_shift(ripe)
            if place is not None:
                self._end_phase(int(busy[starts[place]]))

    def _end_phase(self, place: int) -> None:
        """End a phase before a batch; the next begins after it, for it may hold some of both."""
        self._ended.append(self._rate(self._batches[:place], began_s=self._began_s))
        self._began_s += float(self._batches["period_s"][: place + 1].sum())
        self._batches = self._batches[place + 1 :]
        self._size = max(self._unit, self._size // _FINER)

    def _pool(self) -> None:
        """Pool neighbours; as long as they hold few items, a pair becomes one observation."""
        ripe = self._unit < self._size or self._is_ripe()
        combine = pool if ripe else join
        self._batches = combine(self._batches, np.arange(0, self._batches.size, 2))
        self._size *= 2
        if not ripe:
            self._unit = self._size

    def _is_ripe(self) -> bool:
        busy = _busy_ones(self._batches)
        return bool(busy.size) and ripen(busy, items=RIPE)[0] is busy

    def _now(self) -> PeriodTable:
        """Return all batches of the phase under way; an unfinished one joins the last full one."""
        batches = stack(self._batches, self._open)
        begun = stack(self._begun, self._loose)
        if begun.size:
            batches = stack(batches, join(begun))
        full = max(self._batches.size, min(batches.size, 1))
        return pool(batches, np.arange(full)) if full else batches


def _sum_up(periods: PeriodTable, size: int) -> PeriodTable:
    """Return every ``size`` periods as one observation."""
    return join(periods, np.arange(0, periods.size, size))


def _busy_ones(batches: PeriodTable) -> PeriodTable:
    """Return the batches in which the stage was busy."""
    return rows_of(batches, batches["busy_s"] > 0.0)


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
    notice = Notice.of(
        Code.RESTLESS_RATE,
        last_=_RESTLESS,
        length_s_=rate.length_s,
        phases=len(ended),
        before_s=before_s,
        lowest=min(values),
        highest=max(values),
    )
    return replace(rate, notices=(*rate.notices, notice))


def busy_rate(batches: PeriodTable, *, began_s: float, asked: Asked) -> ServiceRate:
    """Return the service rate of a phase from its batches, one or more.

    Total items over total busy time, with the interval of a ratio of sums and the long-run variance
    of its residuals (`estimate_rate`): in busy time services follow one another without gaps, for
    any arrivals. Busy time is the sum over all servers.
    """
    whole, busy = join(batches), _busy_ones(batches)
    ripe = ripen(busy)[0] if busy.size else busy
    estimate = _per_time(ripe, "served", "busy_s", asked)
    is_narrow = estimate is not None and estimate.relative_half_width <= asked.target
    converged = is_narrow and ripe.size >= _FEWEST
    return service_rate(
        whole,
        whole,
        asked=asked,
        began_s=began_s,
        estimate=estimate,
        reason=None if converged else _reason(whole),
        moments=service_moments(ripen(busy, items=RIPE)[0]) if busy.size else None,
        cpu_rate=_per_time(ripe, "cpu_served", "cpu_known_s", asked),
    )


def _per_time(batches: PeriodTable, served: str, spent: str, asked: Asked) -> Estimate | None:
    """Estimate items per second spent, by all servers together; None if unknown."""
    known = batches[spent] > 0.0
    items, seconds = batches[served][known], batches[spent][known]
    if not items.any():
        return None
    try:
        rate = estimate_rate(items / seconds, weights=seconds, confidence=asked.confidence)
    except NotEstimable:
        return None
    rate = scale(rate, asked.servers)
    return replace(rate, low=max(0.0, rate.low), method=BUSY_TIME)


def _reason(whole: PeriodTable) -> RateReason:
    if not whole["used"][0]:
        return RateReason.NO_NONBLOCKING
    if whole["busy_s"][0] <= 0.0:
        return RateReason.NEVER_BUSY
    return RateReason.NOT_CONVERGED if whole["served"][0] else RateReason.NO_ITEMS


# --- Shifts of the rate

FEWEST = 24  # batches below which no shift is found

_MATERIAL = 0.10  # relative change of the rate that makes another phase
_BEFORE, _AFTER = 8, 4
_ERRORS = 5.0  # standard errors: the same batches are tested again and again, at every place
# Standard errors at which the deviation of a batch is clipped: one stall is not a phase.
_CLIPPED = 3.0
_SCALES = (1, 2, 4, 8)
_FEWEST_STEPS = 12
_BLOCKS = 12  # blocks of a phase; Schmeiser (1982) found 10 to 30 to be enough
# Blocks a quarter as long count if the longer ones have up to 1.5 times their variance: noise
# then decorrelates within them. In a random walk the longer ones have four times the variance.
_SHORTER, _ALIKE = 4, 1.5
_CONFIDENCE = 1.0 - 5.7e-7  # of five standard errors of a normal variable


def find_shift(batches: PeriodTable) -> int | None:
    """Return the batch with which another rate begins, or None; the stage was busy in all batches.

    The statistic is the largest standardised difference between the mean deviations before and
    after a place (CUSUM; Page 1954). Deviations are clipped. Steps between neighbours give the
    noise, so that a shift does not hide itself. The difference must be five standard errors, and
    the medians must differ by a tenth.

    Service times that are correlated over hundreds of items wander further than steps show. So the
    plain means of both sides must differ by the method of batch means as well (Conway 1963). Blocks
    are as long as the shorter side, but at least a dozen fit into the series; they scatter about
    the mean of their own side. The limit is Student's at the level of five standard errors. No test
    separates shifts from noise slower than the whole series. A rate that rises, or falls, from
    block to block all along is not noise: the cut is where its two sides differ most.
    """
    n = batches.size
    if n < FEWEST:
        return None
    pairs = np.array([batches["served"], batches["busy_s"]])
    items, busy = pairs
    rates = items / busy
    noise = _noise(pairs)
    deviations = (rates - _median(rates)) * np.sqrt(busy / noise)
    sums = np.cumsum(np.minimum(np.maximum(deviations, -_CLIPPED), _CLIPPED))
    before = np.arange(_BEFORE, n - _AFTER + 1)
    after = n - before
    below = sums[before - 1]
    scores = np.abs((sums[-1] - below) / after - below / before) * np.sqrt(before * after / n)
    best = int(np.argmax(scores))
    if scores[best] < _ERRORS:
        return None
    place = int(before[best])
    former, latter = _median(rates[:place]), _median(rates[place:])
    material = abs(latter - former) >= _MATERIAL * former
    return place if material and _stands_out(pairs, place) else None


def _stands_out(pairs: Floats, place: int) -> bool:
    """Return whether the means before and after a place differ by more than block means do."""
    if _drifts(pairs):
        return True
    n = pairs.shape[1]
    size = min(place, n - place, n // _BLOCKS)
    variance, freedom = _scatter(pairs, place, size)
    if size >= _SHORTER:
        finer, more = _scatter(pairs, place, size // _SHORTER)
        if variance <= _ALIKE * finer:
            variance, freedom = max(variance, finer), more
    items, busy = np.add.reduceat(pairs, [0, place], axis=1)
    variance = max(variance, BORDERS * n / float(busy.sum()))
    gap = abs(float(np.diff(items / busy)[0]))
    error = math.sqrt(variance * float((1.0 / busy).sum()))
    return gap >= student_t(freedom, _CONFIDENCE) * error


def _drifts(pairs: Floats) -> bool:
    """Return whether the rate rises, or falls, for a dozen blocks; a random walk does 1 in 1000."""
    n = pairs.shape[1]
    items, busy = _blocks(pairs[:, n % _BLOCKS :], n // _BLOCKS)
    steps = np.diff(items / busy)
    return bool((steps > 0.0).all() or (steps < 0.0).all())


def _scatter(pairs: Floats, place: int, size: int) -> tuple[float, int]:
    """Return the variance of a count per busy second by blocks, and its degrees of freedom."""
    # Blocks are laid from the place on, forwards and backwards.
    before, after = place // size, (pairs.shape[1] - place) // size
    blocks = _blocks(pairs[:, place - before * size : place + after * size], size)
    squares = 0.0
    for items, busy in (blocks[:, :before], blocks[:, before:]):
        residuals = items - items.sum() / busy.sum() * busy
        squares += float((residuals**2 / busy).sum())
    freedom = before + after - 2
    return squares / freedom, freedom


def _median(values: Floats) -> float:
    """Return the upper median; for a few values five times as fast as numpy's."""
    return float(np.sort(values)[values.size // 2])


def _noise(pairs: Floats) -> float:
    """Return the variance of a count per busy second, by steps between neighbours.

    The largest at scales of up to eight batches, since slow noise shows only there.
    """
    size = pairs.shape[1]
    found: float = BORDERS * size / float(pairs[1].sum())
    for size_of_group in _SCALES:
        groups = size // size_of_group
        if groups <= _FEWEST_STEPS:
            break
        items, busy = _blocks(pairs[:, : groups * size_of_group], size_of_group)
        rates, weights = items / busy, 1.0 / busy
        steps = (rates[1:] - rates[:-1]) ** 2 / (weights[1:] + weights[:-1])
        found = max(found, float(steps.sum()) / steps.size)
    return found


def _blocks(pairs: Floats, size: int) -> Floats:
    """Return items and busy time of blocks of ``size`` batches, shape (2, blocks)."""
    found: Floats = pairs.reshape(2, -1, size).sum(axis=2) if size > 1 else pairs
    return found
