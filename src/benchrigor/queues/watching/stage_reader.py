"""From samples of the cells of a stage to what it did, period by period."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import Floats
from benchrigor.queues.counting.ends import End
from benchrigor.queues.watching.owners import Owner
from benchrigor.queues.watching.period_block import PeriodBlock
from benchrigor.queues.watching.samples import Integers, Span, key_of
from benchrigor.queues.watching.stage import HEAD, TAIL, Stage

__all__ = ["StageReader"]

_NANO = 1e-9
_UNKNOWN = (math.nan, math.nan)
_LATE_PERIODS, _LATE_NS = 16, 1_000_000_000
"""Waiting that a server may be counted in a later period than it was in: a writer may have been
switched out between its look at the clock and what it stores."""
_CROWDED, _CROWDED_SHARE = 8, 0.05
"""Samples, and share of them, that may show more waits at once than there are servers: cells are
copied one after the other, and who has ended a wait at one end may begin the next one at the
other meanwhile."""


class _Looks(NamedTuple):
    """A stage at successive times, its cells summed up; arrays of shape (n,)."""

    at_ns: Integers
    items: Integers
    given: Integers
    waited_ns: Integers
    arrived: tuple[Integers | None, ...]
    used_ns: Floats
    """What its threads had used, shape (n, 2); NaN where that is not known."""


class StageReader:
    """Makes periods of successive samples of the cells of one stage.

    Parameters
    ----------
    stage
        What is looked at.

    Attributes
    ----------
    ends
        What has to be sampled for it: its own ends, and the tails of the queues that it reads.
    threads
        Who served last, as far as it is known.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._own = (*stage.reads, *stage.writes)
        self._arrivals = tuple(_tail_of(end) for end in stage.reads)
        self.ends = (*self._own, *(end for end in self._arrivals if end is not None))
        self.threads: frozenset[Owner] = frozenset()
        self._first_ns: int | None = None
        self._last: _Looks | None = None
        self._live: frozenset[int] = frozenset()
        self._owed_ns = 0
        self._crowded = self._looked = 0

    def read(self, span: Span) -> PeriodBlock:
        """Return the periods that end with these samples.

        Raises
        ------
        InvalidInput
            When time and again more wait side by side than there should be servers.
        """
        live, last = self._serving(span), self._last
        whole, self._live = last is None or live == self._live, live
        servers = self._servers(span)
        self.threads = frozenset(span.owners[cell] for cell in live if span.owners[cell].tid)
        self._last = looks = self._looks(span, servers)
        if last is None:
            self._first_ns = int(looks.at_ns[0])
        return self._between(looks if last is None else _behind(last, looks), servers, whole=whole)

    def _leading(self, span: Span) -> list[int]:
        """Return the cells at which the stage serves."""
        return _cells(span, self._stage.reads or self._stage.writes)

    def _serving(self, span: Span) -> frozenset[int]:
        """Return the cells of those who serve: whoever has a live one among the leading."""
        serving = {span.owners[cell].pid for cell in self._leading(span) if span.live[cell]}
        return frozenset(
            cell
            for cell in _cells(span, self._own)
            if span.live[cell] and span.owners[cell].pid in serving
        )

    def _servers(self, span: Span) -> int:
        """Return how many serve: of each process as many as its busiest end says."""
        beside: Counter[tuple[int, int]] = Counter()
        mine: dict[int, list[int]] = {}
        for number, end in enumerate(self._own):
            for cell in self._live.intersection(span.places[key_of(end)]):
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
        self._looked += waiting.size
        self._crowded += int(np.count_nonzero(waiting > most))
        if self._crowded >= max(_CROWDED, _CROWDED_SHARE * self._looked):
            raise InvalidInput(self._too_many(f"{waiting.max()} wait at once", most))

    def _looks(self, span: Span, servers: int) -> _Looks:
        leading = self._leading(span)
        ours = {span.owners[cell].pid for cell in leading}
        giving = [
            cell for cell in _cells(span, self._stage.writes) if span.owners[cell].pid in ours
        ]
        known = len(self.threads) == servers and all(span.owners[c].tid for c in self._live)
        return _Looks(
            at_ns=span.at_ns,
            items=span.items[:, leading].sum(axis=1),
            given=span.items[:, giving].sum(axis=1),
            waited_ns=span.blocked_ns[:, sorted(self._live)].sum(axis=1),
            arrived=tuple(_arrived(span, end) for end in self._arrivals),
            used_ns=_used(span, self.threads if known else ()),
        )

    def _between(self, looks: _Looks, servers: int, *, whole: bool) -> PeriodBlock:
        wall_ns = np.diff(looks.at_ns)
        waited_ns, used_ns = np.diff(looks.waited_ns), np.diff(looks.used_ns, axis=0)
        if not whole:
            waited_ns[:1], used_ns[:1], self._owed_ns = 0, np.nan, 0
        return PeriodBlock.of(
            servers=servers,
            start_s=(looks.at_ns[:-1] - (self._first_ns or 0)) * _NANO,
            period_s=wall_ns * _NANO,
            items=np.diff(looks.items),
            given=np.diff(looks.given) if self._stage.reads and self._stage.writes else np.nan,
            arrived=[np.nan if each is None else np.diff(each) for each in looks.arrived],
            blocked_s=self._fitted(waited_ns, wall_ns * servers, servers) * _NANO,
            cpu_s=used_ns[:, 0] * _NANO,
            delay_s=used_ns[:, 1] * _NANO,
            whole=np.arange(wall_ns.size) >= (not whole),
        )

    def _fitted(self, waited_ns: Integers, most_ns: Integers, servers: int) -> Integers:
        """Return how much of the waiting was in each period; what is too much is the next one's.

        A wait that ends between the look at the clock and the copying of its cell shows whole, and
        one that a writer was late to store shows in the next period.
        """
        excess = self._owed_ns + np.cumsum(waited_ns - most_ns)
        # What is counted up to each period is at most what was waited, and what there was time for.
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
    """Return the other end of a queue that is read; None where its name does not tell."""
    if not end.name.endswith(HEAD):
        return None
    return End(end.page, end.name.removesuffix(HEAD) + TAIL)


