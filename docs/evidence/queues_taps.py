"""What a tap costs the program: processor time of an event with it, beside the same without."""

from __future__ import annotations

import asyncio
import multiprocessing
import queue
import socket
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import repeat
from typing import Any

import numpy as np
from coverage_tables import Setting, heading, row

from benchrigor.queues import End, Page, Tap
from benchrigor.queues.counting.writers import Writer

__all__ = ["taps"]

TAPS = 94
MOST_US = 0.3
"""Most that a tap may add to a put or a get of a `queue.Queue`."""
TURNS, EVENTS = 400, 250
SIZE = 64
Costs = dict[str, float]
"""Processor time of one event in nanoseconds, by its name."""
Program = Callable[[int], Costs]


class Bounded(queue.Queue[int]):
    """A subclass as programs have them, which adds something of its own."""

    def _put(self, item: int) -> None:
        super()._put(item)


def timed(event: Callable[[], object], n: int) -> float:
    """Return nanoseconds of this thread's processor time that one call takes."""
    start_ns = time.thread_time_ns()
    for _ in repeat(None, n):
        event()
    return (time.thread_time_ns() - start_ns) / n


def put_and_get(source: Any) -> Program:
    """Return a program that first puts and then gets, so that nobody has to wait."""

    def run(n: int) -> Costs:
        put = source.put
        return {"put": timed(lambda: put(1), n), "get": timed(source.get, n)}

    return run


def through_a_pipe(source: Any) -> Program:
    """Return the same, an item at a time: a pipe does not hold many."""

    def both() -> None:
        source.put(1)
        source.get()

    return lambda n: {"put and get": timed(both, n)}


def by_a_feeder(source: Any) -> Program:
    """Return the same for a queue whose items are sent by a thread of their own."""

    def run(n: int) -> Costs:
        put = timed(lambda: source.put(1), n)
        while source._buffer:  # noqa: SLF001  # there is no public way to know
            time.sleep(0.002)
        time.sleep(0.002)
        return {"put": put, "get": timed(source.get, n)}

    return run


def awaited(source: Any) -> Program:
    """Return the same for coroutines, which are driven by hand: none of them has to wait."""

    def put() -> None:
        with suppress(StopIteration):
            source.put(1).send(None)

    def get() -> None:
        with suppress(StopIteration):
            source.get().send(None)

    return lambda n: {"put": timed(put, n), "get": timed(get, n)}


def iterated(source: Any) -> Program:
    """Return a program that passes through an iterable."""

    def run(n: int) -> Costs:
        return {"item": timed(lambda: deque(source, 0), 1) / n}

    return run


def sent(pair: tuple[Any, Any]) -> Program:
    """Return a program that sends and receives, a message at a time."""
    sender, receiver = pair
    message = bytes(SIZE)

    def both() -> None:
        sender.send(message)
        receiver.recv(SIZE)

    return lambda n: {"send and recv": timed(both, n)}


def read(source: Any) -> Program:
    """Return a program that reads what has come already."""

    def one() -> None:
        with suppress(StopIteration):
            source.readexactly(SIZE).send(None)

    def run(n: int) -> Costs:
        source.feed_data(bytes(SIZE * n))
        return {"readexactly": timed(one, n)}

    return run


def tapped(source: Any) -> Any:
    """Return what a program uses once the source is tapped; the tap lives as long as that does."""
    if isinstance(source, tuple):
        return tuple(map(tapped, source))
    return Tap(source).queue


def reader() -> asyncio.StreamReader:
    """Return a stream without a connection, of a loop that need not run."""
    with closing(asyncio.new_event_loop()) as loop:
        return asyncio.StreamReader(limit=1 << 20, loop=loop)


def close(source: Any) -> None:
    """Close what can be closed."""
    for each in source if isinstance(source, tuple) else (source,):
        getattr(each, "close", lambda: None)()


CONTEXT = multiprocessing.get_context("spawn")
KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], Program]]] = {
    "queue.Queue": (queue.Queue, put_and_get),
    "queue.LifoQueue": (queue.LifoQueue, put_and_get),
    "queue.PriorityQueue": (queue.PriorityQueue, put_and_get),
    "a subclass of queue.Queue": (Bounded, put_and_get),
    "queue.SimpleQueue": (queue.SimpleQueue, put_and_get),
    "asyncio.Queue": (asyncio.Queue, awaited),
    "multiprocessing.Queue": (CONTEXT.Queue, by_a_feeder),
    "multiprocessing.SimpleQueue": (CONTEXT.SimpleQueue, through_a_pipe),
    "an iterable": (lambda: range(EVENTS), iterated),
    "sockets": (socket.socketpair, sent),
    "asyncio.StreamReader": (reader, read),
}
BARRED = "queue.Queue"


def beside(key: tuple[int, ...], without: Program, with_: Program, turns: int) -> dict[str, Any]:
    """Return the costs of each event without and with a tap, shape (turns, 2)."""
    rng = np.random.default_rng(key)
    found = defaultdict(list)
    for program in (without, with_):
        program(EVENTS)  # the first event claims a cell
    for _ in range(turns):
        costs: list[Costs] = [{}, {}]
        for each in rng.permutation(2).tolist():
            costs[each] = (without, with_)[each](EVENTS)
        for name in costs[0]:
            found[name].append((costs[0][name], costs[1][name]))
    return {name: np.array(pairs) for name, pairs in found.items()}


def taps(setting: Setting) -> None:
    """Print what a tap adds to each event of each kind, and what waiting and reading cost."""
    turns = setting.runs(TURNS, 60)
    print(f"Processor time of the thread: {turns} batches of {EVENTS} events, as many without,")
    print("in random order. Medians of what an event took without, and of the difference.\n")
    heading(["source", "event", "without", "the tap adds", "bar"])
    for number, (kind, (make, program)) in enumerate(KINDS.items()):
        key = (setting.seed, TAPS, number)
        sources = make(), make()
        found = beside(key, program(sources[0]), program(tapped(sources[1])), turns)
        for each in sources:
            close(each)
        for event, costs in found.items():
            plain_us = float(np.median(costs[:, 0])) / 1e3
            adds_us = float(np.median(costs[:, 1] - costs[:, 0])) / 1e3
            verdict = "none"
            if kind == BARRED:
                verdict = f"{MOST_US} us: {setting.verdict(f'{kind} {event}', adds_us <= MOST_US)}"
            row(kind, event, f"{plain_us:.2f} us", f"{adds_us:.2f} us", verdict)
    _beside_the_path()


def _beside_the_path() -> None:
    print("\nWhat happens once, or only to who waits or looks on; least of several batches:\n")
    heading(["what", "takes"])
    with Page.create(cells=4_096) as page:
        writer = Writer(page, "work.head")
        writer.count()
        end = End(page, "work.head")

        def wait() -> None:
            with writer.waiting():
                pass

        pieces: dict[str, tuple[Callable[[], object], int]] = {
            "beginning and ending a wait": (wait, 2_000),
            "reading an end of one process": (end.read, 2_000),
            "claiming a cell": (lambda: page.claim("work.tail"), 200),
        }
        for what, (event, n) in pieces.items():
            row(what, f"{min(timed(event, n) for _ in range(9)) / 1e3:.1f} us")
