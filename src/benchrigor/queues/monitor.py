"""Watches queues: samples from a thread of the program, or from a process, and grows full queues.

A watching process reads only the counters of the program, and its orders from its standard input, a
line of text that holds the arguments of `publish`. It watches in a thread until the input is
closed, or until all processes that counted are gone. It publishes its report once a second, or less
often if that takes long, and at the end. Published reports survive the death of either process.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from benchrigor.errors import InvalidInput
from benchrigor.files import remove_whole, write_whole
from benchrigor.model.checks import is_number, refuse, wrong_choice, wrong_values
from benchrigor.model.codec import decode, encode, is_there
from benchrigor.model.estimate import Quantity
from benchrigor.model.series import short
from benchrigor.queues.data import PipelineAdvice, ServiceRate
from benchrigor.queues.periods import Asked, PeriodTable, wrong_asked
from benchrigor.queues.recordings import RecordingWriter
from benchrigor.queues.sampler import Record, Sampler
from benchrigor.queues.stages import MonitorReport, QueueGrowth, Stage, stages_of
from benchrigor.queues.tap import Tap
from benchrigor.queues.writers import Double, End, Owners
from benchrigor.safe_text import hide_in_text

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
        # Grown queues keep their bounds until their taps are closed.
        self.start, self.stop = self._thread.start, self._thread.stop

    @property
    def failure(self) -> str | None:
        """Why it grows no more."""
        failure = self._thread.failure
        return failure and f"queues grow no more: {failure}"

    def grow(self, now_ns: int) -> float | None:
        """Grow the queues that have been full; return the seconds until the next call, or None."""
        self._began_ns = self._began_ns or now_ns
        for tail, double, seen in self._queues:
            # Of several producers the one that waited longest counts.
            blocked_ns = max((counts.blocked_ns for counts in tail.read(now_ns)), default=0)
            if seen.is_full(now_ns, blocked_ns) and (moved := double(MOST_TIMES)) is not None:
                at_s = (now_ns - self._began_ns) * 1e-9
                grown = QueueGrowth(name=tail.queue, before=moved[0], after=moved[1], at_s=at_s)
                self.growths = (*self.growths, grown)
        return self._period_s if self._queues else None


LOADING_S, _GLANCE_S = 10.0, 0.005
COMMAND = (sys.executable, "-P", "-c", f"from {__name__} import main; main()")
_EACH_S = 1.0
_LEAST_BETWEEN = 50  # publishing takes up to a 50th of the time
_NICE = 5


class ProcessWatch:
    """Starts a watching process, and reads its reports."""

    def __init__(self, stages: Sequence[Stage], asked: Asked, record: Path | None) -> None:
        page = next(end.page for stage in stages for end in (*stage.reads, *stage.writes))
        self._state = page.path.with_suffix(f".{secrets.token_hex(4)}.rates")
        record = None if record is None else record.absolute()
        watched = {"stages": stages, "asked": asked, "record": record}
        self._orders = {**watched, "state": self._state, "launcher": os.getpid()}
        self._process: subprocess.Popen[bytes] | None = None
        self._last = MonitorReport(period_s=asked.period_s)
        self._own_failure: str | None = None

    def start(self) -> None:
        """Begin, and wait until the first sample has been taken, or for up to ten seconds.

        The process has to import its modules, and would miss the items that pass meanwhile.
        """
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=_environment(),
                start_new_session=True,  # interrupts are for the program alone
            )
        except OSError as error:
            self._own_failure = f"no process can be started: {error}"
            return
        _send(self._process, pickle.dumps(self._orders).hex().encode() + b"\n")
        give_up_s = time.monotonic() + LOADING_S
        while self._process.poll() is None and time.monotonic() < give_up_s:
            if self._state.exists():
                return
            time.sleep(_GLANCE_S)

    def stop(self) -> None:
        """End, and read the last report."""
        process = self._process
        if process is None:
            return
        _send(process, b"\n")
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._last = self.report()
        self._process = None
        with contextlib.suppress(OSError), process:  # closes its pipes
            pass
        remove_whole(self._state)

    def report(self) -> MonitorReport:
        """Return the last report that the process has published."""
        if self._process is not None:
            ended = self._process.poll()
            with contextlib.suppress(OSError, ValueError, RecursionError, InvalidInput):
                published = json.loads(self._state.read_bytes())
                self._last = decode(MonitorReport, published, where=str(self._state))
            if ended and self._own_failure is None:
                self._own_failure = _ending(self._process, ended)
        return replace(self._last, failure=self._own_failure or self._last.failure)


def _send(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Send a line to a process, which may have ended."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.write(line)
            process.stdin.flush()


def _ending(process: subprocess.Popen[bytes], ended: int) -> str:
    """Say how a process ended, with the last line that it printed."""
    how = f"was killed by signal {-ended}" if ended < 0 else f"ended with code {ended}"
    lines = process.stderr.read().decode(errors="replace").split("\n") if process.stderr else []
    last = next((f": {line}" for line in reversed(lines) if line), "")
    return f"the watching process {process.pid} {how}{last}"


def _environment() -> dict[str, str]:
    """Return the environment, in which the same modules are found; and no more threads."""
    path = os.pathsep.join(folder for folder in sys.path if folder)
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": path}


def main() -> None:
    """Watch as the standard input orders, until it is closed or holds anything more."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    # The first rate loads it: after such a slow publication the next would come in 10 s.
    import scipy.special  # noqa: F401, PLC0415

    stopped = threading.Event()
    # Without a buffer: the waiting thread would hold its lock when the process ends.
    with open(0, "rb", buffering=0, closefd=False) as source:
        orders = pickle.loads(bytes.fromhex(source.readline().decode()))  # noqa: S301  # our own

        def listen() -> None:
            source.read(1)
            stopped.set()

        threading.Thread(target=listen, daemon=True).start()
        publish(stopped.wait, **orders)


