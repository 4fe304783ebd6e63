"""A random sample of events: each is as likely as any other, or recent ones are likelier."""

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
_LEAST, _GREATEST = 1e-300, 1e300  # of the exponential numbers that keys are made of


class Reservoir:
    """Keeps the events with the least of random keys.

    Random sampling with a reservoir (Vitter, 1985). The entries with the least keys of several
    samples are a sample of all. A key is drawn only for an event that gets in:
    how many events do not is geometric (Li, 1994, Algorithm L), so that most events cost nothing.

    Keys are exponential numbers over weights (Efraimidis and Spirakis, 2006), as logarithms. With
    forward decay (Cormode et al., 2009) weights grow with the time of the event, and none changes.
    """

    __slots__ = ("_greatest", "_heap", "_skip", "seen")

    def __init__(self) -> None:
        self.seen = 0  # events in all
        self._heap: list[Entry] = []  # by the key's negative: the greatest key comes first
        self._greatest = math.inf  # no key above gets in
        self._skip = 0  # events until the next that does

    def add(self, values: Sequence[int], most: int, decay: float = 0.0) -> None:
        """Add events; at most so many stay. The weight of an event grows by e in 1/decay ns."""
        at_ns, heap = time.perf_counter_ns(), self._heap
        weight = decay * at_ns  # its logarithm
        if decay:  # the next that gets in was drawn by the weight of earlier events
            self._skip = self._skipped(weight)
        while self._skip < len(values):
            chance = -math.expm1(-self._limit(weight))
            drawn = max(-math.log1p(-chance * (1.0 - _random())), _LEAST)
            key = math.log(drawn) - weight
            heapq.heappush(heap, (-key, at_ns + self._skip, values[self._skip]))
            while len(heap) > most:
                heapq.heappop(heap)
            if len(heap) == most:
                self._greatest = -heap[0][0]
            self._skip += 1 + self._skipped(weight)
        self._skip -= len(values)
        self.seen += len(values)

    def _limit(self, weight: float) -> float:
        """Return below what an exponential number gets in."""
        return math.exp(min(self._greatest + weight, math.log(_GREATEST)))

    def _skipped(self, weight: float) -> int:
        """Draw how many events do not get in before one does."""
        return int(-math.log1p(-_random()) / max(self._limit(weight), _LEAST))

    def entries(self) -> list[Entry]:
        """Return the sample."""
        return [(-key, at_ns, value) for key, at_ns, value in self._heap]


def durations_of(entries: Iterable[Entry]) -> list[int]:
    """Return the durations, oldest first."""
    return [value for _, _, value in sorted(entries, key=lambda entry: entry[1])]
