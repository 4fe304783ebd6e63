"""From samples of many cells to the periods of stages, and to rates, arrivals and utilisation.

While a program runs, every microsecond falls between two of its own counts. So a sample only copies
words. They are interpreted later, many together.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Estimate
from benchrigor.model.series import Floats, Ints
from benchrigor.queues.cells import CELL_WORDS, Page, blocked_until
from benchrigor.queues.data import ServiceRate
from benchrigor.queues.estimator import (
    MOST_RATES,
    Estimator,
    estimator_of,
    in_bytes,
)
from benchrigor.queues.periods import (
    Asked,
    PeriodTable,
    PooledPeriods,
    item_bytes_of,
    join,
    rows_of,
    stack,
    table_of,
)
from benchrigor.queues.rate_arithmetic import filter_ratio, sum_rates, utilisation_of
from benchrigor.queues.stages import Stage, WatchedStage, present_rate
from benchrigor.queues.writers import End, EndKey, Owner, Used
from benchrigor.stats.statistic import estimate_rate

_WORDS = ("items", "bytes", "events", "blocked_ns", "waiting", "owner", "closed", "check")
_CELL = np.dtype([(name, np.uint64) for name in _WORDS])

CellTable = npt.NDArray[np.void]  # shape (samples, cells), with the words of a cell as fields
Copies = tuple[bytes, ...]  # the words of the cells, page by page


class Cells:
    """All cells of some ends, in the order in which they were found."""

    def __init__(self, ends: Iterable[End]) -> None:
        self.places: dict[EndKey, list[int]] = {}  # the indices of an end's cells
        pages = {}
        for end in ends:
            self.places[end.key] = []
            pages[end.key.path] = end.page
        self._pages = [_CopiedPage(path, page) for path, page in pages.items()]
        self._found = 0

    def copy(self) -> Copies:
        """Copy all cells in use, once, even while they are written.

        If a writer is between two stores, its cell does not fit its check, but will the next time.
        """
        for page in self._pages:
            for key, index in page.find():
                if key in self.places:
                    self.places[key].append(self._found)
                    page.own.append((self._found, index))
                    self._found += 1
        return tuple([page.copy() for page in self._pages])

    def table(self, copies: Sequence[Copies]) -> CellTable:
        """Return all cells in successive copies of the same cells, without those found since."""
        columns: dict[int, npt.NDArray[np.uint64]] = {}
        for page, parts in zip(self._pages, zip(*copies, strict=True), strict=True):
            words = np.frombuffer(b"".join(parts), dtype=np.uint64)
            words = words.reshape(len(parts), -1, CELL_WORDS)
            for place, index in page.own:
                if index < words.shape[1]:
                    columns[place] = words[:, index, : len(_WORDS)]
        if not columns:
            return np.zeros((len(copies), 0), dtype=_CELL)
        return np.stack([columns[place] for place in sorted(columns)], axis=1).view(_CELL)[..., 0]


class _CopiedPage:
    """A page that copies all cells at once."""

    def __init__(self, path: str, page: Page) -> None:
        self._path, self._page = path, page
        # Place among all cells, and index in the page, of the cells that are sampled.
        self.own: list[tuple[int, int]] = []
        self._known, self._cells, self._claimed = 0, memoryview(b""), memoryview(b"")
        with suppress(InvalidInput):  # a closed page has none
            self._claimed, self._cells = page.view()

    def find(self) -> Iterator[tuple[EndKey, int]]:
        """Yield the cells that have been claimed since, and their indices."""
        if not self._claimed or self._claimed[0] == self._known:
            return
        with suppress(InvalidInput):  # a closed page gets no more; the known ones stay
            cells = self._page.cells()
            for index in range(self._known, len(cells)):
                yield EndKey(self._path, cells[index].name), index
            self._known = len(cells)

    def copy(self) -> bytes:
        """Return the words of the known cells."""
        return self._cells[: self._known * CELL_WORDS].tobytes()


def owners_of(cells: CellTable) -> list[Owner]:
    """Return the process and thread that count in each of some cells; 0 is unknown."""
    return [Owner(word >> 32, word & 0xFFFFFFFF) for word in cells["owner"].tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cells at one time."""

    at_ns: int  # time of the clock just before they were copied
    copies: Copies
    used: Mapping[Owner, Used | None]  # processor use of threads just after that, if known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """Successive samples of the same cells, all with the same owners."""

    at_ns: Ints  # times, shape (n,)
    cells: CellTable  # shape (n, cells)
    blocked_ns: Ints  # nanoseconds waited, including waits under way, of the same shape
    used: Sequence[Mapping[Owner, Used | None]]  # processor use of threads, per sample
    owners: Sequence[Owner]  # process and thread, per cell
    live: Sequence[bool]  # whether its owner still counts, per cell
    places: Mapping[EndKey, Sequence[int]]  # the indices of an end's cells

    def of(self, ends: Iterable[End]) -> list[int]:
        """Return the indices of the cells of some ends; cells found since are in no sample yet."""
        found = (cell for end in ends for cell in self.places[end.key])
        return [cell for cell in found if cell < len(self.owners)]

    def total(self, word: str, cells: Sequence[int]) -> Ints:
        """Return the sum of a word of some cells, sample by sample."""
        total: Ints = self.cells[word][:, cells].sum(axis=1).astype(np.int64)
        return total


