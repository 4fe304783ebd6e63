"""What a probe has counted, apart from how its events are timed."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, cast

from benchrigor.errors import MissingExtra
from benchrigor.instrument.probing.event_sums import NOTHING, merged
from benchrigor.instrument.probing.probe_cell import Cell, Taken
from benchrigor.model.probe_reading import ProbeReading

if TYPE_CHECKING:
    from ddsketch import DDSketch

_NS = 1e-9


class Reader(Protocol):
    """Whoever reads probes at times of its own."""

    def book(self, name: str) -> Book:
        """Return its book of a probe."""


class Book:
    """What of a probe's events counts for one reader."""

    __slots__ = ("_lost", "_nested_ns", "_rejected", "_sketch", "_sums")

    def __init__(self) -> None:
        self._sums = NOTHING
        self._nested_ns = self._rejected = self._lost = 0
        self._sketch: DDSketch | None = None

    def add(self, taken: Taken, sketch: DDSketch | None) -> None:
        """Add what was taken out of a cell, and the sketch of its samples."""
        self._sums = merged(self._sums, taken.sums)
        self._nested_ns += taken.nested_ns
        self._rejected += taken.rejected
        self._lost += taken.samples_lost
        if sketch is not None:
            self._sketch = self._sketch or new_sketch()
            self._sketch.merge(sketch)

    def copy(self) -> Book:
        """Return another one with the same content."""
        book = Book()
        book.add(Taken(self._sums, self._nested_ns, self._rejected, [], self._lost), self._sketch)
        return book

    def reading(self, name: str, clock: str, own_cost_s: float) -> ProbeReading:
        """Return what it holds, in seconds."""
        count, total_ns, least_ns, greatest_ns, squares = self._sums
        return ProbeReading(
            name=name,
            clock=clock,
            count=count,
            total_s=total_ns * _NS,
            self_s=max(total_ns - self._nested_ns, 0) * _NS,
            min_s=least_ns * _NS if count else None,
            max_s=greatest_ns * _NS if count else None,
            mean_s=total_ns / count * _NS if count else None,
            variance_s2=squares / (count - 1) * _NS**2 if count > 1 else None,
            p50_s=self._quantile_s(0.5),
            p99_s=self._quantile_s(0.99),
            samples=int(self._sketch.count) if self._sketch else 0,
            samples_lost=self._lost,
            rejected=self._rejected,
            own_cost_s=own_cost_s,
        )

    def _quantile_s(self, q: float) -> float | None:
        quantile_ns = self._sketch.get_quantile_value(q) if self._sketch else None
        return None if quantile_ns is None else quantile_ns * _NS


class _Mark:
    """Lives as long as the thread that has it."""

    __slots__ = ("__weakref__",)


class ProbeAccount:
    """The cells of a probe, and what was taken out of them.

    Where the interpreter runs one thread at a time, all threads share one cell: to look for a
    thread's own takes a seventh of an event's time, and gains nothing. Where threads run at once,
    each has its own.

    Parameters
    ----------
    name, clock
        Of the probe.
    per_thread
        Whether threads run at once.
    """

    def __init__(self, name: str, clock: str, *, per_thread: bool) -> None:
        self.name, self.clock, self.per_thread = name, clock, per_thread
        self._born_ns = time.perf_counter_ns()
        self._local = threading.local()
        # Each with what is None once its thread has ended. (`Thread.is_alive` may fail in Python
        # 3.11 when another thread joins meanwhile.)
        self._cells: dict[Cell, Callable[[], object]] = {}
        self.dear_forms: set[str] = set()  # forms that were used, but for those that cost little
        self.book = Book()
        self.latest_ns: deque[int] = deque(maxlen=0)

    def cell(self) -> Cell:
        """Return the cell for the calling thread."""
        if self.per_thread:
            try:
                return cast(Cell, self._local.cell)
            except AttributeError:
                pass
        cell, mark = Cell(self._born_ns, self.most_samples), _Mark()
        self._local.cell, self._local.mark = cell, mark
        self._cells[cell] = weakref.ref(mark) if self.per_thread else lambda: self
        return cell

    @property
    def most_samples(self) -> int:
        """How many raw samples each cell keeps until they are read."""
        return self.latest_ns.maxlen or 0

    @most_samples.setter
    def most_samples(self, most: int) -> None:
        if most:
            new_sketch()  # says so if it is not installed
        self.latest_ns = deque(self.latest_ns, maxlen=most)
        for cell in [*self._cells]:
            cell.most_samples = most

    def collect(self, readers: Iterable[Reader]) -> None:
        """Take what is in the cells into the books, that of each reader too."""
        for cell, mark in [*self._cells.items()]:
            ended = mark() is None  # asked before: an ended thread writes no more
            if taken := cell.take():
                sketch = new_sketch(taken.samples) if taken.samples else None
                for book in (self.book, *(each.book(self.name) for each in readers)):
                    book.add(taken, sketch)
                self.latest_ns.extend(taken.samples)
            if ended:
                del self._cells[cell]

    def reset(self) -> None:
        """Begin from zero, in a process where no other thread is there."""
        self.book = Book()
        self.latest_ns.clear()
        for cell in self._cells:
            cell.reset()


def new_sketch(samples: Iterable[int] = ()) -> DDSketch:
    """Return a sketch of the quantiles of some samples; MissingExtra where none can be made."""
    try:
        from ddsketch import DDSketch  # noqa: PLC0415  # takes 80 ms, and few ask for samples
    except ImportError:
        raise MissingExtra("keeping raw samples", package="ddsketch", extra="probes") from None
    sketch = DDSketch()
    for each in samples:
        sketch.add(each)
    return sketch
