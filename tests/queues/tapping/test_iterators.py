"""Iterables: whose turn it is, to the nanosecond."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Callable, Iterator
from multiprocessing.process import BaseProcess

import pytest

from benchrigor.queues import Counts, Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.iterators import tap_async_iterable, tap_iterable
from benchrigor.testing import FakeClock

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000_000)


@pytest.fixture
def head(page: Page, clock: FakeClock) -> Writer:
    return Writer(page, "work.head", clock.now_ns)


@pytest.fixture
def tail(page: Page, clock: FakeClock) -> Writer:
    return Writer(page, "work.tail", clock.now_ns)


def ends(page: Page, clock: FakeClock) -> tuple[Counts, Counts]:
    found = {each.name: each.read(clock.now_ns()) for each in page.cells()}
    return found["work.head"], found["work.tail"]


def working(clock: FakeClock, *steps_ns: int) -> Iterator[int]:
    for each in steps_ns:
        clock.advance(each)
        yield each


def test_either_end_waits_while_the_other_works(
    page: Page, clock: FakeClock, head: Writer, tail: Writer
) -> None:
    for each in tap_iterable(working(clock, 5, 50), head, tail).queue:
        clock.advance(2 * each)
    of_head, of_tail = ends(page, clock)
    assert (of_head.blocked_ns, of_tail.blocked_ns) == (55, 110)
    assert (of_head.items, of_tail.items) == (2, 2)
    assert (of_head.waiting, of_tail.waiting) == (0, 0)


def test_two_looks_at_the_clock_are_taken_for_each_item(page: Page) -> None:
    clock = FakeClock(cost_ns=1)
    writers = [Writer(page, name, clock.now_ns) for name in ("work.head", "work.tail")]
    iterator = iter(tap_iterable(iter("abc"), *writers).queue)
    before_ns = clock.now_ns()
    assert [next(iterator), next(iterator)] == ["a", "b"]
    assert clock.now_ns() - before_ns == 5


def test_a_producer_waits_on_while_its_consumer_works(
    page: Page, clock: FakeClock, head: Writer, tail: Writer
) -> None:
    iterator = tap_iterable(working(clock, 5, 50), head, tail).queue
    next(iterator)
    clock.advance(30)
    of_head, of_tail = ends(page, clock)
    assert (of_head.blocked_ns, of_head.waiting) == (5, 0)
    assert (of_tail.blocked_ns, of_tail.waiting) == (30, 1)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "forget"])
def test_a_loop_that_was_left_lets_nobody_wait(
    page: Page, clock: FakeClock, head: Writer, tail: Writer, how: str
) -> None:
    iterator = tap_iterable(working(clock, 5, 50), head, tail).queue
    for _ in iterator:
        break
    clock.advance(7)
    if how == "close":
        iterator.close()
        with pytest.raises(StopIteration):
            next(iterator)
    del iterator
    gc.collect()
    clock.advance(1_000)
    of_head, of_tail = ends(page, clock)
    assert (of_tail.blocked_ns, of_tail.waiting, of_head.waiting) == (7, 0, 0)


def test_closing_reaches_the_generator(head: Writer, tail: Writer) -> None:
    told: list[str] = []

    def careful() -> Iterator[int]:
        try:
            yield 1
        finally:
            told.append("closed")

    iterator = tap_iterable(careful(), head, tail).queue
    next(iterator)
    iterator.close()
    assert told == ["closed"]
    tap_iterable(iter([1]), head, tail).queue.close()


def test_an_iterator_that_goes_on_after_an_error_goes_on(
    page: Page, clock: FakeClock, head: Writer, tail: Writer
) -> None:
    class Stumbling:
        def __init__(self) -> None:
            self.step = 0

        def __iter__(self) -> Stumbling:
            return self

        def __next__(self) -> int:
            self.step += 1
            clock.advance(10)
            if self.step == 2:
                raise KeyError
            return self.step

    iterator = tap_iterable(Stumbling(), head, tail).queue
    assert next(iterator) == 1
    with pytest.raises(KeyError):
        next(iterator)
    clock.advance(400)
    assert next(iterator) == 3
    of_head, of_tail = ends(page, clock)
    assert (of_head.blocked_ns, of_tail.blocked_ns) == (30, 0)
    assert (of_head.items, of_tail.items) == (2, 2)


def test_an_iterable_can_be_passed_through_again(
    page: Page, clock: FakeClock, head: Writer, tail: Writer
) -> None:
    tapped = tap_iterable([1, 2, 3], head, tail).queue
    assert [*tapped, *tapped] == [1, 2, 3, 1, 2, 3]
    assert len(tapped) == 3
    assert tapped.index(2) == 1
    assert [each.items for each in ends(page, clock)] == [6, 6]


def test_what_has_no_length_gets_none(head: Writer, tail: Writer) -> None:
    assert not hasattr(tap_iterable(map(str, [1]), head, tail).queue, "__len__")


def test_what_is_sent_into_a_generator_reaches_it_uncounted(
    page: Page, clock: FakeClock, head: Writer, tail: Writer
) -> None:
    def echo() -> Iterator[int]:
        got = yield 0
        yield got

    tapped = tap_iterable(echo(), head, tail).queue
    next(tapped)
    assert tapped.send(8) == 8
    assert [each.items for each in ends(page, clock)] == [1, 1]


def test_what_is_indexed_or_compared_is_not_what_stands_in(head: Writer, tail: Writer) -> None:
    tapped = tap_iterable([1, 2], head, tail).queue
    with pytest.raises(TypeError, match="not subscriptable"):
        tapped[0]
    assert tapped != [1, 2]
    assert 2 in tapped


def test_a_forked_process_goes_on_in_cells_of_its_own(
    page: Page, clock: FakeClock, head: Writer, tail: Writer, fork: Callable[..., BaseProcess]
) -> None:
    iterator = tap_iterable(iter(range(9)), head, tail).queue
    next(iterator)
    child = fork(lambda: os._exit(next(iterator) + 10 * next(iterator)))
    child.join(20.0)
    assert child.exitcode == 21
    found = {(each.name, each.read().pid): each.read() for each in page.cells()}
    assert found["work.tail", os.getpid()].waiting == 1
    assert found["work.tail", os.getpid()].items == 1
    assert found["work.tail", child.pid].items == 2


def test_of_asynchronous_iterables_either_end_waits_as_well(
    page: Page, clock: FakeClock, head: Writer, tail: Writer
) -> None:
    async def work() -> AsyncIterator[int]:
        for each in (5, 50):
            await asyncio.sleep(0)
            clock.advance(each)
            yield each

    async def main() -> None:
        async for each in tap_async_iterable(work(), head, tail).queue:
            clock.advance(2 * each)

    asyncio.run(main())
    of_head, of_tail = ends(page, clock)
    assert (of_head.blocked_ns, of_tail.blocked_ns) == (55, 110)
    assert (of_head.waiting, of_tail.waiting, of_tail.items) == (0, 0, 2)


def test_an_asynchronous_loop_that_was_left_lets_nobody_wait(
    page: Page, clock: FakeClock, head: Writer, tail: Writer
) -> None:
    told: list[str] = []

    async def careful() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            told.append("closed")

    async def main() -> None:
        tapped = tap_async_iterable(careful(), head, tail).queue
        async for _ in tapped:
            break
        clock.advance(9)
        await tapped.aclose()

    asyncio.run(main())
    clock.advance(1_000)
    assert told == ["closed"]
    assert (ends(page, clock)[1].blocked_ns, ends(page, clock)[1].waiting) == (9, 0)


def test_an_asynchronous_iterator_need_not_be_closable(head: Writer, tail: Writer) -> None:
    class Once:
        def __aiter__(self) -> Once:
            return self

        async def __anext__(self) -> int:
            return 4

    async def main() -> int:
        tapped = tap_async_iterable(Once(), head, tail).queue
        found: int = await anext(tapped)
        await tapped.aclose()
        return found

    assert asyncio.run(main()) == 4
