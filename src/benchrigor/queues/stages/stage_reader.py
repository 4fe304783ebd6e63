"""From samples of the cells of a stage to its periods."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model.series import Floats
from benchrigor.queues.counting.counter_samples import Integers, Span
from benchrigor.queues.counting.writers import End, Owner
from benchrigor.queues.periods import Periods
from benchrigor.queues.stages.stage import HEAD, TAIL, Stage

_NANO = 1e-9
_UNKNOWN = (math.nan, math.nan)
# Limits of waiting that is counted in a later period than its own: a writer may have been switched
# out between reading the clock and storing the time.
_LATE_PERIODS, _LATE_NS = 16, 1_000_000_000
# Samples, and share of them, that may show more waits at once than there are servers: a server may
# end a wait at one end and begin another while cells are copied one after the other.
_CROWDED, _CROWDED_SHARE = 8, 0.05


class _Totals(NamedTuple):
    """A stage at successive times, its cells summed up."""

    # Time, items served, their bytes, items given, time waited, in nanoseconds, shape (5, n).
    counts: Integers
    # Items that entered the queues that it reads, shape (queues, n); NaN if unknown.
    arrived: Floats
    used_ns: Floats  # processor time and delay of its threads, shape (2, n); NaN if unknown


class StageReader:
    """Makes periods of successive samples of the cells of one stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._own = (*stage.reads, *stage.writes)
        self._arrivals = [_tail_of(end) for end in stage.reads]
        # The ends to sample: its own ones, and the tails of the queues that it reads.
        self.ends = (*self._own, *(end for end in self._arrivals if end is not None))
        self.threads: frozenset[Owner] = frozenset()  # who served last, as far as known
        self._first_ns: int | None = None
        self._last: _Totals | None = None
        self._live: frozenset[int] = frozenset()
        self._owed_ns = 0
        self._crowded = self._sampled = 0

    def read(self, span: Span) -> Periods:
        """Return the periods that end with these samples; InvalidInput if too many wait at once."""
        live, last = self._serving(span), self._last
        whole, self._live = last is None or live == self._live, live
        servers = self._servers(span)
        self.threads = frozenset(span.owners[cell] for cell in live if span.owners[cell].tid)
        self._last = totals = self._totals(span, servers)
        if self._first_ns is None:
            self._first_ns = int(span.at_ns[0])
        return self._between(totals if last is None else _join(last, totals), servers, whole=whole)

    def _leading(self, span: Span) -> list[int]:
        """Return the cells at which the stage serves."""
        return _cells(span, self._stage.reads or self._stage.writes)

    def _serving(self, span: Span) -> frozenset[int]:
        """Return the cells of the processes that have a live one among the leading."""
        serving = {span.owners[cell].pid for cell in self._leading(span) if span.live[cell]}
        return frozenset(
            cell
            for cell in _cells(span, self._own)
            if span.live[cell] and span.owners[cell].pid in serving
        )

    def _servers(self, span: Span) -> int:
        """Return how many serve: the servers of the busiest end of every process, summed up."""
        beside: Counter[tuple[int, int]] = Counter()
        mine: dict[int, list[int]] = {}
        for number, end in enumerate(self._own):
            for cell in self._live.intersection(span.places[end.key]):
                pid = span.owners[cell].pid
                beside[pid, number] += end.servers
                mine.setdefault(pid, []).append(cell)
        most = dict.fromkeys(mine, self._stage.servers)
        for (pid, _), servers in beside.items():
            most[pid] = max(servers, most[pid])
        for pid, cells in mine.items():
            self._check_crowd(span.waiting[:, cells].sum(axis=1), most[pid])
        return sum(most.values())

    def _check_crowd(self, waiting: Integers, most: int) -> None:
        """Raise when a process has had more waits at once than servers in too many samples."""
        self._sampled += waiting.size
        self._crowded += int(np.count_nonzero(waiting > most))
        if self._crowded >= max(_CROWDED, _CROWDED_SHARE * self._sampled):
            raise InvalidInput(self._too_many(f"{waiting.max()} wait at once", most))

    def _totals(self, span: Span, servers: int) -> _Totals:
        leading = self._leading(span)
        ours = {span.owners[cell].pid for cell in leading}
        giving = [
            cell for cell in _cells(span, self._stage.writes) if span.owners[cell].pid in ours
        ]
        known = len(self.threads) == servers and all(span.owners[c].tid for c in self._live)
        threads = self.threads if known else ()
        used = [[use.get(thread) or _UNKNOWN for thread in threads] for use in span.used]
        counts = [
            span.at_ns,
            span.items[:, leading].sum(axis=1),
            span.bytes[:, leading].sum(axis=1),
            span.items[:, giving].sum(axis=1),
            span.blocked_ns[:, sorted(self._live)].sum(axis=1),
        ]
        arrived = [_count_arrivals(span, end) for end in self._arrivals]
        unknown = np.full((2, span.at_ns.size), np.nan)
        return _Totals(
            counts=np.vstack(counts),
            arrived=np.array(arrived).reshape(len(arrived), span.at_ns.size),
            used_ns=np.array(used, dtype=np.float64).sum(axis=1).T if threads else unknown,
        )

    def _between(self, totals: _Totals, servers: int, *, whole: bool) -> Periods:
        wall_ns, items, size, given, waited_ns = np.diff(totals.counts)
        _, served, counted, *_ = totals.counts[:, -1]
        used_ns = np.diff(totals.used_ns)
        if not whole:
            waited_ns[:1], used_ns[:, :1], self._owed_ns = 0, np.nan, 0
        return Periods(
            servers=servers,
            start_s=(totals.counts[0, :-1] - (self._first_ns or 0)) * _NANO,
            period_s=wall_ns * _NANO,
            items=items,
            bytes=size if counted or not served else np.nan,
            given=given if self._stage.reads and self._stage.writes else np.nan,
            arrived=np.diff(totals.arrived),
            blocked_s=self._fit_waiting(waited_ns, wall_ns * servers, servers) * _NANO,
            cpu_s=used_ns[0] * _NANO,
            delay_s=used_ns[1] * _NANO,
            whole=np.arange(wall_ns.size) >= (not whole),
        )

    def _fit_waiting(self, waited_ns: Integers, most_ns: Integers, servers: int) -> Integers:
        """Return the time waited in the periods; an excess belongs to the next one.

        A wait that ends between reading the clock and copying of its cell shows whole, and
        one that a writer was late to store shows in the next period.
        """
        excess = self._owed_ns + np.cumsum(waited_ns - most_ns)
        # The sum up to a period exceeds neither the time waited nor the time there was.
        least = np.minimum.accumulate(np.concatenate([[0], excess]))
        owed = np.concatenate([[self._owed_ns], excess - least[1:]])
        late_ns = np.maximum(_LATE_PERIODS * most_ns, _LATE_NS * servers)
        if (owed[:-1] > late_ns).any():
            what = f"it waited {owed[:-1].max() * _NANO:.3g} s more than there was time"
            raise InvalidInput(self._too_many(what, servers))
        self._owed_ns = int(owed[-1])
        return most_ns + np.diff(least)

    def _too_many(self, what: str, servers: int) -> str:
        return (
            f"stage {self._stage.name!r}: {what}, expected {servers} at most to serve side by "
            "side; say how many threads do: servers="
        )


def _tail_of(end: End) -> End | None:
    """Return the other end of a queue that is read; None if its name is unusual."""
    if not end.name.endswith(HEAD):
        return None
    return End(end.page, end.name.removesuffix(HEAD) + TAIL)


def _cells(span: Span, ends: Iterable[End]) -> list[int]:
    return [cell for end in ends for cell in span.places[end.key]]


def _count_arrivals(span: Span, end: End | None) -> Floats:
    """Return the items that had arrived by the times; NaN if they are not counted, or no longer."""
    cells = [] if end is None else _cells(span, [end])
    if all(span.closed[cell] for cell in cells):
        return np.full(span.at_ns.size, np.nan)
    counted: Floats = span.items[:, cells].sum(axis=1, dtype=np.float64)
    return counted


def _join(last: _Totals, totals: _Totals) -> _Totals:
    """Put the last of former totals before others."""
    counts, arrived, used_ns = (array[:, -1:] for array in last)
    arrived = np.where(np.isnan(arrived), totals.arrived[:, :1], arrived)
    return _Totals(
        counts=np.hstack([counts, totals.counts]),
        arrived=np.hstack([arrived, totals.arrived]),
        used_ns=np.hstack([used_ns, totals.used_ns]),
    )
