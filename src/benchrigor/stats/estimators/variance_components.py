"""How many invocations, and how many readings of each: where the variance is, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt
from scipy import special

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import (
    Code,
    Estimate,
    LevelFit,
    Notice,
    VarianceSplit,
    as_invocations,
)
from benchrigor.stats.estimators.invocations import ENOUGH, METHOD, fit_invocations
from benchrigor.stats.series.interval import check_confidence, student_t
from benchrigor.stats.series.level import FEWEST

__all__ = ["readings_per_invocation", "required_invocations", "split_of", "split_variance"]

_PLANNED = 0.95
_POSITIVE = math.ulp(0.0)
_LARGEST_RATIO = 1e9


def split_variance(invocations: Sequence[npt.ArrayLike], *, trim: bool = False) -> VarianceSplit:
    """Split the variance of readings into what invocations and what single readings contribute.

    Parameters
    ----------
    invocations
        One series of readings per invocation, each of shape (n_i,), n_i >= 2; two at least.
    trim
        As for `estimate_invocations`.

    Raises
    ------
    InvalidInput
        When there is no invocation, or one of them holds no readings.
    NotEstimable
        When fewer than two invocations allow a number.

    Notes
    -----
    between = var(levels) - mean(se_i^2), floored at 0, and within = mean(n_i se_i^2), with se_i
    the standard error of the i-th level by its long-run variance. Source: Kalibera & Jones 2013.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> levels = rng.normal(5.0, 0.2, 200)
    >>> split = split_variance([rng.normal(level, 0.5, 100) for level in levels])
    >>> round(split.between**0.5, 1), round(split.within**0.5, 1)
    (0.2, 0.5)
    """
    fits, _ = fit_invocations(as_invocations(invocations), _PLANNED, trim)
    return split_of(fits)


def split_of(fits: Sequence[LevelFit]) -> VarianceSplit:
    """Split the variance of invocations whose levels were fitted.

    Raises
    ------
    NotEstimable
        When there are fewer than two.
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
        From `split_variance`.
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


def required_invocations(
    known: VarianceSplit | Estimate,
    target: float,
    *,
    confidence: float | None = None,
    readings: float | None = None,
) -> int:
    """Return how many invocations in all bring the relative half-width down to ``target``.

    Parameters
    ----------
    known
        A split of the variance, or an estimate over invocations.
    target
        Relative half-width wanted, more than 0.
    confidence
        Nominal coverage, in (0, 1); None for that of the estimate, or 0.95.
    readings
        Readings that are to count of each invocation, with a split only; None for as many as
        before.

    Returns
    -------
    int
        At least 10: with fewer a rare case is easily missed, however narrow the interval.

    Raises
    ------
    InvalidInput
        When an argument is out of range, or the estimate is not one over invocations, or its
        value is 0 (nothing is narrow relative to 0).

    Notes
    -----
    The least k with t_{k-1} s / sqrt(k) <= target times value, where s^2 = between + within/n is
    the variance of invocation levels.

    Examples
    --------
    >>> split = VarianceSplit(level=1.0, between=1e-4, within=25e-4, invocations=10, readings=200.0)
    >>> required_invocations(split, 0.005), required_invocations(split, 0.005, readings=20)
    (20, 38)
    """
    level, spread = _check_planning(known, target, confidence, readings)
    if confidence is None:
        confidence = known.confidence if isinstance(known, Estimate) else _PLANNED
    if spread > _LARGEST_RATIO * target * abs(level):
        raise InvalidInput(f"the level is {level!r}, no interval is narrow relative to (nearly) 0")
    ratio = spread / abs(level) / target if spread > 0.0 else 0.0
    # Student's t exceeds the normal quantile by so little that a few steps make up for it.
    count = max(ENOUGH, math.ceil((float(special.ndtri((1.0 - confidence) / 2.0)) * ratio) ** 2))
    while student_t(count - 1.0, confidence) * ratio > math.sqrt(count) * (1.0 + 1e-12):
        count += 1
    return count


def _check_planning(
    known: VarianceSplit | Estimate,
    target: float,
    confidence: float | None,
    readings: float | None,
) -> tuple[float, float]:
    """Return the level, and the standard deviation of invocations, that a plan rests on."""
    problems = _out_of_range("target", target, _POSITIVE, "a finite number above 0")
    if confidence is not None:
        check_confidence(confidence)
    if readings is not None:
        problems += _out_of_range("readings", readings, 1.0, "a finite number, at least 1")
    if isinstance(known, Estimate):
        if known.method != METHOD or known.standard_error is None:
            problems.append(f"the estimate is by {known.method!r}, expected one by {METHOD!r}")
        if readings is not None:
            problems.append("readings are given with an Estimate, expected a VarianceSplit")
    if problems:
        raise InvalidInput(problems)
    if isinstance(known, Estimate):
        return known.value, (known.standard_error or 0.0) * math.sqrt(known.n)
    return known.level, math.sqrt(known.between + known.within / (readings or known.readings))


def _out_of_range(name: str, value: float, least: float, expected: str) -> list[str]:
    number = isinstance(value, Real) and not isinstance(value, bool)
    right = number and least <= float(value) < math.inf
    return [] if right else [f"{name} is {value!r}, expected {expected}"]
