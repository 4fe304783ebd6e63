"""Numbers, and estimates of numbers, at the door: what is wrong with one, in a sentence."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from benchrigor.model.estimate import Estimate
from benchrigor.model.series import short

__all__ = ["no_number", "no_quantity", "no_whole"]

_SMALLEST, _LARGEST = 1e-150, 1e150
"""Between them products and quotients of two numbers stay in the range of a double."""


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
