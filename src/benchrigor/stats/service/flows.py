"""Rates of stages added, and divided by one another, with the interval that comes of it.

Intervals are recovered from the errors of each part, downwards and upwards (MOVER; Zou & Donner
2008 for sums, Donner & Zou 2012 for ratios), with the degrees of freedom of Welch (1947) and
Satterthwaite (1946). The parts are taken for independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.pipeline import Quantity
from benchrigor.model.series import short
from benchrigor.stats.comparison.fieller_mover import Contrast, Side, ratio_of
from benchrigor.stats.series.interval import student_t
from benchrigor.stats.service.arguments import (
    ends,
    joined_notices,
    mixed_confidences,
    no_quantity,
    no_whole,
    refuse,
    shared_confidence,
    side_at,
    size_of,
)

__all__ = [
    "EXACT",
    "MOVER",
    "exact",
    "listed",
    "quotient",
    "reaches_zero",
    "sum_rates",
    "summed",
    "utilisation_of",
]

EXACT = "exact"
MOVER = "MOVER"


def sum_rates(estimates: Iterable[Quantity]) -> Estimate:
    """Estimate the sum of the rates of a stage's input queues, or of its replicas.

    Parameters
    ----------
    estimates
        At least one, in one unit and with one confidence; a rate that is known exactly may be
        given as a number. They are taken for independent.

    Returns
    -------
    Estimate
        ``n`` and ``n_effective`` are those of all parts together, and so are the notices. The
        interval is asymmetric where theirs are. A single estimate is returned as it is.

    Raises
    ------
    InvalidInput
        When there is none, one is neither an Estimate nor a number of at least 0, or they differ
        in confidence.

    Notes
    -----
    Standard errors downwards and upwards, each a reach of an interval over the quantile of its
    degrees of freedom, add up as squares; the degrees of freedom of the sum are those of
    Satterthwaite (1946), in each direction. For symmetric intervals that is the interval of
    Welch, for many degrees of freedom that of Zou & Donner (2008).

    Examples
    --------
    >>> one = Estimate(value=100.0, low=97.0, high=103.0, confidence=0.95, n=50,
    ...                n_effective=40.0, method="long-run-variance")
    >>> other = Estimate(value=50.0, low=46.0, high=54.0, confidence=0.95, n=50,
    ...                  n_effective=40.0, method="long-run-variance")
    >>> both = sum_rates([one, other])
    >>> both.value, round(both.low, 9), round(both.high, 9)
    (150.0, 145.0, 155.0)
    """
    parts = listed(estimates, "estimates")
    refuse(
        *(no_quantity(part, f"estimates[{index}]", zero=True) for index, part in enumerate(parts)),
        mixed_confidences((part for part in parts if isinstance(part, Estimate)), "estimates"),
    )
    if len(parts) == 1 and isinstance(parts[0], Estimate):
        return parts[0]
    return summed([side_at(part) for part in parts], parts, f"{MOVER}, sum of {len(parts)}")


def utilisation_of(arrival: Quantity, service: Quantity, *, servers: int = 1) -> Estimate:
    """Estimate which share of its capacity a stage uses.

    Parameters
    ----------
    arrival
        Items that arrive per second; a number is known exactly.
    service
        Items per second that each server serves while it does not wait.
    servers
        How many there are.

    Returns
    -------
    Estimate
        Arrival rate over ``servers`` times the service rate; more than 1 where more arrive than
        can be served.

    Raises
    ------
    InvalidInput
        When a rate is neither an Estimate nor a number of usable size, ``servers`` is no whole
        number of at least 1, or the confidences differ.
    NotEstimable
        When the service rate may be 0: its interval reaches it.

    Examples
    --------
    >>> utilisation_of(120.0, 50.0, servers=3).value
    0.8
    """
    refuse(
        no_quantity(arrival, "arrival", zero=True),
        no_quantity(service, "service"),
        no_whole(servers, "servers"),
        mixed_confidences((arrival, service), "arrival and service"),
    )
    return quotient(arrival, service, name="service", times=servers)


def quotient(top: Quantity, bottom: Quantity, *, name: str, times: int = 1) -> Estimate:
    """Divide one quantity by ``times`` another, both at least 0; see `utilisation_of`.

    Parameters
    ----------
    top, bottom
        Checked before.
    name
        What the error calls the bottom.
    times
        A number that is known exactly.

    Raises
    ------
    NotEstimable
        When the interval of the bottom reaches 0.
    """
    both = (top, bottom)
    value = ends(top)[0] / (times * ends(bottom)[0])
    if not any(isinstance(each, Estimate) for each in both):
        return exact(value)
    side = side_at(bottom)
    scaled = replace(
        side, value=times * side.value, below=times * side.below, above=times * side.above
    )
    contrast = Contrast(baseline=scaled, candidate=side_at(top))
    found = ratio_of(contrast, shared_confidence(both), size_of(both), f"{MOVER}, ratio")
    if found is None:
        raise NotEstimable(reaches_zero(bottom, name))
    return replace(found, low=max(found.low, 0.0), notices=joined_notices(both))


def listed(items: object, name: str, *, fewest: int = 1) -> list[Quantity]:
    """Return a sequence of quantities as a list; raise where it is none, or too short."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise InvalidInput(f"{name} is {short(items)}, expected a sequence of Estimate")
    found = list(items)
    if len(found) < fewest:
        raise InvalidInput(f"{name} is empty, expected at least one Estimate")
    return found


def summed(sides: Sequence[Side], parts: Sequence[Quantity], method: str) -> Estimate:
    """Add up sides that stand for the parts, which tell confidence, size and notices."""
    value = math.fsum(side.value for side in sides)
    if not any(isinstance(part, Estimate) for part in parts):
        return exact(value)
    confidence = shared_confidence(parts)
    freedoms = [side.degrees_of_freedom for side in sides]
    down, freedom_down = _error([side.below for side in sides], freedoms)
    up, freedom_up = _error([side.above for side in sides], freedoms)
    n, n_effective = size_of(parts)
    return Estimate(
        value=value,
        low=value - student_t(freedom_down, confidence) * down,
        high=value + student_t(freedom_up, confidence) * up,
        confidence=confidence,
        n=n,
        n_effective=n_effective,
        method=method,
        standard_error=(down + up) / 2.0,
        degrees_of_freedom=min(freedom_down, freedom_up),
        notices=joined_notices(parts),
    )


def _error(errors: Sequence[float], freedoms: Sequence[float]) -> tuple[float, float]:
    """Return the error of a sum and its degrees of freedom (Satterthwaite 1946)."""
    # Sorted, so that the order of the parts does not matter to the last digit either.
    whole = math.hypot(*sorted(errors))
    if whole == 0.0:
        return 0.0, math.inf
    shares = (
        (error / whole) ** 4 / freedom for error, freedom in zip(errors, freedoms, strict=True)
    )
    inverse = math.fsum(shares)
    return whole, 1.0 / inverse if inverse > 0.0 else math.inf


def exact(value: float) -> Estimate:
    """Return an estimate of what is known without error."""
    return Estimate(
        value=value,
        low=value,
        high=value,
        confidence=shared_confidence(()),
        n=0,
        n_effective=0.0,
        method=EXACT,
        standard_error=0.0,
        degrees_of_freedom=math.inf,
    )


def reaches_zero(quantity: Quantity, name: str) -> Notice:
    """Refuse to divide by what may be 0."""
    _, low, high = ends(quantity)
    return Notice.refusal(
        Code.NO_RATIO,
        f"{name} may be as little as {low:.3g}: nothing can be divided by it. Measure longer.",
        low=low,
        high=high,
    )
