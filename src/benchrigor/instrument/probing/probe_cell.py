"""Where the durations of a probe's events are added up while it is in use.

An event costs an append to a short list, which Python does in one piece whatever other threads do.
Whoever finds the list full adds it to the sums, unless another thread is at it. So nothing is
locked for an event, and a reader never stops a writer.
"""

from __future__ import annotations

import threading
import time
from numbers import Integral
from typing import NamedTuple

from benchrigor.instrument.probing.event_sums import NOTHING, Sums, added

# Durations that a list holds: few at first, since most probes are hardly ever used.
_COLD, _HOT = 16, 128
# For a longer list its thread waits, for so long: another one was stopped while adding it up.
_CROWDED, _WAIT_S = 256, 0.01
_READ_S = 1.0  # the handler of a signal that reads may itself have stopped the thread that adds


class Taken(NamedTuple):
    """What a cell has added up since it was last read."""

    sums: Sums
    nested_ns: int
    rejected: int
    samples: list[int]
    samples_lost: int


class Cell:
    """Sums of the durations of events, in nanoseconds.

    Parameters
    ----------
    born_ns
        When its probe was made, by `time.perf_counter_ns`: no event is longer than since then.
    most_samples
        How many durations are kept one by one until they are read.
    """

    __slots__ = (
        "_born_ns",
        "_lock",
        "_lost",
        "_nested_ns",
        "_rejected",
        "_samples",
        "_sums",
        "most_samples",
        "nested",
        "room",
        "values",
    )

    def __init__(self, born_ns: int, most_samples: int = 0) -> None:
        self._born_ns, self.most_samples = born_ns, most_samples
        self.values: list[int] = []
        self.nested: list[int] = []  # of events that ran inside of this probe's
        self.reset()

    def reset(self) -> None:
        """Begin from zero, with no other thread there."""
        self._lock = threading.Lock()
        self.values.clear()
        self.nested.clear()
        self.room = _COLD
        self._clear()

    def _clear(self) -> None:
        self._sums = NOTHING
        self._nested_ns = self._rejected = self._lost = 0
        self._samples: list[int] = []

    def fold(self, parent: Cell | None = None) -> None:
        """Add up what is listed, here and at the cell that its events ran inside of.

        Another thread that is at it already makes that needless.
        """
        lock = self._lock
        if lock.acquire(False) or (len(self.values) > _CROWDED and lock.acquire(True, _WAIT_S)):
            try:
                self._fold()
                if self.room < _HOT:
                    self.room += 1
            finally:
                lock.release()
        if parent is not None:
            parent.fold()

    def take(self) -> Taken | None:
        """Return what came since the last time; None where nothing did.

        What cannot be had within a second is left for the next time.
        """
        if not self._lock.acquire(timeout=_READ_S):
            return None
        try:
            self._fold()
            taken = Taken(self._sums, self._nested_ns, self._rejected, self._samples, self._lost)
            self._clear()
        finally:
            self._lock.release()
        return taken if taken.sums[0] or taken.nested_ns or taken.rejected else None

    def _fold(self) -> None:
        values = self.values[:]
        if values:
            count = len(values)
            try:
                before = self._sums
                sums = added(before, values)
                _, total_ns, least_ns, greatest_ns, _ = sums
                fits = (
                    total_ns.__class__ is int
                    and least_ns >= 0
                    and (greatest_ns == before[3] or greatest_ns <= self._age_ns())
                )
            except (ArithmeticError, TypeError, ValueError):
                fits = False
            if not fits:
                values = self._possible(values)
                sums = added(self._sums, values) if values else self._sums
                self._rejected += count - len(values)
            if self.most_samples:
                room = self.most_samples - len(self._samples)
                self._samples += values[:room]
                self._lost += max(len(values) - room, 0)
            self._sums = sums
            del self.values[:count]
        if self.nested:
            nested = self.nested[:]
            self._nested_ns += sum(nested)
            del self.nested[: len(nested)]

    def _possible(self, values: list[int]) -> list[int]:
        """Leave out what is no whole number, below 0, or longer than the probe exists."""
        longest_ns = self._age_ns()
        whole = (int(each) for each in values if isinstance(each, Integral))
        return [each for each in whole if 0 <= each <= longest_ns]

    def _age_ns(self) -> int:
        return time.perf_counter_ns() - self._born_ns
