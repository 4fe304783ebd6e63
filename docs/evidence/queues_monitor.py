"""What watching costs a pipeline: the same one, watched and not watched, by turns.

Throughput is what matters, and what a machine with neighbours disturbs most. So it stands beside
items per second of the program's own processor time, that of a watching thread included: where
all of a processor is used, as much less of these is as much less throughput.
"""

from __future__ import annotations

import multiprocessing
import queue
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from coverage_tables import Setting, heading, row

import benchrigor as br
from benchrigor.queues import Monitor, Stage, Tap
from benchrigor.queues.watching.thread_watch import ThreadWatch

__all__ = ["monitor"]

MONITOR = 97
MOST = 0.02
"""Share of its throughput that a pipeline may lose."""
TURNS, WINDOW_S, WARM_UP_S, PATIENCE_S = 150, 0.2, 5.0, 30.0
WAYS: dict[str, dict[str, Any]] = {
    "a thread, 50 ms": {"period_s": 0.05, "where": "thread"},
    "a thread, 20 ms": {"period_s": 0.02, "where": "thread"},
    "a process, 5 ms": {"period_s": 0.005, "where": "process"},
}
BLOCK = bytes(range(256)) * 16
"""Short enough for its checksum to be made without letting other threads run."""
ROOM = 64


def compute() -> None:
    """Serve an item by computing, for about 100 microseconds."""
    for _ in range(60):
        zlib.crc32(BLOCK)


def wait() -> None:
    """Serve an item by waiting for something, for about a millisecond."""
    time.sleep(0.001)


def serve(source: Any, sink: Any, work: Callable[[], None]) -> None:
    """Take items and give them on, until there are no more."""
    while (item := source.get()) is not None:
        work()
        sink.put(item)


class Speed(NamedTuple):
    """Items per second of wall time, and of this process's processor time."""

    wall: float
    cpu: float


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A source, a stage and a sink that run until they are ended."""

    work: Tap
    done: Tap
    servers: int
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def stages(self) -> list[Stage]:
        """What is watched."""
        return [
            Stage("source", writes=[self.work.tail]),
            Stage("serve", reads=[self.work.head], writes=[self.done.tail]),
            Stage("sink", reads=[self.done.head]),
        ]

    def feed(self) -> None:
        """Give items to the stage."""
        while not self.ended.is_set():
            self.work.queue.put(0)
        for _ in range(self.servers):
            self.work.queue.put(None)

    def drain(self) -> None:
        """Take what the stage gives."""
        while self.done.queue.get() is not None:
            pass

    def rate(self) -> Speed:
        """Return how fast items pass within a window."""
        wall_s, cpu_s, before = time.perf_counter(), time.process_time(), self.passed()
        time.sleep(WINDOW_S)
        items = self.passed() - before
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
        return Speed(items / wall_s, items / cpu_s)

    def passed(self) -> int:
        """Return how many items have passed."""
        return sum(each.items for each in self.done.head.read())


@contextmanager
def running(work: Callable[[], None], *, processes: int = 0) -> Iterator[Pipeline]:
    """Run a pipeline of threads; or one whose stage is so many processes."""
    if processes:
        context = multiprocessing.get_context("spawn")
        pipeline = Pipeline(
            work=Tap(context.Queue(ROOM), name="work"),
            done=Tap(context.Queue(), name="done"),
            servers=processes,
        )
    else:
        pipeline = Pipeline(
            work=Tap(queue.Queue(ROOM), name="work"),
            done=Tap(queue.Queue(ROOM), name="done"),
            servers=1,
        )
    step = (pipeline.work.queue, pipeline.done.queue, work)
    servers = (
        [context.Process(target=serve, args=step) for _ in range(processes)]
        if processes
        else [threading.Thread(target=serve, args=step)]
    )
    ends = [threading.Thread(target=each) for each in (pipeline.feed, pipeline.drain)]
    for each in (*servers, *ends):
        each.start()
    try:
        yield pipeline
    finally:
        pipeline.ended.set()
        for each in (*servers, ends[0]):
            each.join()
        pipeline.done.queue.put(None)
        ends[1].join()
        pipeline.work.close()
        pipeline.done.close()


COMPUTING = "threads that compute"
PIPELINES: dict[str, Callable[[], Any]] = {
    COMPUTING: partial(running, compute),
    "threads that wait": partial(running, wait),
    "two processes that compute": partial(running, compute, processes=2),
}


class Switched:
    """A monitor that is held up most of the time, as nobody but a measurement would want it."""

    def __init__(self, pipeline: Pipeline, way: dict[str, Any]) -> None:
        self.pipeline = pipeline
        self.monitor = Monitor(*pipeline.stages, **way)
        self.watched_s = 0.0

    def __enter__(self) -> Self:
        self.monitor.start()
        deadline = time.monotonic() + PATIENCE_S
        while not self.monitor.report().watched_s and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(WARM_UP_S)
        self._began_s = self.monitor.cost_s
        self._hold()
        return self

    def __exit__(self, *error: object) -> None:
        self._let_go()
        self.monitor.stop()
        if self.monitor.failure is not None:
            raise br.InvalidInput(self.monitor.failure)

    @property
    def share(self) -> float:
        """Share of a core that watching took, while it was not held up."""
        return (self.monitor.cost_s - self._began_s) / self.watched_s

    def rate(self, *, on: bool) -> Speed:
        """Return the speed of the pipeline in a window, with the monitor or without."""
        if on:
            self._let_go()
        began_s = time.perf_counter()
        found = self.pipeline.rate()
        if on:
            self._hold()
            self.watched_s += time.perf_counter() - began_s
        return found

    def _hold(self) -> None:
        watch = self.monitor._watch  # noqa: SLF001  # there is no such switch for users
        if isinstance(watch, ThreadWatch):
            watch.sampler.lock.acquire()
        else:
            watch.signal(signal.SIGSTOP)

    def _let_go(self) -> None:
        watch = self.monitor._watch  # noqa: SLF001  # likewise
        if isinstance(watch, ThreadWatch):
            watch.sampler.lock.release()
        else:
            watch.signal(signal.SIGCONT)


def by_turns(
    key: tuple[int, ...], switched: Switched, turns: int
) -> tuple[list[Speed], list[Speed]]:
    """Return speeds without and with the monitor, in random order within each turn."""
    rng = np.random.default_rng(key)
    rates: tuple[list[Speed], list[Speed]] = ([], [])
    for _ in range(turns):
        for on in rng.permutation(2).tolist():
            rates[on].append(switched.rate(on=bool(on)))
    return rates


class Loss(NamedTuple):
    """What is lost, as a share, with the ends of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.1%} [{self.low:+.1%}, {self.high:+.1%}]"


