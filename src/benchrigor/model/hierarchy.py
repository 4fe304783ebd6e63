"""Invocations: the one door for their readings, and how the variance splits between and within."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model.series import Floats, as_series

__all__ = ["VarianceSplit", "as_invocations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSplit:
    """Where the variance of a program's readings arises.

    Parameters
    ----------
    level
        Mean of the invocations' levels, in the readings' unit.
    between
        Variance of the invocations' true levels, in squared units; 0 where the readings inside
        them explain all the spread that was seen.
    within
        Variance that a single reading of an invocation contributes, in squared units: the mean
        long-run variance, so that a level of n readings has variance within/n. Where the warm-up
        was cut it contains the price of the transients fitted beside the level.
    invocations
        How many contributed.
    readings
        Harmonic mean of the numbers of readings used of each.
    """

    level: float
    between: float
    within: float
    invocations: int
    readings: float


def as_invocations(invocations: object) -> tuple[Floats, ...]:
    """Check the readings of invocations and return them as read-only float64 arrays.

    Parameters
    ----------
    invocations
        A sequence of series (`as_series`), one per invocation; their lengths may differ.

    Raises
    ------
    InvalidInput
        When there is no invocation; else naming each series that holds no readings.

    Examples
    --------
    >>> [series.size for series in as_invocations([[1.0, 2.0], [3.0]])]
    [2, 1]
    """
    if isinstance(invocations, str | bytes) or not isinstance(invocations, Sequence | np.ndarray):
        raise InvalidInput(f"invocations is {invocations!r}, expected a sequence of series")
    if len(invocations) == 0:
        raise InvalidInput("invocations is empty, expected at least one series")
    checked: list[Floats] = []
    problems: list[str] = []
    for index, values in enumerate(invocations):
        try:
            checked.append(as_series(values, name=f"invocations[{index}]"))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return tuple(checked)
