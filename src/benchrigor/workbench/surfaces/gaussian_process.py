"""A Gaussian process of the logarithms of answers, round a plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from benchrigor.errors import MissingExtra
from benchrigor.model import Floats
from benchrigor.workbench.surfaces.factors import Point, Space

GAUSSIAN_PROCESS = "gaussian-process"

# Normal priors of the logarithms of the variance, relative to that of the samples, and of the
# length scales, in coded units: mean and standard deviation. Eight samples alone do not tell them.
_VARIANCE, _LENGTH = (0.7, 0.5), (np.log(1.7), 0.6)
_BOUNDS = (1e-3, 1e2)
_STARTS = (0.5, 1.7, 5.0)  # length scales
_MOST_POINTS = 100  # that choose variance and length scales, since the time grows with their cube
_LEVEL_SD = 3.0  # of the constant, over that of the samples; that of slopes is 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProcess:
    """A fitted process.

    Parameters
    ----------
    left_out
        Of each sample its logarithm less what the others predict.
    left_out_sd
        Standard deviations of these.
    level, spread
        Of the logarithms; what is fitted are their differences from the level over the spread.
    regressor
        Of scikit-learn.
    """

    name = GAUSSIAN_PROCESS

    left_out: Floats
    left_out_sd: Floats
    _space: Space
    level: float
    spread: float
    regressor: Any

    def predictions(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return means and standard deviations of the logarithms at points."""
        rows = self._space.coordinates(points)
        mean, sd = self.regressor.predict(rows, return_std=True)
        return self.level + self.spread * mean, self.spread * sd

    def joint(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return means and the covariance of the logarithms at points."""
        rows = self._space.coordinates(points)
        mean, covariance = self.regressor.predict(rows, return_cov=True)
        return self.level + self.spread * mean, self.spread**2 * covariance


def load_models() -> Any:
    """Load the Gaussian processes of scikit-learn.

    Raises
    ------
    MissingExtra
        Without it.
    """
    try:
        from sklearn import gaussian_process  # type: ignore[import-untyped] # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("a map", package="scikit-learn", extra="workbench") from error
    return gaussian_process


def fit_gaussian_process(
    space: Space, points: Sequence[Point], logs: Floats, errors: Floats
) -> GaussianProcess:
    """Fit a process to logarithms with known standard errors.

    A plane with a normal prior on its slopes, and a process round it with a Matern kernel of 5/2
    and a length scale for each coordinate (Rasmussen & Williams 2006, equations 2.40 and 4.17).
    Variance and length scales have the greatest posterior density, under log-normal priors. What
    the others predict of each sample is their equation 5.12, with these kept. Of more than 100
    points as many, drawn by chance, choose variance and length scales, and all then count.
    """
    models = load_models()
    kernels = models.kernels
    rows = space.coordinates(points)
    level = float(np.average(logs, weights=errors**-2.0))
    spread = max(float(np.std(logs)), float(np.median(errors)))
    scales = np.full(rows.shape[1], _STARTS[1])
    process = kernels.ConstantKernel(1.0, _BOUNDS) * kernels.Matern(scales, _BOUNDS, nu=2.5)
    plane = kernels.DotProduct(_LEVEL_SD, "fixed")
    known, noise = (logs - level) / spread, (errors / spread) ** 2
    some = np.arange(len(points))
    if some.size > _MOST_POINTS:
        some = np.random.default_rng(some.size).choice(some.size, _MOST_POINTS, replace=False)
    regressor = models.GaussianProcessRegressor(
        process + plane, alpha=noise[some], optimizer=_most_probable
    ).fit(rows[some], known[some])
    if some.size < len(points):
        regressor = models.GaussianProcessRegressor(regressor.kernel_, alpha=noise, optimizer=None)
        regressor.fit(rows, known)
    inverse = scipy.linalg.cho_solve((regressor.L_, True), np.eye(len(points)))
    precision = np.diag(inverse)
    return GaussianProcess(
        left_out=spread * (inverse @ known) / precision,
        left_out_sd=spread / np.sqrt(precision),
        _space=space,
        level=level,
        spread=spread,
        regressor=regressor,
    )


def _most_probable(
    likelihood: Callable[..., tuple[float, Floats]], theta: Floats, bounds: Floats
) -> tuple[Floats, float]:
    """Return the logarithms of variance and length scales of greatest posterior density."""
    mean = np.array([_VARIANCE[0], *[_LENGTH[0]] * (theta.size - 1)])
    sd = np.array([_VARIANCE[1], *[_LENGTH[1]] * (theta.size - 1)])

    def lack(at: Floats) -> tuple[float, Floats]:
        value, slope = likelihood(at, eval_gradient=True)
        apart = (at - mean) / sd
        return value + float(apart @ apart) / 2.0, slope + apart / sd

    starts = (np.array([mean[0], *[np.log(each)] * (theta.size - 1)]) for each in _STARTS)
    found = [
        scipy.optimize.minimize(lack, start, jac=True, method="L-BFGS-B", bounds=bounds.tolist())
        for start in starts
    ]
    best = min(found, key=lambda each: float(each.fun))
    return best.x, float(best.fun)
