"""Least squares with standard errors that hold under unequal and autocorrelated noise.

The covariance of the noise is estimated from the residuals three ways, and the largest counts: HC3;
HC3 with the autocorrelation of the scores; and autoregressive noise that grows with the measured
values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy

from benchrigor.model import Estimate
from benchrigor.model.series import Floats
from benchrigor.stats.series.interval import StandardError, t_interval
from benchrigor.stats.series.long_run_variance import autoregression

ESTIMATORS = ("ols", "weighted", "robust")

_POWERS = (0.0, 0.5, 1.0, 1.5)  # of the fitted value, with which the size of the noise may grow
_LIKELIHOOD_MARGIN = 1.92  # chi2(1) at 95 %, halved: powers within it are not ruled out
_MAX_ORDER = 3
_ROUNDING = 1e-14  # residual, relative to the largest response, that is rounding
_MIN_LIMIT = 3.0 * _ROUNDING  # of residuals that are mostly rounding: 1.345 scales of it
_LIMIT, _CONVERGED = 1.345, 1e-8  # of residuals, in standard deviations of normal noise
_LIMITED_WEIGHT = 0.05
_ITERATIONS = 200  # up to 150 if all points but one lie on a line, some 20 elsewhere
_NORMAL = 0.6745  # median absolute deviation of normal noise of variance 1
_DECISIVE = 1e-9  # a point with a leverage nearer to 1 decides a coefficient alone
_MIN_LEVEL = 0.1  # of the mean response: lower bound of fitted values as a size of noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A linear regression of n points on k regressors."""

    design: Floats  # regressors times the roots of the weights, shape (n, k)
    inverse: Floats  # pseudo-inverse of the design, shape (k, n)
    coefficients: Floats
    residuals: Floats  # weighted; 0 if all (robust: most) are rounding
    left_out: Floats  # unweighted residual of each point from the fit without it
    leverages: Floats
    levels: Floats  # unweighted fitted values, at least a tenth of the mean response
    roots: Floats  # factors of the residuals


@dataclass(frozen=True, slots=True, kw_only=True)
class CoefficientError:
    """A coefficient, or a combination of coefficients, and how well it is known."""

    value: float
    standard_error: float
    degrees_of_freedom: float
    inflation: float  # by autocorrelation, 1 or more

    def estimate(
        self, confidence: float, n: int, method: str, *, positive: bool = False
    ) -> Estimate:
        """Return its estimate from n points; ``positive`` if it is never below 0."""
        return t_interval(
            self.value,
            StandardError(self.standard_error, self.degrees_of_freedom),
            confidence,
            n=n,
            n_effective=n / self.inflation,
            method=method,
            positive=positive,
        )


def is_determined(design: Floats) -> bool:
    """Return whether every coefficient rests on several points."""
    columns, sizes, _ = np.linalg.svd(design, full_matrices=False)
    leverages = np.sum(columns**2, axis=1)
    return bool(sizes[-1] > _ROUNDING * sizes[0] and leverages.max() < 1.0 - _DECISIVE)


def regress(design: Floats, response: Floats, *, estimator: str = "ols") -> Regression:
    """Fit a linear regression to a determined design and a response of size 1 or so.

    "weighted" weights with the inverse squares of the fitted values of "ols". "robust" limits the
    residuals (Huber's T) and solves X' psi(e) = 0, with psi the limited residual; its coefficients
    move by (X' D X)^-1 X' psi(e), with D the derivative of psi (Huber 1981, section 7.6). That is
    the fit with weights D to fitted values plus psi/D; 1/20 stands for 0 in D.
    """
    plain = least_squares(design, response, np.ones(response.size))
    if estimator == "ols" or not plain.residuals.any():
        return plain
    if estimator == "weighted":
        return least_squares(design, response, (plain.levels.min() / plain.levels) ** 2)
    fitted, limited, free = _huber(design, response)
    fit = least_squares(design, fitted + limited / free, free, response)
    # The noise is the limited residual, without the weight that made its pull.
    fit = replace(fit, roots=1.0 / fit.roots)
    if np.abs(limited).max() <= _MIN_LIMIT:
        fit = replace(fit, residuals=np.zeros_like(limited))
    return fit


