"""Quantities as arguments: numbers, and estimates of numbers, with all that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.estimate import Estimate
from benchrigor.model.series import short

Quantity = float | Estimate
"""A number that is known exactly, or one that was estimated."""

_SMALLEST, _LARGEST = 1e-150, 1e150
"""Between them products and quotients of two numbers stay in the range of a double."""


def refuse(*problems: Iterable[str]) -> None:
    """Raise InvalidInput with all problems; do nothing where there are none."""
    found = [each for several in problems for each in several]
    if found:
        raise InvalidInput(found)


def number_problems(number: Any, name: str, *, zero: bool = False) -> list[str]:
    """Return what is wrong with a number that must be above 0, or may be 0 as well.

    >>> number_problems("fast", "rate"), number_problems(0.0, "rate", zero=True)
    (["rate is 'fast', expected a number above 0 (1e-150 to 1e+150)"], [])
    """
    known = isinstance(number, Real) and not isinstance(number, bool)
    if known and (0 if zero else _SMALLEST) <= number <= _LARGEST:
        return []
    above_zero = f"a number above 0 ({_SMALLEST:g} to {_LARGEST:g})"
    wanted = f"a number from 0 to {_LARGEST:g}" if zero else above_zero
    return [f"{name} is {short(number)}, expected {wanted}"]


def whole_problems(number: Any, name: str) -> list[str]:
    """Return what is wrong with a whole number from 1 on."""
    whole = isinstance(number, Integral) and not isinstance(number, bool)
    if whole and number >= 1:
        return []
    return [f"{name} is {short(number)}, expected a whole number of at least 1"]


def share_problems(share: Any, name: str) -> list[str]:
    """Return what is wrong with a share strictly between 0 and 1."""
    if not number_problems(share, name) and share < 1.0:
        return []
    return [f"{name} is {short(share)}, expected a number between 0 and 1, both excluded"]


def quantity_problems(quantity: Any, name: str, *, zero: bool = False) -> list[str]:
    """Return what is wrong with such a number, or an estimate of one."""
    if not isinstance(quantity, Estimate):
        problems = number_problems(quantity, name, zero=zero)
        return [f"{each}, or an Estimate" for each in problems]
    value, low, high = quantity.value, quantity.low, quantity.high
    known = all(isinstance(each, Real) for each in (value, low, high, quantity.confidence))
    if not (known and -_LARGEST <= low <= value <= high <= _LARGEST):
        return [f"{name} is {value!r} in [{low!r}, {high!r}], expected a finite interval around it"]
    if not 0.0 < quantity.confidence < 1.0:
        return [f"{name}.confidence is {quantity.confidence!r}, expected between 0 and 1"]
    return number_problems(value, f"{name}.value", zero=zero)


def confidence_problems(quantities: Iterable[Quantity], name: str) -> list[str]:
    """Return what is wrong where estimates differ in confidence."""
    found = sorted({each.confidence for each in quantities if isinstance(each, Estimate)})
    if len(found) <= 1:
        return []
    listed = " and ".join(f"{confidence:g}" for confidence in found)
    return [f"{name} have confidences {listed}, expected one: estimate all with the same"]
