"""Timers that stay in a program: started and stopped, entered, or put around functions.

Nothing is looked up for an event that could be known before: each clock has a class of its own, and
a probe that is switched off becomes an object of another class, whose methods are C functions that
do nothing. The lines that end an event stand in each way to time one, for to call them would take
another tenth (docs/decisions/0013-probes.md).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from types import MethodType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from benchrigor.errors import InvalidInput
from benchrigor.instrument.probing.nesting import CLOCKS, Nest, nest_of_caller, new_nest
from benchrigor.instrument.probing.timed_functions import timed

if TYPE_CHECKING:
    from benchrigor.instrument.probing.probe_account import ProbeAccount
    from benchrigor.instrument.probing.probe_cell import Cell
    from benchrigor.model.probe_reading import ProbeReading


class Keeper(Protocol):
    """What a probe asks of its registry."""

    def work_of(self, account: ProbeAccount) -> Probe:
        """Return the probe of what a kernel does."""

    def reading_of(self, account: ProbeAccount) -> ProbeReading:
        """Return what a probe has counted."""

    def latest_of(self, account: ProbeAccount) -> list[float]:
        """Return a probe's latest samples, and forget them."""


_F = TypeVar("_F", bound=Callable[..., Any])

_nothing = [].clear  # of a list that nobody has: no function does nothing faster
_nothing_at_exit = "".format  # takes any arguments, and what it returns is false


class Probe:
    """A timer of events, made by `probe` or `ProbeRegistry.probe`; any thread may use it.

    An event is timed in one of four ways:

    - ``token = p.start()``, then ``p.stop(token)``, also in another thread (not by the clock of
      the processor);
    - ``with p:``, also inside of itself, and by several threads and tasks at once;
    - ``with p.again():``, likewise, and for self times: of two such events in the same thread or
      task, the time of the inner one is no self time of the outer one;
    - ``@p`` before a function, a coroutine function, a generator or an asynchronous one: likewise.

    A `contextlib.ExitStack` cannot enter either of the contexts, which are for the statement
    ``with``; it takes ``stack.callback(p.stop, p.start())``.

    An event counts when it ends, also by an exception. A token is only a number: stopping it again
    counts another event. What is no integer is refused, or (a float) rejected when it is added up,
    as is an event of less than 0 s or of longer than its probe exists: ``read().rejected`` counts.

    Attributes
    ----------
    on
        Whether events count; set it at any time. What has begun while it was on counts.
    """

    # The methods here are those of a probe that is off.

    __slots__ = ("account", "block", "cell", "inner", "keeper", "leave", "on")

    account: ProbeAccount
    keeper: Keeper
    block: AbstractContextManager[object] | None  # what `again` returns
    cell: Cell
    inner: Probe | None  # of the work
    leave: Callable[[int, object, object, object], None] | None
    on: bool

    def __init__(self, account: ProbeAccount, keeper: Keeper, *, on: bool) -> None:
        self.account, self.keeper, self.cell = account, keeper, account.cell()
        self.block = self.inner = self.leave = None
        self.on = on

    def __setattr__(self, name: str, value: object) -> None:
        if name == "on":
            if not isinstance(value, bool):
                raise InvalidInput(f"on is {value!r}, expected True or False")
            kind = timing_class(self.clock, self.account.per_thread) if value else Probe
            object.__setattr__(self, "__class__", kind)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<probe {self.name!r}, {self.clock} clock, {'on' if self.on else 'off'}>"

    if TYPE_CHECKING:

        def start(self) -> int | None:
            """Return the token of an event that begins; None if the probe is off."""

        def stop(self, token: int | None) -> object:
            """End an event; InvalidInput if the token is no number. None does nothing."""

        def __enter__(self) -> object: ...

        def __exit__(self, kind: object, error: object, trace: object) -> None: ...

    else:
        start = __enter__ = _nothing
        stop = callable
        __exit__ = _nothing_at_exit

    def again(self) -> AbstractContextManager[object]:
        """Return a context manager whose body is an event; inner events are no self time of it."""
        return _NO_BLOCK

    def __call__(self, func: _F) -> _F:
        """Time each call of a function, or each run of a coroutine or generator function.

        The time of a generator is that inside of it. InvalidInput for a class, or no function.
        """
        self.account.dear_forms.add("decorated")
        wrapper: _F = timed(self, func)
        return wrapper

    @property
    def name(self) -> str:
        """Name in the registry."""
        return self.account.name

    @property
    def clock(self) -> str:
        """Name of the clock: "wall", or "cpu" for the processor time of the thread."""
        return self.account.clock

    @property
    def work(self) -> Probe:
        """The probe of what a kernel does, inside of this one, which also times its set-up.

        Its name is that of this one and ".work". What this one takes longer is dispatch.
        """
        if self.inner is None:
            self.inner = self.keeper.work_of(self.account)
        return self.inner

    def read(self) -> ProbeReading:
        """Return what has counted since the registry began; it goes on."""
        return self.keeper.reading_of(self.account)

    def samples(self) -> list[float]:
        """Return the latest durations in seconds, oldest first, that it has not returned before.

        At most as many as ``samples`` asked for when the probe was made; they can be unit readings
        of a `Session`.
        """
        return self.keeper.latest_of(self.account)


