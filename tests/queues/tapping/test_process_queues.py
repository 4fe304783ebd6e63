"""Queues of processes, in processes: forked, spawned, and killed in the middle of a wait."""

from __future__ import annotations

import multiprocessing
import multiprocessing.queues
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from signalled import until

from benchrigor.queues import Counts, Page, Tap

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
METHODS = ("fork", "spawn")
LONG_S = 120.0
When = Callable[[Callable[[], object]], None]


def consume(source: Any, results: Any) -> None:
    while (item := source.get()) is not None:
        results.put(2 * item)
    results.put(None)


def tapped_in(page: Page, source: Any) -> Any:
    return Tap(source, name="work", page=page).queue


def drained(source: Any) -> list[Any]:
    return list(iter(source.get, None))


def of(found: tuple[Counts, ...], pid: int | None) -> Counts:
    (counts,) = (each for each in found if each.pid == pid)
    return counts


@pytest.mark.parametrize("method", METHODS)
def test_each_process_counts_in_a_cell_of_its_own(method: str) -> None:
    context = multiprocessing.get_context(method)
    with Tap(context.Queue(3), item_bytes=7) as work, Tap(context.SimpleQueue()) as results:
        child = context.Process(target=consume, args=(work.queue, results.queue))
        child.start()
        for each in range(20):
            work.queue.put(each)
        work.queue.put(None)
        assert drained(results.queue) == [2 * each for each in range(20)]
        child.join()
        ours = os.getpid()
        assert [(each.pid, each.items) for each in work.tail.read()] == [(ours, 21)]
        assert [(each.pid, each.bytes) for each in work.head.read()] == [(child.pid, 147)]
        assert [(each.pid, each.items) for each in results.tail.read()] == [(child.pid, 21)]
        assert [(each.pid, each.items) for each in results.head.read()] == [(ours, 21)]
        assert all(each.waiting == 0 for end in (work.head, work.tail) for each in end.read())


def use(tap: Tap) -> None:
    tap.queue.put(tap.queue.get() + 1)
    tap.close()


@pytest.mark.parametrize("method", METHODS)
def test_the_tap_itself_may_be_sent(method: str) -> None:
    context = multiprocessing.get_context(method)
    with Tap(context.SimpleQueue(), name="work") as tap:
        tap.queue.put(1)
        child = context.Process(target=use, args=(tap,))
        child.start()
        child.join()
        assert tap.queue.get() == 2
        theirs = of(tap.head.read(), child.pid)
        assert (theirs.items, theirs.closed) == (1, True)
        assert not of(tap.head.read(), os.getpid()).closed
        assert tap.page.path.exists()


@pytest.mark.parametrize("method", METHODS)
def test_a_process_killed_while_it_waits_leaves_its_cell_readable(method: str) -> None:
    context = multiprocessing.get_context(method)
    with Tap(context.Queue()) as tap:
        child = context.Process(target=tap.queue.get)
        child.start()
        until(lambda: any(each.waiting for each in tap.head.read()))
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        first, second = (tap.head.read(time.perf_counter_ns() + each)[0] for each in (0, 1_000))
        assert (first.waiting, first.blocked_events, first.items) == (1, 1, 0)
        assert second.blocked_ns > first.blocked_ns > 0


class Slow:
    """Takes a while to be unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return time.sleep, (0.05,)


@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_unpickling_is_no_wait(page: Page, when_waiting: When, kind: str) -> None:
    tapped = tapped_in(page, getattr(multiprocessing.get_context("spawn"), kind)())
    put_s: list[float] = []
    when_waiting(lambda: (put_s.append(time.perf_counter()), tapped.put(Slow())))
    began_s = time.perf_counter()
    assert tapped.get() is None
    took_s = time.perf_counter() - began_s
    counts = next(each for each in page.cells() if each.name == "work.head").read()
    assert put_s[0] - began_s - 0.001 <= counts.blocked_ns / 1e9 <= took_s - 0.05
    assert (counts.blocked_events, counts.items) == (1, 1)
    if kind == "JoinableQueue":
        tapped.task_done()
        tapped.join()
        with pytest.raises(ValueError):  # noqa: PT011  # nothing is left to be done
            tapped.task_done()


def test_a_consumer_kept_out_by_another_waits(page: Page) -> None:
    source = multiprocessing.get_context("spawn").Queue()
    tapped = tapped_in(page, source)
    source.put("item")
    assert source._reader.poll(LONG_S)
    with source._rlock:
        with pytest.raises(queue.Empty):
            tapped.get_nowait()
        assert page.cells() == ()
        with pytest.raises(queue.Empty):
            tapped.get(timeout=0.02)
    assert page.cells()[0].read().blocked_ns >= 15_000_000
    counts = page.cells()[0].read()
    assert tapped.get() == "item"
    assert page.cells()[0].read().blocked_events == counts.blocked_events


PROGRAM = """
import multiprocessing, sys
from benchrigor.queues import Tap

