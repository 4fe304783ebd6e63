"""The full speed of a machine, and how far runs of the same work differ at full speed.

Full speed is the fastest level at which a reference spends a real share of time. The times of a
fixed reference gather around one level for each speed of the machine. A level is a peak of their
density on the logarithmic scale. The fastest times of all are luck: a peak counts from a tenth of
the time on.

How far runs differ is at first an assumption, worth five degrees of freedom; like runs judge it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model import Estimate
from benchrigor.model.series import Floats
from benchrigor.stats.series.interval import student_t

REAL_SHARE = 0.1  # of the time, from which on a level is not luck
# Of most work, how much it slows down when the reference does by 1 %, and the standard deviation:
# learned from 48 workloads on two kinds of processors, see docs/evidence/results/pace.jsonl.
SENSITIVITY, SENSITIVITY_SD = 0.88, 0.31
NEAR = math.log(1.1)  # times of one speed lie that close together; speeds differ by more
_FINEST = 0.02  # smallest bandwidth: the jitter of a reference within one process
_BINS, _REACH = 4, 4  # of the grid in a bandwidth, and bandwidths that the kernel reaches
_KERNEL = np.exp(-0.5 * (np.arange(-_BINS * _REACH, _BINS * _REACH + 1) / _BINS) ** 2)


class Level(NamedTuple):
    """Time of a reference at one speed of a machine, and the share of the time that it shows it."""

    seconds: float
    share: float


def fastest_level(seconds: npt.ArrayLike, *, real: float = REAL_SHARE) -> Level:
    """Return the fastest level of a reference that holds a real share of its times.

    With one level it is the median of the times within 10 % of their peak.

    Parameters
    ----------
    seconds
        Times of the reference, one or more, more than 0.
    real
        Smallest share that counts; two times at least.

    Examples
    --------
    >>> fastest_level([1.0, 1.01, 1.02, 1.7, 1.71, 1.7, 1.72, 1.69])
    Level(seconds=1.01, share=0.375)
    """
    times = np.asarray(seconds, dtype=np.float64)
    return _fastest_peak(times, None, max(real, min(2.0 / times.size, 1.0)))


def full_speed(levels: Iterable[Sequence[float]]) -> float:
    """Return the full speed that runs show: the fastest of their levels, by all that are near it.

    Each run is a pair of its fastest level and its share, which is its weight. A level that one run
    shows counts, for its share of that run was real.

    Examples
    --------
    >>> round(full_speed([(4.0, 0.5), (4.1, 0.9), (4.2, 0.8), (7.0, 1.0)]), 2)
    4.12
    """
    seconds, shares = np.array(list(levels), dtype=np.float64).T
    return _fastest_peak(seconds, shares, real=0.0).seconds


def _fastest_peak(seconds: Floats, weights: Floats | None, real: float) -> Level:
    """Return the fastest peak of the density that no higher one within 10 % hides."""
    order = np.argsort(seconds)
    seconds = seconds[order]
    logs, weights = np.log(seconds), np.ones(order.size) if weights is None else weights[order]
    first, third = np.quantile(logs, [0.25, 0.75])
    # Half of the bandwidth for one normal peak (Silverman), since there may be several.
    spread = min(float(third - first) / 1.349, float(logs.std()))
    step = min(max(0.53 * spread * logs.size**-0.2, _FINEST), NEAR / 2.0) / _BINS
    bins = ((logs - logs[0]) / step).astype(np.int64)
    density = np.convolve(np.bincount(bins, weights=weights), _KERNEL)
    density = density[_KERNEL.size // 2 : density.size - _KERNEL.size // 2]
    near = max(round(NEAR / step), 1)
    for peak in range(density.size):
        if density[peak] < density[max(peak - near, 0) : peak + near + 1].max():
            continue
        beside = np.abs(logs - (logs[0] + (peak + 0.5) * step)) <= NEAR
        share = float(weights[beside].sum() / weights.sum())
        if share > 0.0 and share >= real:
            return Level(_middle(seconds[beside], weights[beside]), share)
    return Level(_middle(seconds, weights), 1.0)


def _middle(ordered: Floats, weights: Floats) -> float:
    """Return the median of values in order with these weights."""
    return float(np.interp(0.5 * weights.sum(), np.cumsum(weights) - 0.5 * weights, ordered))


# Sd of the sensitivity of one run to the distance of its fastest moments from full speed, whose
# causes differ: the clock of the machine, other programs, where things lie in memory.
OTHER_WAY = 0.2
ASSUMED = 5.0  # degrees of freedom of the spread between runs that is assumed at first


class Told(NamedTuple):
    """Evidence of a stored run for the spread: its log figure, and the variance it assumes."""

    log_value: float
    variance: float


def spread_of(groups: Iterable[Sequence[Told]]) -> tuple[float, float]:
    """Return the sum of squares between like runs, over their assumed variance, and its freedom."""
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
    1: runs of one evening differ by less than runs of other days.
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
    # Of the run that this is for, its own segments showed half of its own part.
    return (told * least + mean * sd**-2) / total, math.hypot(total**-0.5, own / 2.0)
