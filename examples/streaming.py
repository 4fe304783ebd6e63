"""What the streaming examples share: processes that end together, and a stage run by itself."""

from __future__ import annotations

import multiprocessing
import signal
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from benchrigor import queues
from benchrigor.errors import BenchrigorError
from benchrigor.queues.data import ServiceRate

Work = dict[str, tuple[Any, ...]]
"""What each process does, by its name: a function, and what it is given."""


def stage(
    name: str, *, reads: Iterable[queues.Tap] = (), writes: Iterable[queues.Tap] = ()
) -> queues.Stage:
    """Return the stage that takes from some queues, and gives to others."""
    return queues.Stage(
        name, reads=[tap.head for tap in reads], writes=[tap.tail for tap in writes]
    )


def handed(taps: Iterable[queues.Tap]) -> list[Any]:
    """Return what a process gets of tapped queues."""
    return [tap.queue for tap in taps]


class Pipeline(NamedTuple):
    """Stages that run in processes, the last of which sends a result."""

    stages: Sequence[queues.Stage]
    processes: Sequence[BaseProcess]
    receiver: Connection

    def result(self) -> Any:
        """Wait for the result, and return it; raise if a process dies before."""
        while not self.receiver.poll():
            codes = {each: each.exitcode for each in self.processes}
            dead = [each.name for each, code in codes.items() if code]
            if dead:
                raise RuntimeError(f"{', '.join(dead)} died: there will be no result")
            wait([self.receiver, *(each.sentinel for each, code in codes.items() if code is None)])
        return self.receiver.recv()


@contextmanager
def running(context: Any, work: Work) -> Iterator[list[BaseProcess]]:
    """Run processes; whatever happens, none of them is left in the end."""
    processes: list[BaseProcess] = []
    try:
        with uninterrupted():
            for name, (function, *args) in work.items():
                process = context.Process(target=function, args=args, name=name, daemon=True)
                process.start()
                processes.append(process)
        yield processes
    finally:
        for each in processes:
            each.terminate()
            each.join()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off ^C for a while; processes that are started meanwhile never hear of any."""
    heard: list[int] = []
    ours = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, ours)
    if heard:
        raise KeyboardInterrupt


def deal(items: Iterable[Any], outputs: Sequence[Any]) -> None:
    """Put an item into each queue in turn, and in the end None: there are no more."""
    for item, queue in zip(items, cycle(outputs), strict=False):
        queue.put(item)
    for queue in outputs:
        queue.put(None)


def in_turn(inputs: Sequence[Any]) -> Iterator[Any]:
    """Take an item of each queue in turn, until there are no more."""
    left = list(inputs)
    while left:
        for queue in tuple(left):
            item = queue.get()
            if item is None:
                left.remove(queue)
            else:
                yield item


NO_PAUSES: Mapping[str, float] = {}


class Alone(NamedTuple):
    """Items per second of a stage run by itself, of wall time and of its processor time."""

    rate: float
    cpu_rate: float


class Ready:
    """A queue that never is empty: what it takes to put the next item there does not count.

    An item has to fit into a pipe, which on most systems holds 64 KiB. A pause before each item
    does not count either, but who has slept finds its memory out of the caches.
    """

    def __init__(self, items: Sequence[Any], pause_s: float = 0.0) -> None:
        self._items, self._pause_s = iter([*items, None]), pause_s
        self._queue: Any = multiprocessing.SimpleQueue()
        self.wall_s = self.cpu_s = 0.0

    def get(self) -> Any:
        """Get an item, as a process of the pipeline does when there is one."""
        wall_s, cpu_s = time.perf_counter(), time.thread_time()
        self._queue.put(next(self._items))
        if self._pause_s:
            time.sleep(self._pause_s)
        self.wall_s += time.perf_counter() - wall_s
        self.cpu_s += time.thread_time() - cpu_s
        return self._queue.get()


class Nowhere:
    """A queue, or a pipe, that forgets what it is given."""

    def put(self, item: Any) -> None:
        """Forget an item."""

    send = put


def alone(
    stage: Callable[[Any, Any], None],
    items: Sequence[Any],
    *,
    processes: int = 1,
    pause_s: float = 0.0,
) -> Alone:
    """Run a stage with all its input ready in memory, and its output thrown away.

    Returned is what so many processes would do if none of them had to share a processor. With a
    pause, it sleeps before each item as it does where it has to wait for one.
    """
    ready, wall_s, cpu_s = Ready(items, pause_s), time.perf_counter(), time.thread_time()
    stage(ready, Nowhere())
    wall_s = time.perf_counter() - wall_s - ready.wall_s
    cpu_s = time.thread_time() - cpu_s - ready.cpu_s
    return Alone(processes * len(items) / wall_s, processes * len(items) / cpu_s)


def show(report: queues.MonitorReport) -> None:
    """Print what a monitor knows, and what it suggests."""
    print(report)
    passed = report.stages[1].arrivals
    try:
        advice = report.advice(source_rate=2.0 * passed.value if passed else None)
    except BenchrigorError as error:  # so short a run that there is nothing to go by
        print("\n" + textwrap.fill(f"no advice: {error}", 79))
    else:
        print("\nTo do twice as much:", advice, sep="\n")


def longest(stage: queues.WatchedStage) -> ServiceRate | None:
    """Return the rate of the phase in which a stage did most: processes come and go one by one."""
    return max(stage.rates, key=lambda each: each.items, default=None)


def pauses(report: queues.MonitorReport) -> dict[str, float]:
    """Return for how many seconds each stage waited before an item, in the mean."""
    found = {}
    for each in report.stages:
        rate = longest(each)
        if rate and rate.estimate and each.arrivals:
            pause_s = rate.servers * (1.0 / each.arrivals.value - 1.0 / rate.estimate.value)
            found[each.name] = max(0.0, pause_s)
    return found


def compare(
    report: queues.MonitorReport, truth: Callable[[Mapping[str, float]], Mapping[str, Alone]]
) -> None:
    """Print what stages did in the pipeline, what they do alone, and alone with the same pauses."""
    alone, paused = truth({}), truth(pauses(report))
    print("\nitems per second of      wall time   own time   waited for a processor")
    for stage in report.stages:
        rate = longest(stage)
        if stage.name in alone and rate and rate.estimate and rate.cpu_rate:
            found, delay = (rate.estimate.value, rate.cpu_rate.value), rate.delay_share or 0.0
            print("{:8} watched {:16,.0f} {:10,.0f}".format(stage.name, *found), f"{delay:24.0%}")
            print("{:>14} {:18,.0f} {:10,.0f}".format("alone", *alone[stage.name]))
            print("{:>20} {:12,.0f} {:10,.0f}".format("with pauses", *paused[stage.name]))
