"""Least squares whose standard errors hold under unequal and autocorrelated noise.

What the coefficients of a regression make of its noise is a sandwich: pseudo-inverse, covariance
of the noise, pseudo-inverse. The covariance is taken from the residuals three ways, and the
largest counts: as they are (HC3), with the autocorrelation of their products with a row of the
pseudo-inverse, and as an autoregressive series whose size grows with what is measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
import numpy.typing as npt
from scipy import linalg

from benchrigor.model import Floats
from benchrigor.stats.series.long_run_variance import autoregression

__all__ = [
    "ESTIMATORS",
    "CoefficientError",
    "Regression",
    "coefficient_errors",
    "is_determined",
    "load_statsmodels",
    "noise_likelihoods",
    "regress",
]

ESTIMATORS = ("ols", "weighted", "robust")

_GROWTHS = (0.0, 0.5, 1.0, 1.5)
"""Powers of the fitted value that the size of the noise may grow with."""
_AS_LIKELY = 1.92
"""Log-likelihood below the best within which a growth is not ruled out: chi2(1) at 95 %, halved."""
_HIGHEST = 3
_ROUNDING = 1e-14
"""Residual, relative to the largest response, that is nothing but rounding."""
_LEAST_LIMIT = 3.0 * _ROUNDING
"""Limit of the residuals where most are rounding: 1.345 scales of sqrt(n / (n - 2)) of it."""
_LIMITED = 0.05
_ITERATIONS = 200
"""Up to 150 where all points but one lie on a line, some 20 elsewhere."""
_NORMAL = 0.6745
"""Median absolute deviation of normal noise of variance 1."""
_ALONE = 1e-9
"""A point whose leverage is nearer to 1 decides a coefficient alone."""
_LEAST_SHARE = 0.1
"""Of the mean response: what fitted values, as a size of noise, are never taken to be below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A linear regression; weighted rows stand multiplied by the roots of their weights.

    Parameters
    ----------
    design
        Weighted regressors, shape (n, k).
    inverse
        Pseudo-inverse of the design, shape (k, n).
    coefficients
        Shape (k,).
    residuals
        Weighted; 0 throughout where they, or those of most points of a robust fit, are nothing
        but rounding. Shape (n,).
    left_out
        Residual of each point from the regression without it, not weighted. Shape (n,).
    leverages
        Pull of each point on its own fitted value, in [0, 1). Shape (n,).
    levels
        Fitted values, not weighted, at least a tenth of the mean response. Shape (n,).
    roots
        What the residuals were multiplied by. Shape (n,).
    """

    design: Floats
    inverse: Floats
    coefficients: Floats
    residuals: Floats
    left_out: Floats
    leverages: Floats
    levels: Floats
    roots: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class CoefficientError:
    """How well a coefficient is known.

    Parameters
    ----------
    value
        The coefficient, or combination of coefficients.
    standard_error
        In its unit.
    degrees_of_freedom
        Of the standard error.
    inflation
        By how much autocorrelation raises its variance, at least 1.
    """

    value: float
    standard_error: float
    degrees_of_freedom: float
    inflation: float


def is_determined(design: Floats) -> bool:
    """Return whether every coefficient rests on several points."""
    columns, sizes, _ = np.linalg.svd(design, full_matrices=False)
    leverages = np.sum(columns**2, axis=1)
    return bool(sizes[-1] > _ROUNDING * sizes[0] and leverages.max() < 1.0 - _ALONE)


def regress(design: Floats, response: Floats, *, estimator: str = "ols") -> Regression:
    """Fit a linear regression.

    Parameters
    ----------
    design
        Regressors, shape (n, k), n > k, of full rank; no point may alone decide a coefficient.
    response
        Shape (n,), of size 1 or so: the scale on which residuals are taken for rounding.
    estimator
        "ols"; "weighted", with the inverse squares of the fitted values of "ols"; or "robust",
        which limits the residuals far from the others (Huber's T).

    Notes
    -----
    A robust fit solves X' psi(e) = 0, with psi the residual limited, and its coefficients move by
    (X' D X)^-1 X' psi(e), with D the derivative of psi: 1, or 0 where it limits (Huber 1981,
    section 7.6). That is the weighted fit, with weights D, to fitted values plus psi/D. A little
    above 0 (1/20) stands for 0, since the residuals not limited may be all of one amount.
    """
    # Its import takes over a second, which only those who come here shall pay.
    from statsmodels.regression.linear_model import WLS  # type: ignore[import-untyped] # noqa: PLC0415

    ones = np.ones(response.size)
    plain = _regression(WLS(response, design, weights=ones).fit(), response)
    if estimator == "ols" or not plain.residuals.any():
        return plain
    if estimator == "weighted":
        weights = (plain.levels.min() / plain.levels) ** 2
        return _regression(WLS(response, design, weights=weights).fit(), response)
    fitted, limited, free = _limit(design, response)
    found = _regression(WLS(fitted + limited / free, design, weights=free).fit(), response)
    # The noise is the limited residual, without the weight that made its pull.
    found = replace(found, roots=1.0 / found.roots)
    if np.abs(limited).max() <= _LEAST_LIMIT:
        found = replace(found, residuals=np.zeros_like(limited))
    return found


def load_statsmodels() -> None:
    """Import what `regress` needs, which takes over a second, before anything is timed."""
    import_module("statsmodels.regression.linear_model")


def _limit(design: Floats, response: Floats) -> tuple[Floats, Floats, Floats]:
    """Return robust fitted values, the residuals limited, and where they are not (as weights)."""
    from statsmodels.robust.robust_linear_model import RLM  # type: ignore[import-untyped] # noqa: PLC0415

    freedom = response.size - design.shape[1]

    def scale(residuals: Floats) -> float:
        # A fit of k coefficients may pass through k points, which tell nothing of the noise.
        return max(float(np.median(np.sort(np.abs(residuals))[-freedom:])) / _NORMAL, _ROUNDING)

    found = RLM(response, design).fit(scale_est=scale, maxiter=_ITERATIONS)
    limited = found.resid * found.weights
    return found.fittedvalues, limited, np.where(found.weights == 1.0, 1.0, _LIMITED)


def _regression(found: object, response: Floats) -> Regression:
    """Take what is needed from a fit of statsmodels."""
    design: Floats = found.model.wexog  # type: ignore[attr-defined]
    inverse: Floats = found.model.pinv_wexog  # type: ignore[attr-defined]
    roots = np.sqrt(found.model.weights)  # type: ignore[attr-defined]
    fitted: Floats = found.fittedvalues  # type: ignore[attr-defined]
    leverages = np.einsum("ij,ji->i", design, inverse)
    residuals: Floats = found.wresid  # type: ignore[attr-defined]
    if np.abs(response - fitted).max() <= _ROUNDING * np.abs(response).max():
        residuals = np.zeros_like(residuals)
    return Regression(
        design=design,
        inverse=inverse,
        coefficients=found.params,  # type: ignore[attr-defined]
        residuals=residuals,
        left_out=(response - fitted) / (1.0 - leverages),
        leverages=leverages,
        levels=np.maximum(fitted, _LEAST_SHARE * response.mean()),
        roots=roots,
    )


def noise_likelihoods(fit: Regression, *, order: int = 2) -> dict[float, float]:
    """Return the log-likelihood of each power of the fitted value as the size of the noise.

    Parameters
    ----------
    fit
        From `regress`, with residuals.
    order
        2 for normal noise; 1 for Laplace's, on which outliers have less pull.
    """
    residuals = np.abs(fit.residuals / fit.roots)
    logs = np.log(fit.levels)
    return {
        power: float(
            -logs.size / order * np.log(np.mean((residuals / fit.levels**power) ** order))
            - power * logs.sum()
        )
        for power in _GROWTHS
    }


def coefficient_errors(
    fit: Regression, combinations: npt.ArrayLike
) -> tuple[CoefficientError, ...]:
    """Return the standard errors of combinations of coefficients.

    Parameters
    ----------
    fit
        From `regress`, of points in the order in which they were taken.
    combinations
        Shape (m, k): how much of each coefficient is in each combination.

    Notes
    -----
    HC3 (MacKinnon & White 1985): the sum of the squares of psi_i = p_i e_i / (1 - h_i), with p
    the combined row of the pseudo-inverse, e residuals and h leverages. It is multiplied by the
    long-run over the marginal variance of psi, from an autoregression of order 3 at most. Where
    the order of the amounts makes psi look uncorrelated though the noise is not, the noise
    itself is modelled (`_modelled_covariances`). Degrees of freedom: those of HC3 under equal
    variances, (tr K)^2 / tr(K K) with K = M diag(p^2 / (1 - h)^2) M and M = I - H (Bell &
    McCaffrey 2002), and at most n - k.
    """
    rows = np.asarray(combinations, dtype=np.float64)
    exact = not fit.residuals.any()
    covariances = [] if exact else _modelled_covariances(fit)
    errors = []
    for row in rows:
        projected = row @ fit.inverse
        scores = projected * fit.residuals / (1.0 - fit.leverages)
        plain = float(scores @ scores)
        modelled = max((float(row @ each @ row) for each in covariances), default=0.0)
        variance = max(plain * _inflation(scores), modelled)
        errors.append(
            CoefficientError(
                value=float(row @ fit.coefficients),
                standard_error=math.sqrt(variance),
                degrees_of_freedom=_degrees_of_freedom(fit, projected),
                inflation=variance / plain if plain > 0.0 else 1.0,
            )
        )
    return tuple(errors)


def _degrees_of_freedom(fit: Regression, projected: Floats) -> float:
    """Return (tr K)^2 / tr(K K), without a matrix of n x n."""
    n, k = fit.design.shape
    shares = (projected / (1.0 - fit.leverages)) ** 2
    shares = shares / shares.max()
    inner = (fit.inverse * shares) @ fit.design
    square = float(shares**2 @ (1.0 - 2.0 * fit.leverages)) + float(np.sum(inner * inner.T))
    trace = float(shares @ (1.0 - fit.leverages))
    # Between 1 and n - k but for rounding, where a point is nearly decisive.
    return float(trace**2 / min(max(square, trace**2 / (n - k)), trace**2))


def _inflation(scores: Floats) -> float:
    coefficients, innovation, covariances = autoregression(scores, highest=_HIGHEST)
    variance = float(covariances[0])
    if coefficients.size == 0:
        return 1.0
    gain = 1.0 - min(float(coefficients.sum()), 1.0 - 1.0 / scores.size)
    return max(1.0, innovation / gain**2 / variance)


def _modelled_covariances(fit: Regression) -> list[Floats]:
    """Return the covariance of the coefficients under each likely model of autocorrelated noise.

    The noise of a point is s x, with s a power of the fitted value and x an autoregressive
    series. The autoregression is fitted to the residuals over s; their size is held against what
    residuals of such noise would have, since the regression takes part of slow noise for signal.
    """
    n = fit.residuals.size
    likelihoods = noise_likelihoods(fit)
    least = max(likelihoods.values()) - _AS_LIKELY
    covariances = []
    for power in (each for each, likelihood in likelihoods.items() if likelihood >= least):
        sizes = fit.levels**power * fit.roots
        series = fit.residuals / sizes / np.sqrt(1.0 - fit.leverages)
        coefficients, _, autocovariances = autoregression(series, highest=_HIGHEST)
        variance = float(autocovariances[0])
        if coefficients.size == 0:
            continue
        correlations = _correlations(_unbiased(coefficients, n), n)
        spread: Floats = (
            linalg.matmul_toeplitz(correlations, (fit.inverse * sizes).T) * sizes[:, None]
        )
        covariance: Floats = fit.inverse @ spread
        expected = (
            sizes**2
            - 2.0 * np.sum(fit.design * spread, axis=1)
            + np.sum(fit.design @ covariance * fit.design, axis=1)
        )
        share = float(np.mean(expected / sizes**2 / (1.0 - fit.leverages)))
        covariances.append(covariance * (variance / share))
    return covariances


def _unbiased(coefficients: Floats, n: int) -> Floats:
    """Correct the coefficient sum for its bias towards zero, and keep the series stationary.

    With two coefficients fitted before, the first-order bias is (1 + 4 sum) / n where that of
    a mean is (1 + 3 sum) / n (Marriott & Pope 1954).
    """
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
    """Return the autocorrelations of an autoregressive series at lags 0 to n - 1."""
    order = coefficients.size
    # Yule-Walker: r_k = sum_j phi_j r_|k - j| for k = 1 to the order, with r_0 = 1.
    system = np.eye(order + 1)
    for lag in range(1, order + 1):
        for back in range(1, order + 1):
            system[lag, abs(lag - back)] -= coefficients[back - 1]
    found = np.linalg.solve(system, np.eye(order + 1)[0]).tolist()
    backwards = coefficients[::-1].tolist()
    while len(found) < n:
        found.append(math.fsum(map(float.__mul__, backwards, found[-order:])))
    return np.array(found[:n])