def publish(
    wait: Wait,
    *,
    stages: Sequence[Stage],
    asked: Asked,
    record: Path | None,
    state: Path,
    launcher: int,
) -> None:
    """Watch until ``wait`` returns True, or no process can count any more; publish now and then.

    ``state`` is the file that is published, ``launcher`` the process that has given the orders.
    """
    for end in (end for stage in stages for end in (*stage.reads, *stage.writes)):
        if end.page.failure is not None:
            raise InvalidInput(end.page.failure)
    watch, owners, pause_s = ThreadWatch(stages, asked, record), Owners(), 0.0
    watch.start()
    while not (watch.sampler.began or watch.is_over):
        time.sleep(_GLANCE_S)
    while True:
        nobody_left = watch.sampler.nobody_left and launcher in owners.gone([launcher])
        is_over = watch.is_over or nobody_left or wait(pause_s)
        if is_over:
            watch.stop()
        began_s = time.thread_time()
        report = watch.report(cost_s=time.process_time())
        write_whole(state, json.dumps(encode(report)))
        if is_over:
            return
        pause_s = max(_EACH_S, _LEAST_BETWEEN * (time.thread_time() - began_s))


# Shortest period for a thread, which has to wait for the interpreter for 5 ms and more.
_THREAD_FROM_S = 0.02
_SHORTEST_S = 1e-4  # taking a sample takes some ten microseconds
_WHERE = ("thread", "process")


