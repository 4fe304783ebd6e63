"""Queues of asyncio, hooked from inside: they stay what they were."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import Counts, Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.async_sources import tap_async_queue
from benchrigor.queues.tapping.source_kinds import tap_source

KINDS = [asyncio.Queue, asyncio.LifoQueue, asyncio.PriorityQueue]


def counts(page: Page, name: str) -> Counts:
    (cell,) = (each for each in page.cells() if each.name == f"work.{name}")
    return cell.read()


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_itself_is_used_and_is_as_before_when_released(
    page: Page, head: Writer, tail: Writer, kind: type[asyncio.Queue[Any]]
) -> None:
    source = kind(5)
    before = set(vars(source))
    tapped = tap_async_queue(source, head, tail)
    assert tapped.queue is source
    source.put_nowait(1)
    tapped.release()
    assert set(vars(source)) == before
    assert source.get_nowait() == 1
    assert (counts(page, "tail").items, len(page.cells())) == (1, 1)


def test_tasks_that_wait_at_once_are_all_seen(page: Page, head: Writer, tail: Writer) -> None:
    async def main() -> None:
        source: asyncio.Queue[int] = asyncio.Queue()
        tap_async_queue(source, head, tail)
        tasks = [asyncio.create_task(source.get()) for _ in range(500)]
        await asyncio.sleep(0)
        assert counts(page, "head").waiting == 500
        for each in range(300):
            source.put_nowait(each)
        for each in tasks[300:]:
            each.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert found[:300] == [*range(300)]
        assert all(isinstance(each, asyncio.CancelledError) for each in found[300:])

    asyncio.run(main())
    assert (counts(page, "head").waiting, counts(page, "head").items) == (0, 300)


def test_tasks_left_waiting_when_the_loop_ends_wait_no_more(
    page: Page, head: Writer, tail: Writer
) -> None:
    async def main() -> None:
        source: asyncio.Queue[int] = asyncio.Queue()
        tap_async_queue(source, head, tail)
        self.append(asyncio.create_task(source.get()))
        await asyncio.sleep(0)
        assert counts(page, "head").waiting == 1

    self: list[object] = []
    asyncio.run(main())
    assert counts(page, "head").waiting == 0


def test_a_queue_is_tapped_once_at_a_time(page: Page, head: Writer, tail: Writer) -> None:
    source: asyncio.Queue[int] = asyncio.Queue()
    tapped = tap_async_queue(source, head, tail)
    with pytest.raises(InvalidInput, match="is tapped already"):
        tap_async_queue(source, head, tail)
    tapped.release()
    tap_async_queue(source, Writer(page, "other.head"), Writer(page, "other.tail"))


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in the loop", "in another thread"])
def test_a_queue_that_grows_lets_waiting_producers_go_on(
    page: Page, head: Writer, tail: Writer, elsewhere: bool
) -> None:
    async def main() -> None:
        source: asyncio.Queue[int] = asyncio.Queue(1)
        resize = tap_async_queue(source, head, tail).resize
        assert resize is not None
        await source.put(0)
        tasks = [asyncio.create_task(source.put(1)) for _ in range(3)]
        await asyncio.sleep(0)
        assert counts(page, "tail").waiting == 3
        if elsewhere:
            thread = threading.Thread(target=resize, args=(lambda bound: bound + 2,))
            thread.start()
            thread.join()
        else:
            resize(lambda bound: bound + 2)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)
        assert (source.qsize(), counts(page, "tail").waiting) == (3, 1)
        resize(lambda bound: bound - 2)
        assert source.maxsize == 1
        for _ in range(3):
            source.get_nowait()
        await asyncio.gather(*tasks)
        assert source.full()

    asyncio.run(main())


def test_a_queue_can_grow_before_its_loop_runs_and_after_it_ended(
    head: Writer, tail: Writer
) -> None:
    source: asyncio.Queue[int] = asyncio.Queue(1)
    resize = tap_async_queue(source, head, tail).resize
    assert resize is not None

    async def main() -> None:
        await source.put(0)
        resize(lambda bound: bound + 1)
        await source.put(0)
        putter = asyncio.create_task(source.put(0))
        await asyncio.sleep(0)
        await source.get()
        await putter

    asyncio.run(main())
    resize(lambda bound: bound + 2)
    assert source.maxsize == 4


@pytest.mark.skipif(sys.version_info < (3, 13), reason="queues cannot be shut down before 3.13")
def test_a_queue_that_is_shut_down_says_so_and_counts_no_wait(
    page: Page, head: Writer, tail: Writer
) -> None:
    async def main() -> None:
        source: asyncio.Queue[int] = asyncio.Queue()
        tap_async_queue(source, head, tail)
        for each in range(3):
            source.put_nowait(each)
        assert await source.get() == 0
        source.shutdown(immediate=True)  # type: ignore[attr-defined]
        for work in (source.get(), source.put(1)):
            with pytest.raises(asyncio.QueueShutDown):  # type: ignore[attr-defined]
                await work

    asyncio.run(main())
    assert (counts(page, "head").items, counts(page, "head").blocked_events) == (1, 0)


class Choosy(asyncio.Queue[int]):
    """Gets and puts in a way of its own."""

    async def get(self, *, at_least: int = 0) -> int:  # type: ignore[override]
        while (item := await super().get()) < at_least:
            pass
        return item

    async def put(self, item: int, times: int = 1) -> str:  # type: ignore[override]
        for _ in range(times):
            await super().put(item)
        return "done"


def test_what_a_subclass_takes_and_returns_reaches_it(
    page: Page, head: Writer, tail: Writer
) -> None:
    async def main() -> None:
        source = Choosy(1)
        tap_async_queue(source, head, tail)
        late = asyncio.create_task(source.get(at_least=4))
        await asyncio.sleep(0)
        assert await source.put(3, times=2) == "done"
        assert await source.put(item=5) == "done"
        assert await late == 5

    asyncio.run(main())
    assert (counts(page, "head").items, counts(page, "tail").items) == (3, 3)
    assert counts(page, "head").blocked_events == 1


class Prompt(asyncio.Queue[int]):
    """Gives a task, not a coroutine."""

    def get(self) -> asyncio.Task[int]:  # type: ignore[override]
        return asyncio.create_task(super().get())


def test_a_subclass_may_give_what_is_awaited_in_any_way(
    page: Page, head: Writer, tail: Writer
) -> None:
    async def main() -> None:
        source = Prompt()
        tap_async_queue(source, head, tail)
        late = asyncio.ensure_future(source.get())
        await asyncio.sleep(0)
        assert counts(page, "head").waiting == 1
        await source.put(1)
        assert await late == 1

    asyncio.run(main())
    assert (counts(page, "head").items, counts(page, "head").waiting) == (1, 0)


@pytest.mark.parametrize("way", ["timeout", "cancel"])
def test_who_stops_waiting_takes_nothing_and_waits_no_more(
    page: Page, head: Writer, tail: Writer, way: str
) -> None:
    async def stopped(work: Coroutine[Any, Any, object]) -> None:
        if way == "timeout":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await work
        else:
            task = asyncio.create_task(work)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    async def main() -> None:
        source: asyncio.Queue[int] = asyncio.Queue(1)
        tap_async_queue(source, head, tail)
        await stopped(source.get())
        await source.put(1)
        await stopped(source.put(2))
        assert await source.get() == 1
        assert source.empty()

    asyncio.run(main())
    for name in ("head", "tail"):
        found = counts(page, name)
        assert (found.items, found.blocked_events, found.waiting) == (1, 1, 0)


def test_a_getter_cancelled_when_its_item_has_come_leaves_it_to_the_next(
    page: Page, head: Writer, tail: Writer
) -> None:
    async def main() -> None:
        source: asyncio.Queue[int] = asyncio.Queue()
        tap_async_queue(source, head, tail)
        first, second = (asyncio.create_task(source.get()) for _ in range(2))
        await asyncio.sleep(0)
        source.put_nowait(1)
        first.cancel()
        assert await second == 1

    asyncio.run(main())
    assert (counts(page, "head").items, counts(page, "head").waiting) == (1, 0)


def test_what_a_queue_of_others_takes_and_returns_reaches_it(head: Writer, tail: Writer) -> None:
    class Ranked:
        async def put(self, item: int, rank: int) -> tuple[int, int]:
            return item, rank

        async def get(self, rank: int) -> int:
            return rank

        def put_nowait(self, item: int, rank: int) -> tuple[int, int]:
            return item, rank

        def get_nowait(self, rank: int) -> int:
            return rank

    tapped = tap_source(Ranked(), head, tail).queue
    assert asyncio.run(tapped.put(1, rank=2)) == tapped.put_nowait(1, rank=2) == (1, 2)
    assert asyncio.run(tapped.get(3)) == tapped.get_nowait(3) == 3


def test_what_a_queue_of_others_cannot_take_is_not_counted(
    page: Page, head: Writer, tail: Writer
) -> None:
    class Full:
        async def put(self, item: int) -> None:
            raise asyncio.QueueFull

        async def get(self) -> int:
            return 3

        def put_nowait(self, item: int) -> None:
            raise asyncio.QueueFull

    tapped = tap_source(Full(), head, tail).queue
    with pytest.raises(asyncio.QueueFull):
        asyncio.run(tapped.put(1))
    with pytest.raises(asyncio.QueueFull):
        tapped.put_nowait(1)
    assert asyncio.run(tapped.get()) == 3
    assert [each.name for each in page.cells()] == ["work.head"]
