"""The probes of a program by name, and their readers; probes around all functions of a module.

The cost of probes themselves is measured on empty events.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
import threading
import time
import unicodedata
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from heapq import nsmallest
from itertools import repeat
from types import ModuleType
from typing import Any, Self

from benchrigor.errors import InvalidInput
from benchrigor.instrument.data import ProbeReading, ProbeReadings
from benchrigor.instrument.probe_cell import (
    Book,
    Bounds,
    durations_of,
)
from benchrigor.instrument.probes import CLOCKS, Probe, ThreadsProbe
from benchrigor.model.notice import Code, Notice

_BATCHES, _EVENTS = 21, 50
_MUCH = 0.01  # of the run time


def calibrate(probe: Probe) -> dict[str, float]:
    """Return the median cost of an event in seconds, by its form; it takes a few milliseconds.

    The cost of the loop around the events, and of the decorated call, is subtracted.
    """

    def call() -> None:
        pass

    def token() -> None:
        probe.stop(probe.start())

    def enter() -> None:
        with probe:
            pass

    def again() -> None:
        with probe.again():
            pass

    forms = {"token": token, "held": enter, "again": again, "decorated": probe(call)}
    times_s = {name: _median_s(form) for name, form in {"": call, **forms}.items()}
    return {name: max(times_s[name] - times_s[""], 0.0) for name in forms}


def _median_s(event: Callable[[], object]) -> float:
    batches_ns = []
    for _ in range(_BATCHES):
        begun_ns = time.perf_counter_ns()
        for _ in repeat(None, _EVENTS):
            event()
        batches_ns.append(time.perf_counter_ns() - begun_ns)
    return sorted(batches_ns)[_BATCHES // 2] / _EVENTS * 1e-9


def warn_of_own_cost(readings: Iterable[ProbeReading], elapsed_s: float) -> tuple[Notice, ...]:
    """Warn if probes took a notable share of the run time."""
    given = tuple(readings)
    cost_s = sum(probe.count * probe.own_cost_s for probe in given)
    if cost_s <= _MUCH * elapsed_s:
        return ()
    dearest = max(given, key=lambda probe: probe.count * probe.own_cost_s)
    figures = {"cost_s": cost_s, "elapsed_s": elapsed_s, "dearest": dearest.name}
    share = cost_s / elapsed_s
    return (Notice.of(Code.PROBE_COST, share_=share, count_=dearest.count, **figures),)


_LONGEST, _MOST_SAMPLES = 200, 1_000_000
_UNSHOWN = {"Cc", "Cs", "Zl", "Zp"}  # control characters, halves of characters, ends of lines
_NS = 1e-9
_LN2_NS = math.log(2.0) * _NS
_SHORTEST_S = 1e-9  # half-life, and deadline
_READ_NS = 1_000_000_000  # a signal's handler that reads may itself have stopped who adds up
_OFF = {"0", "off", "false", "no"}


class ProbeRegistry:
    """Probes by name, made when they are first asked for; it can be read and switched at any time.

    Parameters
    ----------
    on
        Whether its probes count from the start.
    per_thread
        Whether every thread adds up for itself; None: if the interpreter has no global lock.

    Notes
    -----
    A forked process begins from zero; only its parent can read the counts of the parent.
    An event under way at the fork ends in both, and counts in both.

    Examples
    --------
    >>> registry = ProbeRegistry()
    >>> parse = registry.probe("parse")
    >>> for _ in range(3):
    ...     with parse:
    ...         _ = sum(range(1000))
    >>> registry.read()["parse"].count
    3
    """

    def __init__(self, *, on: bool = True, per_thread: bool | None = None) -> None:
        has_lock: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
        self._per_thread = not has_lock() if per_thread is None else per_thread
        self._kind = ThreadsProbe if self._per_thread else Probe
        self._on = on
        self._probes: dict[str, Probe] = {}
        self._bounds = Bounds()
        self._readers: weakref.WeakSet[ProbeReader] = weakref.WeakSet()
        self._first = ProbeReader(self)  # is never reset
        self.restart()
        _REGISTRIES.add(self)

    def restart(self) -> None:
        """Begin from zero, in a process if no other thread is there."""
        # Held while books are written; writers of events never ask for it.
        self.lock = threading.RLock()
        self._bounds.renew()
        for probe in self._probes.values():
            probe.latest.clear()
            for cell in probe.cells:
                cell.reset()
        for reader in (self._first, *self._readers):
            reader.restart()

    def probe(
        self,
        name: str,
        *,
        clock: str | None = None,
        samples: int | None = None,
        half_life_s: float | None = None,
        deadline_s: float | None = None,
    ) -> Probe:
        """Return the probe of a name, made when it is first asked for.

        Parameters
        ----------
        name
            Up to 200 characters, without control characters.
        clock
            "wall", or "cpu" for the processor time of the thread. None keeps the clock of the
            probe; a new one gets the wall clock.
        samples
            Size of the random sample of durations that is kept between two readings; per thread if
            threads run at once. It gives `ProbeReading.p50_s`, `ProbeReading.p99_s` and
            `Probe.samples`. 0 keeps no sample; None keeps the setting of the probe.
        half_life_s
            An event that is this many seconds older is half as likely to be in the sample. The
            sample favours recent events, but any event may stay (forward decay, Cormode et al.
            2009). None: all events are equally likely.
        deadline_s
            Events that take longer are counted from then on: `ProbeReading.missed`. None keeps that
            of the probe, which is set once.

        Raises
        ------
        InvalidInput
            For a wrong name, clock or number, and for a clock or deadline other than the probe's.
        MissingExtra
            When samples are asked for and `ddsketch` is not installed.

        Notes
        -----
        The environment variable ``BENCHRIGOR_PROBES`` switches all probes of the program off when
        it is 0, off, false or no; ``PROBES.on`` does so at run time, and `Probe.on` switches one.

        Examples
        --------
        >>> assign = probe("assign")
        >>> with assign:                # set-up and work
        ...     points = range(1000)
        ...     with assign.work:       # the purpose of the kernel
        ...         _ = sum(points)
        >>> assign.read().count > 0
        True
        """
        found = self._probes.get(name) if isinstance(name, str) else None
        if found is None or {clock, samples, half_life_s, deadline_s} != {None}:
            seconds = {"deadline_s": deadline_s, "half_life_s": half_life_s}
            if problems := [*_wrong_probe(found, name, clock, samples, seconds)]:
                raise InvalidInput(problems)
            with self.lock:
                found = self._probes.get(name) or self._made(name, clock or "wall")
                known_s = found.kept.deadline_s
                if known_s is not None and deadline_s not in {None, known_s}:
                    raise InvalidInput(
                        f"deadline_s is {deadline_s!r}, and the probe {name!r} counts by "
                        f"{known_s!r} already: expected the same or none, or another name"
                    )
                if samples is not None:
                    decay = 0.0 if half_life_s is None else _LN2_NS / half_life_s
                    found.keep(samples=samples, decay=decay)
                if known_s is None and deadline_s is not None:
                    self.collect([found])  # events before have no deadline
                    found.keep(deadline_s=deadline_s)
        return found

    def _made(self, name: str, clock: str) -> Probe:
        made = self._kind(name=name, clock=clock, keeper=self, bounds=self._bounds, on=self._on)
        self._probes[name] = made
        return made

    @property
    def on(self) -> bool:
        """Whether new probes count; setting it switches all that are there."""
        return self._on

    @on.setter
    def on(self, on: bool) -> None:
        with self.lock:
            for probe in self._probes.values():
                probe.on = on
            self._on = on

    def __iter__(self) -> Iterator[Probe]:
        """Go through the probes, in the order in which they came."""
        return iter([*self._probes.values()])

    def __len__(self) -> int:
        return len(self._probes)

    def read(self) -> ProbeReadings:
        """Return the readings of all probes since the registry began; they go on counting."""
        return self._first.read()

    def reader(self) -> ProbeReader:
        """Return a reader of the events since its own last reading; see `ProbeReader`."""
        with self.lock:
            self.collect(self)
            reader = self._first.copy()
            self._readers.add(reader)
            return reader

    # What follows is for probes and readers.

    def collect(self, probes: Iterable[Probe]) -> None:
        """Move the sums of some probes into the books of all readers."""
        readers = [self._first, *self._readers]
        until_ns = time.perf_counter_ns() + _READ_NS
        for probe in probes:
            for cell in probe.cells:
                if taken := cell.take(until_ns):
                    book, samples = taken
                    for reader in readers:
                        books = reader.books
                        books[probe.name] = books.get(probe.name, Book()).plus(book)
                    probe.latest = nsmallest(probe.kept.samples, probe.latest + samples)

    def readings(self, books: Mapping[str, Book], since_ns: int) -> ProbeReadings:
        """Return readings from some books, for the time since a moment."""
        found = {name: self._reading(probe, books) for name, probe in [*self._probes.items()]}
        elapsed_s = (time.perf_counter_ns() - since_ns) * _NS
        notices = warn_of_own_cost(found.values(), elapsed_s)
        return ProbeReadings(readings=found, elapsed_s=elapsed_s, notices=notices)

    def _reading(self, probe: Probe, books: Mapping[str, Book]) -> ProbeReading:
        costs_s = _own_costs_s(probe.clock, self._per_thread)
        own_cost_s = max(costs_s[form] for form in probe.forms())
        book = books.get(probe.name, Book())
        count, total_ns, least_ns, greatest_ns, squares = book.sums
        return ProbeReading(
            name=probe.name,
            clock=probe.clock,
            count=count,
            total_s=total_ns * _NS,
            self_s=min(max(total_ns - book.nested_ns, 0), total_ns) * _NS,
            min_s=least_ns * _NS if count else None,
            max_s=greatest_ns * _NS if count else None,
            mean_s=total_ns / count * _NS if count else None,
            variance_s2=squares / (count - 1) * _NS**2 if count > 1 else None,
            p50_s=book.quantile_s(0.5),
            p99_s=book.quantile_s(0.99),
            samples=book.kept,
            samples_lost=book.lost,
            rejected=book.rejected,
            own_cost_s=own_cost_s,
            deadline_s=probe.kept.deadline_s,
            missed=book.missed,
        )

    def reading_of(self, probe: Probe) -> ProbeReading:
        """Return the reading of a probe since the registry began."""
        with self.lock:
            self.collect([probe])
            return self._reading(probe, self._first.books)

    def latest_of(self, probe: Probe) -> list[float]:
        """Return a probe's latest samples in seconds, and forget them."""
        with self.lock:
            self.collect([probe])
            latest, probe.latest = probe.latest, []
            return [duration * _NS for duration in durations_of(latest)]

    def work_of(self, probe: Probe) -> Probe:
        """Return the probe of a kernel's work; its name may be too long for others."""
        name = f"{probe.name}.work"
        with self.lock:
            work = self._probes.get(name)
            if work is None:
                work = self._made(name, probe.clock)
                work.keep(samples=probe.kept.samples, decay=probe.kept.decay)
            return work


