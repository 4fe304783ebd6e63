"""A coroutine is timed from where it gives way, whatever is sent or thrown into it then."""

from __future__ import annotations

import asyncio
import gc
import types
import weakref
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

from benchrigor.queues import Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.async_sources import time_wait
from benchrigor.testing import FakeClock


@types.coroutine
def give_way(wanted: Any) -> Generator[Any, Any, Any]:
    return (yield wanted)


async def adding() -> int:
    """Add two numbers that are sent; a KeyError instead of one counts as ten."""
    total = 0
    for wanted in ("first", "second"):
        try:
            total += await give_way(wanted)
        except KeyError:
            total += 10
    return total


def waiting(page: Page) -> int:
    return page.cells()[0].read().waiting if page.cells() else 0


def test_what_does_not_give_way_is_not_timed(page: Page, head: Writer) -> None:
    async def at_once() -> int:
        return 7

    async def main() -> int:
        return await time_wait(at_once(), head)

    assert asyncio.run(main()) == 7
    assert page.cells() == ()


def test_what_is_wanted_sent_and_thrown_passes_both_ways(page: Page, head: Writer) -> None:
    work = time_wait(adding(), head)
    assert work.send(None) == "first"
    assert waiting(page) == 1
    assert work.throw(KeyError()) == "second"
    assert waiting(page) == 1
    with pytest.raises(StopIteration) as done:
        work.send(3)
    assert done.value.value == 13
    assert (waiting(page), page.cells()[0].read().blocked_events) == (0, 1)


def test_an_error_passes_and_ends_the_wait(page: Page, head: Writer) -> None:
    work = time_wait(adding(), head)
    work.send(None)
    with pytest.raises(ZeroDivisionError):
        work.throw(ZeroDivisionError())
    assert waiting(page) == 0


def test_an_error_before_any_wait_passes(page: Page, head: Writer) -> None:
    async def failing() -> None:
        raise KeyError

    async def main() -> None:
        await time_wait(failing(), head)

    with pytest.raises(KeyError):
        asyncio.run(main())
    assert page.cells() == ()


def test_a_coroutine_that_is_forgotten_waits_no_more(page: Page, head: Writer) -> None:
    work = time_wait(adding(), head)
    work.send(None)
    work.close()
    assert waiting(page) == 0


def test_cancelling_reaches_the_coroutine_and_ends_the_wait(page: Page, head: Writer) -> None:
    told: list[str] = []

    async def patient() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    async def main() -> None:
        task = asyncio.ensure_future(asyncio.wait_for(time_wait(patient(), head), None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waiting(page) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert told == ["cancelled"]
    assert waiting(page) == 0


def test_the_wait_lasts_from_giving_way_to_the_end(page: Page) -> None:
    clock = FakeClock()
    work = time_wait(adding(), Writer(page, "work.head", clock.now_ns))
    clock.advance(1_000)
    work.send(None)
    clock.advance(30)
    work.send(1)
    clock.advance(12)
    with pytest.raises(StopIteration):
        work.send(1)
    clock.advance(5_000)
    assert page.cells()[0].read(clock.now_ns()).blocked_ns == 42


def test_an_error_that_was_thrown_in_is_not_kept(head: Writer) -> None:
    class Thrown(Exception):
        pass

    def throw() -> weakref.ref[Thrown]:
        work, errors = time_wait(adding(), head), [Thrown()]
        found = weakref.ref(errors[0])
        work.send(None)
        with suppress(Thrown):
            work.throw(errors.pop())  # this frame must not keep it either
        return found

    gc.disable()
    try:
        assert throw()() is None
    finally:
        gc.enable()