def lost(without: list[float], with_: list[float]) -> Loss | None:
    """Return what is lost: of the ratio of means, pair by pair, with its 95 % interval."""
    try:
        ratio = br.stats.compare(without, with_, paired=True).ratio
    except br.NotEstimable:
        return None
    return None if ratio is None else Loss(1.0 - ratio.value, 1.0 - ratio.high, 1.0 - ratio.low)


def judged(setting: Setting, name: str, found: Loss | None) -> str:
    """Judge a loss; one whose interval reaches to both sides of the bar leaves it open."""
    if found is None or found.low <= MOST < found.high:
        return f"{MOST:.0%}: open"
    return f"{MOST:.0%}: {setting.verdict(name, found.high <= MOST)}"


def monitor(setting: Setting) -> None:
    """Print what is lost by watching, and what watching takes."""
    turns = setting.runs(TURNS, 4)
    print(f"{turns} windows of {WINDOW_S:g} s each way, in random order within one run of the")
    print(
        "pipeline, the monitor held up for those without. Lost: of items per second of wall time,"
    )
    print("and of items per second of the program's processor time, a watching thread's included;")
    print("the ratio of means with its 95 % interval. Open: that reaches to both sides of the bar.")
    print(f"Of a core: what the monitor takes, after its first {WARM_UP_S:g} s.\n")
    heading(
        ["pipeline", "watched by", "items/s", "lost", "bar", "per processor", "bar", "of a core"]
    )
    for number, (name, run) in enumerate(PIPELINES.items()):
        for place, (way, options) in enumerate(WAYS.items()):
            with run() as pipeline, Switched(pipeline, options) as switched:
                key = (setting.seed, MONITOR, number, place)
                without, with_ = by_turns(key, switched, turns)
            known = [
                lost([each[of] for each in without], [each[of] for each in with_]) for of in (0, 1)
            ]
            # Of who waits, or is another process, this one's processor time tells nothing.
            walls, cpus = known if name == COMPUTING else (known[0], None)
            row(
                name,
                way,
                f"{float(np.median([each.wall for each in without])):,.0f}",
                walls or "none",
                judged(setting, f"watching {name}, {way}", walls),
                cpus or "none",
                judged(setting, f"watching {name}, {way}, processor time", cpus)
                if cpus
                else "none",
                f"{switched.share:.2%}",
            )
