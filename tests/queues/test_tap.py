"""The public face: names, pages, ends, growing, closing."""

from __future__ import annotations

import asyncio
import gc
import pickle
import queue
import threading
import time
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import Page, Tap
from benchrigor.queues.counting.ends import End


def test_a_tap_has_a_page_of_its_own_for_as_long_as_it_is_open() -> None:
    with Tap(queue.Queue()) as tap:
        assert tap.name == "Queue"
        assert (tap.head.name, tap.tail.name) == ("Queue.head", "Queue.tail")
        assert tap.page.path.exists()
        assert tap.head.read() == tap.tail.read() == ()
    assert not tap.page.path.exists()
    tap.close()


def test_several_taps_share_a_page(page: Page) -> None:
    taps = [Tap(queue.Queue(), name=name, page=page) for name in ("first", "second")]
    for count, tap in enumerate(taps, 1):
        for each in range(count):
            tap.queue.put(each)
    assert [[each.items for each in tap.tail.read()] for tap in taps] == [[1], [2]]
    for tap in taps:
        tap.close()
    assert page.path.exists()
    assert [each.closed for tap in taps for each in tap.tail.read()] == [True, True]


def test_what_was_counted_can_be_read_after_closing() -> None:
    with Tap(queue.Queue()) as tap:
        tap.queue.put("item")
    tap.queue.put("uncounted")
    (counts,) = tap.tail.read()
    assert (counts.items, counts.closed) == (1, True)


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


@pytest.mark.slow
def test_a_queue_whose_tap_was_forgotten_goes_on(page: Page) -> None:
    source: queue.Queue[int] = queue.Queue()
    Tap(source, name="work", page=page)
    gc.collect()
    source.put(1)
    assert [each.read().items for each in page.cells()] == [1]
    Tap(queue.Queue()).queue.put(1)


def test_an_end_can_be_read_without_a_tap(page: Page, sent: Callable[[Any], Any]) -> None:
    page.claim("work.head").count()
    page.claim("work.tail").count()
    page.claim("work.head").count()
    end = End(page, "work.head", servers=4)
    for each in (end, sent(end)):
        assert [counts.items for counts in each.read()] == [1, 1]
        assert (each.name, each.servers) == ("work.head", 4)
    assert not sent(end).page.writable


def test_cells_that_come_later_are_read_as_well(page: Page) -> None:
    end = End(page, "work.head")
    assert end.read() == ()
    page.claim("work.head")
    page.claim("work.head").count()
    assert [each.items for each in end.read()] == [0, 1]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": ""}, "name is ''"),
        ({"name": "x" * 60}, "60 bytes, expected 1 to 59"),
        ({"name": 3}, "name is 3"),
        ({"servers": 0}, "servers is 0"),
        ({"servers": True}, "servers is True"),
        ({"servers": None}, "servers is None"),
        ({"page": "work.cells", "name": "work"}, "expected a Page"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        Tap(queue.Queue(), **options)


def test_everything_that_makes_no_sense_is_named_at_once(page: Page) -> None:
    with pytest.raises(InvalidInput) as caught:
        Tap(queue.Queue(), page=page, servers=0)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("how", ["closed", "read only"])
def test_a_page_that_cannot_be_written_is_refused(page: Page, how: str) -> None:
    other = Page.open(page.path, writable=how == "closed")
    if how == "closed":
        other.close()
    with pytest.raises(InvalidInput, match="cannot be written"):
        Tap(queue.Queue(), name="work", page=other)


def test_a_source_that_is_refused_leaves_no_page_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Page] = []
    create = Page.create
    monkeypatch.setattr(Page, "create", lambda: made.append(create()) or made[-1])
    with pytest.raises(InvalidInput, match="source is 12"):
        Tap(12)
    assert [each.path.exists() for each in made] == [False]


def test_a_queue_tapped_twice_is_refused_and_stays_tapped_once() -> None:
    source: queue.Queue[int] = queue.Queue()
    with Tap(source) as tap:
        with pytest.raises(InvalidInput, match="is tapped already"):
            Tap(source)
        source.put(1)
        assert tap.tail.read()[0].items == 1


def test_a_queue_grows_for_a_while(page: Page) -> None:
    with Tap(queue.Queue(2)) as tap:
        with tap.grown(3):
            assert tap.queue.maxsize == 5
        assert tap.queue.maxsize == 2
        with pytest.raises(KeyError), tap.grown(3):
            raise KeyError
        assert tap.queue.maxsize == 2
        with tap.grown(1), tap.grown(2):
            assert tap.queue.maxsize == 5
        assert tap.queue.maxsize == 2


BOUNDED = [queue.Queue, queue.PriorityQueue, asyncio.Queue]


def set_bound(source: Any, size: int) -> None:
    setattr(source, "maxsize" if isinstance(source, queue.Queue) else "_maxsize", size)


