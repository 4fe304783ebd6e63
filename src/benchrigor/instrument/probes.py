"""Timers that stay in a program: started and stopped, entered, or put around functions.

An event looks up nothing that could be known before. Every clock has its own class, and a probe
that is switched off changes its class: the methods are then C functions without effect. The lines
that end an event are repeated in every way to time one, since a call would add a tenth to the time
(docs/decisions/0013-probes.md).

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
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from heapq import nsmallest
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from types import FunctionType
from typing import TYPE_CHECKING, Any, Never, Self, TypeAlias, TypeVar, cast

from benchrigor.errors import InvalidInput
from benchrigor.instrument.probe_cell import (
    Bounds,
    Cell,
    Entry,
    Kept,
    ThreadCells,
    new_sketch,
)

if TYPE_CHECKING:
    from benchrigor.instrument.data import ProbeReading


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


_F = TypeVar("_F", bound=Callable[..., Any])

_KEPT = Kept()
_nothing = [].clear  # of an empty list without owner: the fastest function without effect
_nothing_at_exit = "".format  # takes any arguments, and its result is false
# The method that ``with`` calls at the end must know the start, so that threads and tasks cannot
# be confused. So a probe is an iterator over methods, bound to the time of the request, and only C
# functions are needed to make one (`_Timing.__exit__`).
_Methods: Any = object if TYPE_CHECKING else map


class Probe(_Methods):  # type: ignore[misc]
    """A timer of events, made by `probe` or `ProbeRegistry.probe`; any thread may use it.

    An event is timed in one of four ways:

    - ``token = p.start()``, then ``p.stop(token)``, also in another thread (not by the clock of
      the processor);
    - ``with p:``, also inside of itself, and by several threads and tasks at once;
    - ``with p.again():``, the same, and for self times: the time of an event inside another one in
      the same thread or task is not self time of the outer event. Every ``with`` statement needs
      its own ``again()``, which begins the event;
    - ``@p`` before a function, coroutine function, generator or asynchronous generator, also for
      self times.

    A `contextlib.ExitStack` can enter ``p.again()``, but not ``p``, which is for the statement
    ``with``; use ``stack.callback(p.stop, p.start())``.

    An event counts when it ends, also by an exception. A token is only a number: stopping it again
    counts another event. Tokens that are not numbers are refused. Floats, events below 0 s, and
    events longer than the registry exists are rejected later: ``read().rejected`` counts them.

    Attributes
    ----------
    name, clock
        In the registry; the clock is "wall", or "cpu" for the processor time of the thread.
    on
        Whether events count; set it at any time. What has begun while it was on counts, but for a
        token that is stopped while it is off.
    """

    # These methods are for a probe that is off.

    __slots__ = (
        "cell",
        "clock",
        "cost_form",
        "inner",
        "keeper",
        "kept",
        "latest",
        "name",
        "on",
    )

    name: str
    clock: str
    keeper: Any  # the registry
    cell: Cell
    inner: Probe | None  # of the work
    cost_form: str  # the dearest that it was used in, but for `again`
    latest: list[Entry]  # samples that were not returned yet
    kept: Kept
    on: bool

    def __new__(cls, *, clock: str, **_others: object) -> Self:
        """Make the iterator over what ends an event."""
        leave = FunctionType(*_parts_of_leave(clock))
        made: Self = _Methods.__new__(cls, leave.__get__, CLOCKS[clock].times)
        leave.__defaults__ = (made,)
        return made

    def __init__(self, *, name: str, clock: str, keeper: Any, bounds: Bounds, on: bool) -> None:
        self.name, self.clock, self.keeper = name, clock, keeper
        self.inner, self.cost_form, self.latest = None, "held", []
        self.kept = _KEPT
        self.make_cells(bounds)
        self.on = on

    def make_cells(self, bounds: Bounds) -> None:
        """Make the cell of its events."""
        self.cell = Cell(bounds, self.kept)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "on":
            if not isinstance(value, bool):
                raise InvalidInput(f"on is {value!r}, expected True or False")
            off = ThreadsProbe if isinstance(self, ThreadsProbe) else Probe
            kind = timing_class(self.clock, off) if value else off
            object.__setattr__(self, "__class__", kind)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<probe {self.name!r}, {self.clock} clock, {'on' if self.on else 'off'}>"

    __iter__ = None  # no other code is to iterate

    def __copy__(self) -> Self:
        return self  # what holds a probe may be copied; the events are the same ones

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> Never:
        raise TypeError(f"{self!r} is of this process: ask for it by name where it is needed")

    if TYPE_CHECKING:

        def start(self) -> int | None:
            """Return the token of an event that begins; None if the probe is off."""

        def stop(self, token: int | None) -> object:
            """End an event; InvalidInput if the token is not a number. None has no effect."""

        def __enter__(self) -> object: ...

        def __exit__(self, kind: object, error: object, trace: object) -> None: ...

    else:
        start = __enter__ = _nothing
        stop = callable
        __exit__ = _nothing_at_exit

    def again(self) -> AbstractContextManager[object]:
        """Begin an event, and return the context manager that ends it.

        Its self time excludes inner events.
        """
        return _NO_BLOCK

    def __call__(self, func: _F) -> _F:
        """Time all calls of a function, or all runs of a coroutine or generator function.

        The time of a generator is that inside of it. InvalidInput for a class, or no function.
        """
        wrapper: _F = time_function(self, func)
        self.cost_form = "decorated"
        return wrapper

    @property
    def work(self) -> Probe:
        """The probe of a kernel's work, inside of this one, which also times its set-up.

        It has the name of this one and ".work". The difference of their times is dispatch.
        """
        if self.inner is None:
            self.inner = self.keeper.work_of(self)
        return self.inner

    def read(self) -> ProbeReading:
        """Return the reading since the registry began; the probe goes on counting."""
        reading: ProbeReading = self.keeper.reading_of(self)
        return reading

    def samples(self) -> list[float]:
        """Return a random sample of the durations since the last call, oldest first.

        In seconds; all durations, up to the number ``samples`` that the probe was made with. They
        can be unit readings of a `Session`.
        """
        latest: list[float] = self.keeper.latest_of(self)
        return latest

    # For registries and timed functions.

    @property
    def cells(self) -> Iterable[Cell]:
        """The cells of its events."""
        return (self.cell,)

    def forms(self) -> Iterable[str]:
        """Return the forms in which it was used, without those that cost less."""
        return (self.cost_form, "again" if any(cell.nests for cell in self.cells) else "held")

    def keep(self, **changes: Any) -> None:
        """Change which events are kept from now on; see `Kept`."""
        kept = self.kept._replace(**changes)
        if kept.samples:
            new_sketch()  # says so if it is not installed
        self.kept, self.latest = kept, nsmallest(kept.samples, self.latest)
        for cell in self.cells:
            cell.kept = kept


class ThreadsProbe(Probe):
    """A probe that is off, for threads that run at once; every thread has its own cell."""

    __slots__ = ("threads",)

    threads: ThreadCells

    def make_cells(self, bounds: Bounds) -> None:
        """Make the cells of its events."""
        self.threads = ThreadCells(bounds, self.kept)

    @property
    def cell(self) -> Cell:  # type: ignore[override]  # it is never set
        """The cell for events of the calling thread."""
        return self.threads.mine()

    @property
    def cells(self) -> Iterable[Cell]:
        """The cells of all threads."""
        return self.threads

    def keep(self, **changes: Any) -> None:
        """Change which events are kept from now on; see `Kept`."""
        super().keep(**changes)
        self.threads.kept = self.kept


class _NoBlock:
    """The context of a probe that is off."""

    __slots__ = ()

    # Called on the class, as an `ExitStack` does, they have an argument more.
    __enter__ = __exit__ = _nothing_at_exit


_NO_BLOCK = cast(AbstractContextManager[object], _NoBlock())


@cache
def _parts_of_leave(clock: str) -> tuple[Any, ...]:
    """Return the parts of a function that ends an entered event.

    Its last argument is the probe, so that a probe needs a function but no variables around it.
    """
    now = CLOCKS[clock].now

    def leave(begun_ns: int, _kind: object, _error: object, _trace: object, probe: Probe) -> None:
        cell = probe.cell
        cell.append(now() - begun_ns)
        if len(cell) >= cell.room:
            cell.fold()

    return leave.__code__, leave.__globals__, "leave", None, leave.__closure__


@cache
def timing_class(clock: str, off: type[Probe]) -> type[Probe]:
    """Make the class of probes that are on from the class of probes that are off."""
    now, local, modules = CLOCKS[clock].now, CLOCKS[clock].local, sys.modules
    new_block = _block_class(clock)

    class Timing(off):  # type: ignore[valid-type,misc]
        __slots__ = ()

        start = now

        def stop(self, token: int | None) -> None:
            cell = self.cell
            try:
                cell.append(now() - token)  # type: ignore[operator]  # None is handled below
            except TypeError:
                if token is not None:
                    raise InvalidInput(
                        f"token is {token!r}, expected the number that start() returned"
                    ) from None
                return  # the probe was off when the event began
            if len(cell) >= cell.room:
                cell.fold()

        __enter__ = _nothing
        __exit__ = property(next)  # ``with`` looks it up when it enters

        def again(self) -> AbstractContextManager[object]:
            try:
                nest = local.nest if "asyncio" not in modules else nest_of_caller(local)
            except AttributeError:
                nest = new_nest(local)
            block = nest.free
            if block is None:
                block = new_block()
            else:
                nest.free = block.outer
            block.nest, block.outer = nest, nest.top
            nest.top = block.cell = cell = self.cell
            cell.nests = True
            block.begun_ns = now()
            return block  # type: ignore[no-any-return]

    return Timing


@cache
def _block_class(clock: str) -> type[Any]:
    """Make the class of what `Probe.again` returns."""
    now = CLOCKS[clock].now

    class Block:
        __slots__ = ("begun_ns", "cell", "nest", "outer")

        begun_ns: int
        cell: Cell
        nest: Any  # a nest; None once it was left
        outer: Any  # the cell of the event around this one; of a free block the next free one

        __enter__ = bool  # returns False

        def __exit__(self, _kind: object, _error: object, _trace: object) -> None:
            elapsed_ns = now() - self.begun_ns
            nest, outer, cell = self.nest, self.outer, self.cell
            try:
                if nest.top is not cell:
                    outer = None  # another event ended late: the outer event is not known
                nest.top = outer
            except AttributeError:
                raise InvalidInput("again() is for one statement with, found another") from None
            self.nest, self.outer, nest.free = None, nest.free, self
            cell.append(elapsed_ns)
            if outer is not None:
                outer.nested.append(elapsed_ns)
            if len(cell) >= cell.room:
                cell.fold(outer)

        def __del__(self) -> None:
            if self.nest is not None and self.nest.top is self.cell:  # was never left
                self.nest.top = self.outer

    return Block


# --- functions, coroutines and generators: every call is an event


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
    plain = _wrapper_of_function(probe.clock)
    wrap = next((wrap for is_kind, wrap in kinds.items() if is_kind(func)), plain)
    wrapper = wraps(func)(wrap(probe, func))
    wrapper.__probe__ = probe  # type: ignore[attr-defined]  # marks it as timed, and by which probe
    return wrapper


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
