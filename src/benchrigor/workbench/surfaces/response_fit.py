"""The model of one response of a map, and its errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.series import Floats
from benchrigor.workbench.surfaces import models
from benchrigor.workbench.surfaces.factors import Point, Space
from benchrigor.workbench.surfaces.models import GaussianProcess, Quadratic
from benchrigor.workbench.surfaces.samples import Measured, relative_error

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
    return models.width_of_plane(space) + 2


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
    wanted = math.inf if wanted_model == models.QUADRATIC else _least_points(space) + len(hosts) - 1
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
    process = models.fit_gaussian_process(space, points, logs, errors, blocks)
    quadratic = None if are_blocks else models.fit_quadratic(space, points, logs, errors)
    model = _choose(process, quadratic, wanted_model)
    if model is None:
        return ResponseFit(points=points, several=several, notices=(_undetermined(n_points),))
    rms = float(np.sqrt(np.mean((model.left_out / model.left_out_sd) ** 2)))
    notices = (*_doubts(model, rms),)
    if may_differ and not are_blocks:
        notices += (_hosts_unknown(n_points, wanted),)
    return ResponseFit(
        points=points,
        several=several,
        model=model,
        process=process,
        error=float(np.median(errors)),
        scale=max(1.0, rms),
        hosts=tuple(hosts) if are_blocks else (),
        notices=notices,
    )


def _undetermined(n: int) -> Notice:
    return Notice.of(Code.TOO_FEW_SAMPLES, "undetermined", n=n)


def _hosts_unknown(n: int, wanted: float) -> Notice:
    case = "" if math.isfinite(wanted) else "never"
    return Notice.of(Code.HOSTS_UNKNOWN, case, n=n, wanted=wanted)


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
    """Return the wanted model; or that of the lower leave-one-out error, a quadratic's limit."""
    if wanted == models.QUADRATIC:
        return quadratic
    if quadratic is None or wanted == models.GAUSSIAN_PROCESS:
        return process
    own, other = (float(np.mean(np.abs(fit.left_out))) for fit in (process, quadratic))
    lowest = float(scipy.special.chdtri(quadratic.freedom, _SURE))
    return quadratic if other * math.sqrt(quadratic.freedom / lowest) < own else process


def _doubts(model: Quadratic | GaussianProcess, rms: float) -> Iterable[Notice]:
    if isinstance(model, Quadratic) and model.p_fit < _LACK:
        yield Notice.of(Code.LACK_OF_FIT, p=model.p_fit, misfit=model.misfit_sd)
    if rms > _WIDE:
        yield Notice.of(Code.PREDICTIONS_WIDENED, factor=rms)