def spans_of(
    samples: Sequence[Sample], cells: Cells, *, gone: Collection[int] = (), before: Ints
) -> Iterator[Span]:
    """Yield the spans of successive samples.

    ``gone`` are processes that have ended, ``before`` the blocked time of the cells in the last
    sample before. The blocked time stays as it was if a wait began after the clock was read, or if
    the writer was killed between two stores.
    """
    table = cells.table([sample.copies for sample in samples])
    at_ns = np.array([sample.at_ns for sample in samples], dtype=np.int64)
    blocked, waiting = table["blocked_ns"], table["waiting"]
    blocked_ns = blocked_until(blocked, waiting, at_ns.astype(np.uint64)[:, None]).view(np.int64)
    torn = blocked ^ waiting != table["check"]
    floor = np.zeros((1, table.shape[1]), dtype=np.int64)
    floor[0, : before.size] = before
    blocked_ns = np.maximum.accumulate(np.vstack([floor, np.where(torn, 0, blocked_ns)]))[1:]
    differs = [table[word][1:] != table[word][:-1] for word in ("owner", "closed")]
    turns = np.flatnonzero(np.logical_or(*differs).any(axis=1)) + 1
    for start, stop in zip([0, *turns], [*turns, len(samples)], strict=True):
        owners, closed = owners_of(table[start]), table["closed"][start].tolist()
        yield Span(
            at_ns=at_ns[start:stop],
            cells=table[start:stop],
            blocked_ns=blocked_ns[start:stop],
            used=[sample.used for sample in samples[start:stop]],
            owners=owners,
            live=[
                not end and owner.pid not in gone for owner, end in zip(owners, closed, strict=True)
            ],
            places=cells.places,
        )


_NANO = 1e-9
_UNKNOWN = (math.nan, math.nan)
# Counts of a stage at the time of a sample; the items that entered its queues follow.
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
        """Return the counts at the times of the samples, shape (rows, n); NaN if unknown."""
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


# Periods that a time with one number of servers must have for its rate to be kept.
_FEWEST_PERIODS = 10
_HELD = 1024  # periods that are held back one by one; more are joined
_ROUNDING_S = 1e-9  # of the times of rates: they are sums of periods


