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
import random
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from math import exp, expm1, log, log1p
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from benchrigor.errors import MissingExtra

if TYPE_CHECKING:
    from ddsketch import DDSketch


# Count, total, least, greatest, sum of squared deviations from the mean; in nanoseconds.
Sums: TypeAlias = tuple[int, int, float, float, float]

NOTHING: Sums = (0, 0, math.inf, -math.inf, 0.0)


def add_events(sums: Sums, values: Sequence[int]) -> Sums:
    """Add durations, one or more; functions written in C do most of it."""
    count, total = len(values), sum(values)
    mean = total / count
    spread = math.dist(values, (mean,) * count)  # root of the sum of squared deviations
    _, _, least, greatest, _ = sums
    # No duration is further from the mean than that, so that mostly the extremes stand.
    if mean - spread < least:
        least = min(values)
    if mean + spread > greatest:
        greatest = max(values)
    return merge_sums(sums, (count, total, least, greatest, spread * spread))


def merge_sums(one: Sums, other: Sums) -> Sums:
    """Merge two sets' sums (Chan, Golub and LeVeque, 1979: no digits are lost)."""
    n, total, least, greatest, squares = one
    m, other_total, other_least, other_greatest, other_squares = other
    if n and m:
        squares += (total / n - other_total / m) ** 2 * n * m / (n + m)
    return (
        n + m,
        total + other_total,
        least if least < other_least else other_least,
        greatest if greatest > other_greatest else other_greatest,
        squares + other_squares,
    )


# Random key, when the event was added up, and its duration in nanoseconds.
Entry: TypeAlias = tuple[float, int, int]

_random = random.Random().random  # noqa: S311  # not the program's own, which may have a seed
_LEAST = -690.0  # logarithm of an exponential number that a key is made of; the greatest: 690


class Reservoir:
    """Keeps the events with the smallest random keys.

    Random sampling with a reservoir (Vitter, 1985). The entries with the smallest keys of several
    samples are a sample of all events. Only an event that enters needs a key: the number of events
    between two entries is geometric (Li, 1994, Algorithm L), so that most events cost nothing.

    Keys are exponential numbers over weights (Efraimidis and Spirakis, 2006), as logarithms. With
    forward decay (Cormode et al., 2009) weights grow with the time of the event, and never change.
    """

    __slots__ = ("_greatest", "_heap", "_skip", "seen")

    def __init__(self) -> None:
        self.seen = 0  # events in all
        self._heap: list[Entry] = []  # by the key's negative: the greatest key comes first
        self._greatest = math.inf  # no key above gets in
        self._skip = 0  # events until the next that does

    def add(self, values: Sequence[int], most: int, decay: float = 0.0) -> None:
        """Add events, and keep up to ``most``. Weights of events grow by e in 1/decay ns."""
        at_ns, heap, skip = time.perf_counter_ns(), self._heap, self._skip
        weight = decay * at_ns  # its logarithm
        limit = exp(max(_LEAST, min(self._greatest + weight, -_LEAST)))
        if decay:  # the next that gets in was drawn by the weight of earlier events
            skip = int(-log1p(-_random()) / limit)
        chance = -expm1(-limit)  # of an exponential number below the limit
        while skip < len(values):
            drawn = -log1p(-chance * _random()) or exp(_LEAST)
            heappush(heap, (weight - log(drawn), at_ns + skip, values[skip]))
            skip += 1
            if len(heap) >= most:
                while len(heap) > most:
                    heappop(heap)
                self._greatest = -heap[0][0]
                limit = exp(max(_LEAST, min(self._greatest + weight, -_LEAST)))
                chance = -expm1(-limit)
                skip += int(-log1p(-_random()) / limit)
        self._skip = skip - len(values)
        self.seen += len(values)

    def entries(self) -> list[Entry]:
        """Return the sample."""
        return [(-key, at_ns, value) for key, at_ns, value in self._heap]


def durations_of(entries: Iterable[Entry]) -> list[int]:
    """Return the durations, oldest first."""
    return [value for _, _, value in sorted(entries, key=lambda entry: entry[1])]