class _NoBlock:
    """The context of a probe that is off."""

    __slots__ = ()

    # Called on the class, as an `ExitStack` does, they have an argument more.
    __enter__ = __exit__ = _nothing_at_exit


_NO_BLOCK = cast(AbstractContextManager[object], _NoBlock())


@cache
def timing_class(clock: str, per_thread: bool) -> type[Probe]:
    """Make the class of probes that are on."""
    now, _ = CLOCKS[clock]
    block_class = _block_class(clock)

    class Timing(Probe):
        __slots__ = ()

        start = now

        def stop(self, token: int | None) -> None:
            try:
                elapsed_ns = now() - token  # type: ignore[operator]  # None is told apart below
            except TypeError:
                if token is not None:
                    raise InvalidInput(
                        f"token is {token!r}, expected the number that start() returned"
                    ) from None
                return  # the probe was off when the event began
            cell = self.cell
            values = cell.values
            values.append(elapsed_ns)
            if len(values) >= cell.room:
                cell.fold()

        __enter__ = _nothing

        @property
        def __exit__(self) -> Callable[..., None]:  # noqa: PLE0302  # returns what takes them
            # ``with`` looks this up when it enters: what it gets knows when that was, so that
            # neither other threads nor other tasks can be taken for it.
            return MethodType(self.leave or _new_leave(self, now), now())

        def again(self) -> AbstractContextManager[object]:
            block = self.block
            if block is None:
                self.account.dear_forms.add("again")
                block = self.block = block_class(self)
            return block

    if not per_thread:
        return Timing

    class ThreadsTiming(Timing):
        __slots__ = ()

        @property
        def cell(self) -> Cell:  # type: ignore[override]  # nobody sets it of a probe that is on
            return self.account.cell()

    return ThreadsTiming


def _new_leave(probe: Probe, now: Callable[[], int]) -> Callable[..., None]:
    """Make what ends an event that was entered, and keep it."""

    def leave(begun_ns: int, _kind: object, _error: object, _trace: object) -> None:
        elapsed_ns = now() - begun_ns
        cell = probe.cell
        values = cell.values
        values.append(elapsed_ns)
        if len(values) >= cell.room:
            cell.fold()

    probe.leave = leave
    return leave


def _block_class(clock: str) -> type[Any]:
    """Make the class of what `Probe.again` returns."""
    now, local = CLOCKS[clock]
    modules = sys.modules

    class Block:
        __slots__ = ("_leave", "_probe")

        def __init__(self, probe: Probe) -> None:
            self._probe = probe

            def leave(
                entered: tuple[Nest, Cell | None, int],
                _kind: object,
                _error: object,
                _trace: object,
            ) -> None:
                nest, outer, begun_ns = entered
                elapsed_ns = now() - begun_ns
                nest.top = outer
                cell = probe.cell
                values = cell.values
                values.append(elapsed_ns)
                if outer is not None:
                    outer.nested.append(elapsed_ns)
                if len(values) >= cell.room:
                    cell.fold(outer)

            self._leave = leave

        __enter__ = _nothing

        @property
        def __exit__(self) -> Callable[..., None]:  # noqa: PLE0302  # as above
            try:
                nest = local.nest if "asyncio" not in modules else nest_of_caller(local)
            except AttributeError:
                nest = new_nest(local)
            outer, nest.top = nest.top, self._probe.cell
            return MethodType(self._leave, (nest, outer, now()))

    return Block