class StageFigures:
    """Reads the periods of a stage, and estimates its rates.

    Incomplete periods do not count: the first period with an item, and periods in which a server
    came or went. Periods from the last item on count once another item follows, since the stream
    may have ended. With another number of servers a new phase begins.
    """

    def __init__(self, stage: Stage, asked: Asked) -> None:
        self.name, self.reader, self._stage = stage.name, StageReader(stage), stage
        self.failure: str | None = None  # why the stage is watched no more
        self.restart(asked)

    def restart(self, asked: Asked) -> None:
        """Forget all periods, and estimate the next ones as asked."""
        self._asked, self._began_s, self._servers = asked, 0.0, 0
        self._past: deque[ServiceRate] = deque(maxlen=MOST_RATES)
        self._estimator: Estimator | None = None
        self._flows = PooledPeriods(table_of(items=(), arrived=[()] * len(self._stage.reads)))
        # Periods from the last item on; the first item begins the table.
        self._held: PeriodTable | None = None

    def read(self, span: Span) -> PeriodTable | None:
        """Return the periods that end with some samples; None of a stage that has failed."""
        if self.failure is None:
            try:
                return self.reader.read(span)
            except InvalidInput as error:  # the other stages go on
                self.failure = str(error)
        return None

    def tell(self, periods: PeriodTable) -> list[PeriodTable]:
        """Take the next periods; return those that count now, by their number of servers."""
        if self._held is None:
            (served,) = np.nonzero(periods["items"])
            if not served.size:
                return []
            periods = periods[served[0] + 1 :]
            self._held = periods[:0]
        held = stack(self._held, periods)
        last = int(np.flatnonzero(held["items"])[-1]) if held["items"].any() else 0
        counted, self._held = _complete(held[:last]), held[last:]
        if self._held.size > _HELD:
            self._held = stack(held[:0], *(join(part) for part in _complete(self._held)))
        for part in counted:
            self._count(part)
        return counted

    def known(self) -> WatchedStage:
        """Return the results so far."""
        rates = (*self._past, *self._current())
        now = present_rate(rates)
        flows = self._flows.full
        since_s = 0.0 if now is None else now.start_s
        inputs = self._inputs(flows[flows["start_s"] >= since_s - _ROUNDING_S])
        arrivals, utilisation = self._sum(inputs), None
        last, silent_s = _last_with_arrivals(flows, [rate.start_s for rate in rates])
        if arrivals is not None and now is not None and now.estimate is not None:
            utilisation = if_estimable(utilisation_of, arrivals, now.estimate)
        passed = flows["items"], flows["given"]
        return WatchedStage(
            name=self.name,
            reads=tuple(end.queue for end in self._stage.reads),
            writes=tuple(end.queue for end in self._stage.writes),
            servers=self._servers,
            rates=rates,
            inputs=inputs,
            arrivals=arrivals,
            last_arrivals=self._sum(self._inputs(last)),
            silent_s=silent_s,
            utilisation=utilisation,
            filter_ratio=if_estimable(filter_ratio, *passed, confidence=self._asked.confidence),
            failure=self.failure,
        )

    def _count(self, periods: PeriodTable) -> None:
        servers = int(periods["servers"][0])
        if self._estimator is None or servers != self._servers:
            self._past.extend(rate for rate in self._current() if rate.periods >= _FEWEST_PERIODS)
            self._began_s = float(periods["start_s"][0])
            self._servers = servers
            self._estimator = estimator_of(replace(self._asked, servers=servers))
        self._estimator.add(periods)
        self._flows.add(periods)

    def _current(self) -> list[ServiceRate]:
        """Return the rates with as many servers as now, in seconds since watching began."""
        if self._estimator is None:
            return []
        flows = self._flows.all()
        rates = []
        for rate in self._estimator.rates():
            start_s, stop_s = rate.start_s + self._began_s, rate.stop_s + self._began_s
            inside = (flows["start_s"] >= start_s - _ROUNDING_S) & (flows["start_s"] < stop_s)
            timed = replace(rate, start_s=start_s, stop_s=stop_s)
            rates.append(in_bytes(timed, item_bytes_of(flows[inside])))
        return rates

    def _sum(self, inputs: Mapping[str, Estimate]) -> Estimate | None:
        """Return the arrivals at all queues together; None if those at one queue are unknown."""
        whole = inputs and len(inputs) == len(self._stage.reads)
        return sum_rates(inputs.values()) if whole else None

    def _inputs(self, flows: PeriodTable) -> dict[str, Estimate]:
        """Estimate items per second that enter the queues, by their names; without unknown ones."""
        inputs, wall_s = {}, flows["period_s"]
        for end, arrived in zip(self._stage.reads, flows["arrived"].T, strict=True):
            confidence = self._asked.confidence
            rate = if_estimable(
                estimate_rate, arrived / wall_s, weights=wall_s, confidence=confidence
            )
            if rate is not None:
                inputs[end.queue] = replace(rate, low=max(0.0, rate.low))
        return inputs


def if_estimable(estimate: Callable[..., Estimate], *given: Any, **options: Any) -> Estimate | None:
    """Return an estimate, or None of too few periods, or if one lacks the value."""
    with suppress(InvalidInput, NotEstimable):
        return estimate(*given, **options)
    return None


def _complete(periods: PeriodTable) -> list[PeriodTable]:
    """Return the periods with the same servers all the time, one or more, by their number."""
    whole = rows_of(periods, (periods["whole"] > 0.0) & (periods["servers"] > 0.0))
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