def new_sketch(samples: Sequence[Entry] = (), lost: int = 0) -> DDSketch:
    """Return a sketch of the quantiles of a sample; MissingExtra if none can be made.

    The sample stands for the events that are not in it as well.
    """
    try:
        from ddsketch import DDSketch  # noqa: PLC0415  # takes 80 ms, and few ask for samples
    except ImportError:
        raise MissingExtra("keeping raw samples", package="ddsketch", extra="probes") from None
    sketch = DDSketch()
    for _, _, value in samples:
        sketch.add(value, 1.0 + lost / len(samples))
    return sketch


# Durations that a list holds: few at first, since most probes are hardly ever used, and one more
# per _MORE events since the last reading.
_COLD, _HOT, _MORE = 4, 128, 64
# If a list is longer, its thread waits up to _WAIT_S: another one was stopped while adding it up.
_CROWDED, _WAIT_S = 256, 0.01
_LOCKS = 64


class Book(NamedTuple):
    """Events of a probe: of a cell since the last reading, or all that count for a reader."""

    sums: Sums = NOTHING
    nested_ns: int = 0
    rejected: int = 0
    missed: int = 0
    kept: int = 0  # in the sample of their durations, and those that are not in it
    lost: int = 0
    sketch: DDSketch | None = None  # of the sample's quantiles

    def plus(self, other: Book) -> Book:
        """Return both together."""
        sketch = self.sketch if other.sketch is None else other.sketch
        if self.sketch is not None and other.sketch is not None:
            sketch = new_sketch()
            sketch.merge(self.sketch)
            sketch.merge(other.sketch)
        return Book(
            merge_sums(self.sums, other.sums),
            self.nested_ns + other.nested_ns,
            self.rejected + other.rejected,
            self.missed + other.missed,
            self.kept + other.kept,
            self.lost + other.lost,
            sketch,
        )

    def quantile_s(self, q: float) -> float | None:
        """Return a quantile of the sample in seconds; None without a sample."""
        quantile_ns = None if self.sketch is None else self.sketch.get_quantile_value(q)
        return None if quantile_ns is None else quantile_ns * 1e-9


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


class Kept(NamedTuple):
    """Samples and weights that the cells of a probe keep besides their sums."""

    samples: int = 0  # durations, drawn at random, that a cell keeps one by one until they are read
    decay: float = 0.0  # the growth of the logarithm of their weight in a nanosecond
    deadline_s: float | None = None  # longer durations are counted


class Cell(list[int]):
    """Durations of events in nanoseconds, and the sums of those that have left the list.

    The registry has the bounds.
    """

    __slots__ = (
        "_bounds",
        "_missed",
        "_nested_ns",
        "_rejected",
        "_reservoir",
        "_sums",
        "kept",
        "nested",
        "nests",
        "room",
    )

    def __init__(self, bounds: Bounds, kept: Kept) -> None:
        self._bounds, self.kept = bounds, kept
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
        """Whether no event came since the last reading."""
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

    def take(self, until_ns: int = 0) -> tuple[Book, list[Entry]] | None:
        """Return the events since the last call, and their sample; None without any.

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
            samples, seen = list[Entry](), 0
            if self._reservoir is not None:
                samples, seen = self._reservoir.entries(), self._reservoir.seen
            kept, lost = len(samples), seen - len(samples)
            book = Book(self._sums, self._nested_ns, self._rejected, self._missed, kept, lost)
            self._clear()
        finally:
            lock.release()
        return book._replace(sketch=new_sketch(samples, lost)) if samples else book, samples

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
            kept = self.kept
            if kept.samples:
                reservoir = self._reservoir = self._reservoir or Reservoir()
                reservoir.add(values, kept.samples, kept.decay)
            if (deadline_s := kept.deadline_s) is not None and sums[3] > deadline_s * 1e9:
                self._missed += sum(value > deadline_s * 1e9 for value in values)
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

    __slots__ = ("_bounds", "_cells", "_local", "kept")

    def __init__(self, bounds: Bounds, kept: Kept) -> None:
        self._bounds, self.kept = bounds, kept
        self._local = threading.local()
        # By a reference that is None once the thread has ended. (`Thread.is_alive` may fail in
        # Python 3.11 when another thread joins meanwhile.)
        self._cells: dict[weakref.ref[_Mark], Cell] = {}

    def mine(self) -> Cell:
        """Return the cell of the calling thread."""
        try:
            return cast(Cell, self._local.cell)
        except AttributeError:
            cell, mark = Cell(self._bounds, self.kept), _Mark()
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
