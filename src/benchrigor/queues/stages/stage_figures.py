"""From the periods of a stage to its rates, arrivals and utilisation."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from benchrigor.control_characters import escaped
from benchrigor.errors import NotEstimable
from benchrigor.model import Estimate
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats
from benchrigor.model.text import percent, show_estimate, show_value
from benchrigor.queues.arithmetic.rate_arithmetic import filter_ratio, sum_rates, utilisation_of
from benchrigor.queues.data.service import ServiceRate
from benchrigor.queues.periods import Periods, PooledPeriods
from benchrigor.queues.rates import MOST_RATES, ServiceRateEstimator, in_bytes
from benchrigor.queues.stages.stage import HEAD, TAIL, Stage
from benchrigor.stats.statistics.rate import estimate_rate

# Periods that a time with one number of servers must have for its rate to be kept.
_FEWEST_PERIODS = 10
_HELD = 1024  # periods that are held back one by one; more are joined
_START, _WALL, _TAKEN, _GIVEN, _BYTES, _ARRIVED = range(6)
_ROUNDING_S = 1e-9  # of the times of rates: they are sums of periods


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """How stages are watched; ``method``, ``guards`` and others as of `ServiceRateEstimator`."""

    period_s: float | None = 0.05  # sampling period, in seconds; None to find one out
    method: str = "busy-time"
    guards: bool = True
    confidence: float = 0.95
    target: float = 0.05

    def estimator(self, servers: int = 1) -> ServiceRateEstimator:
        """Return an estimator for that many servers, or raise InvalidInput naming the problem."""
        # With guards the quantile method joins periods itself, as the waiting of a stage allows.
        as_published = self.method == "quantile" and not self.guards
        return ServiceRateEstimator(
            self.method,
            self.period_s if as_published else None,
            self.guards,
            servers=servers,
            target=self.target,
            confidence=self.confidence,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedStage(OneLine):
    """Results about a stage that is being watched.

    Parameters
    ----------
    reads, writes
        Names of its queues; a source reads none.
    servers
        How many threads or processes serve; 0 as long as it is unknown.
    rates
        Rates at which all of them together serve while they do not wait, phase by phase. Another
        number of servers begins a new phase.
    inputs
        Items per second that enter the queues which it reads, queue by queue, if they are counted,
        since the window of ``rate`` began.
    arrivals
        Their sum; None if unknown, like the figures below.
    last_arrivals
        The same of the last phase in which anything arrived, without the silence at its end.
    silent_s
        Time without arrivals until now, in seconds, if it is unusually long; else 0.
    utilisation
        Arrivals as a share of its capacity.
    filter_ratio
        Items that it took per item that it gave.
    visits
        Items that it served per item of the first stage that reads a queue.
    failure
        Why it is watched no more; None as long as it is watched.
    """

    name: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    servers: int = 0
    rates: tuple[ServiceRate, ...] = ()
    inputs: Mapping[str, Estimate]
    arrivals: Estimate | None = None
    last_arrivals: Estimate | None = None
    silent_s: float = 0.0
    utilisation: Estimate | None = None
    filter_ratio: Estimate | None = None
    visits: Estimate | None = None
    failure: str | None = None

    @property
    def rate(self) -> ServiceRate | None:
        """The present rate; None if it is unknown.

        It is the last one. But a longer one before it stays present if the last has not converged
        or has fewer servers: servers leave one by one when a stream ends.
        """
        return _present(self.rates)

    def __str__(self) -> str:
        rate, parts = self.rate, ["no rate yet"]
        if rate is not None and rate.estimate is not None:
            parts = [show_estimate(rate.estimate, "items/s")]
        if rate is not None and not rate.converged:
            parts.append("not converged")
        if self.arrivals is not None:
            parts.append(f"{show_value(self.arrivals.value, 'items/s')} arrive")
        if self.utilisation is not None:
            parts.append(f"{percent(self.utilisation.value)} used")
        if self.failure is not None:
            parts.append(f"watched no more: {self.failure}")
        return escaped(f"{self.name}: {' · '.join(parts)}")


class StageFigures:
    """Takes the periods of a stage, and estimates its rates.

    Incomplete periods do not count: the first period with an item, and periods in which a server
    came or went. Periods from the last item on count once another item follows, since the stream
    may have ended. With another number of servers a new phase begins.
    """

    def __init__(self, stage: Stage, watching: Watching) -> None:
        self.name, self._stage, self.watching = stage.name, stage, watching
        self._served = False
        self._held: list[Periods] = []
        self._past: deque[ServiceRate] = deque(maxlen=MOST_RATES)
        self._servers = 0
        self._began_s = 0.0
        self._rate: ServiceRateEstimator | None = None
        self._flows = PooledPeriods(_ARRIVED + len(stage.reads))
        self.failure: str | None = None  # why the stage is watched no more

    def tell(self, periods: Periods) -> list[Periods]:
        """Take the next periods; return those that count now."""
        counted = []
        if not self._served:
            served = np.flatnonzero(periods.items)
            if not served.size:
                return []
            self._served = True
            periods = periods.part(slice(int(served[0]) + 1, None))
        served = np.flatnonzero(periods.items)
        if served.size:
            last = int(served[-1])
            parts = map(_whole, (*self._held, periods.part(slice(last))))
            counted = [part for part in parts if part.n]
            self._held, periods = [], periods.part(slice(last, None))
        self._held.append(periods)
        if sum(part.n for part in self._held) > _HELD:
            groups = groupby(map(_whole, self._held), key=lambda part: part.servers)
            blocks = [Periods.end_to_end(list(group)) for _, group in groups]
            self._held = [block.joined() for block in blocks if block.n]
        for part in counted:
            self._count(part)
        return counted

    def known(self) -> WatchedStage:
        """Return the results so far."""
        rates = (*self._past, *self._current())
        now = _present(rates)
        flows = self._flows.full
        since_s = 0.0 if now is None else now.start_s
        inputs = self._inputs(flows[:, flows[_START] >= since_s - _ROUNDING_S])
        arrivals, utilisation = self._sum(inputs), None
        last, silent_s = _last_with_arrivals(flows, [rate.start_s for rate in rates])
        if arrivals is not None and now is not None and now.estimate is not None:
            with suppress(NotEstimable):
                utilisation = utilisation_of(arrivals, now.estimate)
        return WatchedStage(
            name=self.name,
            reads=tuple(end.name.removesuffix(HEAD) for end in self._stage.reads),
            writes=tuple(end.name.removesuffix(TAIL) for end in self._stage.writes),
            servers=self._servers,
            rates=rates,
            inputs=inputs,
            arrivals=arrivals,
            last_arrivals=self._sum(self._inputs(last)),
            silent_s=silent_s,
            utilisation=utilisation,
            filter_ratio=self._filter_ratio(),
            failure=self.failure,
        )

    def _count(self, periods: Periods) -> None:
        if periods.servers != self._servers or self._rate is None:
            self._past.extend(rate for rate in self._current() if rate.periods >= _FEWEST_PERIODS)
            self._servers, self._began_s = periods.servers, float(periods.start_s[0])
            self._rate = self.watching.estimator(periods.servers)
        periods.tell(self._rate)
        own = (periods.start_s, periods.period_s, periods.items, periods.given, periods.bytes)
        self._flows.add(np.vstack([*own, periods.arrived]))

    def _current(self) -> list[ServiceRate]:
        """Return the rates with as many servers as now, in seconds since watching began."""
        if self._rate is None:
            return []
        flows = self._flows.all()
        rates = []
        for rate in self._rate.rates:
            start_s, stop_s = rate.start_s + self._began_s, rate.stop_s + self._began_s
            window = flows[:, np.searchsorted(flows[_START], start_s - _ROUNDING_S) :]
            window = window[:, window[_START] < stop_s]
            size = window[_BYTES].sum() / max(window[_TAKEN].sum(), 1.0)
            item_bytes = float(size) if size > 0.0 else None  # unknown is not greater
            rates.append(in_bytes(replace(rate, start_s=start_s, stop_s=stop_s), item_bytes))
        return rates

    def _sum(self, inputs: Mapping[str, Estimate]) -> Estimate | None:
        """Return the arrivals at all queues together; None if those at one queue are unknown."""
        whole = inputs and len(inputs) == len(self._stage.reads)
        return sum_rates(inputs.values()) if whole else None

    def _inputs(self, flows: Floats) -> dict[str, Estimate]:
        """Estimate items per second that enter the queues, by their names; without unknown ones."""
        inputs = {}
        for end, arrived in zip(self._stage.reads, flows[_ARRIVED:], strict=True):
            if arrived.size and not np.isnan(arrived).any():
                with suppress(NotEstimable):
                    rate = estimate_rate(
                        arrived / flows[_WALL],
                        weights=flows[_WALL],
                        confidence=self.watching.confidence,
                    )
                    inputs[end.name.removesuffix(HEAD)] = replace(rate, low=max(0.0, rate.low))
        return inputs

    def _filter_ratio(self) -> Estimate | None:
        """Estimate items in over items out; None if unknown."""
        taken, given = self._flows.full[[_TAKEN, _GIVEN]]
        if given.size and not np.isnan(given).any():
            with suppress(NotEstimable):
                return filter_ratio(taken, given, confidence=self.watching.confidence)
        return None


def _last_with_arrivals(flows: Floats, phases: Sequence[float]) -> tuple[Floats, float]:
    """Return the stretches of the last phase with arrivals, and how long it has been silent since.

    ``phases`` are the times at which phases began. A silence of up to twice the length of an
    earlier one belongs to the arrivals.
    """
    came = np.flatnonzero(flows[_ARRIVED:].sum(axis=0) > 0.0)  # unknown is not greater
    if not came.size:
        return flows[:, :0], 0.0
    last = int(came[-1])
    began_s = max((phase_s for phase_s in phases if phase_s <= flows[_START, last]), default=0.0)
    first = int(np.searchsorted(flows[_START], began_s - _ROUNDING_S))
    usual = np.diff(came[came >= first], prepend=first).max(initial=1)
    silent = flows[_WALL, last + 1 :]
    if silent.size <= 2 * usual and not np.isnan(flows[_ARRIVED:, last + 1 :]).any():
        return flows[:, first:], 0.0
    return flows[:, first : last + 1], float(silent.sum())


def _present(rates: Sequence[ServiceRate]) -> ServiceRate | None:
    """Return the present rate, or None."""
    if not rates:
        return None
    now = rates[-1]
    for before in reversed(rates[:-1]):
        sure = now.converged and now.servers >= before.servers
        if sure or now.length_s >= before.length_s:
            break
        now = before
    return now


def _whole(periods: Periods) -> Periods:
    """Return the periods with the same servers all the time, and at least one."""
    return periods.part(periods.whole & (periods.servers > 0))
