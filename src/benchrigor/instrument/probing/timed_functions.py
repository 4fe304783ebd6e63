"""Functions, coroutines and generators with probes: every call is an event.

Which event a thread is in is known, so that the time of inner events can be taken off the outer
one's. A coroutine or generator that is itself timed has a nest of its own, which its thread has
while it runs a step of it. So what other tasks do meanwhile is not taken for a part of it.
"""

from __future__ import annotations

import inspect
import math
import sys
import threading
import time
import types
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from functools import cache, wraps
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from typing import Any, Protocol, Self, TypeAlias

from benchrigor.errors import InvalidInput
from benchrigor.instrument.probing.probe_cell import Cell

Now: TypeAlias = Callable[[], int]


class Nest:
    """Nested events of one thread or task.

    Attributes
    ----------
    top
        The cell of the innermost event.
    alone
        Whether no other task can share the nest.
    free
        Linked list of contexts of `Probe.again` that were left and can be used again.
    """

    __slots__ = ("alone", "free", "top")

    def __init__(self, top: Cell | None = None, *, alone: bool = False) -> None:
        self.top, self.alone, self.free = top, alone, None


class Clock:
    """A clock of probes; events nest by clock, for times of different clocks do not subtract.

    Attributes
    ----------
    now
        Returns its nanoseconds.
    times
        An endless iterator over the times from `now`: it would end at NaN, which equals no time.
    local
        Holds the nest of the calling thread.
    """

    def __init__(self, now: Now) -> None:
        self.now, self.local = now, threading.local()
        self.times: Iterator[int] = iter(now, math.nan)


CLOCKS = {"wall": Clock(time.perf_counter_ns), "cpu": Clock(time.thread_time_ns)}


def new_nest(local: threading.local) -> Nest:
    """Give the calling thread its nest."""
    nest = local.nest = Nest()
    return nest


def nest_of_caller(local: threading.local) -> Nest:
    """Return the nest for a block of the function two frames up.

    A coroutine without a probe shares its thread's nest with other tasks, which run while it
    waits. So its block gets a separate nest: it does not nest with other events.
    """
    nest: Nest = local.nest
    kind = sys._getframe(2).f_code.co_flags  # noqa: SLF001  # inspect.stack takes a thousand times as long
    return Nest() if kind & (CO_COROUTINE | CO_ASYNC_GENERATOR) and not nest.alone else nest


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
        with _Run(probe, waits=True) as run:
            return await run.steps(func(*args, **kwargs))

    return timed


def _timed_generator(probe: Probe, func: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        if not probe.on:
            return (yield from func(*args, **kwargs))
        with _Run(probe) as run:
            return (yield from run.steps(func(*args, **kwargs)))

    return timed


def _timed_async_generator(probe: Probe, func: Callable[..., Any]) -> Callable[..., Any]:
    async def timed(*args: Any, **kwargs: Any) -> Any:
        items = func(*args, **kwargs)
        with _Run(probe, waits=True) if probe.on else nullcontext() as run:
            step = items.asend(None)
            while True:
                try:
                    item = await (run.steps(step) if run else step)
                except StopAsyncIteration:
                    return
                try:
                    step = items.asend((yield item))
                except GeneratorExit:
                    await items.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  # passed on to the generator
                    step = items.athrow(error)

    return timed


class _Run:
    """One run of a coroutine or generator, which counts as one event.

    It is over when its last step ends, or it is given up. If it ``waits``, the time between its
    steps counts too, but for the time between two items.
    """

    __slots__ = ("_elapsed_ns", "_local", "_nest", "_now", "_outer", "_probe", "_waits")

    def __init__(self, probe: Probe, *, waits: bool = False) -> None:
        clock = CLOCKS[probe.clock]
        self._probe, self._now, self._local = probe, clock.now, clock.local
        self._waits = waits and probe.clock != "cpu"
        self._nest = Nest(probe.cell, alone=True)
        self._outer: Cell | None = None
        self._elapsed_ns = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Count the run, for the thread that ends it."""
        cell, outer, elapsed_ns = self._probe.cell, self._outer, self._elapsed_ns
        cell.append(elapsed_ns)
        if outer is not None:
            outer.nested.append(elapsed_ns)
        if len(cell) >= cell.room:
            cell.fold(outer)

    @types.coroutine
    def steps(self, body: Any) -> Generator[Any, Any, Any]:
        """Go through the steps of a generator, a coroutine, or one item of an asynchronous one."""
        begun_ns = self._now() - self._elapsed_ns if self._waits else 0
        step, value = body.send, None
        try:
            while True:
                try:
                    item = self._step(step, value)
                except StopIteration as end:
                    return end.value
                try:
                    value = yield item
                    step = body.send
                except GeneratorExit:
                    self._step(lambda _: body.close(), None)
                    raise
                except BaseException as error:  # noqa: BLE001  # passed on to the body
                    step, value = body.throw, error
        finally:
            if self._waits:
                self._elapsed_ns = self._now() - begun_ns

    def _step(self, step: Callable[[Any], Any], value: Any) -> Any:
        local, now = self._local, self._now
        thread_nest = getattr(local, "nest", None) or new_nest(local)
        self._outer, local.nest = thread_nest.top, self._nest
        begun_ns = now()
        try:
            return step(value)
        finally:
            self._elapsed_ns += now() - begun_ns
            local.nest = thread_nest
