"""Queues of the textbook that can be full: how often, and how much room it takes.

Items arrive one by one at random (Poisson), one server serves them, and the system holds at most
K of them, the one in service included: M/G/1/K in Kendall's notation. In the textbook an item
that finds it full is turned away. In a pipeline it is not: whoever brings it waits, and brings no
other meanwhile. Waiting with it in hand is like one place more, and arrivals that do not happen
are like arrivals turned away; so the same probabilities answer for both.

What the server leaves behind whenever it finishes an item is a Markov chain. Its stationary
probabilities, up to a factor, do not depend on K, so that one pass over them answers for all K;
and far from 0 each is a constant times the one before, so that the pass may stop there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from benchrigor.model import Floats
from benchrigor.model.series import short
from benchrigor.stats.service.arguments import no_number, no_whole, refuse

__all__ = [
    "MOST_VARIATION",
    "Chain",
    "fewest_places",
    "follow",
    "md1k_blocking",
    "mg1k_blocking",
    "mg1k_waiting",
    "mm1k_blocking",
    "no_variation",
]

MOST_VARIATION = 100.0
"""Beyond this squared coefficient of variation two moments say next to nothing."""

_NOBODY = 1e-150
"""At less utilisation than this nobody comes."""
_NONE = 1e-9
"""Less variation than this is none."""
_LONGEST = 4000
"""States followed one by one at most; it takes 30 to 100 of them up to a variation of 1, and
about 25 times the variation beyond."""
_STEADY, _IN_A_ROW = 1e-13, 16
_TOP, _BOTTOM = 1e250, 1e-290
_EXPONENT = 700.0
"""Of e, near the end of the range of a double."""


def mm1k_blocking(utilisation: float, places: int) -> float:
    """Return the share of arrivals that find an M/M/1/K queue full: exponential service times.

    Parameters
    ----------
    utilisation
        Arrival rate over service rate, at least 0; it may be more than 1.
    places
        K: items that the system holds, the one in service included; at least 1.

    Raises
    ------
    InvalidInput
        When an argument is out of range.

    Notes
    -----
    (1 - rho) rho^K / (1 - rho^(K + 1)), and 1 / (K + 1) for rho = 1; computed from the logarithm
    of rho, so that nothing cancels near 1 and nothing overflows for any K.

    Examples
    --------
    >>> mm1k_blocking(1.0, 9), mm1k_blocking(0.5, 1)
    (0.1, 0.3333333333333333)
    """
    refuse(*_misfits(utilisation, places))
    return _closed_form(float(utilisation), int(places))


def md1k_blocking(utilisation: float, places: int) -> float:
    """Return the share of arrivals that find an M/D/1/K queue full: constant service times.

    Parameters
    ----------
    utilisation, places
        As for `mm1k_blocking`.

    Raises
    ------
    InvalidInput
        When an argument is out of range.

    Notes
    -----
    As `mg1k_blocking` without variation.

    Examples
    --------
    >>> round(md1k_blocking(0.5, 2), 6)  # 1 - 1 / (exp(-rho) + rho)
    0.096274
    """
    return mg1k_blocking(utilisation, places, variation=0.0)


def mg1k_blocking(utilisation: float, places: int, *, variation: float) -> float:
    """Return the share of arrivals that find an M/G/1/K queue full: gamma service times.

    A gamma distribution has any mean and variation; deterministic and exponential service times
    are among them. Others with as much variation need nearly the same room; see
    `benchrigor.stats.service.capacity`.

    Parameters
    ----------
    utilisation, places
        As for `mm1k_blocking`.
    variation
        Squared coefficient of variation of the service times, from 0 (M/D/1/K) over 1 (M/M/1/K)
        to 100.

    Raises
    ------
    InvalidInput
        When an argument is out of range.

    Notes
    -----
    P = 1 - 1 / (pi_0 + rho), with pi_0 the share of services that leave nobody behind (Keilson
    1966; Cooper 1981). The chain moves up over a level as often as down, which gives the next
    probability as a sum of terms that are all positive: a_0 pi_(j+1) = pi_0 A_(j+1) + sum over
    i = 1..j of pi_i A_(j-i+2), with a_0 the chance of no arrival and A_k that of k arrivals or
    more during one service (negative binomial for gamma service times, Poisson for constant
    ones). From where successive probabilities differ by the factor of the dominant pole, the
    root z > 0 of z = E[z^arrivals] besides 1, the rest is a geometric series. Against the plain
    recursion with hundreds of digits, for rho from 0.01 to 20, variation from 0 to 100 and K up
    to 200, the relative error stayed below 3e-13, near rho = 1 too. It grows by about 1e-15 with
    each place; K may be any number.

    Examples
    --------
    >>> round(mg1k_blocking(0.8, 10, variation=0.25), 6)
    0.007452
    """
    refuse(*_misfits(utilisation, places), no_variation(variation))
    return follow(float(utilisation), float(variation)).lost(int(places))


def mg1k_waiting(utilisation: float, places: int, *, variation: float) -> float:
    """Return the share of arrivals that find no room where whoever brings them waits for it.

    Parameters
    ----------
    utilisation
        Rate at which items are brought, while nobody waits, over the service rate.
    places, variation
        As for `mg1k_blocking`.

    Raises
    ------
    InvalidInput
        When an argument is out of range.

    Notes
    -----
    Who waits brings nothing, so that the system is an M/G/1/K queue with K + 1 places, the last
    of them in the hand of who waits; the share that finds K items there and takes that place is
    the chance that a departure leaves K behind. (Who waits does so for ``mg1k_blocking`` of K + 1
    places of the time.) For exponential service times it is what `mg1k_blocking` gives; for
    steadier ones more, up to twice as much, for more uneven ones less.

    Examples
    --------
    >>> round(mg1k_waiting(0.8, 12, variation=0.0), 5), round(md1k_blocking(0.8, 12), 5)
    (0.00267, 0.00152)
    """
    refuse(*_misfits(utilisation, places), no_variation(variation))
    return follow(float(utilisation), float(variation)).waiting(int(places))


def no_variation(variation: object) -> tuple[str, ...]:
    """Say that something is no squared coefficient of variation from 0 to 100; else nothing."""
    found = no_number(variation, "variation", zero=True)
    if not found and variation > MOST_VARIATION:  # type: ignore[operator]  # it is a number
        return (
            f"variation is {short(variation)}, expected at most {MOST_VARIATION:g}: service times "
            "so uneven are of several kinds, measure each kind",
        )
    return found


def fewest_places(blocking: Callable[[int], float], blocked_share: float, most: int) -> int | None:
    """Return the least K at which the share blocked is as wanted; None beyond ``most``.

    Parameters
    ----------
    blocking
        Share blocked as a function of K, falling.
    blocked_share
        Wanted.
    most
        At least 1.

    Examples
    --------
    >>> fewest_places(lambda places: 0.5**places, 0.01, 1000)
    7
    """
    enough = 1
    while blocking(enough) > blocked_share:
        if enough >= most:
            return None
        enough = min(2 * enough, most)
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if blocking(middle) > blocked_share:
            too_few = middle
        else:
            enough = middle
    return enough


def _misfits(utilisation: object, places: object) -> tuple[tuple[str, ...], ...]:
    return no_number(utilisation, "utilisation", zero=True), no_whole(places, "places")


def _closed_form(utilisation: float, places: int) -> float:
    if utilisation == 0.0:
        return 0.0
    log = math.log(utilisation)
    if log == 0.0:
        return 1.0 / (places + 1)
    if log > 0.0:
        return math.expm1(-log) / math.expm1(-log * (places + 1))
    return math.exp(places * log) * math.expm1(log) / math.expm1((places + 1) * log)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """What departures leave behind, as probabilities over that of leaving nobody.

    ``states`` lists the first of them, ``sums`` their sums over none, one, two of them and so on,
    ``tails`` the sums of all listed from each on; ``last`` is the first that is not listed. From
    there on each is exp(-pole) times the one before.
    """

    utilisation: float
    pole: float
    last: float
    states: Floats
    sums: Floats
    tails: Floats

    def lost(self, places: int) -> float:
        """Return the share of arrivals turned away: 1 - 1 / (pi_0 + rho)."""
        load = self.utilisation
        whole = self._sum(places)
        if load < 1.0 and (1.0 - load) * whole > 0.5:
            # pi_0 is nearly 1 - rho, and the share what it is more.
            return (1.0 - load) * self._tail(places) / (1.0 + load * whole)
        empty = 1.0 / whole  # pi_0
        return (empty + (load - 1.0)) / (empty + load)

    def waiting(self, places: int) -> float:
        """Return the share of arrivals that wait: pi_K, with one place more."""
        further = places + 1 - self.states.size
        if further <= 0:
            return float(self.states[places] / self.sums[places + 1])
        # Over the last term, so that sums which grow without end stay in range.
        first = float(self.sums[-1]) / self.last if self.last > 0.0 else math.inf
        decayed = math.exp(min(self.pole * (further - 1), _EXPONENT))
        return 1.0 / (first * decayed + _geometric(-self.pole, further))

    def _sum(self, count: int) -> float:
        further = count - self.states.size
        if further <= 0:
            return float(self.sums[count])
        return float(self.sums[-1]) + self.last * _geometric(self.pole, further)

    def _tail(self, start: int) -> float:
        beyond = start - self.states.size
        rest = self.last / -math.expm1(-self.pole)
        if beyond >= 0:
            return rest * math.exp(-self.pole * beyond)
        return float(self.tails[start]) + rest


def _geometric(pole: float, count: int) -> float:
    """Return 1 + exp(-pole) + exp(-pole)^2 + ..., of so many terms."""
    if abs(pole * count) < 1e-12:
        return float(count)
    return math.expm1(min(-pole * count, _EXPONENT)) / math.expm1(-pole)


def follow(utilisation: float, variation: float) -> Chain:
    """Follow the chain until it has become geometric, or leaves the range of a double.

    Parameters
    ----------
    utilisation, variation
        As for `mg1k_blocking`; not checked.
    """
    if utilisation < _NOBODY:
        one = np.ones(1)
        sums = np.array([0.0, 1.0])
        return Chain(utilisation=0.0, pole=1.0, last=0.0, states=one, sums=sums, tails=one)
    none, more = _arrivals(utilisation, variation)
    pole = math.log1p(_root(utilisation, variation))
    decay = math.exp(-pole)
    states = np.zeros(_LONGEST + 1)
    states[0] = last = 1.0
    window = int(np.count_nonzero(more))
    index = steady = 0
    while steady < _IN_A_ROW and _BOTTOM < last < _TOP and index < _LONGEST:
        first = max(1, index + 2 - window)
        earlier = states[first : index + 1] @ more[index - first + 1 : 0 : -1]
        # Python's floats overflow to infinity without a word.
        before, last = last, _over(float(more[index]) + float(earlier), none)
        index += 1
        states[index] = last
        steady = steady + 1 if abs(last - before * decay) <= _STEADY * last else 0
    listed = states[:index]
    return Chain(
        utilisation=utilisation,
        pole=pole,
        last=last,
        states=listed,
        sums=np.concatenate([[0.0], np.cumsum(listed)]),
        tails=np.cumsum(listed[::-1])[::-1],
    )


def _over(chance: float, none: float) -> float:
    return chance / none if none > 0.0 else math.inf


def _arrivals(utilisation: float, variation: float) -> tuple[float, Floats]:
    """Return the chances of no arrival during one service, and of 1, 2, ... or more."""
    counts = np.arange(1.0, _LONGEST + 2.0)
    if variation < _NONE:
        return math.exp(-utilisation), np.asarray(special.gammainc(counts, utilisation), np.float64)
    spread = variation * utilisation
    more = special.betainc(counts, 1.0 / variation, spread / (1.0 + spread))
    return math.exp(-math.log1p(spread) / variation), np.asarray(more, np.float64)


def _root(utilisation: float, variation: float) -> float:
    """Solve log z = log E[z^arrivals] for the z > 0 that is not 1, and return z - 1.

    Their difference is convex in z, and 0 at 1: the other root lies beyond the turn.
    """
    turn = (1.0 - utilisation) / (utilisation * (1.0 + variation))
    if turn == 0.0:
        return 0.0

    def excess(root: float) -> float:
        if variation < _NONE:
            return utilisation * root - math.log1p(root)
        return -math.log1p(-variation * utilisation * root) / variation - math.log1p(root)

    inner, outer = max(turn, math.nextafter(-1.0, 0.0)), -1.0
    if turn > 0.0 and variation >= _NONE:
        outer = 1.0 / (variation * utilisation)
    elif turn > 0.0:
        outer = 2.0 * turn
        while excess(outer) <= 0.0:
            outer *= 2.0
    while (middle := (inner + outer) / 2.0) not in (inner, outer):
        if excess(middle) > 0.0:
            outer = middle
        else:
            inner = middle
    return inner  # of both the one that is never -1
