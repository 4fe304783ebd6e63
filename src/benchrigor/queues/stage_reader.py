"""From samples of the cells of a stage to what it did, period by period."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchrigor.errors import InvalidInput
from benchrigor.queues.owners import Owner, Used
from benchrigor.queues.samples import Integers, Span, key_of
from benchrigor.queues.stage import HEAD, TAIL, Stage
from benchrigor.queues.tap import End

__all__ = ["Period", "StageReader"]

_NANO = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What a stage did in one sampling period.

    Parameters
    ----------
    start_s
        When it began, in seconds since watching did.
    period_s
        Realised width, in seconds.
    items
        Served.
    arrived
        Items that entered each queue that the stage reads; None where nobody counts that.
    given
        Items that the stage wrote; None where it reads or writes nothing.
    blocked_s
        How long it waited, in seconds, the sum over its servers.
    servers
        Threads or processes that served side by side.
    whole
        Whether they were the same all the time; else nobody knows for how long each served.
    cpu_s, delay_s
        Processor time used, and time waited for a processor, in seconds; None where not known.
    """

    start_s: float
    period_s: float
    items: int
    arrived: tuple[int | None, ...] = ()
    given: int | None = None
    blocked_s: float = 0.0
    servers: int = 1
    whole: bool = True
    cpu_s: float | None = None
    delay_s: float | None = None


class _Look(NamedTuple):
    """A stage at one time, its cells summed up."""

    at_ns: int
    items: int
    given: int
    waited_ns: int
    arrived: tuple[int | None, ...]
    used: Used | None


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
        self._last: _Look | None = None
        self._live: frozenset[int] = frozenset()
        self._owed_ns = 0

    def read(self, span: Span) -> list[Period]:
        """Return the periods that end with these samples.

        Raises
        ------
        InvalidInput
            When more wait side by side than there should be servers.
        """
        live = self._serving(span)
        whole, self._live = live == self._live, live
        servers = self._servers(span)
        self.threads = frozenset(span.owners[cell] for cell in live if span.owners[cell].tid)
        periods = []
        for look in self._looks(span, servers):
            last, self._last = self._last, look
            if last is not None:
                periods.append(self._between(last, look, servers, whole=whole))
                whole = True
            else:
                self._first_ns = look.at_ns
        return periods

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
            waiting = int(span.waiting[:, cells].sum(axis=1).max())
            if waiting > most[pid]:
                raise InvalidInput(self._too_many(f"{waiting} wait at once", most[pid]))
        return sum(most.values())

    def _looks(self, span: Span, servers: int) -> Iterator[_Look]:
        leading = self._leading(span)
        ours = {span.owners[cell].pid for cell in leading}
        giving = [
            cell for cell in _cells(span, self._stage.writes) if span.owners[cell].pid in ours
        ]
        known = len(self.threads) == servers and all(span.owners[c].tid for c in self._live)
        arrived = [_arrived(span, end) for end in self._arrivals]
        columns = zip(
            span.at_ns.tolist(),
            _total(span.items, leading),
            _total(span.items, giving),
            _total(span.blocked_ns, sorted(self._live)),
            zip(*arrived, strict=True) if arrived else [()] * span.at_ns.size,
            (_used(used, self.threads) if known else None for used in span.used),
            strict=True,
        )
        return (_Look(*each) for each in columns)

    def _between(self, last: _Look, look: _Look, servers: int, *, whole: bool) -> Period:
        wall_ns = look.at_ns - last.at_ns
        if not whole:
            self._owed_ns = 0
        waited_ns = look.waited_ns - last.waited_ns if whole else 0
        used = None
        if whole and last.used is not None and look.used is not None:
            used = [(b - a) * _NANO for a, b in zip(last.used, look.used, strict=True)]
        both = self._stage.reads and self._stage.writes
        return Period(
            start_s=(last.at_ns - (self._first_ns or 0)) * _NANO,
            period_s=wall_ns * _NANO,
            items=look.items - last.items,
            arrived=tuple(
                None if b is None else b - (a or 0)
                for a, b in zip(last.arrived, look.arrived, strict=True)
            ),
            given=look.given - last.given if both else None,
            blocked_s=self._fitted(waited_ns, wall_ns * servers, servers) * _NANO,
            servers=servers,
            whole=whole,
            cpu_s=used[0] if used else None,
            delay_s=used[1] if used else None,
        )

    def _fitted(self, waited_ns: int, most_ns: int, servers: int) -> int:
        """Return how much of the waiting was in this period; what is too much is the next one's.

        A wait that ends between the look at the clock and the copying of its cell shows whole.
        """
        if self._owed_ns > most_ns:
            what = f"it waited {self._owed_ns * _NANO:.3g} s more than there was time"
            raise InvalidInput(self._too_many(what, servers))
        waited_ns += self._owed_ns
        self._owed_ns = max(0, waited_ns - most_ns)
        return waited_ns - self._owed_ns

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


def _total(counts: Integers, cells: Sequence[int]) -> list[int]:
    found: list[int] = counts[:, cells].sum(axis=1).tolist()
    return found


def _arrived(span: Span, end: End | None) -> Sequence[int | None]:
    """Return what had arrived at each time; nobody knows where nobody counts."""
    cells = [] if end is None else _cells(span, [end])
    return _total(span.items, cells) if cells else [None] * span.at_ns.size


def _used(used: Mapping[Owner, Used | None], threads: Iterable[Owner]) -> Used | None:
    """Return what all threads had used; None where it is not known of all of them."""
    parts = [used.get(each) for each in threads]
    known = [each for each in parts if each is not None]
    if not known or len(known) < len(parts):
        return None
    return Used(sum(each.cpu_ns for each in known), sum(each.delay_ns for each in known))
