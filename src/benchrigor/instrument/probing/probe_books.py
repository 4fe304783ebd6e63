"""Books of the readers of probes: the events that count in a reader's next reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchrigor.errors import MissingExtra
from benchrigor.instrument.data.probe_reading import ProbeReading
from benchrigor.instrument.probing.event_sums import NOTHING, merge_sums
from benchrigor.instrument.probing.probe_cell import Taken
from benchrigor.instrument.probing.reservoir import Entry

if TYPE_CHECKING:
    from ddsketch import DDSketch

_NS = 1e-9


class Book:
    """The events of a probe that count for one reader."""

    __slots__ = ("_kept", "_lost", "_missed", "_nested_ns", "_rejected", "_sketch", "_sums")

    def __init__(self) -> None:
        self._sums = NOTHING
        self._nested_ns = self._rejected = self._kept = self._lost = self._missed = 0
        self._sketch: DDSketch | None = None

    def add(self, taken: Taken, sketch: DDSketch | None) -> None:
        """Add the sums from a cell, and the sketch of its samples."""
        self._sums = merge_sums(self._sums, taken.sums)
        self._nested_ns += taken.nested_ns
        self._rejected += taken.rejected
        self._kept += len(taken.samples)
        self._lost += taken.samples_lost
        self._missed += taken.missed
        if sketch is not None:
            self._sketch = self._sketch or new_sketch()
            self._sketch.merge(sketch)

    def copy(self) -> Book:
        """Return another one with the same content."""
        book = Book()
        book.add(Taken(self._sums, self._nested_ns, self._rejected, [], self._lost), self._sketch)
        book._kept, book._missed = self._kept, self._missed
        return book

    def reading(
        self, name: str, clock: str, own_cost_s: float, deadline_s: float | None
    ) -> ProbeReading:
        """Return its content as a reading, in seconds."""
        count, total_ns, least_ns, greatest_ns, squares = self._sums
        return ProbeReading(
            name=name,
            clock=clock,
            count=count,
            total_s=total_ns * _NS,
            self_s=min(max(total_ns - self._nested_ns, 0), total_ns) * _NS,
            min_s=least_ns * _NS if count else None,
            max_s=greatest_ns * _NS if count else None,
            mean_s=total_ns / count * _NS if count else None,
            variance_s2=squares / (count - 1) * _NS**2 if count > 1 else None,
            p50_s=self._quantile_s(0.5),
            p99_s=self._quantile_s(0.99),
            samples=self._kept,
            samples_lost=self._lost,
            rejected=self._rejected,
            own_cost_s=own_cost_s,
            deadline_s=deadline_s,
            missed=self._missed,
        )

    def _quantile_s(self, q: float) -> float | None:
        quantile_ns = self._sketch.get_quantile_value(q) if self._sketch else None
        return None if quantile_ns is None else quantile_ns * _NS


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
