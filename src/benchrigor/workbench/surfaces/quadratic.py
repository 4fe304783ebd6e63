"""A quadratic of the logarithms of answers, by weighted least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from benchrigor.model.series import Floats
from benchrigor.workbench.surfaces.factors import Point, Space

QUADRATIC = "quadratic"

_DECISIVE = 1e-6  # a sample with a leverage nearer to 1 decides a coefficient alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadratic:
    """A fitted quadratic, or a plane if samples are too few.

    Parameters
    ----------
    left_out
        Logarithms of samples less their leave-one-out predictions.
    left_out_sd
        Standard deviations of these.
    misfit_sd
        Standard deviation of the surface from the quadratic, beyond the errors of the samples.
    p_fit
        Probability of such distances of samples from it by their errors alone.
    freedom
        The number of samples less the number of coefficients.
    """

    name = QUADRATIC

    left_out: Floats
    left_out_sd: Floats
    misfit_sd: float
    p_fit: float
    freedom: int
    _space: Space
    _coefficients: Floats
    _covariance: Floats

    def predictions(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return means and standard deviations of the logarithms at points."""
        rows = _design(self._space, points)[:, : self._coefficients.size]
        variances = np.einsum("ij,jk,ik->i", rows, self._covariance, rows) + self.misfit_sd**2
        return rows @ self._coefficients, np.sqrt(variances)

    def joint(self, points: Sequence[Point], sums: Floats | None = None) -> tuple[Floats, Floats]:
        """Return means and the covariance of the logarithms at points; or of sums of these.

        A row of ``sums`` has the weights of one sum.
        """
        sums = np.eye(len(points)) if sums is None else sums
        rows = sums @ _design(self._space, points)[:, : self._coefficients.size]
        covariance = rows @ self._covariance @ rows.T + self.misfit_sd**2 * (sums @ sums.T)
        return rows @ self._coefficients, covariance


def fit_quadratic(
    space: Space, points: Sequence[Point], logs: Floats, errors: Floats
) -> Quadratic | None:
    """Fit a quadratic to logarithms with known standard errors; None if it is undetermined.

    It has all terms if samples outnumber these and the constant; else only linear ones. A sample is
    weighted by the sum of its own variance and the variance of the lack of fit. The latter makes
    the chi-square of the residuals equal to its expectation (Paule & Mandel 1982). The covariance
    of coefficients is HC3 (MacKinnon & White 1985), or that by the weights if it makes predictions
    of the samples vary more: a few residuals may all be small by chance.
    """
    design = _design(space, points)
    for width in (design.shape[1], width_of_plane(space)):
        columns = design[:, :width]
        is_full = len(points) > width and np.linalg.matrix_rank(columns) == width
        if is_full and (fitted := _fit(space, columns, logs, errors)):
            return fitted
    return None


def _fit(space: Space, design: Floats, logs: Floats, errors: Floats) -> Quadratic | None:
    """Fit these columns; None if one sample decides a coefficient, or all others are too vague."""
    from statsmodels.regression.linear_model import WLS  # type: ignore[import-untyped] # noqa: PLC0415

    freedom = len(logs) - int(design.shape[1])

    def model(misfit: float) -> Any:
        return WLS(logs, design, weights=1.0 / (errors**2 + misfit))

    def excess(misfit: float) -> float:
        return float(np.sum(model(misfit).fit().wresid ** 2)) - freedom

    found, most = excess(0.0), float(np.var(logs)) * len(logs)
    misfit = scipy.optimize.brentq(excess, 0.0, most) if found > 0.0 else 0.0
    weighted = model(misfit)
    rest = 1.0 - _leverages(weighted.wexog)
    if rest.min() <= _DECISIVE:
        return None
    fitted = weighted.fit(cov_type="HC3")
    both = fitted.cov_params(), fitted.normalized_cov_params
    covariance = max(both, key=lambda one: float(np.trace(design @ one @ design.T)))
    return Quadratic(
        left_out=fitted.resid / rest,
        left_out_sd=np.sqrt((errors**2 + misfit) / rest),
        misfit_sd=math.sqrt(misfit),
        p_fit=float(scipy.special.chdtrc(freedom, found + freedom)),
        freedom=freedom,
        _space=space,
        _coefficients=fitted.params,
        _covariance=covariance,
    )


def _leverages(design: Floats) -> Floats:
    """Return the shares of samples in their own predictions."""
    leverages: Floats = np.sum(np.linalg.qr(design).Q ** 2, axis=1)
    return leverages


def _design(space: Space, points: Sequence[Point]) -> Floats:
    return np.column_stack([np.ones(len(points)), space.terms(points)])


def width_of_plane(space: Space) -> int:
    """Return the number of coefficients of a plane, including the constant."""
    return 1 + sum(len(factor.levels) - 1 if factor.is_category else 1 for factor in space.factors)