class ProbeReader:
    """Reads the probes of a registry at times of its own; made by `ProbeRegistry.reader`.

    There may be any number of readers, and they never stop a writer. Between two resets a reader
    sees every event once, and count, total, extremes and variance are of exactly these events: any
    reading moves the events out of the cells, and adds them to the books of all readers.

    Examples
    --------
    >>> registry = ProbeRegistry()
    >>> parse, reader = registry.probe("parse"), registry.reader()
    >>> for _ in range(3):
    ...     with parse:
    ...         _ = sum(range(1000))
    >>> reader.since_last()["parse"].count, reader.since_last()["parse"].count
    (3, 0)
    """

    def __init__(self, registry: ProbeRegistry) -> None:
        self._registry = registry
        self.restart()

    def read(self, *, reset: bool = False) -> ProbeReadings:
        """Return what came since its last reset, at first since the registry began.

        Parameters
        ----------
        reset
            Whether its next reading begins here.
        """
        registry = self._registry
        with registry.lock:
            registry.collect(registry)
            readings = registry.readings(self.books, self._since_ns)
            if reset:
                self.restart()
            return readings

    def since_last(self) -> ProbeReadings:
        """Return what came since its last reset, and reset it."""
        return self.read(reset=True)

    def restart(self) -> None:
        """Forget what came so far."""
        self.books: dict[str, Book] = {}  # by the names of the probes
        self._since_ns = time.perf_counter_ns()

    def copy(self) -> ProbeReader:
        """Return another one that has read the same."""
        reader = ProbeReader(self._registry)
        reader.books, reader._since_ns = {**self.books}, self._since_ns
        return reader


