"""How steady a stretch of readings is: what its slowest noise leaves, and whether it drifts.

Both look at the ranks of at most 2047 batch means, so that tails hardly matter and the price
does not grow with the number of readings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from benchrigor.model import Floats
from benchrigor.model.series import Ints
from benchrigor.stats.series.long_run_variance import batch_means, long_run_variance
from benchrigor.stats.series.transients import TRANSIENTS, transient_basis

__all__ = ["chance_of_movement", "independent_readings", "steps_beyond_noise"]


_POINTS = 1_024
_FEWEST = 30
_WAVES = 2
_BY_NOISE = 0.0002
_MOST_STEPS = 12


def independent_readings(series: Floats) -> float:
    """Return how many independent readings the slowest noise of a series leaves.

    Parameters
    ----------
    series
        Shape (n,).

    Returns
    -------
    float
        Batches times marginal over long-run variance of their ranks: no more than there are
        batches, for only few matter. Infinite for fewer than 30 readings and for constant ones,
        of which nothing can be said.
    """
    ranks = _ranks(series)
    square = float(ranks @ ranks)
    if ranks.size < _FEWEST or square == 0.0:
        return math.inf
    return square / long_run_variance(ranks).largest


def chance_of_movement(series: Floats) -> float:
    """Return how probable so much slow movement is in steady readings, a p-value.

    Parameters
    ----------
    series
        Shape (n,).

    Returns
    -------
    float
        1 for fewer than 30 readings and for those without noise.

    Notes
    -----
    An F test of the two slowest cosines, half a wave and a whole one, against the long-run
    variance around them; in econometrics such low-frequency averages tell a stationary series
    from one that is not (Mueller & Watson 2008). Fading transients are fitted beside them: an
    estimate takes those up. With two degrees of freedom in the numerator the F distribution is
    1 - (1 + 2 F / nu)^(-nu/2).
    """
    ranks = _ranks(series)
    m = ranks.size
    if m < _FEWEST:
        return 1.0
    centres = (np.arange(m) + 0.5) / m
    waves = np.cos(np.pi * np.outer(np.arange(1, _WAVES + 1), centres))
    beside = np.vstack([np.ones(m), transient_basis(m, TRANSIENTS)])
    fitted, _ = np.linalg.qr(np.vstack([beside, waves]).T)
    weights = fitted.T @ ranks
    residuals = ranks - fitted @ weights
    if float(residuals @ residuals) <= 1e-12 * float(ranks @ ranks):
        return 1.0
    noise = long_run_variance(residuals, fitted=weights.size)
    # Noise is seldom less than white; an autoregression fitted to white noise says so at times.
    least = float(residuals @ residuals) / (m - weights.size)
    moved = float(weights[-_WAVES:] @ weights[-_WAVES:]) / max(noise.largest, least)
    freedom = noise.degrees_of_freedom
    return float((1.0 + moved / freedom) ** (-freedom / 2.0))


def steps_beyond_noise(series: Floats, places: Sequence[int]) -> tuple[tuple[int, ...], float]:
    """Return which of these steps slow noise does not explain, and how slow the noise is.

    Parameters
    ----------
    series
        Shape (n,).
    places
        First index of each level but the first, ascending; found by looking at the series.

    Returns
    -------
    places : tuple of int
        The steps that are left. All of them for fewer than 30 readings and where steps lie closer
        together than the batches that are looked at, of which nothing can be said.
    inflation : float
        Long-run over marginal variance of the ranks around the levels that are left, at least 1.

    Notes
    -----
    The search for change points allows for the autocorrelation at short lags; what is slower looks
    like steps to it. Here each step is held against the long-run variance around all levels:
    Student t of the difference of two neighbouring levels of ranks. The weakest is dropped unless
    its chance is below 0.0002 (the places were chosen for looking like steps), and what is left is
    judged anew, for noise that was cut into levels is noise no longer. Of more than twelve the
    weakest are dropped unasked: what changes that often is a process, and its levels are its noise.
    """
    ranks = _ranks(series)
    m, left, inflation = ranks.size, tuple(places), 1.0
    while left:
        borders = np.array([0, *(place * m // series.size for place in left), m])
        counts = np.diff(borders)
        if m < _FEWEST or counts.min() == 0 or counts.size >= m:
            break
        chances, inflation = _chances(ranks, borders[:-1], counts)
        weakest = int(np.argmax(chances))
        if chances[weakest] < _BY_NOISE and len(left) <= _MOST_STEPS:
            break
        left = left[:weakest] + left[weakest + 1 :]
    return left, inflation


def _chances(ranks: Floats, starts: Ints, counts: Ints) -> tuple[Floats, float]:
    """Return how probable each step between these levels is by noise alone; also the inflation."""
    levels = np.add.reduceat(ranks, starts) / counts
    residuals = ranks - np.repeat(levels, counts)
    square = float(residuals @ residuals)
    if square <= 1e-12 * float(ranks @ ranks):
        # Without noise every step is certain; the smallest one is still the weakest.
        weight = np.abs(np.diff(levels)) * np.sqrt(1.0 / (1.0 / counts[1:] + 1.0 / counts[:-1]))
        return _BY_NOISE * 0.5 * weight.min() / weight, 1.0
    noise = long_run_variance(residuals, fitted=counts.size)
    white = square / (ranks.size - counts.size)
    inflation = max(1.0, noise.largest / white)
    errors = np.sqrt(white * inflation * (1.0 / counts[1:] + 1.0 / counts[:-1]))
    tails = special.stdtr(noise.degrees_of_freedom, -np.abs(np.diff(levels)) / errors)
    return np.asarray(2.0 * tails), inflation


def _ranks(series: Floats) -> Floats:
    """Return ranks about their mean, ties sharing theirs."""
    points = batch_means(series, max(1, series.size // _POINTS))
    ordered = np.sort(points)
    below = np.searchsorted(ordered, points) + np.searchsorted(ordered, points, side="right")
    ranks: Floats = below / 2.0 - below.mean() / 2.0
    return ranks
