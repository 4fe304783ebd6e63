"""Cells add up the durations of a probe's events while it is in use.

An event appends to a short list, which is atomic in Python. The thread that finds the list full
adds it to the sums, unless another thread is doing so. So an event needs no lock, and a reader
never stops a writer.

If the interpreter runs one thread at a time, all threads share the cell of a probe: looking up a
cell per thread would take a seventh of an event's time, without gain. If threads run at once, every
thread has its own cell.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Iterator
from numbers import Integral
from typing import NamedTuple, cast

from benchrigor.instrument.probing.event_sums import NOTHING, Sums, add_events
from benchrigor.instrument.probing.reservoir import Entry, Reservoir

# Durations that a list holds: few at first, since most probes are hardly ever used, and one more
# per _MORE events since the last reading.
_COLD, _HOT, _MORE = 4, 128, 64
# If a list is longer, its thread waits up to _WAIT_S: another one was stopped while adding it up.
_CROWDED, _WAIT_S = 256, 0.01
_LOCKS = 64


class Taken(NamedTuple):
    """The sums of a cell since the last reading."""

    sums: Sums
    nested_ns: int
    rejected: int
    samples: list[Entry]
    samples_lost: int
    missed: int = 0


class Bounds:
    """The common data of a registry's cells.

    Attributes
    ----------
    born_ns
        Start of the registry, by `time.perf_counter_ns`: no event can be longer than its age.
    locks
        Locks for adding up. Many cells share a lock: one per cell would add a tenth to the memory.
    """

    __slots__ = ("born_ns", "locks")

    def __init__(self) -> None:
        self.born_ns = time.perf_counter_ns()
        self.renew()

    def renew(self) -> None:
        """Take locks that are free, in a process if no other thread is there."""
        self.locks = tuple(threading.Lock() for _ in range(_LOCKS))


class Cell(list[int]):
    """Durations of events in nanoseconds, and the sums of those that have left the list.

    Parameters
    ----------
    bounds
        Of the registry.
    most_samples, decay
        How many durations, drawn at random, are kept one by one until they are read, and by what
        the logarithm of their weight grows in a nanosecond.
    deadline_ns
        Longer durations are counted.
    """

    __slots__ = (
        "_bounds",
        "_missed",
        "_nested_ns",
        "_rejected",
        "_reservoir",
        "_sums",
        "deadline_ns",
        "decay",
        "most_samples",
        "nested",
        "nests",
        "room",
    )

    def __init__(
        self,
        bounds: Bounds,
        most_samples: int = 0,
        decay: float = 0.0,
        deadline_ns: float = math.inf,
    ) -> None:
        self._bounds, self.most_samples, self.decay = bounds, most_samples, decay
        self.deadline_ns = deadline_ns
        self.nested: list[int] = []  # of events that ran inside of this probe's
        self.nests = False  # whether `Probe.again` was used
        self._clear()

    def reset(self) -> None:
        """Begin from zero, with no other thread there."""
        self.clear()
        self.nested.clear()
        self._clear()

    def _clear(self) -> None:
        self.room = _COLD
        self._sums = NOTHING
        self._nested_ns = self._rejected = self._missed = 0
        self._reservoir: Reservoir | None = None

    @property
    def lock(self) -> threading.Lock:
        """Held while the cell is added up."""
        return self._bounds.locks[id(self) // 64 % _LOCKS]

    @property
    def blank(self) -> bool:
        """Whether there are no events since the last reading."""
        counted = self._sums[0] or self._nested_ns or self._rejected
        return not (self or self.nested or counted)

    def fold(self, parent: Cell | None = None) -> None:
        """Add up the listed durations, here and in the cell of the outer event.

        If another thread is already adding them up, this does nothing.
        """
        lock = self.lock
        if lock.acquire(False) or (len(self) > _CROWDED and lock.acquire(True, _WAIT_S)):
            try:
                self._fold()
            finally:
                lock.release()
        if parent is not None:
            parent.fold()

    def take(self, until_ns: int = 0) -> Taken | None:
        """Return the sums since the last call; None if there are no events.

        If the lock is not free by ``until_ns``, the events are left for the next call.
        """
        lock = self.lock
        if not lock.acquire(False):
            left_s = (until_ns - time.perf_counter_ns()) * 1e-9
            if left_s <= 0.0 or not lock.acquire(True, left_s):
                return None
        try:
            self._fold()
            if self.blank:
                return None
            seen, samples = 0, list[Entry]()
            if self._reservoir is not None:
                seen, samples = self._reservoir.seen, self._reservoir.entries()
            lost = seen - len(samples)
            taken = Taken(self._sums, self._nested_ns, self._rejected, samples, lost, self._missed)
            self._clear()
        finally:
            lock.release()
        return taken

    def _fold(self) -> None:
        values = self[:]
        if values:
            count = len(values)
            try:
                before = self._sums
                sums = add_events(before, values)
                counted, total_ns, least_ns, greatest_ns, _ = sums
                fits = (
                    total_ns.__class__ is int
                    and least_ns >= 0
                    and (greatest_ns == before[3] or greatest_ns <= self._age_ns())
                )
            except (ArithmeticError, TypeError, ValueError):
                fits = False
            if fits:
                self.room = min(_COLD + counted // _MORE, _HOT)
            else:
                values = self._possible(values)
                sums = add_events(self._sums, values) if values else self._sums
                self._rejected += count - len(values)
            if self.most_samples:
                reservoir = self._reservoir = self._reservoir or Reservoir()
                reservoir.add(values, self.most_samples, self.decay)
            if sums[3] > self.deadline_ns:
                self._missed += sum(value > self.deadline_ns for value in values)
            self._sums = sums
            del self[:count]
        if self.nested:
            nested = self.nested[:]
            self._nested_ns += sum(nested)
            del self.nested[: len(nested)]

    def _possible(self, values: list[int]) -> list[int]:
        """Leave out durations that are not whole, below 0, or longer than the registry exists."""
        longest_ns = self._age_ns()
        whole = (int(value) for value in values if isinstance(value, Integral))
        return [duration_ns for duration_ns in whole if 0 <= duration_ns <= longest_ns]

    def _age_ns(self) -> int:
        return time.perf_counter_ns() - self._bounds.born_ns


class _Mark:
    """Lives as long as the thread that has it."""

    __slots__ = ("__weakref__",)


class ThreadCells:
    """The cells of a probe, one per thread, for threads that run at once."""

    __slots__ = ("_bounds", "_cells", "_local", "deadline_ns", "decay", "most_samples")

    def __init__(self, bounds: Bounds) -> None:
        self._bounds, self.most_samples, self.decay = bounds, 0, 0.0
        self.deadline_ns = math.inf
        self._local = threading.local()
        # By a reference that is None once the thread has ended. (`Thread.is_alive` may fail in
        # Python 3.11 when another thread joins meanwhile.)
        self._cells: dict[weakref.ref[_Mark], Cell] = {}

    def mine(self) -> Cell:
        """Return the cell of the calling thread."""
        try:
            return cast(Cell, self._local.cell)
        except AttributeError:
            kept = self.most_samples, self.decay, self.deadline_ns
            cell, mark = Cell(self._bounds, *kept), _Mark()
            self._local.cell, self._local.mark = cell, mark
            self._cells[weakref.ref(mark)] = cell
            return cell

    def __iter__(self) -> Iterator[Cell]:
        """Go through the cells; remove the cell of an ended thread once it was read."""
        for mark, cell in [*self._cells.items()]:
            ended = mark() is None  # asked before: an ended thread writes no more
            yield cell
            if ended and cell.blank:
                del self._cells[mark]