@cache
def _own_costs_s(clock: str, per_thread: bool) -> dict[str, float]:
    """Return the cost of an event by its form, measured on first use."""
    return calibrate(ProbeRegistry(per_thread=per_thread).probe("own cost", clock=clock))


def _wrong_probe(
    found: Probe | None, name: object, clock: object, samples: Any, seconds: dict[str, Any]
) -> Iterator[str]:
    """Name the problems with settings of a probe, which may be there already."""
    if not isinstance(name, str):
        yield f"name is {name!r}, expected a string"
    elif not 1 <= len(name) <= _LONGEST:
        yield f"name has {len(name)} characters, expected 1 to {_LONGEST}"
    elif shown := [character for character in name if unicodedata.category(character) in _UNSHOWN]:
        yield f"name is {name!r}, which has {shown[0]!r} in it, expected text of one line"
    if clock is not None and not (isinstance(clock, str) and clock in CLOCKS):
        yield f"clock is {clock!r}, expected 'wall' or 'cpu'"
    elif found is not None and clock not in (None, found.clock):
        yield f"clock is {clock!r}, but {found.name} has the clock {found.clock!r} already"
    whole = isinstance(samples, int) and not isinstance(samples, bool)
    if samples is not None and not (whole and 0 <= samples <= _MOST_SAMPLES):
        yield f"samples is {samples!r}, expected a whole number from 0 to {_MOST_SAMPLES:,}"
    for key, value in seconds.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if key == "half_life_s" and value is not None and not samples:
            yield f"half_life_s is {value!r}, expected one only with samples"
        elif value is not None and not (number and _SHORTEST_S <= value < math.inf):
            yield f"{key} is {value!r}, expected seconds from {_SHORTEST_S:g} on"


