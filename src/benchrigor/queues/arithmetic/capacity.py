"""How much room a queue should have, and how many replicas a stage, for the rates it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import (
    refuse,
    wrong_confidences,
    wrong_quantity,
    wrong_share,
    wrong_whole,
)
from benchrigor.model.estimate import Quantity, ends
from benchrigor.model.notice import Code, Notice, Severity
from benchrigor.model.series import short
from benchrigor.model.text import counted, percent
from benchrigor.queues.arithmetic.finite_queue import MOST_PLACES, fewest_places
from benchrigor.queues.arithmetic.rate_arithmetic import rounded_up
from benchrigor.queues.data.pipeline import BufferSize, ReplicaCount, wrong_process
from benchrigor.queues.data.service import ServiceProcess

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
    notices = [] if worst is not None else [_service_may_be_0()]
    if at_value is None:
        notices.append(_no_size(load, Severity.REFUSAL, blocked_share))
    elif worst is not None and at_worst is None:
        notices.append(_no_size(worst, Severity.WARNING, blocked_share))
    return BufferSize(
        capacity=at_worst,
        capacity_at_value=at_value,
        blocked_share=float(blocked_share),
        utilisation=load,
        worst_utilisation=worst,
        variation=spread,
        notices=(*notices, *_uneven(spread), model_notice([spread], when_full)),
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
    notices = [] if slowest > 0.0 else [_service_may_be_0()]
    if slowest > 0.0:
        at_worst = fewest(fastest, slowest)
    if most is not None and most < max(at_value, at_worst or 1):
        notices.append(_processors_limit(at_value, at_worst, most))
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
    return Notice.note(
        Code.QUEUE_MODEL,
        f"Assumed ({models}): random arrivals, independent service times, one server for each "
        f"queue, and {full}. Bursts need more room.",
        models=models,
        when_full=when_full,
    )


def _wrong_rates(arrival: Any, service: Any) -> Iterator[list[str]]:
    yield wrong_quantity("arrival", arrival, zero=True)
    yield wrong_quantity("service", service)
    yield wrong_confidences("arrival and service", (arrival, service))


def _no_size(load: float, severity: Severity, blocked_share: float) -> Notice:
    """Say why no size is enough at a utilisation that is known, or only possible (a warning)."""
    verb = "is" if severity is Severity.REFUSAL else "may be"
    utilisation = f"The utilisation {verb} {percent(load)}"
    if load < 1.0:
        return Notice(
            code=Code.HUGE_BUFFER,
            severity=severity,
            sentence=(
                f"{utilisation}: even a queue for {counted(MOST_PLACES)} items would be full for "
                f"more than {percent(blocked_share)} of arrivals. Use more replicas or faster "
                "service."
            ),
            evidence={"utilisation": load, "blocked_share": blocked_share, "most": MOST_PLACES},
        )
    least = 1.0 - 1.0 / load
    blocked = f", and at least {percent(least)} of arrivals are blocked" if least else ""
    return Notice(
        code=Code.SATURATED,
        severity=severity,
        sentence=(f"{utilisation}: a queue of any size fills up{blocked}. {_FASTER}"),
        evidence={"utilisation": load, "least_blocked": least, "blocked_share": blocked_share},
    )


def _service_may_be_0() -> Notice:
    return Notice.warning(
        Code.SATURATED, "The interval of the service rate reaches 0: too few periods to size this."
    )


def _processors_limit(at_value: int, at_worst: int | None, most: int) -> Notice:
    """Say that more replicas would have to share the processors."""
    needed = max(at_value, at_worst or 1)
    possible = "may be" if at_value <= most else "would be"
    return Notice.warning(
        Code.PROCESSORS_LIMIT,
        f"{counted(needed)} replicas {possible} needed, and the processors can run "
        f"{counted(most)}: more would share them, and serve no faster. Use more processors, or "
        "make service cheaper.",
        needed=needed,
        most=most,
    )


def _uneven(variation: float) -> Iterator[Notice]:
    if variation > 1.0:
        yield Notice.warning(
            Code.UNEVEN_SERVICE,
            f"Service times have {variation:.3g} times the variance of exponential ones: the size "
            "depends on their tail, which is assumed to be that of a gamma distribution. Allow for "
            "30% more, and for twice as much where far less than 1% may be blocked.",
            variation=variation,
        )
