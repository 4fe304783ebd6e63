"""Arithmetic with estimated rates: their sum, their ratio, and ratios of counts.

The interval of a sum or ratio comes from the standard errors of its parts, downwards and upwards
(MOVER; Zou & Donner 2008 for sums, Donner & Zou 2012 for ratios), with the degrees of freedom of
Welch (1947) and Satterthwaite (1946). The parts are taken for independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.checks import (
    listed,
    refuse,
    wrong_confidences,
    wrong_number,
    wrong_quantity,
    wrong_whole,
)
from benchrigor.model.estimate import Quantity, ends
from benchrigor.model.series import as_series, check_items
from benchrigor.stats.comparison.fieller_mover import (
    Contrast,
    UncertainValue,
    exact_value,
    ratio_of,
    uncertain_value,
)
from benchrigor.stats.series.interval import (
    LONG_RUN_VARIANCE,
    StandardError,
    check_confidence,
    satterthwaite,
    scale,
    t_interval,
)
from benchrigor.stats.statistic import estimate_rate

MOVER = "MOVER"

# Confidence of an estimate made of exact numbers alone; its interval has no width.
_CONFIDENCE = 0.95
_FEWEST = 2
# A product of measured numbers this close to a whole number, relative to it, is that number.
_ROUNDING = 1e-9


def sum_rates(estimates: Iterable[Quantity]) -> Estimate:
    """Estimate the sum of independent rates, of a stage's input queues or of its replicas.

    Parameters
    ----------
    estimates
        One or more, in one unit and with one confidence; a number is known exactly.

    Returns
    -------
    Estimate
        With the sizes and the notices of all parts. Its interval is Welch's for symmetric parts,
        and Zou & Donner's (2008) for many degrees of freedom. A single estimate is returned as it
        is.

    Raises
    ------
    InvalidInput
        When the list is empty, or a part is neither an Estimate nor a number from 0 on.

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
    parts = listed(estimates, "estimates", "Estimate")
    refuse(
        *(
            wrong_quantity(f"estimates[{index}]", part, zero=True)
            for index, part in enumerate(parts)
        ),
        wrong_confidences("estimates", parts),
    )
    if len(parts) == 1 and isinstance(parts[0], Estimate):
        return parts[0]
    sides = [_side(part) for part in parts]
    value = math.fsum(side.value for side in sides)
    known = _estimates(parts)
    if not known:
        return _exact(value)
    freedoms = [side.degrees_of_freedom for side in sides]
    n, n_effective = _size(known)
    interval = t_interval(
        value,
        _error([side.below for side in sides], freedoms),
        known[0].confidence,
        above=_error([side.above for side in sides], freedoms),
        n=n,
        n_effective=n_effective,
        method=f"{MOVER}, sum of {len(parts)}",
    )
    return replace(interval, notices=joined_notices(known))


def utilisation_of(arrival: Quantity, service: Quantity, *, servers: int = 1) -> Estimate:
    """Estimate the utilisation of a stage: arrival rate over servers times service rate.

    Parameters
    ----------
    arrival
        Items that arrive per second; a number is known exactly.
    service
        Service rate of one server, in items per second.
    servers
        How many there are.

    Returns
    -------
    Estimate
        Above 1 if more arrive than the stage can serve.

    Raises
    ------
    InvalidInput
        When an argument is out of range, or the confidences differ.
    NotEstimable
        When the interval of the service rate reaches 0.

    Examples
    --------
    >>> utilisation_of(120.0, 50.0, servers=3).value
    0.8
    """
    refuse(
        wrong_quantity("arrival", arrival, zero=True),
        wrong_quantity("service", service),
        wrong_whole("servers", servers),
        wrong_confidences("arrival and service", (arrival, service)),
    )
    capacity = scale(service, servers) if isinstance(service, Estimate) else servers * service
    return quotient(arrival, capacity, name="service")


def filter_ratio(
    items_in: npt.ArrayLike, items_out: npt.ArrayLike, *, confidence: float = 0.95
) -> Estimate:
    """Estimate how many items a stage takes per item that it gives.

    Parameters
    ----------
    items_in, items_out
        Items that the stage took and gave in the same successive periods, shape (n,), from 0 on.
        With the items of the source as ``items_out`` it is the `PipelineStage.visits` of the stage.
    confidence
        Nominal coverage, in (0, 1).

    Returns
    -------
    Estimate
        All items in over all items out: a ratio of sums by the delta method with autocorrelation
        (`estimate_rate`). A period without items out is merged with the next ones; ``n`` counts
        the merged periods.

    Raises
    ------
    InvalidInput
        When the counts are not series, not equally long, or one is below 0.
    NotEstimable
        When items came out in fewer than two periods.

    Examples
    --------
    >>> filter_ratio([40, 44, 36, 40], [20, 21, 0, 39]).value
    2.0
    """
    given, taken = as_series(items_out, name="items_out"), as_series(items_in, name="items_in")
    check_confidence(confidence)
    for counts, name in ((taken, "items_in"), (given, "items_out")):
        check_items(counts, counts >= 0.0, "a count of at least 0", name=name)
    if taken.size != given.size:
        raise InvalidInput(
            f"items_in has {taken.size} periods and items_out {given.size}, expected as many"
        )
    # A group of periods ends with one that gave items; the last takes the remaining periods.
    stops = np.flatnonzero(given) + 1
    if stops.size < _FEWEST:
        figures = {"n": stops.size, "periods": given.size}
        raise NotEstimable(Notice.of(Code.TOO_FEW_READINGS, "periods", wanted_=_FEWEST, **figures))
    starts = np.concatenate([[0], stops[:-1]])
    taken, given = np.add.reduceat(taken, starts), np.add.reduceat(given, starts)
    estimate = estimate_rate(taken / given, confidence=confidence, weights=given)
    return replace(
        estimate, method=f"{LONG_RUN_VARIANCE}, ratio of sums", low=max(estimate.low, 0.0)
    )


