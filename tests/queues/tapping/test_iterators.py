"""Iterables: whose turn it is, to the nanosecond."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from benchrigor.testing import FakeClock

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


class Steps:
    """Works for so many nanoseconds before each item; an error takes the place of a None."""

    def __init__(self, clock: FakeClock, *steps_ns: int | None) -> None:
        self.clock, self.steps_ns, self.closed = clock, iter(steps_ns), False

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        step_ns = next(self.steps_ns)
        self.clock.advance(10 if step_ns is None else step_ns)
        if step_ns is None:
            raise KeyError
        return step_ns

    def close(self) -> None:
        self.closed = True


class AsyncSteps(Steps):
    """The same for ``async for``."""

    def __aiter__(self) -> AsyncSteps:
        return self

    async def __anext__(self) -> int:
        await asyncio.sleep(0)
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.close()


def read(tapped: Any) -> Iterator[int]:
    """Iterate, in a loop of `asyncio` where that is needed."""
    if not hasattr(tapped, "__anext__"):
        yield from tapped
        return

    async def fetch() -> int | None:
        return await anext(tapped, None)

    with asyncio.Runner() as runner:
        while (found := runner.run(fetch())) is not None:
            yield found


@pytest.mark.parametrize("kind", [Steps, AsyncSteps])
def test_either_end_waits_while_the_other_works(work: Any, kind: type[Steps]) -> None:
    for each in read(work.timed(kind(work.clock, 5, 50))):
        assert (work.waiting["tail"], work.waiting["head"]) == (1, 0)
        work.clock.advance(2 * each)
    assert work.told("blocked_ns") == {"head": 55, "tail": 110}
    assert (work.items, work.waiting) == ({"head": 2, "tail": 2}, {"head": 0, "tail": 0})


def test_two_looks_at_the_clock_are_taken_for_each_item(work: Any) -> None:
    clock = FakeClock(cost_ns=1)
    iterator = iter(work.timed(iter("abc"), clock.now_ns))
    before_ns = clock.now_ns()
    assert [next(iterator), next(iterator)] == ["a", "b"]
    assert clock.now_ns() - before_ns == 5


@pytest.mark.parametrize("how", ["close", "aclose", "forget"])
def test_a_loop_that_was_left_lets_nobody_wait(work: Any, how: str) -> None:
    steps = (AsyncSteps if how == "aclose" else Steps)(work.clock, 5, 50)
    iterator = work.timed(steps)
    reading = read(iterator)
    next(reading)
    work.clock.advance(7)
    if how == "close":
        iterator.close()
    elif how == "aclose":
        asyncio.run(iterator.aclose())
    assert steps.closed is (how != "forget")
    del iterator, reading
    gc.collect()
    work.clock.advance(1_000)
    assert (work.told("blocked_ns")["tail"], work.waiting) == (7, {"head": 0, "tail": 0})


def test_an_iterator_that_goes_on_after_an_error_goes_on(work: Any) -> None:
    iterator = work.timed(Steps(work.clock, 10, None, 10))
    assert next(iterator) == 10
    with pytest.raises(KeyError):
        next(iterator)
    work.clock.advance(400)
    assert next(iterator) == 10
    assert work.told("blocked_ns") == {"head": 30, "tail": 0}
    assert work.items == {"head": 2, "tail": 2}


def test_an_iterable_stands_for_itself_but_for_indexing_and_comparison(work: Any) -> None:
    tapped = work.tap([1, 2, 3])
    assert [*tapped, *tapped] == [1, 2, 3, 1, 2, 3]
    assert (len(tapped), tapped.index(2), 2 in tapped) == (3, 1, True)
    assert work.items == {"head": 8, "tail": 8}
    with pytest.raises(TypeError):
        tapped[0]
    assert tapped != [1, 2, 3]
    endless = work.tap(map(str, [1]))
    assert not hasattr(endless, "__len__")
    endless.close()  # it need not be closable


def test_a_forked_process_goes_on_in_cells_of_its_own(
    work: Any, fork: Callable[..., BaseProcess]
) -> None:
    iterator = work.tap(iter(range(9)))
    next(iterator)
    child = fork(lambda: os._exit(next(iterator) + 10 * next(iterator)))
    child.join(20.0)
    assert child.exitcode == 21
    found = {(each.name, each.read().pid): each.read() for each in work.page.cells()}
    ours, theirs = found["work.tail", os.getpid()], found["work.tail", child.pid]
    assert (ours.waiting, ours.items, theirs.items) == (1, 1, 2)


def test_what_is_sent_into_a_generator_reaches_it_uncounted(work: Any) -> None:
    def echo() -> Iterator[int]:
        got = yield 0
        yield got

    tapped = work.tap(echo())
    next(tapped)
    assert tapped.send(8) == 8
    assert work.items == {"head": 1, "tail": 1}
