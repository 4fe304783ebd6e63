"""How much room a queue should have, and how many replicas a stage, for the rates it has.

Queues that can be full: M/G/1/K with gamma service times, among them M/D/1/K and M/M/1/K.

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import (
    refuse,
    wrong_confidences,
    wrong_quantity,
    wrong_share,
    wrong_whole,
)
from benchrigor.model.estimate import Quantity, ends
from benchrigor.model.notice import Code, Notice
from benchrigor.model.series import Floats, short
from benchrigor.queues.arithmetic.rate_arithmetic import rounded_up
from benchrigor.queues.data.pipeline import BufferSize, ReplicaCount, wrong_process
from benchrigor.queues.data.service import ServiceProcess
from benchrigor.units import percent

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


_WAIT, _LOSE = "wait", "lose"
_MODELS = {0.0: "M/D/1/K", 1.0: "M/M/1/K"}
_GENERAL = "M/G/1/K with gamma service times"
_FASTER = "Use faster service, or more replicas where processors are left for them."
_VARIATIONS = {ServiceProcess.DETERMINISTIC: 0.0, ServiceProcess.EXPONENTIAL: 1.0}


def suggest_buffer(
    arrival: Quantity,
    service: Quantity,
    *,
    process: ServiceProcess | str = ServiceProcess.EXPONENTIAL,
    variation: float | None = None,
    replicas: int = 1,
    blocked_share: float = 0.01,
    when_full: str = _WAIT,
) -> BufferSize:
    """Suggest how many items the queue in front of a stage should hold.

    Parameters
    ----------
    arrival
        Items that arrive per second; a number is known exactly.
    service
        Service rate of one replica, in items per second.
    process
        Distribution of the service times: "exponential" (M/M/1/K), "deterministic" (M/D/1/K) or
        "other" (M/G/1/K with gamma service times).
    variation
        Squared coefficient of variation of the service times, 0 to 100; with "other" only.
    replicas
        How many share the arrivals; every replica has its own queue. A single queue for all
        needs no more room than those queues together.
    blocked_share
        Share of arrivals that may find the queue full, in (0, 1).
    when_full
        "wait": a sender that finds the queue full waits for room and brings no other item
        meanwhile, as a stage does; ``blocked_share`` limits the share of that time as well.
        "lose": an item that finds the queue full is lost, as in the textbook.

    Returns
    -------
    BufferSize
        The smallest sufficient size, for arrivals as fast and service as slow as their intervals
        allow, and at the estimated rates. None if the utilisation is 1 or more, if no size is
        enough, or beyond a million items; a Notice says why.

    Raises
    ------
    InvalidInput
        When an argument is out of range, or the confidences differ.

    Notes
    -----
    K of `finite_queue` counts the item in service: the size is K - 1, and at least 1. A Notice
    lists the assumptions: arrivals are random (Poisson) and service times independent. Arrivals in
    bursts need more room, arrivals at even intervals less. Arrivals that pile up outside while the
    queue is full find it full up to 1 / (1 - utilisation) times as often.

    Uniform, lognormal, two-valued and shifted exponential service times of a variation up to 1 need
    the size of gamma ones within one item (measured: utilisation 0.5 to 0.95, blocked share 0.1 to
    5 %). Above 1 the tail matters too: lognormal ones need up to 15 % more room for a blocked share
    of 1 % at a variation of 2 to 4, and 30 % more at 10; for 0.1 % up to 1.7 and 2.4 times as much.

    Examples
    --------
    >>> print(suggest_buffer(80.0, 100.0))
    room for 13 items: at most 1% blocked · utilisation 80%
    >>> print(suggest_buffer(80.0, 100.0, process="deterministic"))
    room for 8 items: at most 1% blocked · utilisation 80%
    """
    refuse(
        *_wrong_rates(arrival, service),
        wrong_whole("replicas", replicas),
        wrong_share("blocked_share", blocked_share),
        wrong_process(process, variation),
    )
    if when_full not in (_WAIT, _LOSE):
        raise InvalidInput(f"when_full is {short(when_full)}, expected {_WAIT!r} or {_LOSE!r}")
    # Known for "other", and only there.
    spread = float(_VARIATIONS.get(ServiceProcess(process), variation))  # type: ignore[arg-type]
    (arriving, _, fastest), (served, slowest, _) = ends(arrival), ends(service)
    load = arriving / (replicas * served)
    worst = fastest / (replicas * slowest) if slowest > 0.0 else None

    def room(utilisation: float) -> int | None:
        if utilisation >= 1.0:
            return None
        places = fewest_places(utilisation, spread, blocked_share, waits=when_full == _WAIT)
        return None if places is None else max(places - 1, 1)

    at_value, at_worst = room(load), None if worst is None else room(worst)
    notices = [] if worst is not None else [Notice.of(Code.SATURATED, "unknown")]
    if at_value is None:
        notices.append(_no_size(load, "", blocked_share))
    elif worst is not None and at_worst is None:
        notices.append(_no_size(worst, "perhaps", blocked_share))
    if spread > 1.0:
        notices.append(Notice.of(Code.UNEVEN_SERVICE, variation=spread))
    return BufferSize(
        capacity=at_worst,
        capacity_at_value=at_value,
        blocked_share=float(blocked_share),
        utilisation=load,
        worst_utilisation=worst,
        variation=spread,
        notices=(*notices, model_notice([spread], when_full)),
    )


def suggest_replicas(
    arrival: Quantity, service: Quantity, *, utilisation: float = 0.8, most: int | None = None
) -> ReplicaCount:
    """Suggest how many replicas of a stage keep its utilisation down.

    Parameters
    ----------
    arrival
        Items that arrive per second; a number is known exactly.
    service
        Service rate of one replica, in items per second. It is assumed to hold for any number of
        replicas, but they may slow one another down if they share processors, memory or a lock.
    utilisation
        Highest utilisation of a replica, in (0, 1).
    most
        How many replicas the processors can run; None if unknown.

    Returns
    -------
    ReplicaCount
        The fewest sufficient, up to ``most``, for arrivals as fast and service as slow as their
        intervals allow, and at the estimated rates.

    Raises
    ------
    InvalidInput
        When an argument is out of range, or the confidences differ.

    Examples
    --------
    >>> print(suggest_replicas(1000.0, 450.0))
    3 replicas: utilisation 80% at most
    """
    refuse(
        *_wrong_rates(arrival, service),
        wrong_share("utilisation", utilisation),
        [] if most is None else wrong_whole("most", most),
    )
    (arriving, _, fastest), (served, slowest, _) = ends(arrival), ends(service)

    def fewest(arriving: float, served: float) -> int:
        return max(rounded_up(arriving / (served * utilisation)), 1)

    at_value, at_worst = fewest(arriving, served), None
    notices = [] if slowest > 0.0 else [Notice.of(Code.SATURATED, "unknown")]
    if slowest > 0.0:
        at_worst = fewest(fastest, slowest)
    needed = max(at_value, at_worst or 1)
    if most is not None and most < needed:  # more would have to share the processors
        possible = "may be" if at_value <= most else "would be"
        limit = Notice.of(Code.PROCESSORS_LIMIT, needed=needed, possible_=possible, most=most)
        notices.append(limit)
        at_value, at_worst = min(at_value, most), at_worst and min(at_worst, most)
    return ReplicaCount(
        replicas=at_worst,
        replicas_at_value=at_value,
        utilisation=float(utilisation),
        most=most,
        notices=tuple(notices),
    )


def model_notice(variations: Iterable[float], when_full: str = _WAIT) -> Notice:
    """Return the Notice with the assumptions of one size, or of the sizes of several stages."""
    models = ", ".join(dict.fromkeys(_MODELS.get(variation, _GENERAL) for variation in variations))
    full = "a sender that finds it full waits"
    if when_full == _LOSE:
        full = "an item that finds it full is lost"
    return Notice.of(Code.QUEUE_MODEL, models=models, full_=full, when_full=when_full)


def _wrong_rates(arrival: Any, service: Any) -> Iterator[list[str]]:
    yield wrong_quantity("arrival", arrival, zero=True)
    yield wrong_quantity("service", service)
    yield wrong_confidences("arrival and service", (arrival, service))


def _no_size(load: float, case: str, blocked_share: float) -> Notice:
    """Say why no size is enough at a utilisation that is known, or only possible ("perhaps")."""
    figures = {"is_": "may be" if case else "is", "utilisation": load}
    figures |= {"blocked_share": blocked_share}
    if load < 1.0:
        return Notice.of(Code.HUGE_BUFFER, case, most=MOST_PLACES, **figures)
    least = 1.0 - 1.0 / load
    blocked = f", and at least {percent(least)} of arrivals are blocked" if least else ""
    return Notice.of(Code.SATURATED, case, blocked_=blocked, least_blocked=least, **figures)
