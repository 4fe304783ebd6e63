"""A Gaussian process of the logarithms of answers around a plane."""

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

# Normal priors of the logarithms of the variance, relative to the samples, and of the length
# scales, in coded units: mean and standard deviation. Eight samples alone do not determine them.
_VARIANCE, _LENGTH = (0.7, 0.5), (np.log(1.7), 0.6)
_BOUNDS = (1e-3, 1e2)
_STARTS = (0.5, 1.7, 5.0)  # length scales
_MOST_POINTS = 100  # to choose variance and length scales, as the time grows with their cube
_HOSTS = (0.05, 0.2)  # candidates for the standard deviation of effects of hosts
_LEVEL_SD = 3.0  # of the constant, relative to the samples; slopes have 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProcess:
    """A fitted process.

    Parameters
    ----------
    left_out
        Logarithms of samples less their leave-one-out predictions.
    left_out_sd
        Standard deviations of these.
    level, spread
        Of the logarithms; the process is fitted to (logarithm - level) / spread.
    density
        Logarithm of the posterior density of variance and length scales, without a constant.
    host_sd, hosts
        Standard deviation of the effects of hosts, and their number. Predictions are for the mean
        of hosts.
    """

    name = GAUSSIAN_PROCESS

    left_out: Floats
    left_out_sd: Floats
    _space: Space
    level: float
    spread: float
    density: float
    kernel: Any  # of scikit-learn, with these
    _known: Floats  # coordinates of the samples
    _root: Floats  # of their covariance
    _weights: Floats
    host_sd: float = 0.0
    hosts: int = 1

    def predictions(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return means and standard deviations of the logarithms at points."""
        rows = self._rows(points)
        across = self.kernel(rows, self._known)
        explained = np.sum(_solve(self._root, across.T) ** 2, axis=0)
        variances = np.maximum(self.kernel.diag(rows) - explained, 0.0)
        mean: Floats = self.level + self.spread * (across @ self._weights)
        return mean, self.spread * np.sqrt(variances)

    def joint(self, points: Sequence[Point], sums: Floats | None = None) -> tuple[Floats, Floats]:
        """Return means and the covariance of the logarithms at points; or of sums of these.

        A row of ``sums`` has the weights of one sum.
        """
        return self._joint(self._rows(points), np.eye(len(points)) if sums is None else sums)

    def _joint(self, rows: Floats, sums: Floats) -> tuple[Floats, Floats]:
        across = sums @ self.kernel(rows, self._known)
        root = _solve(self._root, across.T)
        covariance = sums @ self.kernel(rows) @ sums.T - root.T @ root
        mean = self.level * sums.sum(axis=1) + self.spread * (across @ self._weights)
        return mean, self.spread**2 * covariance

    def host_effects(self, point: Point) -> tuple[Floats, Floats]:
        """Return log ratios of hosts to their mean, and standard deviations."""
        rows = np.repeat(self._rows([point]), self.hosts + 1, axis=0)
        rows[1:, -self.hosts :] = np.eye(self.hosts) * self.host_sd / self.spread
        apart = np.column_stack([-np.ones(self.hosts), np.eye(self.hosts)])
        mean, covariance = self._joint(rows, apart)
        return mean, np.sqrt(np.maximum(np.diag(covariance), 0.0))

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

    The model is a plane with a normal prior on its slopes, and a process around it with a Matern
    kernel of 5/2 and one length scale per coordinate (Rasmussen & Williams 2006, equations 2.40 and
    4.17). Variance and length scales have the greatest posterior density, under log-normal priors.
    Leave-one-out predictions follow their equation 5.12, with these fixed. If there are more than
    100 points, a random 100 choose variance and length scales, and then all count.

    ``hosts`` has one entry per point. Several hosts have random effects, slopes of the plane in
    coordinates of their own, with the candidate deviation of the greatest posterior density.
    """
    names = sorted({*hosts})
    if len(names) < 2:
        return _fit(space, points, logs, errors)
    which = np.array([[host == name for name in names] for host in hosts], dtype=np.float64)
    fits = [_fit(space, points, logs, errors, which=which, host_sd=sd) for sd in _HOSTS]
    return max(fits, key=lambda fit: fit.density)


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
    kernel = regressor.kernel_
    root = scipy.linalg.cholesky(kernel(rows) + np.diag(noise), lower=True)
    weights = scipy.linalg.cho_solve((root, True), known)
    precision = np.sum(_solve(root, np.eye(len(points))) ** 2, axis=0)  # of the inverse
    return GaussianProcess(
        left_out=spread * weights / precision,
        left_out_sd=spread / np.sqrt(precision),
        _space=space,
        level=level,
        spread=spread,
        density=regressor.log_marginal_likelihood_value_ - _prior(kernel.theta)[0],
        kernel=kernel,
        _known=rows,
        _root=root,
        _weights=weights,
        host_sd=host_sd,
        hosts=1 if which is None else which.shape[1],
    )


def _solve(root: Floats, columns: Floats) -> Floats:
    solved: Floats = scipy.linalg.solve_triangular(root, columns, lower=True)
    return solved


def _prior(theta: Floats) -> tuple[float, Floats]:
    """Return minus the logarithm of the prior density of variance and length scales, its slope."""
    mean, sd = np.array([_VARIANCE, *[_LENGTH] * (theta.size - 1)]).T
    apart = (theta - mean) / sd
    return float(apart @ apart) / 2.0, apart / sd


def _most_probable(
    likelihood: Callable[..., tuple[float, Floats]], theta: Floats, bounds: Floats
) -> tuple[Floats, float]:
    """Return the logarithms of variance and length scales of greatest posterior density."""

    def lack(at: Floats) -> tuple[float, Floats]:
        (value, slope), (more, steeper) = likelihood(at, eval_gradient=True), _prior(at)
        return value + more, slope + steeper

    starts = (np.array([_VARIANCE[0], *[np.log(start)] * (theta.size - 1)]) for start in _STARTS)
    found = [
        scipy.optimize.minimize(lack, start, jac=True, method="L-BFGS-B", bounds=bounds.tolist())
        for start in starts
    ]
    best = min(found, key=lambda fit: float(fit.fun))
    return best.x, float(best.fun)
