"""Long-run variance: what autocorrelation does to the variance of a mean.

The long-run variance of a stationary series is the sum of its autocovariances over all lags; the
mean of n readings has variance (long-run variance)/n. It is read off autoregressive models of the
readings and of the means of ever larger batches, which show slow components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.model.series import Floats

MIN_BATCHES = 50  # fewer batch means say too little of their long-run variance


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRunVariance:
    """A long-run variance and how well it is known."""

    value: float
    largest: float  # of all fits: the bound for tests of movement
    degrees_of_freedom: float
    freedom_of_order: float  # without the uncertainty of the choice of the order
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
            return _combine(fits)


def _combine(fits: list[LongRunVariance]) -> LongRunVariance:
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
        freedom_of_order=max(fit.freedom_of_order for fit in fits),
    )


def spectral_fit(points: Floats, fitted: int) -> tuple[LongRunVariance, float]:
    """Fit one autoregressive model; also return long-run over marginal variance.

    The spectral density at frequency zero; the sum of the coefficients is corrected for its bias
    (Marriott & Pope 1954, Kendall 1954). The variance of its logarithm follows for each order by
    the delta method. Its mean by Akaike weights (Akaike 1978, Buckland et al. 1997) gives the
    degrees of freedom, for another sample of the same series may choose another order.
    """
    n = points.size
    models, covariances = _models(points)
    orders = np.arange(models.innovations.size)
    innovations = models.innovations * n / np.maximum(n - orders - fitted, 1)
    totals = models.totals + (orders > 0) * (1.0 + 3.0 * np.maximum(models.totals, 0.0)) / n
    gains = 1.0 - np.minimum(totals, 1.0 - 1.0 / n)
    order = models.order
    variance = float(innovations[order] / gains[order] ** 2)
    spreads = 2.0 / max(n - fitted, 1) + 4.0 * innovations * models.precisions / n / gains**2
    weights = np.exp(np.maximum(models.criteria[order] - models.criteria, -600.0) / 2.0)
    spread = float(weights @ spreads / weights.sum())
    fit = LongRunVariance(
        value=variance,
        largest=variance,
        degrees_of_freedom=max(2.0 / spread, 1.0),
        freedom_of_order=max(2.0 / float(spreads[order]), 1.0),
        order=order,
    )
    return fit, variance / float(covariances[0]) if order else 1.0


def white_noise(variance: float, n: int, fitted: int = 1) -> LongRunVariance:
    """Return the long-run variance of n uncorrelated readings, which is their variance."""
    freedom = float(max(n - fitted, 1))
    return LongRunVariance(
        value=variance, largest=variance, degrees_of_freedom=freedom, freedom_of_order=freedom
    )


def autoregression(points: Floats, *, highest: int | None = None) -> tuple[Floats, float, Floats]:
    """Return coefficients, innovation variance and autocovariances of an autoregressive model."""
    models, covariances = _models(points, highest)
    return models.coefficients, float(models.innovations[models.order]), covariances


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Models:
    """Autoregressive models of order 0, 1, 2 and so on; arrays hold one number of each."""

    coefficients: Floats  # of the model with the least criterion
    totals: Floats  # sums of the coefficients
    innovations: Floats  # variances
    precisions: Floats  # 1' G^-1 1, of the autocovariances G that the coefficients are solved from
    criteria: Floats  # AICc

    @property
    def order(self) -> int:
        """Order of the model with the least criterion."""
        return self.coefficients.size


def _models(points: Floats, highest: int | None = None) -> tuple[_Models, Floats]:
    """Fit the models up to the highest order; also return the autocovariances."""
    n = points.size
    if highest is None:
        highest = min(int(10.0 * math.log10(n)), n // 4)
    lags = range(min(highest, n - 1) + 1)
    covariances = np.array([points[: n - lag] @ points[lag:] for lag in lags]) / n
    if covariances[0] <= 0.0:
        zero = np.zeros(1)
        noiseless = _Models(
            coefficients=zero[:0], totals=zero, innovations=zero, precisions=zero, criteria=zero
        )
        return noiseless, covariances
    return _levinson_durbin(covariances, n), covariances


def _levinson_durbin(covariances: Floats, n: int) -> _Models:
    """Solve the Yule-Walker equations (Durbin 1960); take the least AICc (Hurvich & Tsai 1989)."""
    gamma = covariances.tolist()
    coefficients = np.zeros(covariances.size)
    best = coefficients[:0]
    total, innovation, precision = 0.0, gamma[0], 0.0
    least = n * math.log(innovation) + 2.0 * n / (n - 2)
    rows = [(total, innovation, precision, least)]
    for order in range(1, covariances.size):
        # The backward prediction errors of all lower orders are uncorrelated.
        precision += (1.0 - total) ** 2 / innovation
        lower = coefficients[: order - 1]
        reflection = (gamma[order] - float(lower @ covariances[order - 1 : 0 : -1])) / innovation
        lower -= reflection * lower[::-1]
        coefficients[order - 1] = reflection
        innovation *= 1.0 - reflection**2
        if innovation <= 0.0 or n - order - 2 <= 0:
            break
        total += reflection * (1.0 - total)
        criterion = n * math.log(innovation) + 2.0 * n * (order + 1) / (n - order - 2)
        rows.append((total, innovation, precision, criterion))
        if criterion < least:
            least, best = criterion, coefficients[:order].copy()
    totals, innovations, precisions, criteria = np.array(rows).T
    return _Models(
        coefficients=best,
        totals=totals,
        innovations=innovations,
        precisions=precisions,
        criteria=criteria,
    )