def _huber(design: Floats, response: Floats) -> tuple[Floats, Floats, Floats]:
    """Return robust fitted values, the limited residuals, and where they are free (as weights).

    Iteratively reweighted least squares with Huber's T; its scale follows the residuals.
    """
    n, freedom = response.size, response.size - design.shape[1]
    weights, loss = np.ones(n), math.inf
    for _ in range(_ITERATIONS):
        roots = np.sqrt(weights)
        inverse = np.linalg.pinv(design * roots[:, None])
        residuals = response - design @ (inverse @ (roots * response))
        sizes = np.abs(residuals)
        far = sizes / (float(weights @ residuals**2) / freedom or 1.0)
        before = loss
        loss = float(np.where(far <= _LIMIT, far**2, _LIMIT * (2.0 * far - _LIMIT)).sum()) / 2.0
        if abs(before - loss) <= _CONVERGED:
            break
        # A fit of k coefficients may pass through k points, which show no noise.
        noise = max(float(np.median(np.sort(sizes)[-freedom:])) / _NORMAL, _ROUNDING)
        limit = _LIMIT * noise * math.sqrt(n / freedom)
        weights = limit / np.maximum(sizes, limit)
    free = np.where(weights == 1.0, 1.0, _LIMITED_WEIGHT)
    return response - residuals, residuals * weights, free


def least_squares(
    design: Floats, target: Floats, weights: Floats, response: Floats | None = None
) -> Regression:
    """Fit by weighted least squares; ``response`` is as measured, if it is not the target."""
    response, roots = target if response is None else response, np.sqrt(weights)
    weighted = design * roots[:, None]
    inverse = np.asarray(np.linalg.pinv(weighted), dtype=np.float64)
    coefficients = inverse @ (roots * target)
    fitted = design @ coefficients
    # Amounts that differ by many orders round the leverage of the largest to 1 and beyond.
    leverages = np.minimum(np.einsum("ij,ji->i", weighted, inverse), 1.0 - _DECISIVE)
    residuals = roots * (target - fitted)
    if np.abs(response - fitted).max() <= _ROUNDING * np.abs(response).max():
        residuals = np.zeros_like(residuals)
    return Regression(
        design=weighted,
        inverse=inverse,
        coefficients=coefficients,
        residuals=residuals,
        left_out=(response - fitted) / (1.0 - leverages),
        leverages=leverages,
        levels=np.maximum(fitted, _MIN_LEVEL * response.mean()),
        roots=roots,
    )


def noise_likelihoods(fit: Regression, *, order: int = 2) -> dict[float, float]:
    """Return the log-likelihood of each power of the fitted value as the size of normal noise."""
    # Order 1 is for noise of Laplace, on which outliers have less pull.
    residuals = np.abs(fit.residuals / fit.roots)
    logs = np.log(fit.levels)
    return {
        power: float(
            -logs.size / order * np.log(np.mean((residuals / fit.levels**power) ** order))
            - power * logs.sum()
        )
        for power in _POWERS
    }


def coefficient_errors(
    fit: Regression, combinations: npt.ArrayLike
) -> tuple[CoefficientError, ...]:
    """Return combinations of coefficients, shape (m, k), with their standard errors.

    HC3 (MacKinnon & White 1985): the sum of the squares of the scores p_i e_i / (1 - h_i), with p
    the combined row of the pseudo-inverse, e residuals and h leverages, times the variance
    inflation of the scores. Where the order of the amounts makes the scores look uncorrelated
    though the noise is not, the noise itself is modelled.
    """
    rows = np.asarray(combinations, dtype=np.float64)
    covariances = _modelled_covariances(fit) if fit.residuals.any() else []
    errors = []
    for row in rows:
        projected = row @ fit.inverse
        scores = projected * fit.residuals / (1.0 - fit.leverages)
        hc3 = float(scores @ scores)
        modelled = max((float(row @ covariance @ row) for covariance in covariances), default=0.0)
        variance = max(hc3 * _variance_inflation(scores), modelled)
        errors.append(
            CoefficientError(
                value=float(row @ fit.coefficients),
                standard_error=math.sqrt(variance),
                degrees_of_freedom=_bell_mccaffrey(fit, projected),
                inflation=variance / hc3 if hc3 > 0.0 else 1.0,
            )
        )
    return tuple(errors)


