"""Queues that are awaited: they stay what they were, and a wait begins where one gives way."""

from __future__ import annotations

import asyncio
import gc
import sys
import types
import weakref
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest


def test_tasks_that_wait_at_once_are_all_seen(work: Any) -> None:
    async def main() -> None:
        source = work.tap(asyncio.Queue())
        tasks = [asyncio.create_task(source.get()) for _ in range(500)]
        await asyncio.sleep(0)
        assert work.waiting == {"head": 500}
        for each in range(300):
            source.put_nowait(each)
        for task in tasks[300:]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert found[:300] == [*range(300)]
        assert all(isinstance(each, asyncio.CancelledError) for each in found[300:])
        left.append(asyncio.create_task(source.get()))
        await asyncio.sleep(0)
        assert work.waiting["head"] == 1

    left: list[object] = []
    asyncio.run(main())
    assert (work.waiting["head"], work.items["head"]) == (0, 300)  # also when the loop has ended


@pytest.mark.skipif(sys.version_info < (3, 13), reason="queues cannot be shut down before 3.13")
def test_a_queue_that_is_shut_down_says_so_and_counts_no_wait(work: Any) -> None:
    async def main() -> None:
        source = work.tap(asyncio.Queue())
        for each in range(3):
            source.put_nowait(each)
        assert await source.get() == 0
        source.shutdown(immediate=True)
        for call in (source.get(), source.put(1)):
            with pytest.raises(asyncio.QueueShutDown):  # type: ignore[attr-defined]
                await call

    asyncio.run(main())
    assert (work.items["head"], work.ends["head"].blocked_events) == (1, 0)


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


def test_what_a_subclass_takes_and_returns_reaches_it(work: Any) -> None:
    async def main() -> None:
        source = work.tap(Choosy(1))
        late = asyncio.create_task(source.get(at_least=4))
        await asyncio.sleep(0)
        assert await source.put(3, times=2) == "done"
        assert await source.put(item=5) == "done"
        assert await late == 5

    asyncio.run(main())
    assert (work.items, work.ends["head"].blocked_events) == ({"head": 3, "tail": 3}, 1)


class Ranked:
    """A queue of others."""

    async def put(self, item: int, rank: int) -> tuple[int, int]:
        return self.put_nowait(item, rank)

    async def get(self, rank: int) -> int:
        return rank

    def put_nowait(self, item: int, rank: int) -> tuple[int, int]:
        if not rank:
            raise asyncio.QueueFull
        return item, rank

    def get_nowait(self, rank: int) -> int:
        return rank


def test_what_a_queue_of_others_takes_and_returns_reaches_it(work: Any) -> None:
    tapped = work.tap(Ranked())
    assert asyncio.run(tapped.put(1, rank=2)) == tapped.put_nowait(1, rank=2) == (1, 2)
    assert asyncio.run(tapped.get(3)) == tapped.get_nowait(3) == 3
    for call in (lambda: asyncio.run(tapped.put(1, 0)), lambda: tapped.put_nowait(1, 0)):
        with pytest.raises(asyncio.QueueFull):
            call()
    assert work.items == {"head": 2, "tail": 2}


@types.coroutine
def give_way(wanted: Any) -> Generator[Any, Any, Any]:
    return (yield wanted)


class Adding:
    """Its items are sums of two numbers that are sent; a KeyError instead of one counts as ten."""

    async def get(self) -> int:
        total = 0
        for wanted in ("first", "second"):
            try:
                total += await give_way(wanted)
            except KeyError:
                total += 10
        return total

    async def put(self, item: int) -> None: ...


def test_the_wait_lasts_from_giving_way_to_the_end(work: Any) -> None:
    fetching = work.timed(Adding()).get()
    work.clock.advance(1_000)
    assert fetching.send(None) == "first"
    work.clock.advance(30)
    assert fetching.throw(KeyError()) == "second"
    assert work.waiting == {"head": 1}
    work.clock.advance(12)
    with pytest.raises(StopIteration) as done:
        fetching.send(3)
    work.clock.advance(5_000)
    assert (done.value.value, work.told("blocked_ns"), work.waiting) == (
        13,
        {"head": 42},
        {"head": 0},
    )
    assert work.ends["head"].blocked_events == 1


@pytest.mark.parametrize("error", [ZeroDivisionError, None])
def test_an_error_and_being_forgotten_end_a_wait(work: Any, error: Any) -> None:
    fetching = work.timed(Adding()).get()
    fetching.send(None)
    if error:
        with pytest.raises(error):
            fetching.throw(error())
    else:
        fetching.close()
    assert (work.waiting, work.items) == ({"head": 0}, {"head": 0})


def test_an_error_that_was_thrown_in_is_not_kept(work: Any) -> None:
    class Thrown(Exception):
        pass

    def throw() -> weakref.ref[Thrown]:
        fetching, errors = work.timed(Adding()).get(), [Thrown()]
        found = weakref.ref(errors[0])
        fetching.send(None)
        with suppress(Thrown):
            fetching.throw(errors.pop())  # this frame must not keep it either
        return found

    gc.disable()
    try:
        assert throw()() is None
    finally:
        gc.enable()