def work(tap, end, source):
    source.put(tap.failure)
    tap.queue.put(len(end.read()))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    tap = Tap(context.Queue(), name="work")
    tap.close()
    child = context.Process(target=work, args=(tap, tap.head, tap.queue))
    child.start()
    print(tap.queue.get(), tap.queue.get())
    child.join()
    sys.exit(child.exitcode)
"""


def test_a_worker_whose_page_was_closed_warns_once_and_ends_well(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=LONG_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("expected a page of cells 0\n")
    assert done.stderr.count("RuntimeWarning") == 1
    assert "Traceback" not in done.stderr


class Louder(multiprocessing.queues.Queue):  # type: ignore[type-arg]
    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        return str(super().get(block, timeout)).upper()


class Doubled(multiprocessing.queues.SimpleQueue):  # type: ignore[type-arg]
    def get(self) -> Any:
        return 2 * super().get()


class Halved(multiprocessing.queues.SimpleQueue):  # type: ignore[type-arg]
    def put(self, obj: Any) -> None:
        super().put(obj // 2)


@pytest.mark.parametrize(("kind", "found"), [(Doubled, 16), (Halved, 4), (Louder, "8")])
def test_what_a_subclass_does_in_its_place_is_done(
    page: Page, when_waiting: When, *, kind: type[Any], found: object
) -> None:
    tapped = tapped_in(page, kind(ctx=multiprocessing.get_context("spawn")))
    tapped.put(8)
    assert tapped._reader.poll(LONG_S)
    assert tapped.get() == found
    assert [each.read().items for each in page.cells()] == [1, 1]
    assert [each.read().blocked_events for each in page.cells()] == [0, 0]
    when_waiting(partial(tapped.put, 8))
    assert tapped.get() == found
    counts = next(each for each in page.cells() if each.name == "work.head").read()
    assert (counts.items, counts.blocked_events, counts.waiting) == (2, 1, 0)
    tapped.close()
    with pytest.raises((OSError, ValueError), match="closed"):
        tapped.get()


def test_a_closed_pipe_says_so_although_its_number_is_anothers(page: Page) -> None:
    tapped = tapped_in(page, multiprocessing.get_context("spawn").SimpleQueue())
    tapped.close()
    others = os.pipe()
    try:
        for use in (tapped.get, lambda: tapped.put(1)):
            with pytest.raises(OSError, match="closed"):
                use()
    finally:
        for each in others:
            os.close(each)


def test_of_consumers_that_wait_at_once_each_gets_its_items() -> None:
    context = multiprocessing.get_context("fork")
    with Tap(context.Queue()) as work, Tap(context.Queue()) as results:
        ends = (work.queue, results.queue)
        children = [context.Process(target=consume, args=ends) for _ in range(3)]
        for each in children:
            each.start()
        until(lambda: sum(each.waiting for each in work.head.read()) == 3)
        for item in [*range(30), *[None] * 3]:
            work.queue.put(item)
        found = [item for _ in children for item in drained(results.queue)]
        assert sorted(found) == [2 * each for each in range(30)]
        for each in children:
            each.join()
        heads = work.head.read()
        assert sum(each.items for each in heads) == 33
        assert {each.pid for each in heads} == {each.pid for each in children}
        assert all(each.blocked_events >= 1 and each.waiting == 0 for each in heads)