def unblocked_read_probability(
    *, utilisation: float, service_rate: float, period_s: float
) -> float:
    """Return the chance that a stage never waits for input during a period, in an M/M/1 queue.

    A lower bound for periods of more than some five items, and a loose one for many: the formula
    wants all items of the period in the queue at its start. Of 32 items at utilisation 0.8, 13 % of
    simulated periods are free of waiting, by the formula 0.08 %. For one item it is too high.

    Parameters
    ----------
    utilisation
        Arrival rate over service rate, 0 or more; from 1 on the chance is 1.
    service_rate
        Items per second that the stage serves while it does not wait.
    period_s
        Length of the period, in seconds.

    Notes
    -----
    Beard & Chamberlain (2015), equations 1a and 1b: utilisation^k with
    k = ceil(service_rate * period_s), the chance that an M/M/1 queue holds k items or more.

    Examples
    --------
    >>> round(unblocked_read_probability(utilisation=0.8, service_rate=1e4, period_s=0.0032), 4)
    0.0008
    """
    refuse(*_wrong_period(utilisation, service_rate, period_s))
    return min(float(utilisation), 1.0) ** rounded_up(service_rate * period_s)


def unblocked_write_probability(
    *, utilisation: float, service_rate: float, period_s: float, capacity: int
) -> float:
    """Return the chance that a stage never waits to put its output during a period, in M/M/1.

    A lower bound like `unblocked_read_probability`: the formula wants room for all items of the
    period at its start.

    Parameters
    ----------
    utilisation
        Of the reader of the queue: rate at which the stage puts items over the rate at which the
        reader could take them, 0 or more; from 1 on the chance is 0.
    service_rate, period_s
        As of `unblocked_read_probability`.
    capacity
        Items that the queue holds, 1 or more.

    Notes
    -----
    Beard & Chamberlain (2015), equations 1a, 1c and 1d: 1 - utilisation^(capacity - k + 1) with
    k = ceil(service_rate * period_s), the chance that an M/M/1 queue holds capacity - k items or
    fewer; 0 if k exceeds the capacity.

    Examples
    --------
    >>> unblocked_write_probability(utilisation=0.5, service_rate=100.0, period_s=0.03, capacity=4)
    0.75
    """
    refuse(*_wrong_period(utilisation, service_rate, period_s), wrong_whole("capacity", capacity))
    room = int(capacity) - rounded_up(service_rate * period_s) + 1
    if room <= 0 or utilisation >= 1.0:
        return 0.0
    # This form avoids cancellation if the utilisation is near 1.
    return -math.expm1(room * math.log(utilisation)) if utilisation else 1.0


def quotient(top: Quantity, bottom: Quantity, *, name: str) -> Estimate:
    """Divide a quantity by another, which errors call by its name."""
    known = _estimates((top, bottom))
    if not known:
        return _exact(ends(top)[0] / ends(bottom)[0])
    contrast = Contrast(baseline=_side(bottom), candidate=_side(top))
    ratio = ratio_of(contrast, known[0].confidence, _size(known), f"{MOVER}, ratio")
    if ratio is None:
        _, low, high = ends(bottom)
        raise NotEstimable(Notice.of(Code.NO_RATIO, "quotient", name_=name, low=low, high=high))
    return replace(ratio, low=max(ratio.low, 0.0), notices=joined_notices(known))


def rounded_up(number: float) -> int:
    """Return the least whole number that a measured number above 0 does not exceed."""
    nearest = round(number)
    return nearest if math.isclose(number, nearest, rel_tol=_ROUNDING) else math.ceil(number)


def joined_notices(quantities: Iterable[Quantity]) -> tuple[Notice, ...]:
    """Return the different notices of all estimates."""
    found: list[Notice] = []
    for estimate in _estimates(quantities):
        found.extend(notice for notice in estimate.notices if notice not in found)
    return tuple(found)


def _estimates(quantities: Iterable[Quantity]) -> list[Estimate]:
    """Return the quantities that are not known exactly."""
    return [quantity for quantity in quantities if isinstance(quantity, Estimate)]


def _size(estimates: Sequence[Estimate]) -> tuple[int, float]:
    """Return ``n`` and ``n_effective`` of all together."""
    return sum(part.n for part in estimates), sum(part.n_effective for part in estimates)


def _side(quantity: Quantity) -> UncertainValue:
    """Return the value with its errors downwards and upwards."""
    if isinstance(quantity, Estimate):
        return uncertain_value(quantity, symmetric=False)
    return exact_value(float(quantity))


def _error(errors: Sequence[float], freedoms: Sequence[float]) -> StandardError:
    """Return the error of a sum of independent parts."""
    # Sorted, so that the order of the parts does not matter to the last digit.
    errors, freedoms = zip(*sorted(zip(errors, freedoms, strict=True)), strict=True)
    return StandardError(math.hypot(*errors), satterthwaite(errors, freedoms))


def _exact(value: float) -> Estimate:
    """Return an estimate of a value that is known without error."""
    return Estimate(
        value=value,
        low=value,
        high=value,
        confidence=_CONFIDENCE,
        n=0,
        n_effective=0.0,
        method="exact",
        standard_error=0.0,
        degrees_of_freedom=math.inf,
    )


def _wrong_period(utilisation: float, service_rate: float, period_s: float) -> list[list[str]]:
    return [
        wrong_number("utilisation", utilisation, zero=True),
        wrong_number("service_rate", service_rate),
        wrong_number("period_s", period_s),
    ]
