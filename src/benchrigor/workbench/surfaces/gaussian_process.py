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
_HOSTS = (0.05, 0.2)  # standard deviations of the effects of hosts that are tried
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
    host_sd, hosts
        Standard deviation of the effects of hosts, of which predictions are for the mean, and how
        many hosts there are.
    """

    name = GAUSSIAN_PROCESS

    left_out: Floats
    left_out_sd: Floats
    _space: Space
    level: float
    spread: float
    regressor: Any
    host_sd: float = 0.0
    hosts: int = 1

    def predictions(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return means and standard deviations of the logarithms at points."""
        rows = self._rows(points)
        mean, sd = self.regressor.predict(rows, return_std=True)
        return self.level + self.spread * mean, self.spread * sd

    def joint(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return means and the covariance of the logarithms at points."""
        rows = self._rows(points)
        mean, covariance = self.regressor.predict(rows, return_cov=True)
        return self.level + self.spread * mean, self.spread**2 * covariance

    def host_effects(self, point: Point) -> tuple[Floats, Floats]:
        """Return logarithms of what each host gives over their mean, and standard deviations."""
        rows = np.repeat(self._rows([point]), self.hosts + 1, axis=0)
        rows[1:, -self.hosts :] = np.eye(self.hosts) * self.host_sd / self.spread
        mean, covariance = self.regressor.predict(rows, return_cov=True)
        apart = np.column_stack([-np.ones(self.hosts), np.eye(self.hosts)])
        variances = np.diag(apart @ covariance @ apart.T)
        return self.spread * (apart @ mean), self.spread * np.sqrt(np.maximum(variances, 0.0))

    def _rows(self, points: Sequence[Point]) -> Floats:
        """Return the coordinates of points, on the mean of the hosts."""
        rows = self._space.coordinates(points)
        if self.hosts == 1:
            return rows
        mean = np.full((len(points), self.hosts), self.host_sd / self.spread / self.hosts)
        return np.hstack([rows, mean])


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
    space: Space,
    points: Sequence[Point],
    logs: Floats,
    errors: Floats,
    hosts: Sequence[str] = (),
) -> GaussianProcess:
    """Fit a process to logarithms with known standard errors.

    A plane with a normal prior on its slopes, and a process round it with a Matern kernel of 5/2
    and a length scale for each coordinate (Rasmussen & Williams 2006, equations 2.40 and 4.17).
    Variance and length scales have the greatest posterior density, under log-normal priors. What
    the others predict of each sample is their equation 5.12, with these kept. Of more than 100
    points as many, drawn by chance, choose variance and length scales, and all then count.

    Of several ``hosts``, one for each point, each has a random effect: a slope of the plane in a
    coordinate of its own, whose standard deviation has the greatest posterior density of some.
    """
    names = sorted({*hosts})
    if len(names) < 2:
        return _fit(space, points, logs, errors)
    which = np.array([[host == name for name in names] for host in hosts], dtype=np.float64)
    fits = [_fit(space, points, logs, errors, which=which, host_sd=sd) for sd in _HOSTS]
    return max(fits, key=_density)


def _fit(
    space: Space,
    points: Sequence[Point],
    logs: Floats,
    errors: Floats,
    *,
    which: Floats | None = None,
    host_sd: float = 0.0,
) -> GaussianProcess:
    models = load_models()
    kernels = models.kernels
    rows = space.coordinates(points)
    level = float(np.average(logs, weights=errors**-2.0))
    spread = max(float(np.std(logs)), float(np.median(errors)))
    if which is not None:
        rows = np.hstack([rows, which * host_sd / spread])
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
        host_sd=host_sd,
        hosts=1 if which is None else which.shape[1],
    )


def _density(process: GaussianProcess) -> float:
    """Return the logarithm of the posterior density of its parameters, but for a constant."""
    theta = process.regressor.kernel_.theta
    mean, sd = _priors(theta.size)
    apart = (theta - mean) / sd
    return float(process.regressor.log_marginal_likelihood_value_) - float(apart @ apart) / 2.0


def _priors(size: int) -> tuple[Floats, Floats]:
    """Return means and standard deviations of the logarithms of variance and length scales."""
    mean = np.array([_VARIANCE[0], *[_LENGTH[0]] * (size - 1)])
    return mean, np.array([_VARIANCE[1], *[_LENGTH[1]] * (size - 1)])


def _most_probable(
    likelihood: Callable[..., tuple[float, Floats]], theta: Floats, bounds: Floats
) -> tuple[Floats, float]:
    """Return the logarithms of variance and length scales of greatest posterior density."""
    mean, sd = _priors(theta.size)

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
