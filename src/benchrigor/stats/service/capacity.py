"""How much room a queue should have, and how many replicas a stage, for the rates it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Notice, Severity
from benchrigor.model.pipeline import BufferSize, Quantity, ReplicaCount
from benchrigor.model.series import short
from benchrigor.model.service import ServiceProcess
from benchrigor.model.text import counted, percent
from benchrigor.stats.service.arguments import (
    ends,
    mixed_confidences,
    no_number,
    no_quantity,
    no_whole,
    refuse,
)
from benchrigor.stats.service.mg1k import fewest_places, follow, no_variation
from benchrigor.stats.service.mm1 import rounded_up

__all__ = [
    "assumed",
    "no_process",
    "no_share",
    "suggest_buffer",
    "suggest_replicas",
    "variation_of",
]

WAIT, LOSE = "wait", "lose"

_MOST_PLACES = 1_000_000
_AT_VALUE_AND_AT_WORST = Severity.REFUSAL, Severity.WARNING
_MODELS = {0.0: "M/D/1/K", 1.0: "M/M/1/K"}
_GENERAL = "M/G/1/K with gamma service times"
_VARIATIONS = {ServiceProcess.DETERMINISTIC: 0.0, ServiceProcess.EXPONENTIAL: 1.0}


def suggest_buffer(
    arrival: Quantity,
    service: Quantity,
    *,
    process: ServiceProcess | str = ServiceProcess.EXPONENTIAL,
    variation: float | None = None,
    replicas: int = 1,
    blocked_share: float = 0.01,
    when_full: str = WAIT,
) -> BufferSize:
    """Suggest how many items the queue in front of a stage should hold.

    Parameters
    ----------
    arrival
        Items that arrive per second; a number is known exactly.
    service
        Items per second that each replica serves while it does not wait.
    process
        What the service times look like: "exponential" (M/M/1/K), "deterministic" (M/D/1/K) or
        "other" (M/G/1/K with gamma service times).
    variation
        Squared coefficient of variation of the service times, from 0 to 100; with "other" only,
        and needed there.
    replicas
        How many share the arrivals, each with a queue of its own. One queue for all needs no
        more room than theirs together.
    blocked_share
        Share of arrivals that may find the queue full, in (0, 1).
    when_full
        "wait": whoever finds the queue full waits for room, and brings nothing else meanwhile,
        as a stage does; the time spent so is held below the share, too. "lose": an item that
        finds it full is turned away, as in the textbook.

    Returns
    -------
    BufferSize
        The smallest that does: with arrivals as fast and service as slow as their intervals
        allow, and at the estimated rates. At a utilisation of 1 or more, where no size does, and
        beyond 1,000,000 items it is None, and a Notice says why.

    Raises
    ------
    InvalidInput
        When an argument is none of what is asked for above, or the confidences differ.

    Notes
    -----
    K of `benchrigor.stats.service.mg1k` counts the item in service, which takes no room in the
    queue: the size is K - 1, and at least 1.

    Assumed, as a Notice says: arrivals are random (Poisson), and service times independent of
    each other. Arrivals in bursts need more room, those at even intervals less. Arrivals that
    pile up outside while the queue is full, rather than pausing, find it full up to
    1 / (1 - utilisation) times as often.

    "other" takes service times to be gamma distributed. Uniform, lognormal, two-valued and
    shifted exponential ones of the same variation up to 1 needed the same size within one item
    (utilisation 0.5 to 0.95, blocked share 0.1 to 5 %). Above 1 the tail of the service times
    matters too: lognormal ones, whose tail is long, needed up to 15 % more room for a blocked
    share of 1 % at a variation of 2 to 4, and 30 % more at 10; for 0.1 % they needed up to 1.7
    and 2.4 times as much.

    Where both rates have intervals of 95 %, the size for the worst of both is enough in at least
    95 % of such cases, as far as the assumptions hold.

    Examples
    --------
    >>> print(suggest_buffer(80.0, 100.0))
    room for 13 items: at most 1% blocked · utilisation 80%
    >>> print(suggest_buffer(80.0, 100.0, process="deterministic"))
    room for 8 items: at most 1% blocked · utilisation 80%
    """
    refuse(
        *_no_rates(arrival, service),
        no_whole(replicas, "replicas"),
        no_share(blocked_share, "blocked_share"),
    )
    if when_full not in (WAIT, LOSE):
        raise InvalidInput(f"when_full is {short(when_full)}, expected {WAIT!r} or {LOSE!r}")
    spread = variation_of(process, variation)
    (arriving, _, fastest), (served, slowest, _) = ends(arrival), ends(service)
    load = arriving / (replicas * served)
    worst = fastest / (replicas * slowest) if slowest > 0.0 else None
    rooms = [
        None if used is None else _room(used, spread, blocked_share, when_full)
        for used in (load, worst)
    ]
    return BufferSize(
        capacity=rooms[1],
        capacity_at_value=rooms[0],
        blocked_share=float(blocked_share),
        utilisation=load,
        worst_utilisation=worst,
        variation=spread,
        notices=(
            *_out_of_reach((load, worst), rooms, blocked_share),
            *_uneven(spread),
            assumed([spread], when_full),
        ),
    )


def suggest_replicas(
    arrival: Quantity, service: Quantity, *, utilisation: float = 0.8
) -> ReplicaCount:
    """Suggest how many replicas of a stage keep its utilisation down.

    Parameters
    ----------
    arrival
        Items that arrive per second; a number is known exactly.
    service
        Items per second that one replica serves while it does not wait.
    utilisation
        The most that is wanted of each, above 0 and below 1.

    Returns
    -------
    ReplicaCount
        The fewest that do: with arrivals as fast and service as slow as their intervals allow,
        and at the estimated rates. That each replica serves as fast beside the others as alone
        is assumed; they may share processors, memory or a lock.

    Raises
    ------
    InvalidInput
        When a rate is neither an Estimate nor a number of usable size, the utilisation is out of
        range, or the confidences differ.

    Examples
    --------
    >>> print(suggest_replicas(1000.0, 450.0))
    3 replicas: utilisation 80% at most
    """
    refuse(*_no_rates(arrival, service), no_share(utilisation, "utilisation"))
    (arriving, _, fastest), (served, slowest, _) = ends(arrival), ends(service)
    return ReplicaCount(
        replicas=_replicas(fastest, slowest, utilisation) if slowest > 0.0 else None,
        replicas_at_value=_replicas(arriving, served, utilisation),
        utilisation=float(utilisation),
        notices=() if slowest > 0.0 else (_as_slow_as_can_be(),),
    )


def variation_of(process: object, variation: object) -> float:
    """Return the squared coefficient of variation of a service process.

    Parameters
    ----------
    process
        A `ServiceProcess`, or its name.
    variation
        Given for "other", and only there.

    Raises
    ------
    InvalidInput
        When the process is none, or the variation missing, out of range or given in vain.

    Examples
    --------
    >>> variation_of("exponential", None), variation_of("other", 0.3)
    (1.0, 0.3)
    """
    refuse(no_process(process, variation))
    known = ServiceProcess(str(process))
    if known is ServiceProcess.OTHER:
        return float(variation)  # type: ignore[arg-type]  # found to be a number
    return _VARIATIONS[known]


def no_process(process: object, variation: object) -> tuple[str, ...]:
    """Say that a process is none, or that its variation does not go with it; else nothing."""
    if not isinstance(process, str) or process not in list(ServiceProcess):
        known = ", ".join(repr(str(each)) for each in ServiceProcess)
        return (f"process is {short(process)}, expected one of {known}",)
    if process == ServiceProcess.OTHER and variation is None:
        return (
            "variation is None, expected the squared coefficient of variation of the service "
            "times, since process is 'other'",
        )
    if process == ServiceProcess.OTHER:
        return no_variation(variation)
    if variation is not None:
        return (
            f"variation is {short(variation)}, expected None unless process is 'other'; it is "
            f"{str(process)!r}",
        )
    return ()


def _no_rates(arrival: object, service: object) -> Iterator[tuple[str, ...]]:
    found = no_quantity(arrival, "arrival", zero=True), no_quantity(service, "service")
    yield from found
    if not any(found):
        yield mixed_confidences((arrival, service), "arrival and service")  # type: ignore[arg-type]


def no_share(share: object, name: str) -> tuple[str, ...]:
    """Say that something is no number strictly between 0 and 1; else nothing."""
    if no_number(share, name) or not share < 1.0:  # type: ignore[operator]  # found to be a number
        return (f"{name} is {short(share)}, expected a number between 0 and 1, both excluded",)
    return ()


def _replicas(arriving: float, served: float, utilisation: float) -> int:
    return max(rounded_up(arriving / (served * utilisation)), 1) if arriving else 1


def _room(load: float, variation: float, blocked_share: float, when_full: str) -> int | None:
    """Return the places to wait, besides the one to be served; at least 1, as queues have."""
    if load >= 1.0:
        return None
    places = fewest_places(_blocking(load, variation, when_full), blocked_share, _MOST_PLACES)
    return None if places is None else max(places - 1, 1)


def _blocking(load: float, variation: float, when_full: str) -> Callable[[int], float]:
    """Return the share blocked as a function of K: of arrivals, and of time where it is more."""
    chain = follow(load, variation)
    if when_full == LOSE:
        return chain.lost
    return lambda places: max(chain.waiting(places), chain.lost(places + 1))


def _out_of_reach(
    loads: tuple[float, float | None], rooms: Sequence[int | None], blocked_share: float
) -> Iterator[Notice]:
    """Say why there is no size: at the estimated rates, or else at worst."""
    if loads[1] is None:
        yield _as_slow_as_can_be()
    for load, room, severity in zip(loads, rooms, _AT_VALUE_AND_AT_WORST, strict=True):
        if load is not None and room is None:
            reason = _saturated if load >= 1.0 else _huge
            yield reason(load, severity, blocked_share)
            return


def _saturated(load: float, severity: Severity, blocked_share: float) -> Notice:
    least = 1.0 - 1.0 / load
    blocked = f", and {percent(least)} of arrivals or more are blocked" if least else ""
    return Notice(
        code=Code.SATURATED,
        severity=severity,
        sentence=(
            f"{_at(load, severity)}: a queue of any size fills up{blocked}. More replicas or "
            "faster service are needed."
        ),
        evidence={"utilisation": load, "least_blocked": least, "blocked_share": blocked_share},
    )


def _huge(load: float, severity: Severity, blocked_share: float) -> Notice:
    return Notice(
        code=Code.HUGE_BUFFER,
        severity=severity,
        sentence=(
            f"{_at(load, severity)}: even a queue for {counted(_MOST_PLACES)} items would be full "
            f"to more than {percent(blocked_share)} of arrivals. More replicas or faster service "
            "serve better."
        ),
        evidence={"utilisation": load, "blocked_share": blocked_share, "most": _MOST_PLACES},
    )


def _at(load: float, severity: Severity) -> str:
    return f"The utilisation {'is' if severity is Severity.REFUSAL else 'may be'} {percent(load)}"


def _as_slow_as_can_be() -> Notice:
    return Notice.warning(
        Code.SATURATED, "The interval of the service rate reaches 0: nothing is enough at worst."
    )


def _uneven(variation: float) -> Iterator[Notice]:
    if variation > 1.0:
        yield Notice.warning(
            Code.UNEVEN_SERVICE,
            f"Service times vary more than exponential ones ({variation:.3g} times the "
            "variance): the size depends on their tail, which is taken for a gamma "
            "distribution's. Allow for 30% more, and for twice as much where far less than "
            "1% may be blocked.",
            variation=variation,
        )


def assumed(variations: Iterable[float], when_full: str = WAIT) -> Notice:
    """Say what a size, or the sizes of several stages, take for granted."""
    models = ", ".join(dict.fromkeys(_MODELS.get(each, _GENERAL) for each in variations))
    full = "who finds it full waits" if when_full == WAIT else "what finds it full is lost"
    return Notice.note(
        Code.QUEUE_MODEL,
        f"Assumed ({models}): arrivals at random, service times independent, one server for "
        f"each queue, and {full}. Bursts need more room.",
        models=models,
        when_full=when_full,
    )
