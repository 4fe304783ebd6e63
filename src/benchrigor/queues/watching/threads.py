"""Watches from threads of the program itself: one that samples, one that grows full queues."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchrigor.queues.arithmetic.periods import PeriodTable
from benchrigor.queues.arithmetic.service_rate import Asked
from benchrigor.queues.counting.writers import Double, End
from benchrigor.queues.recording.recordings import RecordingWriter
from benchrigor.queues.stages.monitor_report import MonitorReport, QueueGrowth
from benchrigor.queues.stages.stage import Stage
from benchrigor.queues.watching.sampler import Record, Sampler
from benchrigor.secret_texts import hide_in_text

PATIENCE_S = 5.0  # longest wait for the end of a thread, or a process, that samples
_COLUMNS = ("end", "servers", "period_s", "items", "blocked_s", "cpu_s", "delay_s", "bytes")

FULL = 0.8  # a queue counts as full if its producers wait for room for this share of a period
IN_A_ROW = 3
MOST_TIMES = 64  # the bound that the program has set

Wait = Callable[[float], bool]  # waits for the given seconds, and returns True to end


class WatchThread:
    """A thread that ends with the program, which its errors do not reach."""

    def __init__(self, name: str, run: Callable[[Wait], None]) -> None:
        self.failure: str | None = None  # why it has ended although it was not stopped
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=lambda: self.attempt(lambda: run(self._stopped.wait)), name=name, daemon=True
        )
        self.start, self.is_alive = self._thread.start, self._thread.is_alive

    def stop(self) -> None:
        """End, within a sample."""
        self._stopped.set()
        self._thread.join(PATIENCE_S)

    def attempt(self, call: Callable[[], None]) -> None:
        """Call something; if it fails, keep why, and end."""
        try:
            call()
        except Exception as error:  # noqa: BLE001  # the program must not fail from it
            self.failure = f"{type(error).__name__}: {hide_in_text(str(error))}"
            self._stopped.set()


def keep_sampling(
    take: Callable[[int], float | None],
    wait: Wait,
    *,
    now_ns: Callable[[], int] = time.perf_counter_ns,
) -> None:
    """Sample on a grid of times, so that no period makes the next one later.

    ``take`` samples at a time in nanoseconds and returns the seconds to the next sample, None to
    end. Times of the grid that have passed are skipped.
    """
    due_ns = now_ns()
    while not wait(max(0, due_ns - now_ns()) * 1e-9):
        period_s = take(now_ns())
        if period_s is None:
            return
        period_ns = max(1, round(period_s * 1e9))
        late_ns = max(0, now_ns() - due_ns)
        due_ns += period_ns * (1 + late_ns // period_ns)


class ThreadWatch:
    """Samples in a thread, and writes the periods to a file if wanted."""

    def __init__(self, stages: Sequence[Stage], asked: Asked, record: Path | None) -> None:
        self.sampler = Sampler(stages, asked)
        self._record, self._cost_s = record, 0.0
        self._thread = WatchThread("benchrigor-monitor", self._watch)
        self.start, self.stop = self._thread.start, self._thread.stop

    @property
    def is_over(self) -> bool:
        """Whether it watches no more."""
        return not self._thread.is_alive()

    def report(self, *, cost_s: float | None = None) -> MonitorReport:
        """Return the results so far, by default with the processor time of the thread."""
        self._thread.attempt(self.sampler.work_off)
        report = self.sampler.report(cost_s=self._cost_s if cost_s is None else cost_s)
        return replace(report, failure=self._thread.failure or report.failure)

    def _watch(self, wait: Wait) -> None:
        sampler = self.sampler
        try:
            with _period_log(self._record, sampler.period_s) as sampler.record:
                try:
                    keep_sampling(self._take, wait)
                finally:
                    sampler.work_off()
        finally:
            sampler.record = None
            sampler.owners.close()

    def _take(self, now_ns: int) -> float | None:
        self.sampler.sample(now_ns)
        self._cost_s = time.thread_time()
        return self.sampler.period_s


@contextmanager
def _period_log(path: Path | None, period_s: float | None) -> Iterator[Record | None]:
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


class FullQueue:
    """Decides whether one queue has been full.

    Beard & Chamberlain 2015, section III: a full queue hides the service rate of its producer. The
    authors' program doubles a queue that was full in 80 % of its samples, three times in a row.
    """

    def __init__(self) -> None:
        self._at_ns: int | None = None
        self._blocked_ns = self._full = 0

    def is_full(self, now_ns: int, blocked_ns: int) -> bool:
        """Whether it was full in three periods in a row, by the time waited until now."""
        before_ns, before = self._at_ns, self._blocked_ns
        self._at_ns, self._blocked_ns = now_ns, blocked_ns
        if before_ns is None or now_ns <= before_ns:
            return False
        is_full = blocked_ns - before >= FULL * (now_ns - before_ns)
        self._full = self._full + 1 if is_full else 0
        if self._full < IN_A_ROW:
            return False
        self._full = 0
        return True


class GrowthWatch:
    """Looks at the tails of queues period by period, in a thread, and grows those that are full."""

    def __init__(self, stages: Iterable[Stage], *, period_s: float) -> None:
        ends = [end for stage in stages for end in (*stage.reads, *stage.writes)]
        queues = {tail.key: (tail, end.double) for end in ends if (tail := end.tail or end)}
        self._queues: list[tuple[End, Double, FullQueue]] = [
            (tail, double, FullQueue()) for tail, double in queues.values() if double
        ]
        self.fixed = tuple(tail.queue for tail, double in queues.values() if not double)
        self.growths: tuple[QueueGrowth, ...] = ()
        self._period_s = period_s
        self._began_ns: int | None = None
        self._thread = WatchThread("benchrigor-growth", lambda wait: keep_sampling(self.grow, wait))

    @property
    def failure(self) -> str | None:
        """Why it grows no more."""
        failure = self._thread.failure
        return failure and f"queues grow no more: {failure}"

    def start(self) -> None:
        """Begin."""
        if self._queues:
            self._thread.start()

    def stop(self) -> None:
        """End; grown queues keep their bounds until their taps are closed."""
        if self._queues:
            self._thread.stop()

    def grow(self, now_ns: int) -> float:
        """Grow the queues that have been full; return the seconds until the next call."""
        self._began_ns = self._began_ns or now_ns
        for tail, double, seen in self._queues:
            # Of several producers the one that waited longest counts.
            blocked_ns = max((counts.blocked_ns for counts in tail.read(now_ns)), default=0)
            if seen.is_full(now_ns, blocked_ns) and (moved := double(MOST_TIMES)) is not None:
                at_s = (now_ns - self._began_ns) * 1e-9
                grown = QueueGrowth(name=tail.queue, before=moved[0], after=moved[1], at_s=at_s)
                self.growths = (*self.growths, grown)
        return self._period_s