class Monitor:
    """Samples the counters of tapped queues, and estimates how fast each stage could go.

    It only reads the counters, unless it is to ``grow`` queues, and the program never waits for
    it. If it fails, or the program ends, it keeps its results so far.

    Parameters
    ----------
    *what
        Stages, in the order of the stream; or taps: both ends of a tap are watched as stages.
    period_s
        Sampling period, in seconds. None for the widest from 50 to 200 ms that the machine can
        keep to and the stage goes through without waiting, so that sampling takes 1% of a processor
        or less. During the search for it the rates are provisional.
    method, guards, confidence, target
        As of `ServiceRateEstimator`.
    where
        "thread" or "process"; by default a thread for periods of 20 ms and more.
    record
        Path of a recording to be written, as ``benchrigor rate`` reads it.
    grow
        Double the bound of a queue, up to 64 times the program's own, whenever its producers have
        waited for room for 80% of three periods in a row: a full queue hides how fast they are.
        Queues of `queue` and `asyncio` that this process has tapped can grow; the report names the
        others. A grown queue keeps its bound until its tap is closed.

    Raises
    ------
    InvalidInput
        Naming every option that makes no sense.

    Notes
    -----
    Sampling follows Beard & Chamberlain (2015), section IV. `start` waits until a process has begun
    to sample, about as long as importing numpy takes. Watch a program that forks from a process.

    Examples
    --------
    >>> import queue, time
    >>> with Tap(queue.Queue(), name="work") as tap, Monitor(tap, period_s=0.02) as monitor:
    ...     for item in range(200):
    ...         tap.queue.put(item)
    ...         time.sleep(0.001)
    >>> monitor.failure, monitor.rates()["work.tail"][0].estimate.value < 1000.0
    (None, True)
    """

    def __init__(
        self,
        *what: Stage | Tap,
        period_s: float | None = 0.05,
        method: str = "busy-time",
        guards: bool = True,
        where: str | None = None,
        record: str | os.PathLike[str] | None = None,
        confidence: float = 0.95,
        target: float = 0.05,
        grow: bool = False,
    ) -> None:
        stages = stages_of(what)
        asked = Asked(
            period_s=period_s, method=method, guards=guards, confidence=confidence, target=target
        )
        _check(asked, where, record)
        path = None if record is None else Path(record)
        if where is None:
            where = "thread" if period_s is None or period_s >= _THREAD_FROM_S else "process"
        self.where = where
        self._watch = (ThreadWatch if where == "thread" else ProcessWatch)(stages, asked, path)
        self._growth: GrowthWatch | None = None
        if grow:
            period_s = max(period_s or 0.0, _THREAD_FROM_S)
            self._growth = GrowthWatch(stages, period_s=period_s)
        self._started = self._stopped = False

    @property
    def failure(self) -> str | None:
        """Why it watches no more although it was not stopped; None if it has not failed."""
        return self.report().failure

    @property
    def cost_s(self) -> float:
        """Processor time that watching took, in seconds; the start of a process counts as well."""
        return self.report().cost_s

    @property
    def cost_share(self) -> float:
        """Share of one processor that watching took."""
        return self.report().cost_share

    def start(self) -> Self:
        """Begin to watch; once."""
        if self._started:
            raise InvalidInput("the monitor has been started already, expected a new one")
        self._started = True
        self._watch.start()
        if self._growth is not None:
            self._growth.start()
        return self

    def stop(self) -> None:
        """End watching; the results can still be read."""
        if self._started and not self._stopped:
            self._stopped = True
            if self._growth is not None:
                self._growth.stop()
            self._watch.stop()

    def rates(self) -> dict[str, list[ServiceRate]]:
        """Return the rates of all stages so far, phase by phase."""
        return {stage.name: list(stage.rates) for stage in self.report().stages}

    def report(self) -> MonitorReport:
        """Return the results so far; of a process that watches, the last report it published."""
        report = self._watch.report()
        growth = self._growth
        if growth is None:
            return report
        failure = report.failure or growth.failure
        return replace(report, growths=growth.growths, fixed=growth.fixed, failure=failure)

    def advice(
        self,
        *,
        source_rate: Quantity | None = None,
        utilisation: float = 0.8,
        blocked_share: float = 0.01,
        processors: int | None = None,
    ) -> PipelineAdvice:
        """Suggest replicas and queue sizes, as `MonitorReport.advice` does."""
        return self.report().advice(
            source_rate=source_rate,
            utilisation=utilisation,
            blocked_share=blocked_share,
            processors=processors,
        )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __str__(self) -> str:
        return str(self.report())


def _check(asked: Asked, where: object, record: object) -> None:
    period_s = asked.period_s
    fits = period_s is None or (is_number(period_s) and _SHORTEST_S <= period_s < math.inf)
    expected = f"seconds from {_SHORTEST_S:g} on, or None"
    problems = wrong_values([("period_s", period_s, fits, expected)])
    problems += [] if where is None else wrong_choice("where", where, _WHERE)
    if record is not None and not isinstance(record, str | os.PathLike):
        problems.append(f"record is {short(record)}, expected a path")
    elif record is not None and is_there(Path(record), Path.is_dir):
        problems.append(f"record is {str(record)!r}, a folder, expected the path of a file")
    elif record is not None and not is_there(Path(record).absolute().parent, Path.is_dir):
        problems.append(f"record is {str(record)!r}, expected a path in a folder that exists")
    refuse(problems, wrong_asked(replace(asked, period_s=None)))
