"""Samples the cells of all stages, and the loop that does so in a thread or in a process."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.queues.arithmetic.rate_arithmetic import filter_ratio
from benchrigor.queues.counting.counter_samples import (
    Cells,
    Copies,
    Sample,
    Span,
    owners_of,
    spans_of,
)
from benchrigor.queues.counting.writers import Owner, Owners
from benchrigor.queues.data.service import RateReason
from benchrigor.queues.period_calibrator import CalibratedPeriod, PeriodCalibrator
from benchrigor.queues.periods import PeriodTable, PooledPeriods, table_of
from benchrigor.queues.recording.recordings import RecordingWriter
from benchrigor.queues.stages.monitor_report import MonitorReport
from benchrigor.queues.stages.stage import Stage
from benchrigor.queues.stages.stage_figures import StageFigures, WatchedStage, Watching
from benchrigor.queues.stages.stage_reader import StageReader
from benchrigor.secret_texts import hide_in_text

_SAMPLES = 256  # samples that are worked off together
_SOUGHT = 5  # the same during the search for a period, which needs five in a row
# Of that search: sampling in shorter periods takes more than 1 % of a processor; longer ones take
# minutes; this number of tries ends within seconds.
_LIMITS: dict[str, Any] = {"shortest_s": 0.05, "longest_s": 0.2, "tries": 40}
PATIENCE_S = 5.0  # longest wait for the end of a thread, or a process, that samples
# How often it checks which processes have ended: a check takes as long as half a sample.
_GLANCE_NS = 100_000_000

_COLUMNS = ("end", "servers", "period_s", "items", "blocked_s", "cpu_s", "delay_s", "bytes")

Record = Callable[
    [str, PeriodTable], None
]  # takes the name of a stage, and periods of it that count


class Sampler:
    """Samples the cells of all stages at once, and works the samples off some at a time."""

    thread_time = staticmethod(time.thread_time)

    def __init__(
        self, stages: Sequence[Stage], watching: Watching, *, owners: Owners | None = None
    ) -> None:
        self._watching, self._stages = watching, stages
        # Know the processes and threads that count.
        self.owners = Owners() if owners is None else owners
        # Separates reports and samples; the program that counts does not use it.
        self.lock = threading.RLock()
        self.record: Record | None = None  # takes the periods that count
        # How long to wait for the next sample, in seconds; None to sample no more.
        self.period_s = watching.period_s
        self.failure: str | None = None  # why it samples no more
        self.nobody_left = False
        by_time = watching if watching.period_s else replace(watching, method="busy-time")
        self._pairs = [(StageReader(stage), StageFigures(stage, by_time)) for stage in stages]
        self._cells = Cells(end for reader, _ in self._pairs for end in reader.ends)
        self._items = PooledPeriods(table_of(items=(), arrived=[()] * len(stages)))
        self._first = next((number for number, stage in enumerate(stages) if stage.reads), None)
        self._samples: list[Sample] = []
        self._sizes: list[int] = []
        self._threads: list[Owner] = []
        self._due_ns = 0
        self._gone: frozenset[int] = frozenset()
        self._blocked_ns = np.zeros(0, dtype=np.int64)
        self._by_time = watching.method == "busy-time"
        self._search: PeriodCalibrator | None = None
        self._provisional: list[WatchedStage] = []  # by "busy-time", until the method has a rate
        self._spent_s = self._seek_s = 0.0  # processor time by the last sample, and search step
        if watching.period_s is None:
            self._search = PeriodCalibrator(unblocked=not self._by_time, **_LIMITS)
            self.period_s = self._search.ask()
        self._first_ns: int | None = None
        self._last_ns = 0

    @property
    def began(self) -> bool:
        """Whether it has sampled."""
        return self._first_ns is not None

    def sample(self, now_ns: int) -> None:
        """Copy the cells at a time of the clock, which was read just before."""
        with self.lock:
            self._spent_s = self.thread_time()
            copies = self._cells.copy()
            self._first_ns, self._last_ns = self._first_ns or now_ns, now_ns
            if now_ns >= self._due_ns or list(map(len, copies)) != self._sizes:
                self._look_around(copies)
                self._due_ns = now_ns + _GLANCE_NS
            used = {owner: self.owners.used(owner) for owner in self._threads}
            self._samples.append(Sample(at_ns=now_ns, copies=copies, used=used))
            if len(self._samples) >= (_SAMPLES if self._search is None else _SOUGHT):
                self.work_off()

    def work_off(self) -> None:
        """Make periods of the samples so far, and rates of the periods."""
        with self.lock:
            samples, self._samples = self._samples, []
            if samples:
                before = self._blocked_ns
                for span in spans_of(samples, self._cells, gone=self._gone, before=before):
                    self._take([self._read(*pair, span) for pair in self._pairs])
                    self._blocked_ns = span.blocked_ns[-1]
                    self.nobody_left = bool(span.live) and not any(span.live)

    def report(self, *, cost_s: float = 0.0) -> MonitorReport:
        """Return the results from the samples worked off so far, and the cost."""
        with self.lock:
            first_ns = self._last_ns if self._first_ns is None else self._first_ns
            known = self._known()
            return MonitorReport(
                stages=tuple(map(self._with_visits, range(len(known)), known)),
                watched_s=(self._last_ns - first_ns) * 1e-9,
                cost_s=cost_s,
                period_s=self.period_s,
                failure=self.failure,
                seeking=self._search is not None,
            )

    def _known(self) -> list[WatchedStage]:
        """Return the results; rates are provisional until the method has a rate of its own.

        The method needs periods of one width, and so has no rate while that is sought.
        """
        known = [figures.known() for _, figures in self._pairs]
        if self._search is not None:
            return [_provisional(stage) for stage in known]
        return [
            before if now.rate is None or now.rate.estimate is None else now
            for now, before in zip(known, self._provisional or known, strict=True)
        ]

    def _look_around(self, copies: Copies) -> None:
        """Check who counts, and who is gone; work off earlier samples with the former owners."""
        owners = owners_of(self._cells.table([copies])[0])
        gone = self.owners.gone({owner.pid for owner in owners})
        sizes = list(map(len, copies))
        if gone != self._gone or sizes != self._sizes:
            self.work_off()
        self._gone, self._sizes = gone, sizes
        self._threads = [owner for owner in dict.fromkeys(owners) if owner.tid]

    def _read(self, reader: StageReader, figures: StageFigures, span: Span) -> PeriodTable | None:
        if figures.failure is not None:
            return None
        try:
            return reader.read(span)
        except InvalidInput as error:  # the other stages go on
            figures.failure = str(error)
            return None

    def _take(self, read: Sequence[PeriodTable | None]) -> None:
        """Pass the periods on to estimators, recording, and the search for a period."""
        blocks = [periods for periods in read if periods is not None]
        if len(blocks) == len(read):
            items = [block["items"] for block in blocks]
            start_s = blocks[0]["start_s"]
            self._items.add(table_of(start_s=start_s, items=items[0], arrived=items))
        threads = Counter(thread for reader, _ in self._pairs for thread in reader.threads)
        for (reader, figures), periods in zip(self._pairs, read, strict=True):
            if periods is None or not periods.size:
                continue
            if any(threads[thread] > 1 for thread in reader.threads):
                # The time of a thread that serves several stages cannot be divided among them.
                periods["cpu_s"] = periods["delay_s"] = np.nan
            for counted in figures.tell(periods):
                if self.record is not None and (self._search is None or self._by_time):
                    self.record(figures.name, counted)
        if self._search is not None and blocks:
            self._seek(self._search, blocks)

    def _seek(self, search: PeriodCalibrator, blocks: Sequence[PeriodTable]) -> None:
        """Pass periods to the search, with the waiting of the stage that waits least."""
        widths = blocks[0]["period_s"].tolist()
        blocked = np.min([block["blocked_s"] for block in blocks], axis=0) > 0.0
        items = np.sum([block["items"] for block in blocks], axis=0)
        cost_s, self._seek_s = (self._spent_s - self._seek_s) / max(len(widths), 1), self._spent_s
        for period in zip(widths, blocked.tolist(), items.tolist(), strict=True):
            # Later ones were sampled with the old period; without items it is unknown whether the
            # stage would wait.
            if search.ask() == self.period_s and (period[-1] or not self._by_time):
                search.tell(*period, cost_s=cost_s)
        self.period_s = search.ask()
        if search.result is not None:
            self._adopt(search.result)

    def _adopt(self, found: CalibratedPeriod) -> None:
        """Go on with the period that was found; "busy-time" can use any."""
        self._search, self.period_s = None, found.period_s
        if self._by_time:
            self.period_s = found.period_s or _LIMITS["shortest_s"]
        else:
            self._provisional = [_provisional(figures.known()) for _, figures in self._pairs]
            watching = replace(self._watching, period_s=self.period_s)
            self._pairs = [
                (reader, StageFigures(stage, watching) if figures.failure is None else figures)
                for (reader, figures), stage in zip(self._pairs, self._stages, strict=True)
            ]
            if found.notice is not None:
                self.failure = f"{found.notice.sentence} Shorter ones take more of a processor."

    def _with_visits(self, number: int, known: WatchedStage) -> WatchedStage:
        """Add how many items the stage served per item of the first stage that reads."""
        if self._first is not None:
            items = self._items.full["arrived"].T
            with suppress(InvalidInput, NotEstimable):
                confidence = self._watching.confidence
                visits = filter_ratio(items[number], items[self._first], confidence=confidence)
                return replace(known, visits=visits)
        return known


def _provisional(stage: WatchedStage) -> WatchedStage:
    rates = (replace(rate, converged=False, reason=RateReason.PROVISIONAL) for rate in stage.rates)
    return replace(stage, rates=tuple(rates))


def describe(error: Exception) -> str:
    """Say why watching has ended."""
    return f"{type(error).__name__}: {hide_in_text(str(error))}"


def keep_sampling(
    take: Callable[[int], float | None],
    wait: Callable[[float], bool],
    *,
    now_ns: Callable[[], int] = time.perf_counter_ns,
) -> None:
    """Sample on a grid of times, so that no period makes the next one later.

    ``take`` samples at a time in nanoseconds and returns the seconds to the next sample, None to
    end. ``wait`` waits for the given seconds, and returns True to end. Times of the grid that have
    passed are skipped.
    """
    due_ns = now_ns()
    while not wait(max(0, due_ns - now_ns()) * 1e-9):
        period_s = take(now_ns())
        if period_s is None:
            return
        period_ns = max(1, round(period_s * 1e9))
        late_ns = max(0, now_ns() - due_ns)
        due_ns += period_ns * (1 + late_ns // period_ns)


def run_sampler(
    sampler: Sampler,
    take: Callable[[int], float | None],
    wait: Callable[[float], bool],
    *,
    log: Path | None,
) -> None:
    """Keep sampling, work off all samples in the end, and write the periods to a file if wanted."""
    try:
        with period_log(log, period_s=sampler.period_s) as sampler.record:
            try:
                keep_sampling(take, wait)
            finally:
                sampler.work_off()
    finally:
        sampler.record = None
        sampler.owners.close()


@contextmanager
def period_log(path: Path | None, *, period_s: float | None) -> Iterator[Record | None]:
    """Return a function that writes periods to a file; it closes the file in the end.

    A stage with another number of servers is another one: "hash", "hash (3 servers)".
    """
    if path is None:
        yield None
        return
    facts, usual = {"period_s": period_s}, dict[str, int]()
    with RecordingWriter.create(path, columns=_COLUMNS, counters="delta", facts=facts) as rows:

        def record(stage: str, periods: PeriodTable) -> None:
            servers = int(periods["servers"][0])
            is_usual = servers == usual.setdefault(stage, servers)
            end = stage if is_usual else f"{stage} ({servers} servers)"
            columns = [periods[name].tolist() for name in _COLUMNS[2:]]
            for wall_s, items, *times, size in zip(*columns, strict=True):
                known = 0 if math.isnan(size) else int(size)  # 0 if bytes are not counted
                rows.add(end, servers, wall_s, int(items), *times, known)

        yield record
