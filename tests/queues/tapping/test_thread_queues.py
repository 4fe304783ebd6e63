"""Queues of threads, hooked from inside: they stay what they were."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import Counts, Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.thread_queues import tap_queue
from benchrigor.testing import FakeClock

KINDS = [queue.Queue, queue.LifoQueue, queue.PriorityQueue]


def counts(page: Page, name: str) -> Counts:
    (cell,) = (each for each in page.cells() if each.name == f"work.{name}")
    return cell.read()


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_itself_is_used_and_is_as_before_when_released(
    head: Writer, tail: Writer, kind: type[queue.Queue[Any]]
) -> None:
    source = kind(5)
    before = {name: set(vars(each)) for name, each in parts(source).items()}
    tapped = tap_queue(source, head, tail)
    assert tapped.queue is source
    assert type(source) is kind
    source.put(1)
    tapped.release()
    assert {name: set(vars(each)) for name, each in parts(source).items()} == before
    assert source.get() == 1


def parts(source: queue.Queue[Any]) -> dict[str, object]:
    return {"queue": source, "empty": source.not_empty, "full": source.not_full}


@pytest.mark.parametrize("kind", KINDS)
def test_other_queues_of_the_class_are_not_touched(
    page: Page, head: Writer, tail: Writer, kind: type[queue.Queue[Any]]
) -> None:
    tap_queue(kind(), head, tail)
    other = kind()
    other.put(1)
    assert other.get() == 1
    assert page.cells() == ()


def test_an_event_that_does_not_wait_reads_no_clock(page: Page) -> None:
    reads: list[int] = []
    writers = [Writer(page, name, lambda: reads.append(0) or 0) for name in ("h", "t")]
    source: queue.Queue[int] = queue.Queue(4)
    tap_queue(source, *writers)
    for each in range(3):
        source.put(each)
        source.get()
    assert reads == []
    with pytest.raises(queue.Empty):
        source.get(timeout=0.001)
    assert len(reads) == 2


def test_each_of_several_waits_at_once_counts_in_full(page: Page, tail: Writer) -> None:
    clock = FakeClock()
    source: queue.Queue[int] = queue.Queue()
    tap_queue(source, Writer(page, "work.head", clock.now_ns), tail)
    threads = [in_thread(source.get) for _ in range(3)]
    while not page.cells() or page.cells()[0].read(clock.now_ns()).waiting < 3:
        time.sleep(0.001)
    clock.advance(1_000)
    assert page.cells()[0].read(clock.now_ns()).blocked_ns == 3_000
    for each in range(3):
        source.put(each)
    for thread in threads:
        thread.join()
    clock.advance(500)
    found = page.cells()[0].read(clock.now_ns())
    assert (found.blocked_ns, found.waiting, found.items) == (3_000, 0, 3)
    assert found.blocked_events >= 3
    assert found.tid is None


def test_the_cell_names_the_thread_of_its_end(page: Page, head: Writer, tail: Writer) -> None:
    source: queue.Queue[int] = queue.Queue(1)
    tap_queue(source, head, tail)
    identities: list[int] = []

    def consume() -> None:
        identities.append(threading.get_native_id())
        for _ in range(3):
            source.get()

    thread = in_thread(consume)
    for each in range(3):
        source.put(each)
    thread.join()
    assert counts(page, "head").tid == identities[0]
    assert counts(page, "tail").tid == threading.get_native_id()


def test_many_threads_at_both_ends_lose_nothing(page: Page, head: Writer, tail: Writer) -> None:
    source: queue.Queue[int] = queue.Queue(5)
    tap_queue(source, head, tail)
    out: list[int] = []
    threads = [
        *(in_thread(lambda: [source.put(each) for each in range(300)]) for _ in range(3)),
        *(in_thread(lambda: [out.append(source.get()) for _ in range(300)]) for _ in range(3)),
    ]
    for each in threads:
        each.join()
    assert sorted(out) == sorted([*range(300)] * 3)
    for name in ("head", "tail"):
        assert counts(page, name).items == 900
        assert counts(page, name).waiting == 0


def test_what_a_subclass_does_is_done(page: Page, head: Writer, tail: Writer) -> None:
    class Doubled(queue.Queue[int]):
        def _put(self, item: int) -> None:
            super()._put(2 * item)

    source = Doubled()
    tap_queue(source, head, tail)
    source.put(4)
    assert source.get() == 8
    assert (counts(page, "tail").items, counts(page, "head").items) == (1, 1)


def test_methods_set_on_the_queue_before_are_used_and_given_back(
    page: Page, head: Writer, tail: Writer
) -> None:
    source: queue.Queue[int] = queue.Queue()
    source._put = source.queue.appendleft  # type: ignore[method-assign]
    mine = source._put
    tapped = tap_queue(source, head, tail)
    source.put(1)
    source.put(2)
    assert source.get() == 2
    tapped.release()
    assert source._put is mine


def test_an_item_that_cannot_be_put_is_not_counted(page: Page, head: Writer, tail: Writer) -> None:
    source: queue.Queue[Any] = queue.PriorityQueue()
    tap_queue(source, head, tail)
    source.put(1)
    with pytest.raises(TypeError, match="not supported between"):
        source.put("text")
    assert counts(page, "tail").items == 1


def test_a_queue_whose_items_were_replaced_is_still_counted(
    page: Page, head: Writer, tail: Writer
) -> None:
    source: queue.Queue[int] = queue.Queue()
    tap_queue(source, head, tail)
    source.put(1)
    source.queue = type(source.queue)([5, 6])
    assert source.get() == 5
    assert counts(page, "head").items == 1


def test_tasks_are_still_joined(head: Writer, tail: Writer) -> None:
    source: queue.Queue[int] = queue.Queue()
    tap_queue(source, head, tail)
    source.put(1)
    source.get()
    source.task_done()
    source.join()
    with pytest.raises(ValueError, match="too many times"):
        source.task_done()


def test_a_queue_is_tapped_once_at_a_time(page: Page, head: Writer, tail: Writer) -> None:
    source: queue.Queue[int] = queue.Queue()
    tapped = tap_queue(source, head, tail)
    with pytest.raises(InvalidInput, match="is tapped already"):
        tap_queue(source, Writer(page, "other.head"), Writer(page, "other.tail"))
    tapped.release()
    tap_queue(source, Writer(page, "other.head"), Writer(page, "other.tail"))


def test_a_queue_that_grows_lets_waiting_producers_go_on(
    page: Page, head: Writer, tail: Writer
) -> None:
    source: queue.Queue[int] = queue.Queue(1)
    tapped = tap_queue(source, head, tail)
    assert tapped.resize is not None
    source.put(0)
    threads = [in_thread(lambda: source.put(1)) for _ in range(2)]
    while counts(page, "tail").waiting < 2:
        time.sleep(0.001)
    tapped.resize(lambda bound: bound + 2)
    for each in threads:
        each.join()
    assert (source.qsize(), source.maxsize) == (3, 3)
    tapped.resize(lambda bound: bound - 2)
    assert source.maxsize == 1
    source.get()
    with pytest.raises(queue.Full):
        source.put_nowait(1)


class Ending(queue.Queue[int]):
    """Ends as queues do from Python 3.13 on."""

    def shutdown(self, immediate: bool = False) -> None:
        with self.mutex:
            while immediate and self._qsize():
                self._get()


@pytest.mark.parametrize("kind", [Ending, *([queue.Queue] if sys.version_info >= (3, 13) else [])])
def test_what_is_thrown_away_at_the_end_was_taken_by_nobody(
    page: Page, head: Writer, tail: Writer, kind: type[Ending]
) -> None:
    source = kind()
    tap_queue(source, head, tail)
    for each in range(4):
        source.put(each)
    source.get()
    source.shutdown()
    assert source.get() == 1
    source.shutdown(immediate=True)
    assert source.empty()
    assert (counts(page, "tail").items, counts(page, "head").items) == (4, 2)


class Pool(queue.Queue[int]):
    """Has a ``shutdown`` that is not Python's."""

    def shutdown(self, workers: int = 2, *, marker: int = -1) -> int:
        for _ in range(workers):
            self.put(marker)
        return workers


