"""How stationary readings are: effective sample size by the slowest noise, movement, and steps.

All look at the ranks of up to 2047 batch means, so that tails hardly matter and the cost does
not grow with the number of readings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy

from benchrigor.model.series import Floats, Ints
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION, TRANSIENTS, transient_basis
from benchrigor.stats.series.long_run_variance import batch_means, long_run_variance

MAX_POINTS = 1_024
_WAVES = 2
_LEVEL = 0.0002
_MAX_STEPS = 12
_BULK = (0.05, 0.95)
_ROUNDING = 1e-12


def effective_sample_size(series: Floats) -> float:
    """Return the effective sample size of the batch means by the slowest noise of their ranks.

    Infinite for fewer than 30 readings and for constant ones, of which nothing is known.
    """
    ranks = _ranks(series)
    square = float(ranks @ ranks)
    if ranks.size < MIN_FOR_AUTOCORRELATION or square == 0.0:
        return math.inf
    return square / long_run_variance(ranks).largest


def movement_p_value(series: Floats) -> float:
    """Return the p-value of slow movement; 1 for fewer than 30 readings and without noise.

    An F test of the two slowest cosines against the long-run variance around them (Mueller & Watson
    2008), with fading transients fitted beside them. With two degrees of freedom in the numerator
    the F distribution is 1 - (1 + 2 F / nu)^(-nu/2).
    """
    ranks = _ranks(series)
    m = ranks.size
    if m < MIN_FOR_AUTOCORRELATION:
        return 1.0
    centres = (np.arange(m) + 0.5) / m
    waves = np.cos(np.pi * np.outer(np.arange(1, _WAVES + 1), centres))
    beside = np.vstack([np.ones(m), transient_basis(m, TRANSIENTS)])
    fitted, _ = np.linalg.qr(np.vstack([beside, waves]).T)
    weights = fitted.T @ ranks
    residuals = ranks - fitted @ weights
    square = float(residuals @ residuals)
    if square <= _ROUNDING * float(ranks @ ranks):
        return 1.0
    noise = long_run_variance(residuals, fitted=weights.size)
    # Noise is seldom less than white; an autoregression fitted to white noise says so at times.
    # The bound makes up for an order that is chosen too low, so its freedom needs not.
    variance = max(noise.largest, square / (m - weights.size))
    moved = float(weights[-_WAVES:] @ weights[-_WAVES:]) / variance
    freedom = noise.freedom_of_order
    return float((1.0 + moved / freedom) ** (-freedom / 2.0))


def steps_beyond_noise(series: Floats, places: Sequence[int]) -> tuple[tuple[int, ...], float]:
    """Return the steps that slow noise does not explain, and the variance inflation.

    ``places`` are the first indices of all levels after the first. Student's t compares the mean
    ranks of neighbouring levels, by the long-run variance around all levels. Unless its p-value is
    below 0.0002, the least significant step is dropped, and the others are tested again. Beyond
    twelve steps the least significant ones are dropped in any case: a series that changes so often
    is a process whose levels are noise. All steps stay if there are fewer than 30 readings, or if
    steps are closer together than batches. A step between levels farther apart than the span of
    either stays next to at most eleven others, since ranks do not show its size.
    """
    ranks = _ranks(series)
    m, left, inflation = ranks.size, tuple(places), 1.0
    clear = _clear_steps(series, left) if len(left) <= _MAX_STEPS else set()
    while left:
        borders = np.array([0, *(place * m // series.size for place in left), m])
        counts = np.diff(borders)
        if m < MIN_FOR_AUTOCORRELATION or counts.min() == 0 or counts.size >= m:
            break
        p_values, inflation = _step_p_values(ranks, borders[:-1], counts)
        p_values[[place in clear for place in left]] = 0.0
        weakest = int(np.argmax(p_values))
        if p_values[weakest] < _LEVEL and len(left) <= _MAX_STEPS:
            break
        left = left[:weakest] + left[weakest + 1 :]
    return left, inflation


def _clear_steps(series: Floats, places: tuple[int, ...]) -> set[int]:
    """Return the steps between levels farther apart than the span of either, without tails."""
    borders = (0, *places, series.size)
    spans = [np.quantile(series[start:stop], _BULK) for start, stop in pairwise(borders)]
    return {
        place
        for place, (one, other) in zip(places, pairwise(spans), strict=True)
        if max(other[0] - one[1], one[0] - other[1]) > max(np.ptp(one), np.ptp(other))
    }


def _step_p_values(ranks: Floats, starts: Ints, counts: Ints) -> tuple[Floats, float]:
    """Return the p-value of each step between these levels; also the variance inflation."""
    levels = np.add.reduceat(ranks, starts) / counts
    residuals = ranks - np.repeat(levels, counts)
    square = float(residuals @ residuals)
    steps, shares = np.abs(np.diff(levels)), 1.0 / counts[1:] + 1.0 / counts[:-1]
    if square <= _ROUNDING * float(ranks @ ranks):
        # Without noise every step is certain; the smallest one is still the least significant.
        weight = steps * np.sqrt(1.0 / shares)
        return _LEVEL * 0.5 * weight.min() / weight, 1.0
    noise = long_run_variance(residuals, fitted=counts.size)
    white = square / (ranks.size - counts.size)
    inflation = max(1.0, noise.largest / white)
    tails = scipy.special.stdtr(
        noise.freedom_of_order, -steps / np.sqrt(white * inflation * shares)
    )
    return np.asarray(2.0 * tails), inflation


def _ranks(series: Floats) -> Floats:
    """Return ranks about their mean, ties sharing theirs."""
    points = batch_means(series, max(1, series.size // MAX_POINTS))
    ordered = np.sort(points)
    below = np.searchsorted(ordered, points) + np.searchsorted(ordered, points, side="right")
    ranks: Floats = below / 2.0 - below.mean() / 2.0
    return ranks
