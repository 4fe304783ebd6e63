"""How far runs of the same work differ at full speed, and what stored runs tell of it.

At first it is an assumption that is worth five degrees of freedom; like runs judge it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchrigor.model import Estimate
from benchrigor.model.series import Floats
from benchrigor.stats.series.interval import student_t

# Sd of the sensitivity of one run to the distance of its fastest moments from full speed, whose
# causes differ: the clock of the machine, other programs, where things lie in memory.
OTHER_WAY = 0.2
ASSUMED = 5.0  # degrees of freedom of the spread between runs that is assumed at first


class Told(NamedTuple):
    """What a stored run tells of the spread: its log figure, and the variance it assumes."""

    log_value: float
    variance: float


def spread_of(groups: Iterable[Sequence[Told]]) -> tuple[float, float]:
    """Return the sum of squares between like runs, over what they assume, and its freedom."""
    squares = freedom = 0.0
    for group in filter(None, groups):
        values, variances = np.array(group).T
        mean = np.average(values, weights=1.0 / variances)
        squares += float(((values - mean) ** 2 / variances).sum())
        freedom += len(group) - 1.0
    return squares, freedom


def widening(spread: tuple[float, float]) -> float:
    """Return the factor of standard errors, from the assumption and the spread of stored runs.

    The posterior of a scale with a scaled inverse chi-squared prior: if all own variances are
    the one assumed, its square is (5 s0^2 + sum nu s^2) / (5 + sum nu) over s0^2. It is never below
    1: runs of one evening differ by less than those of other days.
    """
    squares, freedom = spread
    return max(math.sqrt((ASSUMED + squares) / (ASSUMED + freedom)), 1.0)


def with_spread(figure: Estimate, spread: tuple[float, float]) -> Estimate:
    """Return a figure at full speed with the interval that the spread between runs asks for."""
    if figure.standard_error is None or figure.value <= 0.0:
        return figure
    error = figure.standard_error * widening(spread)
    freedom = max(figure.degrees_of_freedom or 0.0, ASSUMED + spread[1])
    reach = math.exp(student_t(freedom, figure.confidence) * error / figure.value)
    return replace(
        figure,
        low=figure.value / reach,
        high=figure.value * reach,
        standard_error=error,
        degrees_of_freedom=freedom,
    )


class Point(NamedTuple):
    """A stored run at its own fastest moments: their distance from full speed, and its level."""

    distance: float
    log_level: float
    variance: float


def slope_of_runs(
    groups: Iterable[Sequence[Point]], prior: tuple[float, float], *, own: float
) -> tuple[float, float]:
    """Return how log levels of runs follow the distance of their fastest moments from full speed.

    Each group is one version of the work. It is the weighted regression with one slope and a level
    for each version; ``prior`` and the result are a mean and a standard deviation, ``own`` that of
    a single run. Variances are scaled as in `widening`, by the points about the line.
    """
    mean, sd = prior
    rows: list[tuple[Floats, Floats, Floats]] = []
    for group in filter(None, groups):
        distances, levels, variances = np.array(group).T
        weights = 1.0 / (variances + (own * distances) ** 2)
        centred = (each - np.average(each, weights=weights) for each in (distances, levels))
        rows.append((*centred, weights))
    if not rows or not sd:
        return prior
    x, y, weights = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    told = float(weights @ x**2)
    if not told:
        return prior
    least = float(weights @ (x * y)) / told
    scale = widening((float(weights @ (y - least * x) ** 2), max(x.size - len(rows) - 1.0, 0.0)))
    told /= scale**2
    total = told + sd**-2
    # Of the run that this is for, its own segments told half of what is its own.
    return (told * least + mean * sd**-2) / total, math.hypot(total**-0.5, own / 2.0)