class Stopping(queue.Queue[int]):
    """Has one that takes nothing."""

    def shutdown(self) -> int:
        return 0


def test_a_shutdown_of_another_kind_is_as_before(page: Page, head: Writer, tail: Writer) -> None:
    stopping = Stopping()
    tapped = tap_queue(stopping, head, tail)
    assert stopping.shutdown() == 0
    tapped.release()
    source = Pool()
    tap_queue(source, head, tail)
    assert source.shutdown(3, marker=-2) == 3
    assert [source.get() for _ in range(3)] == [-2] * 3
    assert (counts(page, "tail").items, counts(page, "head").items) == (3, 3)
    source.put(4)
    assert source.get(timeout=0) == 4
    assert counts(page, "head").items == 4


def test_a_subclass_that_refuses_an_item_is_asked_again(
    page: Page, head: Writer, tail: Writer
) -> None:
    class Even(queue.Queue[int]):
        def _init(self, maxsize: int) -> None:
            super()._init(maxsize)
            self.refused = 0

        def _put(self, item: int) -> None:
            if item % 2:
                self.refused += 1
                raise ValueError(item)
            super()._put(item)

    source = Even(1)
    tap_queue(source, head, tail)
    with pytest.raises(ValueError, match="3"):
        source.put(3)
    source.put(4)
    assert (source.get(), source.refused, source.unfinished_tasks) == (4, 1, 1)
    assert counts(page, "tail").items == 1