# All of them, for the one hook at forks: Python cannot take hooks back.
_REGISTRIES: weakref.WeakSet[ProbeRegistry] = weakref.WeakSet()


def _restart_all() -> None:
    for registry in list(_REGISTRIES):
        registry.restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)

PROBES = ProbeRegistry(on=os.environ.get("BENCHRIGOR_PROBES", "").strip().lower() not in _OFF)
"""The probes of this program, which `probe` makes: the one state that the library keeps."""

probe = PROBES.probe  # of this program


class ModuleProbes:
    """Functions of a module that were put into probes; made by `probe_module`.

    Attributes
    ----------
    names
        Of the probes, such as "json.decoder.scan".
    """

    def __init__(self, changes: list[tuple[Any, str, Any, Any]], names: tuple[str, ...]) -> None:
        self._changes, self.names = changes, names

    def undo(self) -> None:
        """Put the functions back, but for those that somebody else has replaced meanwhile."""
        for holder, name, func, wrapper in self._changes:
            if vars(holder).get(name) is wrapper:
                setattr(holder, name, func)
        self._changes = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.undo()


def probe_module(
    module: ModuleType,
    pattern: str = "*",
    *,
    classes: bool = False,
    clock: str | None = None,
    registry: ProbeRegistry = PROBES,
) -> ModuleProbes:
    """Put all functions of a module with matching names into probes.

    A probe is named "module.function" or "module.Class.method". Imported functions, and functions
    with a probe, stay as they are. Modules that imported a function before keep the one without a
    probe.

    Parameters
    ----------
    module
        The module; timed functions replace its functions until `ModuleProbes.undo`.
    pattern
        Pattern as for file names: ``*``, ``?``, ``[abc]``. Methods match as "Class.method".
    classes
        Whether to time methods of the module's classes too.
    clock, registry
        As `probe` and `ProbeRegistry` have them.

    Raises
    ------
    InvalidInput
        If it is not a module, if no function matches, or if a function cannot be timed: then no
        function is replaced.

    Examples
    --------
    >>> import colorsys
    >>> with probe_module(colorsys, "rgb_to_*") as timed:
    ...     _ = colorsys.rgb_to_hsv(0.2, 0.4, 0.6)
    >>> timed.names
    ('colorsys.rgb_to_yiq', 'colorsys.rgb_to_hls', 'colorsys.rgb_to_hsv')
    """
    if not isinstance(module, ModuleType):
        raise InvalidInput(f"module is {module!r}, expected an imported module")
    if not isinstance(pattern, str):
        raise InvalidInput(f"pattern is {pattern!r}, expected a string such as 'read*'")
    found = [item for item in _functions(module, classes=classes) if fnmatchcase(item[2], pattern)]
    if not found:
        raise InvalidInput(f"no function of {module.__name__} fits {pattern!r}, expected some")
    names = tuple(f"{module.__name__}.{path}" for _, _, path, _ in found)
    changes = [
        (holder, name, func, registry.probe(full, clock=clock)(func))
        for (holder, name, _, func), full in zip(found, names, strict=True)
    ]
    timed = ModuleProbes(changes, names)
    try:
        for holder, name, _, wrapper in changes:
            setattr(holder, name, wrapper)
    except BaseException as error:  # a class may refuse, with any exception
        timed.undo()
        if not isinstance(error, Exception):
            raise
        raise InvalidInput(
            f"{holder.__name__}.{name} cannot be replaced: {error!r}; expected modules and classes "
            "whose attributes can be set"
        ) from error
    return timed


def _functions(module: ModuleType, *, classes: bool) -> Iterator[tuple[Any, str, str, Any]]:
    """Yield what holds a function, its name there, that with its class, and the function."""
    for name, item in list(vars(module).items()):
        if inspect.isclass(item) and classes and item.__module__ == module.__name__:
            for inner, method in list(vars(item).items()):
                if _is_own(method, module):
                    yield item, inner, f"{name}.{inner}", method
        elif _is_own(item, module):
            yield module, name, name, item


def _is_own(item: object, module: ModuleType) -> bool:
    func = getattr(item, "__func__", item)  # of a static or class method
    is_timed = hasattr(func, "__probe__")
    return inspect.isfunction(func) and func.__module__ == module.__name__ and not is_timed
