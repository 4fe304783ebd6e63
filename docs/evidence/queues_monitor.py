"""What watching costs a pipeline: the same one, watched and not watched, by turns."""

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
from typing import Any, Self

import numpy as np
from coverage_tables import Setting, heading, row

import benchrigor as br
from benchrigor.queues import Monitor, Stage, Tap
from benchrigor.queues.watching.thread_watch import ThreadWatch

__all__ = ["monitor"]

MONITOR = 97
MOST = 0.02
"""Share of its throughput that a pipeline may lose."""
TURNS, WINDOW_S, WARM_UP_S, PATIENCE_S = 100, 0.4, 5.0, 30.0
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

    def rate(self) -> float:
        """Return items per second that pass within a window."""
        began_s, before = time.perf_counter(), self.passed()
        time.sleep(WINDOW_S)
        return (self.passed() - before) / (time.perf_counter() - began_s)

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


PIPELINES: dict[str, Callable[[], Any]] = {
    "threads that compute": partial(running, compute),
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

    def rate(self, *, on: bool) -> float:
        """Return the rate of the pipeline in a window, with the monitor or without."""
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
            watch._lock.acquire()  # noqa: SLF001  # likewise
        else:
            watch.signal(signal.SIGSTOP)

    def _let_go(self) -> None:
        watch = self.monitor._watch  # noqa: SLF001  # likewise
        if isinstance(watch, ThreadWatch):
            watch._lock.release()  # noqa: SLF001  # likewise
        else:
            watch.signal(signal.SIGCONT)


def by_turns(
    key: tuple[int, ...], switched: Switched, turns: int
) -> tuple[list[float], list[float]]:
    """Return rates without and with the monitor, in random order within each turn."""
    rng = np.random.default_rng(key)
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for on in rng.permutation(2).tolist():
            rates[on].append(switched.rate(on=bool(on)))
    return rates


def interval(without: list[float], with_: list[float]) -> str:
    """Return what is lost, with the 95 % interval of the ratio of means, pair by pair."""
    try:
        ratio = br.stats.compare(without, with_, paired=True).ratio
    except br.NotEstimable:
        ratio = None
    return "none" if ratio is None else f"{1.0 - ratio.high:+.2%} to {1.0 - ratio.low:+.2%}"


def monitor(setting: Setting) -> None:
    """Print what is lost by watching, and what watching takes."""
    turns = setting.runs(TURNS, 4)
    print(f"{turns} windows of {WINDOW_S:g} s each way, in random order within one run of the")
    print("pipeline, the monitor held up for those without: what is lost of the items per second,")
    print("median over median, the 95 % interval of the ratio of means, and the share of a core")
    print(f"that the monitor takes, after its first {WARM_UP_S:g} s.\n")
    heading(["pipeline", "watched by", "items/s", "lost", "bar", "interval", "of a core"])
    for number, (name, run) in enumerate(PIPELINES.items()):
        for place, (way, options) in enumerate(WAYS.items()):
            with run() as pipeline, Switched(pipeline, options) as switched:
                key = (setting.seed, MONITOR, number, place)
                without, with_ = by_turns(key, switched, turns)
            lost = 1.0 - float(np.median(with_) / np.median(without))
            row(
                name,
                way,
                f"{float(np.median(without)):,.0f}",
                f"{lost:+.2%}",
                f"{MOST:.0%}: {setting.verdict(f'watching {name}, {way}', lost <= MOST)}",
                interval(without, with_),
                f"{switched.share:.2%}",
            )
