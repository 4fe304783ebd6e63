"""The models of a response: a quadratic, and a Gaussian process around a plane.

Both are of the logarithms of answers. `fit_response` chooses between them by their errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from benchrigor.errors import MissingExtra
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.series import Floats
from benchrigor.stats.least_squares import Regression, least_squares
from benchrigor.workbench.designs import Measured, Point, Space, relative_error

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

    def joint(self, points: Sequence[Point], sums: Floats) -> tuple[Floats, Floats]:
        """Return means and the covariance of sums of the logarithms at points.

        A row of ``sums`` has the weights of one sum.
        """
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
    freedom = len(logs) - int(design.shape[1])

    def fitted(misfit: float) -> Regression:
        return least_squares(design, logs, 1.0 / (errors**2 + misfit))

    def excess(misfit: float) -> float:
        return float(np.sum(fitted(misfit).residuals ** 2)) - freedom

    found, most = excess(0.0), float(np.var(logs)) * len(logs)
    misfit = scipy.optimize.brentq(excess, 0.0, most) if found > 0.0 else 0.0
    fit = fitted(misfit)
    rest = 1.0 - fit.leverages
    if rest.min() <= _DECISIVE:
        return None
    moves = fit.inverse * (fit.residuals / rest)  # HC3
    both = moves @ moves.T, fit.inverse @ fit.inverse.T
    covariance = max(both, key=lambda one: float(np.trace(design @ one @ design.T)))
    return Quadratic(
        left_out=fit.left_out,
        left_out_sd=np.sqrt((errors**2 + misfit) / rest),
        misfit_sd=math.sqrt(misfit),
        p_fit=float(scipy.special.chdtrc(freedom, found + freedom)),
        freedom=freedom,
        _space=space,
        _coefficients=fit.coefficients,
        _covariance=covariance,
    )


def _design(space: Space, points: Sequence[Point]) -> Floats:
    return np.column_stack([np.ones(len(points)), space.terms(points)])


def width_of_plane(space: Space) -> int:
    """Return the number of coefficients of a plane, including the constant."""
    return 1 + sum(len(factor.levels) - 1 if factor.is_category else 1 for factor in space.factors)


GAUSSIAN_PROCESS = "gaussian-process"

# Normal priors of the logarithms of the variance, relative to the samples, and of the length
# scales, in coded units: mean and standard deviation. Eight samples alone do not determine them.
_VARIANCE, _LENGTH = (0.7, 0.5), (np.log(2.5), 0.6)
_BOUNDS = (1e-3, 1e2)
_STARTS = (0.5, 2.5, 5.0)  # length scales
_MOST_POINTS = 100  # to choose variance and length scales, as the time grows with their cube
_HOSTS = (0.05, 0.2)  # candidates for the standard deviation of effects of hosts
_DRAWS = 32  # from the priors, next to the most probable ones
_LEAST_SHARE = 0.01  # of the likelihood of the likeliest: less hardly moves a prediction
_LEVEL_SD = 3.0  # of the constant, relative to the samples; slopes have 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A process of fixed variance, length scales, and deviation of the effects of hosts."""

    scales: _Scales
    root: Floats  # of the covariance of the samples
    weights: Floats

    def moments(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return means and variances at rows of coordinates."""
        across = self.scales.kernel(rows, self.scales.rows)
        explained = np.sum(_solve(self.root, across.T) ** 2, axis=0)
        return across @ self.weights, np.maximum(self.scales.kernel.diag(rows) - explained, 0.0)

    def joint(self, rows: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Return means and the covariance of sums of values at rows of coordinates."""
        across = sums @ self.scales.kernel(rows, self.scales.rows)
        root = _solve(self.root, across.T)
        return across @ self.weights, sums @ self.scales.kernel(rows) @ sums.T - root.T @ root

    def left_out(self) -> tuple[Floats, Floats]:
        """Return samples less their leave-one-out predictions, and the variances of these."""
        precision = np.sum(_solve(self.root, np.eye(self.weights.size)) ** 2, axis=0)
        return self.weights / precision, 1.0 / precision


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProcess:
    """A fitted process: the mean of candidates, by their probability.

    Parameters
    ----------
    left_out
        Logarithms of samples less their leave-one-out predictions.
    left_out_sd
        Standard deviations of these.
    level, spread
        Of the logarithms; the process is fitted to (logarithm - level) / spread.
    hosts
        The number of hosts with effects; 0 without. Predictions are for their mean.
    """

    name = GAUSSIAN_PROCESS

    left_out: Floats
    left_out_sd: Floats
    _space: Space
    level: float
    spread: float
    _candidates: Sequence[_Candidate]
    hosts: int = 0

    def predictions(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return means and standard deviations of the logarithms at points."""
        rows = self._space.coordinates(points)
        found = [one.moments(self._with_hosts(rows, one)) for one in self._candidates]
        mean, variance = _together(self._candidates, found, np.square)
        return self.level + self.spread * mean, self.spread * np.sqrt(variance)

    def joint(self, points: Sequence[Point], sums: Floats) -> tuple[Floats, Floats]:
        """Return means and the covariance of sums of the logarithms at points.

        A row of ``sums`` has the weights of one sum.
        """
        rows = self._space.coordinates(points)
        found = [one.joint(self._with_hosts(rows, one), sums) for one in self._candidates]
        mean, covariance = _together(self._candidates, found, lambda off: np.outer(off, off))
        return self.level * sums.sum(axis=1) + self.spread * mean, self.spread**2 * covariance

    def host_effects(self, point: Point) -> tuple[Floats, Floats]:
        """Return log ratios of hosts to their mean, and standard deviations."""
        apart = np.column_stack([-np.ones(self.hosts), np.eye(self.hosts)])
        row, found = self._space.coordinates([point]), []
        for one in self._candidates:
            rows = np.repeat(self._with_hosts(row, one), self.hosts + 1, axis=0)
            rows[1:, -self.hosts :] = np.eye(self.hosts) * one.scales.host_sd / self.spread
            mean, covariance = one.joint(rows, apart)
            found.append((mean, np.diag(covariance)))
        mean, variance = _together(self._candidates, found, np.square)
        return self.spread * mean, self.spread * np.sqrt(np.maximum(variance, 0.0))

    def _with_hosts(self, rows: Floats, one: _Candidate) -> Floats:
        """Return rows of coordinates, on the mean of the hosts."""
        if not self.hosts:
            return rows
        mean = np.full((len(rows), self.hosts), one.scales.host_sd / self.spread / self.hosts)
        return np.hstack([rows, mean])


def _together(
    candidates: Sequence[_Candidate],
    found: Sequence[tuple[Floats, Floats]],
    square: Callable[[Floats], Floats],
) -> tuple[Floats, Floats]:
    """Return the moments of candidates together; ``square`` gives the variance between them."""
    likelihoods = np.array([one.scales.likelihood for one in candidates])
    shares = np.exp(likelihoods - scipy.special.logsumexp(likelihoods))
    mean = sum(share * one for share, (one, _) in zip(shares, found, strict=True))
    variance = sum(
        share * (within + square(one - mean))
        for share, (one, within) in zip(shares, found, strict=True)
    )
    return mean, variance


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
    4.17). Few samples do not show its variance and length scales: it is the mean of processes of
    the most probable ones and of others from their log-normal priors, by their likelihood (their
    section 5.2; moments of a mixture). Leave-one-out predictions follow their equation 5.12, with
    these fixed. If there are more than 100 points, a random 100 give the likelihood.

    ``hosts`` has one entry per point. Several hosts have random effects, slopes of the plane in
    coordinates of their own, with candidates for their deviation.
    """
    names = sorted({*hosts})
    has_effects = len(names) > 1
    which = np.array([[host == name for name in names] for host in hosts], dtype=np.float64)
    level = float(np.average(logs, weights=errors**-2.0))
    spread = max(float(np.std(logs)), float(np.median(errors)))
    known, noise = (logs - level) / spread, (errors / spread) ** 2
    rows = space.coordinates(points)
    drawn: list[_Scales] = []
    for host_sd in _HOSTS if has_effects else (0.0,):
        own = np.hstack([rows, which * host_sd / spread]) if has_effects else rows
        drawn += _draw_scales(own, known, noise, host_sd)
    least = max(one.likelihood for one in drawn) + np.log(_LEAST_SHARE)
    candidates = [_condition(one, known, noise) for one in drawn if one.likelihood > least]
    off, variance = _together(candidates, [one.left_out() for one in candidates], np.square)
    return GaussianProcess(
        left_out=spread * off,
        left_out_sd=spread * np.sqrt(variance),
        _space=space,
        level=level,
        spread=spread,
        _candidates=candidates,
        hosts=len(names) if has_effects else 0,
    )


class _Scales(NamedTuple):
    """Variance and length scales of a process, not yet conditioned on the samples."""

    likelihood: float  # its logarithm
    kernel: Any  # of scikit-learn
    rows: Floats  # coordinates of the samples
    host_sd: float


def _draw_scales(rows: Floats, known: Floats, noise: Floats, host_sd: float) -> Iterator[_Scales]:
    """Yield the most probable variance and length scales, and draws from their priors."""
    models = load_models()
    kernels = models.kernels
    some = np.arange(len(rows))
    if some.size > _MOST_POINTS:
        some = np.random.default_rng(some.size).choice(some.size, _MOST_POINTS, replace=False)
    scales = np.full(rows.shape[1], _STARTS[1])
    process = kernels.ConstantKernel(1.0, _BOUNDS) * kernels.Matern(scales, _BOUNDS, nu=2.5)
    plane = kernels.DotProduct(_LEVEL_SD, "fixed")
    regressor = models.GaussianProcessRegressor(
        process + plane, alpha=noise[some], optimizer=_most_probable
    ).fit(rows[some], known[some])
    most_probable = regressor.kernel_.theta
    mean, sd = _priors(most_probable.size)
    normal = np.random.default_rng(_DRAWS).standard_normal((_DRAWS, sd.size))
    for theta in [most_probable, *np.clip(mean + sd * normal, *np.log(_BOUNDS))]:
        likelihood = float(regressor.log_marginal_likelihood(theta))
        yield _Scales(likelihood, regressor.kernel_.clone_with_theta(theta), rows, host_sd)


def _condition(scales: _Scales, known: Floats, noise: Floats) -> _Candidate:
    """Return the process of known scales, given the samples."""
    root = scipy.linalg.cholesky(scales.kernel(scales.rows) + np.diag(noise), lower=True)
    weights = scipy.linalg.cho_solve((root, True), known)
    return _Candidate(scales=scales, root=root, weights=weights)


def _solve(root: Floats, columns: Floats) -> Floats:
    solved: Floats = scipy.linalg.solve_triangular(root, columns, lower=True)
    return solved


def _priors(size: int) -> tuple[Floats, Floats]:
    """Return means and standard deviations of the priors of variance and length scales."""
    mean, sd = np.array([_VARIANCE, *[_LENGTH] * (size - 1)]).T
    return mean, sd


def _prior(theta: Floats) -> tuple[float, Floats]:
    """Return minus the logarithm of the prior density of variance and length scales, its slope."""
    mean, sd = _priors(theta.size)
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


# --- the model of one response, and its errors

AUTO = "auto"
_WIDE = 2.0  # predictions are far off from this factor on
_LACK = 0.01
_NORMAL = 1e9  # degrees of freedom that are as good as infinitely many
_SURE = 0.99  # of the limit of a quadratic's leave-one-out error


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFit:
    """The model of one response."""

    points: Sequence[Point]
    several: Sequence[Sequence[Estimate]]  # by point
    model: Quadratic | GaussianProcess | None = None
    process: GaussianProcess | None = None
    error: float = 0.0  # relative standard error of a typical sample
    scale: float = 1.0
    sign: float = 1.0  # -1 if lower answers are better
    hosts: tuple[str, ...] = ()  # with effects of their own
    notices: tuple[Notice, ...] = ()

    @property
    def freedom(self) -> float:
        """Degrees of freedom of predictions; a process knows what its scales leave uncertain."""
        if isinstance(self.model, GaussianProcess):
            return math.inf
        return float(len(self.points) - max(len(self.hosts), 1))

    @property
    def loo_error(self) -> float | None:
        """Mean absolute relative error of leave-one-out predictions."""
        if self.model is None:
            return None
        return float(np.mean(np.abs(np.expm1(-self.model.left_out))))

    def draws(self, moments: tuple[Floats, Floats], count: int, rng: np.random.Generator) -> Floats:
        """Draw from the multivariate t distribution of mean and covariance, a row per draw."""
        mean, covariance = moments
        values, vectors = scipy.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        freedom = min(self.freedom, _NORMAL)
        widths = self.scale * np.sqrt(freedom / rng.chisquare(freedom, count))
        drawn: Floats = mean + widths[:, None] * (rng.standard_normal((count, mean.size)) @ root.T)
        return drawn


def too_few(space: Space, n: int) -> Notice:
    """Return the refusal of a model with too few points."""
    wanted = _least_points(space)
    return Notice.of(Code.TOO_FEW_SAMPLES, n=n, wanted=wanted)


def _least_points(space: Space) -> int:
    """Return the least number of points of a model: a plane and two degrees of freedom."""
    return width_of_plane(space) + 2


def fit_response(
    space: Space,
    samples: Sequence[Measured],
    response: str,
    *,
    interchangeable: bool,
    wanted_model: str = AUTO,
) -> ResponseFit:
    """Fit the models of a response, and choose between them; see `fit_surface`."""
    together: dict[tuple[object, str], list[tuple[Point, Estimate]]] = {}
    known = [found for found in samples if response in found.estimates]
    hosts = sorted({str(found.host) for found in known if found.host})
    wanted = math.inf if wanted_model == QUADRATIC else _least_points(space) + len(hosts) - 1
    n_points = len({space.key(found.sample.point) for found in known})
    may_differ = len(hosts) > 1 and not interchangeable
    are_blocks = may_differ and n_points >= wanted
    for found in known:
        point, host = found.sample.point, str(found.host) if are_blocks else ""
        key = (space.key(point), host)
        together.setdefault(key, []).append((point, found.estimates[response]))
    points = [pairs[0][0] for pairs in together.values()]
    several = [[estimate for _, estimate in pairs] for pairs in together.values()]
    logs, errors = np.reshape([average(estimates) for estimates in several], (-1, 2)).T
    if n_points < _least_points(space):
        return ResponseFit(points=points, several=several, notices=(too_few(space, n_points),))
    blocks = [host for _, host in together] if are_blocks else []
    process = fit_gaussian_process(space, points, logs, errors, blocks)
    quadratic = None if are_blocks else fit_quadratic(space, points, logs, errors)
    model = _choose(process, quadratic, wanted_model)
    if model is None:
        none = Notice.of(Code.TOO_FEW_SAMPLES, "undetermined", n=n_points)
        return ResponseFit(points=points, several=several, notices=(none,))
    rms = float(np.sqrt(np.mean((model.left_out / model.left_out_sd) ** 2)))
    notices: list[Notice] = []
    if isinstance(model, Quadratic) and model.p_fit < _LACK:
        notices.append(Notice.of(Code.LACK_OF_FIT, p=model.p_fit, misfit=model.misfit_sd))
    if rms > _WIDE:
        notices.append(Notice.of(Code.PREDICTIONS_WIDENED, factor=rms))
    if may_differ and not are_blocks:
        case = "" if math.isfinite(wanted) else "never"
        notices.append(Notice.of(Code.HOSTS_UNKNOWN, case, n=n_points, wanted=wanted))
    return ResponseFit(
        points=points,
        several=several,
        model=model,
        process=process,
        error=float(np.median(errors)),
        scale=max(1.0, rms),
        hosts=tuple(hosts) if are_blocks else (),
        notices=tuple(notices),
    )


def average(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """Return the logarithm of the average of one point's estimates, and its standard error.

    If they differ by more than their errors, the error grows accordingly (Birge 1932).
    """
    if len(estimates) == 1:
        (one,) = estimates
        return math.log(one.value), relative_error(one)
    logs = np.log([estimate.value for estimate in estimates])
    errors = np.array([relative_error(estimate) for estimate in estimates])
    weights = errors**-2.0
    mean = float(np.average(logs, weights=weights))
    ratio = float(weights @ (logs - mean) ** 2) / max(len(estimates) - 1, 1)
    return mean, math.sqrt(max(1.0, ratio) / float(weights.sum()))


def _choose(
    process: GaussianProcess, quadratic: Quadratic | None, wanted: str = AUTO
) -> Quadratic | GaussianProcess | None:
    """Return the wanted model; or the one of lower leave-one-out error, a quadratic's limit."""
    if wanted == QUADRATIC:
        return quadratic
    if quadratic is None or wanted == GAUSSIAN_PROCESS:
        return process
    own, other = (float(np.mean(np.abs(fit.left_out))) for fit in (process, quadratic))
    lowest = float(scipy.special.chdtri(quadratic.freedom, _SURE))
    return quadratic if other * math.sqrt(quadratic.freedom / lowest) < own else process