@pytest.mark.parametrize("kind", BOUNDED)
@pytest.mark.parametrize("size", [0, 1, 3, 50])
@pytest.mark.parametrize("how", ["leave", "close", "both"])
def test_a_bound_that_the_program_sets_while_it_is_grown_stands(
    kind: type[Any], size: int, how: str
) -> None:
    source = kind(2)
    with Tap(source) as tap:
        if how == "close":
            growing = tap.grown(3)  # held: who forgets it has left it
            growing.__enter__()
            set_bound(source, size)
        else:
            with tap.grown(3):
                set_bound(source, size)
                if how == "both":
                    tap.close()
            assert source.maxsize == size
    assert source.maxsize == size
    source.put_nowait("item")
    assert source.get_nowait() == "item"


def test_what_is_grown_after_the_program_has_set_the_bound_is_given_back() -> None:
    with Tap(queue.Queue(2)) as tap:
        with tap.grown(3):
            tap.queue.maxsize = 20
            with tap.grown(5):
                assert tap.queue.maxsize == 25
            assert tap.queue.maxsize == 20
        assert tap.queue.maxsize == 20


@pytest.mark.parametrize("kind", BOUNDED)
def test_a_queue_without_a_bound_cannot_grow(kind: type[Any]) -> None:
    with Tap(kind()) as tap:
        with pytest.raises(InvalidInput, match="takes any number of items, expec"), tap.grown(1):
            pass
        assert tap.queue.maxsize == 0


def test_while_it_is_grown_its_producer_need_not_wait() -> None:
    with Tap(queue.Queue(1)) as tap:
        tap.queue.put(0)
        with tap.grown(2):
            tap.queue.put(1)
            tap.queue.put(2)
        with pytest.raises(queue.Full):
            tap.queue.put_nowait(3)
        assert [tap.queue.get() for _ in range(3)] == [0, 1, 2]
        tap.queue.put_nowait(3)
        assert tap.tail.read()[0].blocked_events == 0


@pytest.mark.parametrize("by", [0, -1, 1.5, True, "2"])
def test_growing_by_what_makes_no_sense_is_refused(by: Any) -> None:
    with Tap(asyncio.Queue(1)) as tap, pytest.raises(InvalidInput, match="by is"), tap.grown(by):
        pass


def test_what_cannot_grow_says_so() -> None:
    moving = pytest.raises(InvalidInput, match="cannot be moved")
    with Tap(queue.SimpleQueue()) as tap, moving, tap.grown(1):
        pass


def test_a_closed_tap_leaves_the_bound_alone() -> None:
    source: queue.Queue[int] = queue.Queue(maxsize=2)
    tap = Tap(source)
    with tap.grown(3):
        assert source.maxsize == 5
        tap.close()
        assert source.maxsize == 2
    assert source.maxsize == 2
    with pytest.raises(InvalidInput, match="is closed, expected an open one"), tap.grown(1):
        pass


class AQueueOfItemsThatWaitForASecondStageWhichHasAVeryLongNameOfItsOwn(queue.Queue[int]):
    pass


def test_a_class_with_a_long_name_is_counted_under_the_beginning_of_it() -> None:
    with Tap(AQueueOfItemsThatWaitForASecondStageWhichHasAVeryLongNameOfItsOwn()) as tap:
        tap.queue.put(1)
        assert tap.name == "AQueueOfItemsThatWaitForASecondStageWhichHasAVeryLongNameOf"
        assert [each.items for each in tap.tail.read()] == [1]
        assert tap.failure is None


@pytest.mark.parametrize(
    "make", [queue.Queue, queue.LifoQueue, queue.SimpleQueue, asyncio.Queue, asyncio.PriorityQueue]
)
def test_a_tap_that_cannot_be_sent_says_why_and_what_can(make: Callable[[], Any]) -> None:
    with Tap(make()) as tap:
        for send in (pickle.dumps, ForkingPickler.dumps):
            with pytest.raises(InvalidInput) as caught:
                send(tap)
            message = str(caught.value)
            assert f"{tap.queue!r} is of this process alone and cannot be sent" in message
            assert "expected a queue of multiprocessing" in message


def test_who_counts_nothing_for_want_of_a_cell_can_find_out_why() -> None:
    with Page.create(cells=1) as page, Tap(queue.Queue(), name="work", page=page) as tap:
        tap.queue.put(1)
        assert tap.failure is None
        tap.queue.get()
        assert "has room for 1 cells, all in use" in str(tap.failure)
        assert tap.head.read() == ()


def test_a_page_that_goes_before_the_first_event_stops_nobody(page: Page) -> None:
    with Tap(queue.SimpleQueue(), name="work", page=page) as tap:
        page.path.unlink()
        tap.queue.put(1)
        assert tap.queue.get() == 1
        assert "No such file" in str(tap.failure)
