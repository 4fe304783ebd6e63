"""Variance components: how much of the variance lies between invocations, how much within."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import (
    Code,
    LevelFit,
    Notice,
    VarianceSplit,
)
from benchrigor.stats.series.level import FEWEST

__all__ = ["readings_per_invocation", "split_of"]

_POSITIVE = math.ulp(0.0)


def split_of(fits: Sequence[LevelFit]) -> VarianceSplit:
    """Split the variance of invocations, whose levels were fitted, into its two components.

    between = var(levels) - mean(se_i^2), floored at 0, and within = mean(n_i se_i^2), with se_i
    the standard error of the i-th level by its long-run variance (Kalibera & Jones 2013).
    """
    if len(fits) < FEWEST:
        notice = Notice.refusal(
            Code.FEW_INVOCATIONS,
            "One invocation allows a number: how they differ cannot be known.",
            invocations=len(fits),
            wanted=FEWEST,
        )
        raise NotEstimable(notice)
    levels = np.array([fit.level for fit in fits])
    sizes = np.array([fit.n for fit in fits], dtype=np.float64)
    squares = np.array([fit.standard_error for fit in fits]) ** 2
    return VarianceSplit(
        level=float(levels.mean()),
        between=max(float(levels.var(ddof=1) - squares.mean()), 0.0),
        within=float((squares * sizes).mean()),
        invocations=len(fits),
        readings=len(fits) / math.fsum(1.0 / sizes),
    )


def readings_per_invocation(
    split: VarianceSplit, *, start_cost: float, reading_cost: float, longest: int
) -> int:
    """Return how many readings of each invocation give the narrowest interval for the money.

    Parameters
    ----------
    split
        Of a run, `Analysis.split`.
    start_cost
        Of one more invocation until its first reading that counts: start and warm-up, at least 0.
    reading_cost
        Of one more reading, in the same unit, more than 0.
    longest
        The most readings that an invocation may have, at least 2.

    Returns
    -------
    int
        sqrt(start_cost/reading_cost * within/between), within 2 and ``longest``: without
        variance between invocations starting one more is never worth its price.

    Raises
    ------
    InvalidInput
        When an argument is out of range.

    Notes
    -----
    Source: Kalibera & Jones 2013, the optimum of cost times variance.

    Examples
    --------
    >>> split = VarianceSplit(level=1.0, between=1e-4, within=25e-4, invocations=10, readings=200.0)
    >>> readings_per_invocation(split, start_cost=16.0, reading_cost=1.0, longest=1000)
    20
    """
    problems = _out_of_range("start_cost", start_cost, 0.0, "a finite number, at least 0")
    problems += _out_of_range("reading_cost", reading_cost, _POSITIVE, "a finite number above 0")
    if isinstance(longest, bool) or not isinstance(longest, Integral) or longest < FEWEST:
        problems.append(f"longest is {longest!r}, expected a whole number, at least {FEWEST}")
    if problems:
        raise InvalidInput(problems)
    if split.within == 0.0:
        return FEWEST
    if split.between == 0.0:
        return int(longest)
    # Each ratio first: products of tiny variances leave the range of a double.
    best = math.sqrt(split.within / split.between) * math.sqrt(start_cost / reading_cost)
    return max(FEWEST, round(min(best, longest)))


def _out_of_range(name: str, value: float, least: float, expected: str) -> list[str]:
    number = isinstance(value, Real) and not isinstance(value, bool)
    right = number and least <= float(value) < math.inf
    return [] if right else [f"{name} is {value!r}, expected {expected}"]
