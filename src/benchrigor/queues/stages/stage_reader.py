"""From samples of the cells of a stage to its periods."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model.series import Floats, Ints
from benchrigor.queues.counting.counter_samples import Span
from benchrigor.queues.counting.writers import Owner
from benchrigor.queues.periods import PeriodTable, table_of
from benchrigor.queues.stages.stage import Stage

_NANO = 1e-9
_UNKNOWN = (math.nan, math.nan)
# What a stage has counted by the time of a sample; the items that entered its queues follow.
_AT, _ITEMS, _BYTES, _GIVEN, _WAITED, _CPU, _DELAY, _ARRIVED = range(8)
# Limits of waiting that is counted in a later period than its own: a writer may have been switched
# out between reading the clock and storing the time.
_LATE_PERIODS, _LATE_NS = 16, 1_000_000_000
# Samples, and share of them, that may show more waits at once than there are servers: a server may
# end a wait at one end and begin another while cells are copied one after the other.
_CROWDED, _CROWDED_SHARE = 8, 0.05


class StageReader:
    """Makes periods of successive samples of the cells of one stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._own = (*stage.reads, *stage.writes)
        self._arrivals = [end.tail for end in stage.reads]
        # The ends to sample: its own ones, and the tails of the queues that it reads.
        self.ends = (*self._own, *(end for end in self._arrivals if end is not None))
        self.threads: frozenset[Owner] = frozenset()  # who served last, as far as known
        self._first_ns: int | None = None
        self._last: Floats | None = None  # counts by the last sample, shape (rows, 1)
        self._live: frozenset[int] = frozenset()
        self._owed_ns = 0.0
        self._crowded = self._sampled = 0

    def read(self, span: Span) -> PeriodTable:
        """Return the periods that end with these samples; InvalidInput if too many wait at once."""
        live, last = self._serving(span), self._last
        whole, self._live = last is None or live == self._live, live
        servers = self._servers(span)
        self.threads = frozenset(span.owners[cell] for cell in live if span.owners[cell].tid)
        counts = self._counts(span, servers)
        if last is not None:
            last[_ARRIVED:] = np.where(np.isnan(last), counts[:, :1], last)[_ARRIVED:]
            counts = np.hstack([last, counts])
        self._last = counts[:, -1:].copy()
        return self._between(counts, servers, whole=whole)

    def _leading(self, span: Span) -> list[int]:
        """Return the cells at which the stage serves."""
        return span.of(self._stage.reads or self._stage.writes)

    def _serving(self, span: Span) -> frozenset[int]:
        """Return the cells of the processes that have a live one among the leading."""
        serving = {span.owners[cell].pid for cell in self._leading(span) if span.live[cell]}
        return frozenset(
            cell
            for cell in span.of(self._own)
            if span.live[cell] and span.owners[cell].pid in serving
        )

    def _servers(self, span: Span) -> int:
        """Return how many serve: the servers of the busiest end of every process, summed up."""
        most: Counter[int] = Counter()
        mine: dict[int, list[int]] = {}
        for end in self._own:
            beside: Counter[int] = Counter()
            for cell in self._live.intersection(span.of([end])):
                pid = span.owners[cell].pid
                beside[pid] += end.servers
                mine.setdefault(pid, []).append(cell)
            most |= beside
        for pid, cells in mine.items():
            most[pid] = max(most[pid], self._stage.servers)
            self._check_crowd(span.total("waiting", cells), most[pid])
        return most.total()

    def _check_crowd(self, waiting: Ints, most: int) -> None:
        """Raise when a process has had more waits at once than servers in too many samples."""
        self._sampled += waiting.size
        self._crowded += int(np.count_nonzero(waiting > most))
        if self._crowded >= max(_CROWDED, _CROWDED_SHARE * self._sampled):
            raise InvalidInput(self._too_many(f"{waiting.max()} wait at once", most))

    def _counts(self, span: Span, servers: int) -> Floats:
        """Return what was counted by the times of the samples, shape (rows, n); NaN if unknown."""
        if self._first_ns is None:
            self._first_ns = int(span.at_ns[0])
        leading, n = self._leading(span), span.at_ns.size
        ours = {span.owners[cell].pid for cell in leading}
        giving = [cell for cell in span.of(self._stage.writes) if span.owners[cell].pid in ours]
        counts = np.full((_ARRIVED + len(self._arrivals), n), np.nan)
        counts[_AT] = span.at_ns - self._first_ns
        counts[_ITEMS], counts[_BYTES] = (span.total(word, leading) for word in ("items", "bytes"))
        if self._stage.reads and self._stage.writes:
            counts[_GIVEN] = span.total("items", giving)
        counts[_WAITED] = span.blocked_ns[:, sorted(self._live)].sum(axis=1)
        known = len(self.threads) == servers and all(span.owners[cell].tid for cell in self._live)
        if known and self.threads:
            used = [[use.get(thread) or _UNKNOWN for thread in self.threads] for use in span.used]
            counts[[_CPU, _DELAY]] = np.sum(used, axis=1, dtype=np.float64).T
        for row, end in enumerate(self._arrivals, _ARRIVED):
            cells = [] if end is None else span.of([end])
            if not all(span.cells["closed"][0, cells]):  # else they are not counted, or no longer
                counts[row] = span.total("items", cells)
        return counts

    def _between(self, counts: Floats, servers: int, *, whole: bool) -> PeriodTable:
        gained = np.diff(counts)
        if not whole:
            gained[_WAITED, :1], gained[_CPU : _DELAY + 1, :1], self._owed_ns = 0.0, np.nan, 0.0
        gained[_WAITED] = self._fit_waiting(gained[_WAITED], gained[_AT] * servers, servers)
        if counts[_ITEMS, -1] and not counts[_BYTES, -1]:
            gained[_BYTES] = np.nan  # nobody counts them
        return table_of(
            start_s=counts[_AT, :-1] * _NANO,
            period_s=gained[_AT] * _NANO,
            servers=servers,
            items=gained[_ITEMS],
            bytes=gained[_BYTES],
            given=gained[_GIVEN],
            arrived=gained[_ARRIVED:],
            blocked_s=gained[_WAITED] * _NANO,
            cpu_s=gained[_CPU] * _NANO,
            delay_s=gained[_DELAY] * _NANO,
            whole=np.arange(gained.shape[1]) >= (not whole),
        )

    def _fit_waiting(self, waited_ns: Floats, most_ns: Floats, servers: int) -> Floats:
        """Return the time waited in the periods; an excess belongs to the next one.

        A wait that ends between reading the clock and copying of its cell shows whole, and
        one that a writer was late to store shows in the next period.
        """
        excess = self._owed_ns + np.cumsum(waited_ns - most_ns)
        # The sum up to a period exceeds neither the time waited nor the time there was.
        least = np.minimum.accumulate(np.concatenate([[0.0], excess]))
        owed = np.concatenate([[self._owed_ns], excess - least[1:]])
        late_ns = np.maximum(_LATE_PERIODS * most_ns, _LATE_NS * servers)
        if (owed[:-1] > late_ns).any():
            what = f"it waited {owed[:-1].max() * _NANO:.3g} s more than there was time"
            raise InvalidInput(self._too_many(what, servers))
        self._owed_ns = float(owed[-1])
        found: Floats = most_ns + np.diff(least)
        return found

    def _too_many(self, what: str, servers: int) -> str:
        return (
            f"stage {self._stage.name!r}: {what}, expected {servers} at most to serve side by "
            "side; say how many threads do: servers="
        )
