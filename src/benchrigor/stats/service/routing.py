"""Where items go: how many a stage takes for each that it gives, and how many reach each stage."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Floats, Notice, as_series
from benchrigor.model.pipeline import Quantity
from benchrigor.stats.comparison.fieller_mover import Side
from benchrigor.stats.estimators.rate import estimate_rate
from benchrigor.stats.series.interval import METHOD, check_confidence, student_t
from benchrigor.stats.service.arguments import ends, mixed_confidences, no_quantity, refuse, side_at
from benchrigor.stats.service.flows import (
    EXACT,
    MOVER,
    exact,
    listed,
    quotient,
    reaches_zero,
    summed,
)

__all__ = ["filter_ratio", "filter_ratio_of", "visit_ratios"]

_OF_SUMS = f"{METHOD}, ratio of sums"
_FEWEST = 2


def filter_ratio(
    items_in: npt.ArrayLike, items_out: npt.ArrayLike, *, confidence: float = 0.95
) -> Estimate:
    """Estimate how many items a stage takes for each item that it gives.

    Parameters
    ----------
    items_in, items_out
        Items that the stage took, and gave, in the same successive periods, shape (n,), at least
        0. Items of the source instead of ``items_out`` give the stage's `PipelineStage.visits`.
    confidence
        Nominal coverage, in (0, 1).

    Returns
    -------
    Estimate
        All items in over all items out. ``n`` is the number of stretches in which any came out:
        a period in which none did is taken together with those after it.

    Raises
    ------
    InvalidInput
        When the counts are no series, not equally long, or one is below 0.
    NotEstimable
        When items came out in fewer than two periods.

    Notes
    -----
    A ratio of sums by the delta method with autocorrelation, as of `estimate_rate` with
    durations.

    Examples
    --------
    >>> filter_ratio([40, 44, 36, 40], [20, 21, 0, 39]).value
    2.0
    """
    given, taken = as_series(items_out, name="items_out"), as_series(items_in, name="items_in")
    check_confidence(confidence)
    refuse(_below_zero(taken, "items_in"), _below_zero(given, "items_out"))
    if taken.size != given.size:
        raise InvalidInput(
            f"items_in holds {taken.size} periods and items_out {given.size}, expected the same"
        )
    starts = _stretches(given)
    if starts.size < _FEWEST:
        raise NotEstimable(_nothing_out(int(np.count_nonzero(given)), given.size))
    taken, given = np.add.reduceat(taken, starts), np.add.reduceat(given, starts)
    found = estimate_rate(taken / given, confidence=confidence, weights=given)
    return replace(found, method=_OF_SUMS, low=max(found.low, 0.0))


def filter_ratio_of(rate_in: Quantity, rate_out: Quantity) -> Estimate:
    """Estimate the filter ratio of a stage from two rates that were estimated independently.

    Where both were counted in the same periods, `filter_ratio` is narrower: what moves both
    alike does not move their ratio.

    Parameters
    ----------
    rate_in, rate_out
        Items per second that the stage takes and gives; a number is known exactly.

    Raises
    ------
    InvalidInput
        When a rate is neither an Estimate nor a number of usable size, or they differ in
        confidence.
    NotEstimable
        When the rate out may be 0: its interval reaches it.

    Examples
    --------
    >>> filter_ratio_of(100.0, 20.0).value
    5.0
    """
    refuse(
        no_quantity(rate_in, "rate_in", zero=True),
        no_quantity(rate_out, "rate_out"),
        mixed_confidences((rate_in, rate_out), "rate_in and rate_out"),
    )
    return quotient(rate_in, rate_out, name="rate_out")


def visit_ratios(filter_ratios: Iterable[Quantity]) -> tuple[Estimate, ...]:
    """Estimate how many items reach each stage of a chain for each item of its source.

    Parameters
    ----------
    filter_ratios
        Of the stages in order, items in over items out, with one confidence; a number is known
        exactly.

    Returns
    -------
    tuple of Estimate
        One more than was given: 1 for the first stage, and so on; the last tells how many items
        leave the chain.

    Raises
    ------
    InvalidInput
        When a ratio is neither an Estimate nor a number above 0, or they differ in confidence.
    NotEstimable
        When a ratio may be 0: its interval reaches it.

    Notes
    -----
    One over the product of the ratios before, by the interval of a sum of logarithms (as in
    `sum_rates`).

    Examples
    --------
    >>> [round(each.value, 9) for each in visit_ratios([0.5, 4.0])]
    [1.0, 2.0, 0.5]
    """
    ratios = listed(filter_ratios, "filter_ratios", fewest=0)
    names = [f"filter_ratios[{index}]" for index in range(len(ratios))]
    refuse(
        *(no_quantity(ratio, name) for ratio, name in zip(ratios, names, strict=True)),
        mixed_confidences((each for each in ratios if isinstance(each, Estimate)), "filter_ratios"),
    )
    for ratio, name in zip(ratios, names, strict=True):
        if ends(ratio)[1] <= 0.0:
            raise NotEstimable(reaches_zero(ratio, name))
    logs = [_reciprocal_log(ratio) for ratio in ratios]
    inverses = [1.0 / ends(ratio)[0] for ratio in ratios]
    return tuple(
        _raised(
            summed(logs[:count], ratios[:count], f"{MOVER}, product of {count}"),
            math.prod(inverses[:count], start=1.0),
        )
        for count in range(len(ratios) + 1)
    )


def _reciprocal_log(ratio: Quantity) -> Side:
    value, low, high = ends(ratio)
    side = side_at(ratio)
    if not isinstance(ratio, Estimate):
        return replace(side, value=-math.log(value))
    quantile = student_t(side.degrees_of_freedom, ratio.confidence)
    return Side(
        value=-math.log(value),
        below=math.log(high / value) / quantile,
        above=math.log(value / low) / quantile,
        degrees_of_freedom=side.degrees_of_freedom,
    )


def _raised(logs: Estimate, value: float) -> Estimate:
    """Turn the sum of logarithms into the product, whose value is known to the last digit."""
    if logs.method == EXACT:
        return exact(value)
    error = logs.standard_error
    return replace(
        logs,
        value=value,
        low=value * math.exp(logs.low - logs.value),
        high=value * math.exp(logs.high - logs.value),
        standard_error=None if error is None else value * error,
    )


def _stretches(given: Floats) -> npt.NDArray[np.intp]:
    """Return where stretches start that each end with items out; the last takes what is left."""
    stops = np.flatnonzero(given > 0.0) + 1
    return np.concatenate([[0], stops[:-1]]).astype(np.intp) if stops.size else stops


def _below_zero(series: Floats, name: str) -> tuple[str, ...]:
    if float(series.min()) >= 0.0:
        return ()
    index = int(np.argmax(series < 0.0))
    return (f"{name}[{index}] is {float(series[index])!r}, expected a count of at least 0",)


def _nothing_out(found: int, periods: int) -> Notice:
    return Notice.refusal(
        Code.TOO_FEW_READINGS,
        f"Items came out in {found} of {periods} period{'' if periods == 1 else 's'}, "
        f"expected in at least {_FEWEST}.",
        n=found,
        periods=periods,
    )
