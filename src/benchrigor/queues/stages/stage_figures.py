"""From the periods of a stage to its rates, arrivals and utilisation."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.control_characters import escaped
from benchrigor.errors import NotEstimable
from benchrigor.model import Estimate
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import percent, show_estimate, show_value
from benchrigor.queues.arithmetic.rate_arithmetic import filter_ratio, sum_rates, utilisation_of
from benchrigor.queues.data.service import ServiceRate
from benchrigor.queues.periods import PeriodTable, PooledPeriods, join, table_of
from benchrigor.queues.rates import MOST_RATES, ServiceRateEstimator, in_bytes, tell_periods
from benchrigor.queues.stages.stage import Stage
from benchrigor.stats.statistics.rate import estimate_rate

# Periods that a time with one number of servers must have for its rate to be kept.
_FEWEST_PERIODS = 10
_HELD = 1024  # periods that are held back one by one; more are joined
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
        self._began_s = 0.0
        self._past: deque[ServiceRate] = deque(maxlen=MOST_RATES)
        self._rate: ServiceRateEstimator | None = None
        none = table_of(items=(), arrived=[()] * len(stage.reads))
        self._flows = PooledPeriods(none)
        # Periods from the last item on; before the first item there is no such table.
        self._held: PeriodTable | None = None
        self.failure: str | None = None  # why the stage is watched no more

    def tell(self, periods: PeriodTable) -> list[PeriodTable]:
        """Take the next periods; return those that count now, by their number of servers."""
        if self._held is None:
            (served,) = np.nonzero(periods["items"])
            if not served.size:
                return []
            periods = periods[served[0] + 1 :]
            self._held = periods[:0]
        held = np.concatenate([self._held, periods])
        last = int(np.flatnonzero(held["items"])[-1]) if held["items"].any() else 0
        counted, self._held = _complete(held[:last]), held[last:]
        if self._held.size > _HELD:
            joined = [join(part, [0]) for part in _complete(self._held)]
            self._held = np.concatenate([held[:0], *joined])
        for part in counted:
            self._count(part)
        return counted

    def known(self) -> WatchedStage:
        """Return the results so far."""
        rates = (*self._past, *self._current())
        now = _present(rates)
        flows = self._flows.full
        since_s = 0.0 if now is None else now.start_s
        inputs = self._inputs(flows[flows["start_s"] >= since_s - _ROUNDING_S])
        arrivals, utilisation = self._sum(inputs), None
        last, silent_s = _last_with_arrivals(flows, [rate.start_s for rate in rates])
        if arrivals is not None and now is not None and now.estimate is not None:
            with suppress(NotEstimable):
                utilisation = utilisation_of(arrivals, now.estimate)
        return WatchedStage(
            name=self.name,
            reads=tuple(end.queue for end in self._stage.reads),
            writes=tuple(end.queue for end in self._stage.writes),
            servers=0 if self._rate is None else self._rate.servers,
            rates=rates,
            inputs=inputs,
            arrivals=arrivals,
            last_arrivals=self._sum(self._inputs(last)),
            silent_s=silent_s,
            utilisation=utilisation,
            filter_ratio=self._filter_ratio(),
            failure=self.failure,
        )

    def _count(self, periods: PeriodTable) -> None:
        servers = int(periods["servers"][0])
        if self._rate is None or servers != self._rate.servers:
            self._past.extend(rate for rate in self._current() if rate.periods >= _FEWEST_PERIODS)
            self._began_s = float(periods["start_s"][0])
            self._rate = self.watching.estimator(servers)
        tell_periods(self._rate, periods)
        self._flows.add(periods)

    def _current(self) -> list[ServiceRate]:
        """Return the rates with as many servers as now, in seconds since watching began."""
        if self._rate is None:
            return []
        flows = self._flows.all()
        rates = []
        for rate in self._rate.rates:
            start_s, stop_s = rate.start_s + self._began_s, rate.stop_s + self._began_s
            inside = (flows["start_s"] >= start_s - _ROUNDING_S) & (flows["start_s"] < stop_s)
            window = flows[inside]
            size = window["bytes"].sum() / max(window["items"].sum(), 1.0)
            item_bytes = float(size) if size > 0.0 else None  # unknown is not greater
            rates.append(in_bytes(replace(rate, start_s=start_s, stop_s=stop_s), item_bytes))
        return rates

    def _sum(self, inputs: Mapping[str, Estimate]) -> Estimate | None:
        """Return the arrivals at all queues together; None if those at one queue are unknown."""
        whole = inputs and len(inputs) == len(self._stage.reads)
        return sum_rates(inputs.values()) if whole else None

    def _inputs(self, flows: PeriodTable) -> dict[str, Estimate]:
        """Estimate items per second that enter the queues, by their names; without unknown ones."""
        inputs, wall_s = {}, flows["period_s"]
        for end, arrived in zip(self._stage.reads, flows["arrived"].T, strict=True):
            if arrived.size and not np.isnan(arrived).any():
                with suppress(NotEstimable):
                    confidence = self.watching.confidence
                    rate = estimate_rate(arrived / wall_s, weights=wall_s, confidence=confidence)
                    inputs[end.queue] = replace(rate, low=max(0.0, rate.low))
        return inputs

    def _filter_ratio(self) -> Estimate | None:
        """Estimate items in over items out; None if unknown."""
        taken, given = self._flows.full["items"], self._flows.full["given"]
        if given.size and not np.isnan(given).any():
            with suppress(NotEstimable):
                return filter_ratio(taken, given, confidence=self.watching.confidence)
        return None


def _complete(periods: PeriodTable) -> list[PeriodTable]:
    """Return the periods with the same servers all the time, at least one, by their number."""
    whole = periods[(periods["whole"] > 0.0) & (periods["servers"] > 0.0)]
    parts = np.split(whole, np.flatnonzero(np.diff(whole["servers"])) + 1)
    return [part for part in parts if part.size]


def _last_with_arrivals(flows: PeriodTable, phases: Sequence[float]) -> tuple[PeriodTable, float]:
    """Return the stretches of the last phase with arrivals, and how long it has been silent since.

    ``phases`` are the times at which phases began. A silence of up to twice the length of an
    earlier one belongs to the arrivals.
    """
    came = np.flatnonzero(flows["arrived"].sum(axis=1) > 0.0)  # unknown is not greater
    if not came.size:
        return flows[:0], 0.0
    last, start_s = int(came[-1]), flows["start_s"]
    began_s = max((phase_s for phase_s in phases if phase_s <= start_s[last]), default=0.0)
    first = int(np.searchsorted(start_s, began_s - _ROUNDING_S))
    usual = np.diff(came[came >= first], prepend=first).max(initial=1)
    silent = flows[last + 1 :]
    if silent.size <= 2 * usual and not np.isnan(silent["arrived"]).any():
        return flows[first:], 0.0
    return flows[first : last + 1], float(silent["period_s"].sum())


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
