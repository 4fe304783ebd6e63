"""Several series: the mean over them, and how much of the variance lies between or within."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.analysis import LevelFit, VarianceSplit
from benchrigor.model.checks import refuse, wrong_number, wrong_whole
from benchrigor.model.text import many
from benchrigor.stats.series.interval import PIECE_MEANS, StandardError, t_interval
from benchrigor.stats.series.level import MIN_FOR_VARIANCE
from benchrigor.stats.statistics.rate import reciprocal

INVOCATION_MEANS = "invocation means"
MIN_INVOCATIONS = 10  # below so many invocations a rare memory layout or code path is easily missed
MIN_PIECES = 4  # below that many pieces the interval is very wide


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


def combine_values(
    values: Sequence[float], confidence: float, unit: str = "invocation", *, harmonic: bool = False
) -> Estimate:
    """Estimate the mean over two or more invocations, or pieces, from one value of each.

    If it is ``harmonic``, the values are reciprocals, and so is the estimate of theirs.

    Student's t holds at 95 % also for values of unequal variance (Ibragimov & Müller 2010), as
    pieces have of which one was on a busier machine.
    """
    levels = np.array(values)
    count = levels.size
    constant = float(levels.min()) == float(levels.max())  # their mean may be rounded
    value = float(levels[0]) if constant else float(levels.mean())
    error = 0.0 if constant else float(levels.std(ddof=1)) / math.sqrt(count)
    estimate = t_interval(
        value,
        StandardError(error, count - 1.0),
        confidence,
        n=count,
        n_effective=float(count),
        method=INVOCATION_MEANS if unit == "invocation" else PIECE_MEANS,
        positive=bool(levels.min() >= 0.0),
    )
    if harmonic:
        estimate = reciprocal(estimate)
    notices = _combination_notices(count, error, estimate.value, unit)
    return replace(estimate, notices=tuple(notices))


def _combination_notices(count: int, error: float, value: float, unit: str) -> Iterator[Notice]:
    if error == 0.0:
        yield Notice.of(Code.CONSTANT, "units", n=count, unit_=unit, value=value)
    if unit == "piece":
        yield from (few_pieces(count, count),) if count < MIN_PIECES else ()
        return
    wanted = MIN_INVOCATIONS
    if count < wanted:
        yield Notice.of(Code.FEW_INVOCATIONS, invocations=count, wanted=wanted)


def few_pieces(told: int, of: int) -> Notice:
    """Say that few pieces were measured so far."""
    counts = many(told, "piece") if told == of else f"{told} of {many(of, 'piece')}"
    return Notice.of(Code.FEW_PIECES, counts_=counts, pieces=told, wanted=MIN_PIECES)
