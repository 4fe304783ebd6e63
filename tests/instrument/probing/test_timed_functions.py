import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.instrument import Probe, ProbeRegistry
from benchrigor.testing import FakeClock


def total_ns(probe: Probe) -> int:
    return round(probe.read().total_s * 1e9)


def test_an_exception_counts_and_passes(probe: Probe) -> None:
    with pytest.raises(ZeroDivisionError):
        probe(lambda: 1 // 0)()
    assert probe.read().count == 1


def test_methods_of_all_kinds_are_timed(probe: Probe) -> None:
    class Shape:
        @probe
        def plain(self) -> object:
            return self

        @probe
        @staticmethod
        def static() -> int:
            return 1

        @probe
        @classmethod
        def of_class(cls) -> object:
            return cls

    shape = Shape()
    assert (shape.plain(), shape.static(), shape.of_class()) == (shape, 1, Shape)
    assert probe.read().count == 3


@pytest.mark.parametrize("func", [int, 3, "sum", None], ids=repr)
def test_what_is_no_function_is_refused(func: object, probe: Probe) -> None:
    if func is int:
        func = type("Shape", (), {})
    with pytest.raises(InvalidInput):
        probe(func)


def test_a_coroutine_is_timed_with_its_waiting(probe: Probe, clock: FakeClock) -> None:
    @probe
    async def double(number: int) -> int:
        clock.sleep_ns(1)
        await asyncio.sleep(0)
        clock.sleep_ns(2)
        return 2 * number

    assert inspect.iscoroutinefunction(double)
    assert asyncio.run(double(4)) == 8
    assert (probe.read().count, total_ns(probe)) == (1, 3)


def test_a_coroutine_by_the_clock_of_the_processor_has_its_steps_alone(
    registry: ProbeRegistry,
) -> None:
    probe = registry.probe("steps", clock="cpu")

    @probe
    async def brief() -> None:
        await asyncio.sleep(0)

    async def busy() -> int:
        return sum(range(2_000_000))

    async def both() -> None:
        await asyncio.gather(brief(), busy())

    asyncio.run(both())
    assert probe.read().total_s < 0.01


def test_a_cancelled_coroutine_sees_it_and_counts(probe: Probe) -> None:
    seen = []

    @probe
    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def main() -> None:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (seen, probe.read().count) == (["cancelled"], 1)


def test_a_generator_is_timed_inside_and_not_its_consumer(probe: Probe, clock: FakeClock) -> None:
    @probe
    def count(most: int) -> Iterator[int]:
        for each in range(most):
            clock.sleep_ns(1)
            yield each
        return most  # the value of ``yield from``

    def outer() -> Iterator[int]:
        result.append((yield from count(3)))

    result: list[int] = []
    items = []
    for each in outer():
        items.append(each)
        clock.sleep_ns(100)
    assert (items, result) == ([0, 1, 2], [3])
    assert (probe.read().count, total_ns(probe)) == (1, 3)


def test_a_generator_can_be_sent_values_thrown_errors_and_closed(probe: Probe) -> None:
    seen = []

    @probe
    def echo() -> Iterator[object]:
        value = None
        try:
            while True:
                try:
                    value = yield value
                except KeyError:
                    value = "caught"
        finally:
            seen.append("closed")

    running = echo()
    assert next(running) is None
    assert running.send("one") == "one"
    assert running.throw(KeyError) == "caught"
    running.close()
    assert (seen, probe.read().count) == (["closed"], 1)
    with pytest.raises(ValueError, match="other"):
        (failing := echo()).send(None) or failing.throw(ValueError("other"))
    assert probe.read().count == 2


def test_an_asynchronous_generator_is_timed_inside(probe: Probe, clock: FakeClock) -> None:
    @probe
    async def count(most: int) -> AsyncIterator[int]:
        for each in range(most):
            await asyncio.sleep(0)
            clock.sleep_ns(1)
            yield each

    async def consume() -> list[int]:
        items = []
        async for each in count(3):
            items.append(each)  # the consumer spends time of its own
            clock.sleep_ns(100)
        return items

    assert inspect.isasyncgenfunction(count)
    assert asyncio.run(consume()) == [0, 1, 2]
    assert (probe.read().count, total_ns(probe)) == (1, 3)


def test_an_asynchronous_generator_can_be_sent_values_thrown_errors_and_closed(
    probe: Probe,
) -> None:
    seen = []

    @probe
    async def echo() -> AsyncIterator[object]:
        value = None
        try:
            while True:
                try:
                    value = yield value
                except KeyError:
                    value = "caught"
        finally:
            await asyncio.sleep(0)
            seen.append("closed")

    async def main() -> None:
        running = echo()
        assert await anext(running) is None
        assert await running.asend("one") == "one"
        assert await running.athrow(KeyError()) == "caught"
        await running.aclose()

    asyncio.run(main())
    assert (seen, probe.read().count) == (["closed"], 1)


def test_all_kinds_run_without_being_timed_while_the_probe_is_off(probe: Probe) -> None:
    @probe
    async def one() -> int:
        return 1

    @probe
    def some() -> Iterator[int]:
        yield 2

    @probe
    async def more() -> AsyncIterator[int]:
        yield 3

    async def main() -> list[int]:
        return [await one(), *some(), *[each async for each in more()]]

    probe.on = False
    assert asyncio.run(main()) == [1, 2, 3]
    assert probe.read().count == 0
