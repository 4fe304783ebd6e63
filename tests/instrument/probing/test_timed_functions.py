"""Functions that are timed, one by one or all of a module, do what they did."""

import asyncio
import inspect
import types
from collections.abc import AsyncIterator, Iterator

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.instrument import Probe, ProbeRegistry, probe_module
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


SOURCE = """
from json import dumps

def read(): return "read"
def write(): return dumps("write")
async def fetch(): return "fetch"
constant = 3

class Store:
    def get(self): return "get"
    @staticmethod
    def make(): return "make"
    @classmethod
    def open(cls): return cls
"""


@pytest.fixture
def module() -> types.ModuleType:
    made = types.ModuleType("shop")
    exec(SOURCE, made.__dict__)  # noqa: S102  # a module of its own for each test
    return made


def test_functions_that_fit_are_timed_until_that_is_undone(
    module: types.ModuleType, registry: ProbeRegistry
) -> None:
    plain = dict(vars(module))
    timed = probe_module(module, registry=registry)
    assert timed.names == ("shop.read", "shop.write", "shop.fetch")
    assert (module.read(), module.write()) == ("read", '"write"')
    timed.undo()
    assert (module.read(), vars(module)) == ("read", plain)
    assert [each.count for each in registry.read().values()] == [1, 1, 0]


def test_a_pattern_chooses(module: types.ModuleType, registry: ProbeRegistry) -> None:
    with probe_module(module, "[rf]e*", registry=registry) as timed:
        assert timed.names == ("shop.read", "shop.fetch")
    assert not hasattr(module.read, "__probe__")


def test_methods_are_taken_when_they_are_asked_for(
    module: types.ModuleType, registry: ProbeRegistry
) -> None:
    with probe_module(module, "Store.*", classes=True, registry=registry) as timed:
        store = module.Store()
        assert (store.get(), store.make(), store.open()) == ("get", "make", module.Store)
    assert timed.names == ("shop.Store.get", "shop.Store.make", "shop.Store.open")
    assert module.Store.make() == "make"
    assert [each.count for each in registry.read().values()] == [1, 1, 1]


def test_what_is_timed_already_stays(module: types.ModuleType, registry: ProbeRegistry) -> None:
    with probe_module(module, "read", registry=registry):
        again = probe_module(module, registry=registry)
        assert again.names == ("shop.write", "shop.fetch")
        module.read()
        again.undo()
    assert registry.probe("shop.read").read().count == 1


def test_what_somebody_else_has_replaced_stays(
    module: types.ModuleType, registry: ProbeRegistry
) -> None:
    with probe_module(module, "read", registry=registry):
        module.read = len
    assert module.read is len


@pytest.mark.parametrize("name", ["sell", "s" * 200], ids=["of another clock", "too long"])
def test_where_one_function_cannot_be_timed_none_is_replaced(
    name: str, module: types.ModuleType, registry: ProbeRegistry
) -> None:
    setattr(module, name, module.read)
    registry.probe("shop.sell")
    plain = dict(vars(module))
    with pytest.raises(InvalidInput):
        probe_module(module, clock="cpu", registry=registry)
    assert vars(module) == plain


def test_a_class_that_refuses_to_be_changed_is_told_and_nothing_is_replaced(
    module: types.ModuleType, registry: ProbeRegistry
) -> None:
    class Sealed(type):
        def __setattr__(cls, name: str, value: object) -> None:
            raise AttributeError("sealed")

    module.Safe = Sealed("Safe", (), {"__module__": "shop", "lock": module.read})
    plain = dict(vars(module))
    with pytest.raises(InvalidInput):
        probe_module(module, classes=True, registry=registry)
    assert vars(module) == plain