def _cells(span: Span, ends: Sequence[End]) -> list[int]:
    return [cell for end in ends for cell in span.places[key_of(end)]]


def _arrived(span: Span, end: End | None) -> Integers | None:
    """Return what had arrived at each time; nobody knows where nobody counts, or no more."""
    cells = [] if end is None else _cells(span, [end])
    if all(span.closed[cell] for cell in cells):
        return None
    counted: Integers = span.items[:, cells].sum(axis=1)
    return counted


def _used(span: Span, threads: Collection[Owner]) -> Floats:
    """Return what all threads had used; unknown where it is not known of all of them."""
    if not threads:
        return np.full((len(span.used), 2), np.nan)
    used = [[each.get(thread) or _UNKNOWN for thread in threads] for each in span.used]
    found: Floats = np.array(used, dtype=np.float64).sum(axis=1)
    return found


def _behind(last: _Looks, looks: _Looks) -> _Looks:
    """Put the last one of former looks before others."""
    return _Looks(
        at_ns=np.append(last.at_ns[-1:], looks.at_ns),
        items=np.append(last.items[-1:], looks.items),
        given=np.append(last.given[-1:], looks.given),
        waited_ns=np.append(last.waited_ns[-1:], looks.waited_ns),
        arrived=tuple(
            None
            if after is None
            else np.append(after[:1] if before is None else before[-1:], after)
            for before, after in zip(last.arrived, looks.arrived, strict=True)
        ),
        used_ns=np.vstack([last.used_ns[-1:], looks.used_ns]),
    )
