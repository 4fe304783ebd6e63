"""Variance components: how much of the variance lies between invocations, how much within."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchrigor.model import LevelFit, VarianceSplit
from benchrigor.model.checks import refuse, wrong_number, wrong_whole
from benchrigor.stats.series.level import MIN_FOR_VARIANCE


def split_variance(fits: Sequence[LevelFit]) -> VarianceSplit:
    """Split the variance of two or more invocations into its two components.

    between = var(levels) - mean(se_i^2), at least 0, and within = mean(n_i se_i^2), with se_i the
    standard error of the i-th level (Kalibera & Jones 2013).
    """
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
    """Return the readings per invocation that give the narrowest interval for a given cost.

    Parameters
    ----------
    split
        Variance components of a run, `Analysis.split`.
    start_cost
        Cost of one more invocation up to its first stable reading, at least 0.
    reading_cost
        Cost of one more reading, in the same unit, more than 0.
    longest
        The most readings that an invocation may have, at least 2.

    Returns
    -------
    int
        sqrt(start_cost/reading_cost * within/between), from 2 to ``longest``; ``longest``
        without variance between invocations.

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
    refuse(
        wrong_number("start_cost", start_cost, zero=True),
        wrong_number("reading_cost", reading_cost),
        wrong_whole("longest", longest, least=MIN_FOR_VARIANCE),
    )
    if split.within == 0.0:
        return MIN_FOR_VARIANCE
    if split.between == 0.0:
        return int(longest)
    # Two roots: the product of tiny variances would leave the range of a double.
    best = math.sqrt(split.within / split.between) * math.sqrt(start_cost / reading_cost)
    return max(MIN_FOR_VARIANCE, round(min(best, longest)))
