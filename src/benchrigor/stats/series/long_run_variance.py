"""Long-run variance: what autocorrelation does to the variance of a mean.

The long-run variance of a stationary series is the sum of its autocovariances over all lags; the
mean of n readings has variance (long-run variance)/n. It is read off autoregressive models of the
readings and of the means of ever larger batches, which show slow components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.model import Floats

MIN_BATCHES = 50  # fewer batch means say too little of their long-run variance


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRunVariance:
    """A long-run variance and how well it is known."""

    value: float
    largest: float  # of all fits: the bound for tests of movement
    degrees_of_freedom: float
    order: int = 0  # of the autoregressive model
    batch: int = 1  # readings averaged into a point of the model


def batch_means(series: Floats, size: int) -> Floats:
    """Average every ``size`` successive readings; an incomplete batch at the end does not count."""
    if size == 1:
        return series
    count = series.size // size
    # A product with a constant vector is several times faster than mean(axis=1) on short rows.
    means: Floats = series[: count * size].reshape(count, size) @ np.full(size, 1.0 / size)
    return means


def long_run_variance(residuals: Floats, *, fitted: int = 1) -> LongRunVariance:
    """Estimate the long-run variance of residuals from a fit of ``fitted`` coefficients.

    Each fit has batches larger by max(2, tau/4) than the last, while tau = (long-run
    variance)/variance exceeds 2 and 50 batches remain.
    """
    batch, fits = 1, []
    while True:
        fit, tau = spectral_fit(batch_means(residuals, batch), fitted)
        fits.append(replace(fit, value=fit.value * batch, batch=batch))
        batch *= max(2, math.ceil(tau / 4.0))
        if tau <= 2.0 or residuals.size // batch < MIN_BATCHES:
            return _combined(fits)


def _combined(fits: list[LongRunVariance]) -> LongRunVariance:
    """Take the midpoint of the mean and the largest of the fits.

    With one time scale the mean is right and the largest a quarter too large; with several the
    largest is right (coverage of the mean 0.93 at nominal 0.95).
    """
    best = max(fits, key=lambda fit: fit.value)
    mean = sum(fit.value for fit in fits) / len(fits)
    return replace(
        best,
        value=(mean + best.value) / 2.0,
        largest=best.value,
        degrees_of_freedom=max(fit.degrees_of_freedom for fit in fits),
    )


def spectral_fit(points: Floats, fitted: int) -> tuple[LongRunVariance, float]:
    """Fit one autoregressive model; also return long-run over marginal variance.

    The spectral density at frequency zero, with degrees of freedom by the delta method; the sum of
    the coefficients is corrected for its bias (Marriott & Pope 1954, Kendall 1954).
    """
    n = points.size
    coefficients, innovation, covariances = autoregression(points)
    order = coefficients.size
    if order == 0:
        return white_noise(float(covariances[0]) * n / max(n - fitted, 1), n, fitted), 1.0
    innovation *= n / max(n - order - fitted, 1)
    total = float(coefficients.sum())
    lags = np.abs(np.subtract.outer(np.arange(order), np.arange(order)))
    spread = innovation * float(np.linalg.solve(covariances[lags], np.ones(order)).sum()) / n
    total += (1.0 + 3.0 * max(total, 0.0)) / n
    gain = 1.0 - min(total, 1.0 - 1.0 / n)
    variance = innovation / gain**2
    freedom = 2.0 / (2.0 / max(n - fitted, 1) + 4.0 * spread / gain**2)
    fit = LongRunVariance(
        value=variance, largest=variance, degrees_of_freedom=max(freedom, 1.0), order=order
    )
    return fit, variance / float(covariances[0])


def white_noise(variance: float, n: int, fitted: int = 1) -> LongRunVariance:
    """Return the long-run variance of n uncorrelated readings, which is their variance."""
    return LongRunVariance(
        value=variance, largest=variance, degrees_of_freedom=float(max(n - fitted, 1))
    )


def autoregression(points: Floats, *, highest: int | None = None) -> tuple[Floats, float, Floats]:
    """Return coefficients, innovation variance and autocovariances of an autoregressive model."""
    n = points.size
    if highest is None:
        highest = min(int(10.0 * math.log10(n)), n // 4)
    lags = range(min(highest, n - 1) + 1)
    covariances = np.array([points[: n - lag] @ points[lag:] for lag in lags]) / n
    if covariances[0] <= 0.0:
        return covariances[:0], 0.0, covariances
    coefficients, innovation = _levinson_durbin(covariances, n)
    return coefficients, innovation, covariances


def _levinson_durbin(covariances: Floats, n: int) -> tuple[Floats, float]:
    """Solve the Yule-Walker equations (Durbin 1960); take the least AICc (Hurvich & Tsai 1989)."""
    gamma = covariances.tolist()
    coefficients = np.zeros(covariances.size)
    innovation = gamma[0]
    best = coefficients[:0], innovation
    least = n * math.log(innovation) + 2.0 * n / (n - 2)
    for order in range(1, covariances.size):
        lower = coefficients[: order - 1]
        reflection = (gamma[order] - float(lower @ covariances[order - 1 : 0 : -1])) / innovation
        lower -= reflection * lower[::-1]
        coefficients[order - 1] = reflection
        innovation *= 1.0 - reflection**2
        if innovation <= 0.0 or n - order - 2 <= 0:
            break
        criterion = n * math.log(innovation) + 2.0 * n * (order + 1) / (n - order - 2)
        if criterion < least:
            least, best = criterion, (coefficients[:order].copy(), innovation)
    return best
