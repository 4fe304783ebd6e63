"""How steady a stretch of readings is: what its slowest noise leaves, and whether it drifts.

Both look at the ranks of at most 2047 batch means, so that tails hardly matter and the price
does not grow with the number of readings.
"""

from __future__ import annotations

import math

import numpy as np

from benchrigor.model import Floats
from benchrigor.stats.autoregression import batch_means, long_run_variance

__all__ = ["TRANSIENTS", "chance_of_movement", "independent_readings", "transient_basis"]

TRANSIENTS = (1 / 30, 1 / 7)
"""Time constants of the transients fitted beside the level, as shares of the kept readings."""

_POINTS = 1_024
_FEWEST = 30
_WAVES = 2


def transient_basis(size: int, shares: tuple[float, ...]) -> Floats:
    """Return exponentials that fade from the start, one per row, at the centres of ``size`` points.

    Parameters
    ----------
    size
        Number of points.
    shares
        Time constants, as shares of ``size``.
    """
    basis: Floats = np.exp(-np.outer(1.0 / np.array(shares), (np.arange(size) + 0.5) / size))
    return basis


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
    return square / long_run_variance(ranks).value


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
    moved = float(weights[-_WAVES:] @ weights[-_WAVES:]) / max(noise.value, least)
    freedom = noise.degrees_of_freedom
    return float((1.0 + moved / freedom) ** (-freedom / 2.0))


def _ranks(series: Floats) -> Floats:
    """Return ranks about their mean, ties sharing theirs."""
    points = batch_means(series, max(1, series.size // _POINTS))
    ordered = np.sort(points)
    below = np.searchsorted(ordered, points) + np.searchsorted(ordered, points, side="right")
    ranks: Floats = below / 2.0 - below.mean() / 2.0
    return ranks
