"""Functions, coroutines and generators with probes: every call is an event."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Generator
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Protocol

from benchrigor.errors import InvalidInput
from benchrigor.instrument.probing.nesting import CLOCKS, Nest, new_nest

if TYPE_CHECKING:
    from benchrigor.instrument.probing.probe_cell import Cell


class Probe(Protocol):
    """The part of a probe that is used here."""

    on: bool
    clock: str
    cell: Cell


def time_function(probe: Probe, func: Any) -> Any:
    """Return a callable of the same kind as ``func`` that is timed by the probe.

    The time of a generator is the time inside of it, without the consumer's time between items.
    The time of a coroutine includes its waiting, unless the clock is processor time.
    """
    if isinstance(func, staticmethod | classmethod):
        return type(func)(time_function(probe, func.__func__))
    if inspect.isclass(func) or not callable(func):
        raise InvalidInput(f"func is {func!r}, expected a function: decorate methods one by one")
    kinds = {
        inspect.iscoroutinefunction: _timed_coroutine,
        inspect.isasyncgenfunction: _timed_async_generator,
        inspect.isgeneratorfunction: _timed_generator,
    }
    wrap = next((wrap for is_kind, wrap in kinds.items() if is_kind(func)), _timed_function)
    wrapper = wraps(func)(wrap(probe, func))
    wrapper.__probe__ = probe  # type: ignore[attr-defined]  # marks it as timed, and by which probe
    return wrapper


def _timed_function(probe: Probe, func: Callable[..., Any]) -> Callable[..., Any]:
    return _wrapper_of_function(probe.clock)(probe, func)


@cache
def _wrapper_of_function(clock: str) -> Callable[..., Callable[..., Any]]:
    """Make the wrapper of functions, so that all wrappers share the variables of their clock."""
    now, local = CLOCKS[clock].now, CLOCKS[clock].local

    def wrapper_of(probe: Probe, func: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if not probe.on:
                return func(*args, **kwargs)
            try:
                nest = local.nest
            except AttributeError:
                nest = new_nest(local)
            cell = probe.cell
            outer, nest.top = nest.top, cell
            begun_ns = now()
            try:
                # Unpacking empty arguments takes a third as long as all the rest.
                return func(*args, **kwargs) if kwargs else func(*args)
            finally:
                elapsed_ns = now() - begun_ns
                nest.top = outer
                cell.append(elapsed_ns)
                if outer is not None:
                    outer.nested.append(elapsed_ns)
                if len(cell) >= cell.room:
                    cell.fold(outer)

        return timed

    return wrapper_of


def _timed_coroutine(probe: Probe, func: Callable[..., Any]) -> Callable[..., Any]:
    async def timed(*args: Any, **kwargs: Any) -> Any:
        if not probe.on:
            return await func(*args, **kwargs)
        run = _Run(probe, waits=True)
        try:
            return await run.awaiting(func(*args, **kwargs))
        finally:
            run.end()

    return timed


def _timed_generator(probe: Probe, func: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        if not probe.on:
            return (yield from func(*args, **kwargs))
        run = _Run(probe)
        try:
            return (yield from run.steps(func(*args, **kwargs)))
        finally:
            run.end()

    return timed


def _timed_async_generator(probe: Probe, func: Callable[..., Any]) -> Callable[..., Any]:
    async def timed(*args: Any, **kwargs: Any) -> Any:
        items = func(*args, **kwargs)
        run = _Run(probe, waits=True) if probe.on else None
        step = items.asend(None)
        try:
            while True:
                try:
                    item = await (run.awaiting(step) if run else step)
                except StopAsyncIteration:
                    return
                try:
                    step = items.asend((yield item))
                except GeneratorExit:
                    await items.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  # passed on to the generator
                    step = items.athrow(error)
        finally:
            if run:
                run.end()

    return timed


class _Run:
    """One run of a coroutine or generator with timed steps.

    It is over, and counts as one event, when its last step ends or it is given up.
    """

    __slots__ = ("_elapsed_ns", "_local", "_nest", "_now", "_outer", "_probe", "_waits")

    def __init__(self, probe: Probe, *, waits: bool = False) -> None:
        clock = CLOCKS[probe.clock]
        self._now, self._local = clock.now, clock.local
        self._probe = probe
        self._waits = waits and probe.clock != "cpu"
        self._nest = Nest(probe.cell, alone=True)
        self._outer: Cell | None = None
        self._elapsed_ns = 0

    @types.coroutine
    def awaiting(self, body: Any) -> Generator[Any, Any, Any]:
        """Await a coroutine, or one item of an asynchronous generator."""
        begun_ns = self._now()
        steps_ns = self._elapsed_ns
        try:
            return (yield from self.steps(body))
        finally:
            if self._waits:
                self._elapsed_ns = steps_ns + self._now() - begun_ns

    def steps(self, body: Any) -> Generator[Any, Any, Any]:
        """Yield from a generator, timing its steps."""
        step, value = body.send, None
        while True:
            try:
                item = self._step(step, value)
            except StopIteration as end:
                return end.value
            try:
                value = yield item
                step = body.send
            except GeneratorExit:
                self._step(body.close)
                raise
            except BaseException as error:  # noqa: BLE001  # passed on to the body
                step, value = body.throw, error

    def _step(self, step: Callable[..., Any], *values: Any) -> Any:
        local = self._local
        thread_nest = getattr(local, "nest", None) or new_nest(local)
        self._outer, local.nest = thread_nest.top, self._nest
        begun_ns = self._now()
        try:
            return step(*values)
        finally:
            self._elapsed_ns += self._now() - begun_ns
            local.nest = thread_nest

    def end(self) -> None:
        """Count the run, for the thread that ends it."""
        cell, outer, elapsed_ns = self._probe.cell, self._outer, self._elapsed_ns
        cell.append(elapsed_ns)
        if outer is not None:
            outer.nested.append(elapsed_ns)
        if len(cell) >= cell.room:
            cell.fold(outer)
