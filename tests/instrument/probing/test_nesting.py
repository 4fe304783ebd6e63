"""Self times: the total less what nested events took in the same thread or task."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from benchrigor.instrument import Probe, ProbeRegistry
from benchrigor.testing import FakeClock


@pytest.fixture
def inner(registry: ProbeRegistry, hand: str) -> Probe:
    return registry.probe("inner", clock=hand)


def times(probe: Probe) -> tuple[float, float]:
    """Return total and self time in nanoseconds."""
    found = probe.read()
    return round(found.total_s * 1e9), round(found.self_s * 1e9)


def test_time_of_inner_events_is_no_self_time(probe: Probe, inner: Probe, clock: FakeClock) -> None:
    step = inner(lambda: clock.sleep_ns(2))
    with probe.again():
        clock.sleep_ns(1)
        with inner.again():
            clock.sleep_ns(10)
            step()
        step()
    assert times(probe) == (15, 1)
    assert times(inner) == (16, 14)


def test_tokens_and_held_contexts_do_not_nest(probe: Probe, inner: Probe, clock: FakeClock) -> None:
    with probe.again(), inner:
        clock.sleep_ns(3)
    assert (times(probe), times(inner)) == ((3, 3), (3, 3))


@pytest.mark.parametrize("decorated", [False, True])
def test_a_block_that_outlives_the_event_around_it_takes_no_later_time_off_that(
    probe: Probe, registry: ProbeRegistry, hand: str, clock: FakeClock, decorated: bool
) -> None:
    inner, later = (registry.probe(name, clock=hand) for name in ("inner", "later"))

    def rows() -> Iterator[int]:
        with inner.again():
            yield from range(3)

    def load() -> Iterator[int]:
        begun = rows()
        next(begun)
        clock.sleep_ns(1)
        return begun

    if decorated:
        left = probe(load)()
    else:
        with probe.again():
            left = load()
    list(left)
    for _ in range(3):
        with later.again():
            clock.sleep_ns(10)
    assert (times(probe), times(later)) == ((1, 1), (30, 30))


def test_a_function_that_calls_itself_has_the_time_of_each_call_once(
    probe: Probe, clock: FakeClock
) -> None:
    @probe
    def descend(depth: int) -> None:
        clock.sleep_ns(1)
        if depth:
            descend(depth - 1)

    descend(3)
    assert times(probe) == (4 + 3 + 2 + 1, 4)


def test_other_threads_are_in_no_event_of_this_one(
    probe: Probe, inner: Probe, clock: FakeClock
) -> None:
    def work() -> None:
        with inner.again():
            clock.sleep_ns(4)

    with probe.again():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert times(probe) == (4, 4)


async def interleaved(first: object, second: object) -> None:
    """Run two coroutines in turn: the second within the first's pause."""
    await asyncio.gather(first, second)


def test_other_tasks_are_in_no_event_of_a_timed_coroutine(
    probe: Probe, inner: Probe, clock: FakeClock
) -> None:
    @probe
    async def outer() -> None:
        clock.sleep_ns(1)
        await asyncio.sleep(0)
        with inner.again():
            clock.sleep_ns(2)
            await asyncio.sleep(0)
            clock.sleep_ns(4)

    async def other() -> None:
        await asyncio.sleep(0)
        with inner.again():
            clock.sleep_ns(100)

    asyncio.run(interleaved(outer(), other()))
    total_ns, self_ns = times(probe)
    assert total_ns - self_ns == times(inner)[0] - 100


def test_a_block_in_a_coroutine_that_nobody_times_stands_alone(
    probe: Probe, inner: Probe, clock: FakeClock
) -> None:
    async def waits() -> None:
        with probe.again():
            await asyncio.sleep(0)
            clock.sleep_ns(1)

    async def other() -> None:
        with inner.again():
            clock.sleep_ns(100)
            await asyncio.sleep(0)

    asyncio.run(interleaved(waits(), other()))
    for each in (probe, inner):
        total_ns, self_ns = times(each)
        assert total_ns == self_ns


def test_a_timed_coroutine_is_inside_of_the_one_that_awaits_it(
    probe: Probe, inner: Probe, clock: FakeClock
) -> None:
    @inner
    async def part() -> None:
        clock.sleep_ns(2)
        await asyncio.sleep(0)
        clock.sleep_ns(3)

    @probe
    async def whole() -> None:
        clock.sleep_ns(1)
        await part()
        await asyncio.gather(part())  # another task: none of this one's

    asyncio.run(whole())
    assert times(probe) == (11, 6)
