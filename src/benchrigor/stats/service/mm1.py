"""Queues of the textbook that are never full: chances to go on without waiting, mean waits."""

from __future__ import annotations

import math

from benchrigor.stats.service.arguments import no_number, no_whole, refuse

__all__ = [
    "items_in",
    "mean_wait_s",
    "mean_waiting",
    "unblocked_read_probability",
    "unblocked_write_probability",
]

_ROUNDING = 1e-9
"""So near to a whole number, relative to it, a product of measured numbers is that number."""


def unblocked_read_probability(
    *, utilisation: float, service_rate: float, period_s: float
) -> float:
    """Return the chance that a stage never waits for input during a period, in an M/M/1 queue.

    It is a lower bound from some five items a period on: all items of the period are asked to be
    there at its start, and those that arrive meanwhile are ignored. Where a period holds many
    items the truth is far above it. By simulation, with exponential service: at utilisation 0.8
    and 32 items a period 13 % of the periods went without waiting, where the formula says 0.08 %;
    at 0.95 and 512 items 18 %, where it says 4e-12. Of fewer items the stage may, by luck, serve
    more than the formula asks for, and run out: at 0.5 and one item a period a third went without
    waiting, where it says a half.

    Parameters
    ----------
    utilisation
        Rate at which items arrive over the rate at which the stage serves. From 1 on the queue
        grows without end, and the chance is 1.
    service_rate
        Items per second that the stage serves while it does not wait.
    period_s
        Length of the period, in seconds.

    Raises
    ------
    InvalidInput
        When the utilisation is no number of at least 0, or another argument none above 0.

    Notes
    -----
    Source: Beard & Chamberlain, "Run Time Approximation of Non-blocking Service Rates for
    Streaming Systems" (2015), equations 1a and 1b: utilisation^k with k = ceil(service_rate *
    period_s), the chance that an M/M/1 queue holds k items or more.

    Examples
    --------
    >>> round(unblocked_read_probability(utilisation=0.8, service_rate=1e4, period_s=0.0032), 4)
    0.0008
    """
    refuse(
        no_number(utilisation, "utilisation", zero=True),
        *_no_period(service_rate, period_s),
    )
    return min(float(utilisation), 1.0) ** items_in(service_rate, period_s)


def unblocked_write_probability(
    *, utilisation: float, service_rate: float, period_s: float, capacity: int
) -> float:
    """Return the chance that a stage never waits to put its output during a period, in M/M/1.

    A lower bound as `unblocked_read_probability` is, and where that is: room for all items of the
    period is asked for at its start, and what the reader takes out meanwhile is ignored.

    Parameters
    ----------
    utilisation
        Of the reader of the queue: rate at which the stage puts items into it over the rate at
        which they could be taken out. From 1 on the queue is full for good, and the chance is 0.
    service_rate
        Items per second that the stage puts into the queue while it does not wait.
    period_s
        Length of the period, in seconds.
    capacity
        Items that the queue holds, at least 1.

    Raises
    ------
    InvalidInput
        When the utilisation is no number of at least 0, the rate or the period none above 0, or
        the capacity no whole number of at least 1.

    Notes
    -----
    Source: Beard & Chamberlain, "Run Time Approximation of Non-blocking Service Rates for
    Streaming Systems" (2015), equations 1a, 1c and 1d: 1 - utilisation^(capacity - k + 1) with
    k = ceil(service_rate * period_s), the chance that an M/M/1 queue holds capacity - k items at
    most; 0 where k is more than the capacity.

    Examples
    --------
    >>> unblocked_write_probability(utilisation=0.5, service_rate=100.0, period_s=0.03, capacity=4)
    0.75
    >>> unblocked_write_probability(utilisation=0.5, service_rate=100.0, period_s=0.05, capacity=4)
    0.0
    """
    refuse(
        no_number(utilisation, "utilisation", zero=True),
        *_no_period(service_rate, period_s),
        no_whole(capacity, "capacity"),
    )
    room = int(capacity) - items_in(service_rate, period_s) + 1
    if room <= 0 or utilisation >= 1.0:
        return 0.0
    # In this form nothing cancels where the utilisation is near 1.
    return -math.expm1(room * math.log(utilisation)) if utilisation else 1.0


def mean_waiting(utilisation: float, *, variation: float = 1.0) -> float:
    """Return how many items wait on average in front of a stage whose queue is never full.

    Parameters
    ----------
    utilisation
        Arrival rate over service rate; from 1 on the answer is infinite.
    variation
        Squared coefficient of variation of the service times: 1 for exponential (M/M/1), 0 for
        deterministic service (M/D/1).

    Raises
    ------
    InvalidInput
        When an argument is no number of at least 0.

    Notes
    -----
    Pollaczek (1930) and Khinchine (1932): rho^2 (1 + variation) / (2 (1 - rho)), for Poisson
    arrivals; the item that is served does not count.

    Examples
    --------
    >>> mean_waiting(0.5), mean_waiting(0.5, variation=0.0)
    (0.5, 0.25)
    """
    refuse(
        no_number(utilisation, "utilisation", zero=True),
        no_number(variation, "variation", zero=True),
    )
    if utilisation >= 1.0:
        return math.inf
    return float(utilisation**2 * (1.0 + variation) / (2.0 * (1.0 - utilisation)))


def mean_wait_s(*, arrival_rate: float, service_rate: float, variation: float = 1.0) -> float:
    """Return how long an item waits on average before it is served, in seconds.

    Parameters
    ----------
    arrival_rate, service_rate
        In items per second. The answer is infinite unless the stage serves more than arrive.
    variation
        As for `mean_waiting`.

    Raises
    ------
    InvalidInput
        When a rate is no number above 0, or the variation none of at least 0.

    Notes
    -----
    `mean_waiting` over the arrival rate (Little 1961).

    Examples
    --------
    >>> mean_wait_s(arrival_rate=50.0, service_rate=100.0)
    0.01
    """
    refuse(
        no_number(arrival_rate, "arrival_rate"),
        no_number(service_rate, "service_rate"),
        no_number(variation, "variation", zero=True),
    )
    waiting = mean_waiting(arrival_rate / service_rate, variation=variation)
    return float(waiting / arrival_rate)


def items_in(service_rate: float, period_s: float) -> int:
    """Return how many items a stage that never waits needs for a period (equation 1a).

    Examples
    --------
    >>> items_in(100.0, 0.03), items_in(100.0, 0.031)  # 100.0 * 0.03 is 3.0 only by rounding
    (3, 4)
    """
    return rounded_up(float(service_rate) * float(period_s))


def rounded_up(number: float) -> int:
    """Return the least whole number that a measured number above 0 does not exceed."""
    nearest = round(number)
    exact = math.isclose(number, nearest, rel_tol=_ROUNDING, abs_tol=0.0)
    return nearest if exact else math.ceil(number)


def _no_period(service_rate: object, period_s: object) -> tuple[tuple[str, ...], ...]:
    return no_number(service_rate, "service_rate"), no_number(period_s, "period_s")
