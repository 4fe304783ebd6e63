"""Numbers, and estimates of numbers, at the door of the arithmetic of queues."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate, Notice
from benchrigor.model.pipelines import Quantity
from benchrigor.model.series import short
from benchrigor.stats.contrasts import Side, exact_side, side_of

__all__ = [
    "ends",
    "joined_notices",
    "mixed_confidences",
    "no_number",
    "no_quantity",
    "no_whole",
    "refuse",
    "shared_confidence",
    "side_at",
    "size_of",
]

_SMALLEST, _LARGEST = 1e-150, 1e150
"""Between them products and quotients of two numbers stay in the range of a double."""
_CONFIDENCE = 0.95
"""Of an interval between numbers that are all known exactly, and so has no width."""


def refuse(*findings: tuple[str, ...]) -> None:
    """Raise InvalidInput with all that was found; do nothing where nothing was."""
    problems = [problem for found in findings for problem in found]
    if problems:
        raise InvalidInput(problems)


def no_number(number: object, name: str, *, zero: bool = False) -> tuple[str, ...]:
    """Say that something is no finite number above 0, or none from 0 on; else nothing.

    Examples
    --------
    >>> no_number("fast", "rate"), no_number(2.0, "rate")
    (("rate is 'fast', expected a number above 0",), ())
    """
    wanted = "a number of at least 0" if zero else "a number above 0"
    if isinstance(number, bool) or not isinstance(number, Real):
        return (f"{name} is {short(number)}, expected {wanted}",)
    # Compared as it is: a whole number may be too large to be made a float.
    size: Any = number
    if (0 if zero else _SMALLEST) <= size <= _LARGEST:
        return ()
    if 0 < size < _SMALLEST:
        wanted = f"one of at least {_SMALLEST:g}"
    if _LARGEST < size < math.inf:
        wanted = f"{wanted}, up to {_LARGEST:g}"
    return (f"{name} is {short(number)}, expected {wanted}",)


def no_whole(number: object, name: str, *, least: int = 1) -> tuple[str, ...]:
    """Say that something is no whole number from ``least`` on; else nothing."""
    whole = isinstance(number, Integral) and not isinstance(number, bool)
    if whole and number >= least:  # type: ignore[operator]  # found to be a number
        return ()
    return (f"{name} is {short(number)}, expected a whole number of at least {least}",)


def no_quantity(quantity: object, name: str, *, zero: bool = False) -> tuple[str, ...]:
    """Say that something is neither such a number nor an Estimate of one; else nothing."""
    if not isinstance(quantity, Estimate):
        if isinstance(quantity, Real):
            return no_number(quantity, name, zero=zero)
        wanted = "a number of at least 0" if zero else "a number above 0"
        return (f"{name} is {short(quantity)}, expected {wanted} or an Estimate",)
    value, low, high = quantity.value, quantity.low, quantity.high
    if not all(isinstance(each, Real) for each in (value, low, high, quantity.confidence)):
        return (f"{name} is {short(quantity)}, expected numbers in it",)
    if not 0.0 < quantity.confidence < 1.0:
        return (f"{name}.confidence is {quantity.confidence!r}, expected between 0 and 1",)
    if not -_LARGEST <= low <= value <= high <= _LARGEST:
        return (
            f"{name} is {value!r} in [{low!r}, {high!r}], expected a value within a finite "
            "interval",
        )
    return no_number(value, f"{name}.value", zero=zero)


def mixed_confidences(quantities: Iterable[Quantity], name: str) -> tuple[str, ...]:
    """Say that the confidences of estimates differ; else nothing."""
    found = sorted({each.confidence for each in quantities if isinstance(each, Estimate)})
    if len(found) <= 1:
        return ()
    said = " and ".join(f"{confidence:g}" for confidence in found)
    return (f"{name} have confidences {said}, expected one: estimate all with the same",)


def shared_confidence(quantities: Iterable[Quantity]) -> float:
    """Return the confidence of the estimates among quantities; 0.95 where all are exact."""
    found = (each.confidence for each in quantities if isinstance(each, Estimate))
    return next(found, _CONFIDENCE)


def ends(quantity: Quantity) -> tuple[float, float, float]:
    """Return the value and both ends of the interval, which are one for an exact number.

    Examples
    --------
    >>> ends(3)
    (3.0, 3.0, 3.0)
    """
    if isinstance(quantity, Estimate):
        return quantity.value, quantity.low, quantity.high
    return (float(quantity),) * 3


def side_at(quantity: Quantity) -> Side:
    """Return the value with its errors downwards and upwards, none for an exact number."""
    if isinstance(quantity, Estimate):
        return side_of(quantity, symmetric=False)
    return exact_side(float(quantity))


def size_of(quantities: Iterable[Quantity]) -> tuple[int, float]:
    """Return ``n`` and ``n_effective`` of all estimates together; 0 where all is exact."""
    estimates = [each for each in quantities if isinstance(each, Estimate)]
    return sum(each.n for each in estimates), sum(each.n_effective for each in estimates)


def joined_notices(quantities: Iterable[Quantity]) -> tuple[Notice, ...]:
    """Return the notices of all estimates, each once."""
    found: list[Notice] = []
    for each in quantities:
        if isinstance(each, Estimate):
            found.extend(notice for notice in each.notices if notice not in found)
    return tuple(found)
