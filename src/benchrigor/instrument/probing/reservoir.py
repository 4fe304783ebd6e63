"""A random sample of events, in which each event is as likely as any other."""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Iterable, Sequence
from typing import TypeAlias

# Random key, when the event was added up, and its duration in nanoseconds.
Entry: TypeAlias = tuple[float, int, int]

_random = random.Random().random  # noqa: S311  # not that of the program, which may have a seed


class Reservoir:
    """Keeps the events with the least of random keys.

    Random sampling with a reservoir (Vitter, 1985). The entries with the least keys of several
    samples are a sample of all. A key is drawn only for an event that gets in:
    how many events do not is geometric (Li, 1994, Algorithm L), so that most events cost nothing.
    """

    __slots__ = ("_greatest", "_heap", "_skip", "seen")

    def __init__(self) -> None:
        self.seen = 0  # events in all
        self._heap: list[Entry] = []  # by the key's negative: the greatest key comes first
        self._greatest, self._skip = 1.0, 0  # no key above gets in; events until the next that does

    def add(self, values: Sequence[int], most: int) -> None:
        """Add events; at most so many stay."""
        at_ns, heap = time.perf_counter_ns(), self._heap
        while self._skip < len(values):
            key = self._greatest * (1.0 - _random())  # above 0
            heapq.heappush(heap, (-key, at_ns + self._skip, values[self._skip]))
            while len(heap) > most:
                heapq.heappop(heap)
            if len(heap) == most:
                self._greatest = -heap[0][0]
            self._skip += 1
            if self._greatest < 1.0:
                self._skip += int(math.log(1.0 - _random()) / math.log1p(-self._greatest))
        self._skip -= len(values)
        self.seen += len(values)

    def entries(self) -> list[Entry]:
        """Return the sample."""
        return [(-key, at_ns, value) for key, at_ns, value in self._heap]


def durations_of(entries: Iterable[Entry]) -> list[int]:
    """Return the durations, oldest first."""
    return [value for _, _, value in sorted(entries, key=lambda entry: entry[1])]
