"""Queues of threads: they stay what they were, whatever counts in them."""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def attributes(source: Any) -> list[set[str]]:
    parts = [getattr(source, name, source) for name in ("not_empty", "not_full")]
    return [set(vars(each)) for each in (source, *parts)]


@pytest.mark.parametrize(
    "kind",
    [
        *(queue.Queue, queue.LifoQueue, queue.PriorityQueue),
        *(asyncio.Queue, asyncio.LifoQueue, asyncio.PriorityQueue),
    ],
)
def test_the_source_itself_is_used_and_is_as_before_when_released(work: Any, kind: Any) -> None:
    source, other = kind(5), kind()
    items = source._queue if isinstance(source, asyncio.Queue) else source.queue
    source._put = mine = items.append
    before = attributes(source)
    assert work.tap(source) is source
    assert type(source) is kind
    source.put_nowait(1)
    other.put_nowait(1)  # of the same class, and not tapped
    assert other.get_nowait() == 1
    work.made.close()
    assert attributes(source) == before
    assert source._put is mine
    assert source.get_nowait() == 1
    assert work.items == {"tail": 1}
    work.tap(source)


def test_an_event_that_does_not_wait_reads_no_clock(work: Any) -> None:
    reads: list[int] = []
    source = work.timed(queue.Queue(4), lambda: reads.append(0) or 0)
    for each in range(3):
        source.put(each)
        source.get()
    assert reads == []
    with pytest.raises(queue.Empty):
        source.get(timeout=0.001)
    assert len(reads) == 2


def test_many_threads_at_both_ends_lose_nothing_and_share_a_cell(work: Any) -> None:
    source, out = work.tap(queue.Queue(5)), list[int]()
    steps = (
        lambda: [*map(source.put, range(300))],
        lambda: [out.append(source.get()) for _ in range(300)],
    )
    for each in [in_thread(step) for step in steps * 3]:
        each.join()
    assert sorted(out) == sorted([*range(300)] * 3)
    assert (work.items, work.waiting) == ({"head": 900, "tail": 900}, {"head": 0, "tail": 0})
    assert len(work.page.cells()) == 2


def test_the_cell_names_the_thread_of_its_end(work: Any) -> None:
    source, found = work.tap(queue.Queue(1)), list[int]()
    thread = in_thread(
        lambda: found.append(threading.get_native_id()) or [source.get() for _ in range(3)]
    )
    for each in range(3):
        source.put(each)
    thread.join()
    assert [work.ends["head"].tid] == found
    assert work.ends["tail"].tid == threading.get_native_id()


class Ending(queue.Queue[int]):
    """Ends as queues do from Python 3.13 on."""

    def shutdown(self, immediate: bool = False) -> None:
        with self.mutex:
            while immediate and self._qsize():
                self._get()


@pytest.mark.parametrize("kind", [Ending, *([queue.Queue] if sys.version_info >= (3, 13) else [])])
def test_what_is_thrown_away_at_the_end_was_taken_by_nobody(work: Any, kind: Any) -> None:
    source = work.tap(kind())
    for each in range(4):
        source.put(each)
    source.get()
    source.shutdown()
    assert source.get() == 1
    source.shutdown(immediate=True)
    assert source.empty()
    assert work.items == {"tail": 4, "head": 2}


@pytest.mark.parametrize("closed", [False, True])
def test_a_forked_copy_of_the_queue_is_counted_in_cells_of_its_own_or_not_at_all(
    work: Any, fork: Callable[..., BaseProcess], closed: bool
) -> None:
    source = work.tap(queue.Queue())
    for each in range(5):
        source.put(each)
    source.get()
    if closed:
        work.made.close()
    child = fork(lambda: source.put(7) or os._exit(source.get()))
    child.join(20.0)
    assert child.exitcode == 1
    source.put(8)
    ours = os.getpid()
    found = [(each.name, each.read().items, each.read().pid) for each in work.page.cells()]
    assert found == [
        ("work.tail", 6 - closed, ours),
        ("work.head", 1, ours),
        *(() if closed else (("work.tail", 1, child.pid), ("work.head", 1, child.pid))),
    ]


class Told:
    """A queue of others that remembers how it was asked, and has nothing and no room at first."""

    limit = 3

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def get(self, block: bool = True, timeout: float | None = None) -> str:
        self.asked.append(("get", block, timeout))
        if not block:
            raise queue.Empty
        return "item"

    def put(self, item: str, block: bool = True, timeout: float | None = None) -> None:
        self.asked.append(("put", block, timeout))
        if not block:
            raise queue.Full


def test_only_after_an_attempt_that_failed_is_there_a_wait(work: Any) -> None:
    source = Told()
    tapped = work.tap(source)
    assert tapped.get(timeout=3.5) == "item"
    tapped.put("item")
    for call, error in ((tapped.get_nowait, queue.Empty), (tapped.put_nowait, queue.Full)):
        with pytest.raises(error):
            call(*["item"][: error is queue.Full])
    tapped.get(True, 0)
    waits = [("get", False, None), ("get", True, 3.5), ("put", False, None), ("put", True, None)]
    assert source.asked == [*waits, waits[0], waits[2], ("get", True, 0)]
    assert [each.read().blocked_events for each in work.page.cells()] == [1, 1]
    assert work.items == {"head": 2, "tail": 1}


def test_an_error_after_a_wait_does_not_seem_to_come_of_the_attempt(work: Any) -> None:
    with pytest.raises(queue.Empty) as caught:
        work.tap(queue.SimpleQueue()).get(timeout=0.001)
    assert caught.value.__context__ is None


def test_methods_that_tell_nothing_of_themselves_are_believed(work: Any) -> None:
    class Opaque:
        get = staticmethod(max)  # whose signature Python does not know
        put = staticmethod(print)

    with pytest.raises(ValueError, match="signature"):
        inspect.signature(Opaque().get)
    assert work.tap(Opaque()).get(False, 3) == 3


def test_a_stand_in_hides_nothing_but_what_it_counts(work: Any, sent: Callable[[Any], Any]) -> None:
    source = Told()
    tapped = work.tap(source)
    tapped.limit = 8
    assert (source.limit, tapped.limit, tapped.asked) == (8, 8, [])
    assert repr(tapped) == f"<tapped {source!r}>"
    assert not hasattr(tapped, "absent")
    assert not hasattr(tapped, "__len__")
    tapped.get = lambda: "mine"
    assert (tapped.get(), source.get()) == ("mine", "item")
    with pytest.raises(AttributeError):  # one half made does not look for itself for ever
        _ = type(tapped).__new__(type(tapped)).anything
    assert sent(work.tap([1, 2])).index(2) == 1


@pytest.mark.parametrize("source", ["work", "", b"", bytearray(b"work"), {1: 2}])
def test_elements_are_counted_where_they_are_asked_for(work: Any, source: Any) -> None:
    tapped = work.tap(source if isinstance(source, dict) else iter(source))
    assert list(tapped) == list(source)


@pytest.mark.parametrize("source", ["queue.Queue()", "queue.SimpleQueue()", "iter('ab')", "[1, 2]"])
def test_tapping_imports_nothing_heavy(source: str) -> None:
    heavy = {"numpy", "scipy", "asyncio", "multiprocessing", "socket", "ssl"}
    code = (
        "import queue, sys; from benchrigor.queues import Tap\n"
        f"tap = Tap({source}); tap.close()\nprint(*sorted({heavy} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