def _bell_mccaffrey(fit: Regression, projected: Floats) -> float:
    """Return the degrees of freedom of HC3 under equal variances, at most n - k.

    (tr K)^2 / tr(K K) with K = M diag(p^2 / (1 - h)^2) M and M = I - H (Bell & McCaffrey 2002).
    """
    n, k = fit.design.shape
    shares = (projected / (1.0 - fit.leverages)) ** 2
    shares = shares / shares.max()
    inner = (fit.inverse * shares) @ fit.design
    square = float(shares**2 @ (1.0 - 2.0 * fit.leverages)) + float(np.sum(inner * inner.T))
    trace = float(shares @ (1.0 - fit.leverages))
    # Between 1 and n - k but for rounding, where a point is nearly decisive.
    return float(trace**2 / min(max(square, trace**2 / (n - k)), trace**2))


def _variance_inflation(scores: Floats) -> float:
    coefficients, innovation, covariances = autoregression(scores, highest=_MAX_ORDER)
    if coefficients.size == 0:
        return 1.0
    gain = 1.0 - min(float(coefficients.sum()), 1.0 - 1.0 / scores.size)
    return max(1.0, innovation / gain**2 / float(covariances[0]))


def _modelled_covariances(fit: Regression) -> list[Floats]:
    """Return the covariance of the coefficients under each likely model of autocorrelated noise.

    The noise of a point is s x, with s a power of the fitted value and x an autoregressive series,
    fitted to the residuals over s; the regression takes part of slow noise for signal, so the size
    of the residuals is compared with what residuals of such noise would have.
    """
    n = fit.residuals.size
    likelihoods = noise_likelihoods(fit)
    least = max(likelihoods.values()) - _LIKELIHOOD_MARGIN
    covariances = []
    likely = (power for power, likelihood in likelihoods.items() if likelihood >= least)
    for power in likely:
        sizes = fit.levels**power * fit.roots
        series = fit.residuals / sizes / np.sqrt(1.0 - fit.leverages)
        coefficients, _, lagged = autoregression(series, highest=_MAX_ORDER)
        if coefficients.size == 0:
            continue
        correlations = _correlations(_remove_bias(coefficients, n), n)
        spread: Floats = (
            scipy.linalg.matmul_toeplitz(correlations, (fit.inverse * sizes).T) * sizes[:, None]
        )
        covariance: Floats = fit.inverse @ spread
        expected = (
            sizes**2
            - 2.0 * np.sum(fit.design * spread, axis=1)
            + np.sum(fit.design @ covariance * fit.design, axis=1)
        )
        share = float(np.mean(expected / sizes**2 / (1.0 - fit.leverages)))
        covariances.append(covariance * (float(lagged[0]) / share))
    return covariances


def _remove_bias(coefficients: Floats, n: int) -> Floats:
    """Correct the sum for its bias (1 + 4 sum) / n (Marriott & Pope 1954); keep it stationary."""
    total = float(coefficients.sum())
    corrected = coefficients.copy()
    if total > 0.0:
        corrected[0] += (1.0 + 4.0 * total) / n
    largest = float(np.abs(np.roots([1.0, *-corrected])).max())
    limit = 1.0 - 1.0 / n
    if largest > limit:
        corrected *= (limit / largest) ** np.arange(1, corrected.size + 1)
    return corrected


def _correlations(coefficients: Floats, n: int) -> Floats:
    """Return the autocorrelations of an autoregressive series at lags 0 to n - 1 (Yule-Walker)."""
    order = coefficients.size
    system = np.eye(order + 1)
    for lag in range(1, order + 1):
        for back in range(1, order + 1):
            system[lag, abs(lag - back)] -= coefficients[back - 1]
    correlations = np.linalg.solve(system, np.eye(order + 1)[0]).tolist()
    backwards = coefficients[::-1].tolist()
    while len(correlations) < n:
        correlations.append(math.fsum(map(float.__mul__, backwards, correlations[-order:])))
    return np.array(correlations[:n])
