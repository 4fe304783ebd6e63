"""A random sample of events: all are equally likely, or recent ones are likelier."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import exp, expm1, log, log1p
from typing import TypeAlias

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
