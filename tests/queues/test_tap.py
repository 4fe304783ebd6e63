"""The public face: names, pages, ends, growing, closing."""

from __future__ import annotations

import asyncio
import gc
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import Page, Tap

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def test_closing_in_the_middle_of_a_wait_disturbs_nobody() -> None:
    with Tap(queue.Queue()) as tap:
        out: list[str] = []
        thread = threading.Thread(target=lambda: out.append(tap.queue.get()))
        thread.start()
        while not any(each.waiting for each in tap.head.read()):
            time.sleep(0.001)
    (counts,) = tap.head.read()
    assert (counts.waiting, counts.items) == (0, 0)
    assert counts.blocked_ns > 0
    tap.queue.put("item")
    thread.join()
    assert out == ["item"]
    assert tap.head.read() == (counts,)


def test_a_queue_whose_tap_was_forgotten_goes_on_and_nothing_is_kept_of_it(page: Page) -> None:
    def size(item: object) -> float:
        return 1.0

    source: queue.Queue[int] = queue.Queue()
    kept = weakref.ref(size)
    Tap(source, name="work", page=page, item_bytes=size)
    del size
    gc.collect()
    source.put(1)
    assert [each.read().items for each in page.cells()] == [1]
    del source
    gc.collect()
    assert kept() is None
    Tap(queue.Queue()).queue.put(1)


def test_an_end_may_be_sent(page: Page, sent: Callable[[Any], Any]) -> None:
    page.claim("work.head").count()
    page.claim("work.tail").count()
    page.claim("work.head").count()
    end = Tap(queue.Queue(), name="work", page=page, servers=4).head
    for each in (end, sent(end)):
        assert [counts.items for counts in each.read()] == [1, 1]
        assert (each.name, each.servers) == ("work.head", 4)
    assert not sent(end).page.writable


def test_a_source_that_is_refused_leaves_no_page_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Page] = []
    create = Page.create
    monkeypatch.setattr(Page, "create", lambda: made.append(create()) or made[-1])
    with pytest.raises(InvalidInput):
        Tap(12)
    assert [each.path.exists() for each in made] == [False]


BOUNDED = [queue.Queue, queue.PriorityQueue, asyncio.Queue]


def set_bound(source: Any, size: int) -> None:
    setattr(source, "maxsize" if isinstance(source, queue.Queue) else "_maxsize", size)


class AQueueOfItemsThatWaitForASecondStageWhichHasAVeryLongNameOfItsOwn(queue.Queue[int]):
    pass


def test_a_class_with_a_long_name_is_counted_under_the_beginning_of_it() -> None:
    with Tap(AQueueOfItemsThatWaitForASecondStageWhichHasAVeryLongNameOfItsOwn()) as tap:
        tap.queue.put(1)
        assert tap.name == "AQueueOfItemsThatWaitForASecondStageWhichHasAVeryLongNameOf"
        assert [each.items for each in tap.tail.read()] == [1]
        assert tap.failure is None


@pytest.mark.parametrize("kind", BOUNDED)
def test_what_is_grown_is_given_back_in_any_order_and_by_closing(kind: type[Any]) -> None:
    source = kind(2)
    with Tap(source) as tap:
        growing = [tap.grown(by) for by in (1, 2, 3)]
        for each in growing:
            each.__enter__()
        assert source.maxsize == 8
        for each, left in zip(growing[:2], (7, 5), strict=True):
            each.__exit__(None, None, None)
            assert source.maxsize == left
        set_bound(source, 20)  # the program's own stands, and voids what was lent
        with suppress(KeyError), tap.grown(5):
            assert source.maxsize == 25
            raise KeyError
        assert source.maxsize == 20
        growing[2].__exit__(None, None, None)
        assert source.maxsize == 20
        last = tap.grown(4)
        last.__enter__()
    assert source.maxsize == 20
    last.__exit__(None, None, None)
    assert source.maxsize == 20
    with pytest.raises(InvalidInput), tap.grown(1):
        pass


def test_who_cannot_count_goes_on(in_fork: Callable[..., int]) -> None:
    def work() -> None:
        assert tap.failure is None
        tap.queue.put(2)
        assert tap.failure is not None

    with Page.create(cells=1) as full, Tap(queue.Queue(), name="work", page=full) as tap:
        tap.queue.put(1)
        assert tap.failure is None
        assert tap.queue.get() == 1
        assert tap.failure is not None
        assert tap.head.read() == ()
        assert in_fork(work) == 0


@pytest.mark.parametrize(
    ("item_bytes", "size"),
    [(10, 20), (2.5, 5), (lambda item: item / 0, 0), (str.upper, 0), (lambda item: -len(item), 0)],
)
def test_a_size_that_fails_ends_no_program_and_is_told(item_bytes: Any, size: int) -> None:
    with Tap(queue.Queue(), item_bytes=item_bytes) as tap:
        for item in ("one", "three"):
            tap.queue.put(item)
        assert [(each.items, each.bytes) for each in tap.tail.read()] == [(2, size)]
        assert (tap.failure is None) is (size > 0)


def test_a_process_forked_while_another_thread_claims_claims_for_itself(
    page: Page, monkeypatch: pytest.MonkeyPatch, fork: Callable[..., BaseProcess]
) -> None:
    claiming, forked = threading.Event(), threading.Event()
    kind, tap = type(page.claim("other")), Tap(queue.SimpleQueue(), name="work", page=page)
    own, parent = kind.own, os.getpid()

    def own_slowly(cell: Any, thread: int | None) -> None:
        if os.getpid() == parent:
            claiming.set()
            forked.wait(20.0)
        own(cell, thread)

    monkeypatch.setattr(kind, "own", own_slowly)
    thread = threading.Thread(target=tap.queue.put, args=(1,))
    thread.start()
    assert claiming.wait(20.0)
    child = fork(lambda: tap.queue.put(1))
    forked.set()
    thread.join()
    child.join(20.0)
    assert child.exitcode == 0
    found = [(each.read().items, each.read().pid) for each in page.cells()[1:]]
    assert found == [(1, parent), (1, child.pid)]
