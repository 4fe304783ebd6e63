"""Queues that can be full: M/G/1/K with gamma service times, among them M/D/1/K and M/M/1/K.

Items arrive one by one at random (Poisson), one server serves them, and the system holds at most K
of them, including the one in service. In the textbook an item that finds it full is lost. In a
pipeline the sender waits with the item and brings no other meanwhile. The waiting item takes one
more place, and arrivals that do not happen are like arrivals that are lost.

The chances that a departure leaves 0, 1, 2 ... items with K places are proportional to the chances
without a limit. So one pass over these answers for all K. They fall geometrically in the end, and
the pass stops there.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

import numpy as np
import scipy

from benchrigor.model.series import Floats

MOST_PLACES = 1_000_000

_LEAST_LOAD = 1e-150
_NO_VARIATION = 1e-9  # less variation than this counts as none
# Maximum number of chances worked out one by one; a variation up to 1 needs about 50, a larger one
# some 30 times the variation.
_LONGEST = 4000
# Relative change of the ratio of successive chances at which they fall geometrically.
_STEADY, _IN_A_ROW = 2e-15, 16
_TINY = 1e-290


@dataclass(frozen=True, slots=True, eq=False)
class FiniteQueue:
    """Chances that a departure leaves 0, 1, 2 ... items if there is no limit.

    ``chances[k]`` is the chance of k items, ``below[k]`` of fewer, and ``beyond[k]`` of k or more.
    After the last one listed, a chance is ``decay`` times the one before.
    """

    utilisation: float
    chances: Floats
    below: Floats
    beyond: Floats
    decay: float

    @classmethod
    def of(cls, utilisation: float, variation: float) -> FiniteQueue:
        """Return the queue of a utilisation below 1 and a squared coefficient of variation.

        The chain moves up over a level as often as down (Cooper 1981), which gives the next chance
        as a sum of positive terms: a_0 p_(j+1) = p_0 A_(j+1) + sum over i = 1..j of p_i A_(j-i+2),
        with a_0 the chance of no arrival during one service and A_k the chance of k or more.
        """
        load = max(utilisation, _LEAST_LOAD)
        none, more = _arrivals(load, variation)
        chances = np.ones(_LONGEST + 1)
        last = decay = 1.0
        size = steady = 0
        while steady < _IN_A_ROW and last > _TINY and size < _LONGEST:
            earlier = chances[1 : size + 1] @ more[size:0:-1]
            size += 1
            chances[size] = (more[size - 1] + earlier) / none
            before, decay, last = decay, float(chances[size]) / last, float(chances[size])
            steady = steady + 1 if abs(decay - before) <= _STEADY * decay else 0
        decay = min(decay, math.nextafter(1.0, 0.0))
        chances = (1.0 - load) * chances[: size + 1]
        rest = float(chances[-1]) / (1.0 - decay)
        return cls(
            utilisation=load,
            chances=chances,
            below=np.concatenate([[0.0], np.cumsum(chances[:-1])]),
            beyond=np.cumsum(np.concatenate([[rest], chances[-2::-1]]))[::-1],
            decay=decay,
        )

    def lost(self, places: int) -> float:
        """Return the share of arrivals that find K places full and are lost (Keilson 1966)."""
        _, below, beyond = self._at(places)
        if below < 0.5:
            beyond = 1.0 - below
        left = 1.0 - self.utilisation
        return left * beyond / (left + self.utilisation * below)

    def blocked(self, places: int) -> float:
        """Return the share of arrivals that wait for one of K places, or of time if that is more.

        A waiting sender takes one more place. In a system with K + 1 places, the first share is the
        chance that a departure leaves K items, the second the chance that the system is full.
        """
        chance, below, _ = self._at(places)
        return max(chance / (below + chance), self.lost(places + 1))

    def _at(self, number: int) -> tuple[float, float, float]:
        """Return the chances of a number of items, of fewer, and of this number or more."""
        place = min(number, self.chances.size - 1)
        further = number - place
        shrunk = self.decay**further
        fewer = self.below[place] - self.beyond[-1] * math.expm1(further * math.log(self.decay))
        return float(self.chances[place] * shrunk), float(fewer), float(self.beyond[place] * shrunk)


def fewest_places(
    utilisation: float, variation: float, blocked_share: float, *, waits: bool
) -> int | None:
    """Return the least K that keeps the share blocked down; None beyond a million.

    >>> fewest_places(0.8, 1.0, 0.01, waits=False)
    14
    """
    queue = FiniteQueue.of(utilisation, variation)
    blocked = queue.blocked if waits else queue.lost
    places = range(1, MOST_PLACES + 1)
    index = bisect.bisect_left(places, -blocked_share, key=lambda number: -blocked(number))
    return places[index] if index < MOST_PLACES else None


def _arrivals(utilisation: float, variation: float) -> tuple[float, Floats]:
    """Return the chances of no arrival during one service, and of 1, 2, ... or more.

    Poisson for deterministic service times, negative binomial for gamma ones.
    """
    counts = np.arange(1.0, _LONGEST + 1.0)
    if variation < _NO_VARIATION:
        return math.exp(-utilisation), np.asarray(
            scipy.special.gammainc(counts, utilisation), np.float64
        )
    spread = variation * utilisation
    more = scipy.special.betainc(counts, 1.0 / variation, spread / (1.0 + spread))
    return math.exp(-math.log1p(spread) / variation), np.asarray(more, np.float64)
