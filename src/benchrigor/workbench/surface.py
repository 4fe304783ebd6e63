"""Surfaces: predictions of all configurations from samples of some."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Estimate, Notice
from benchrigor.model.checks import refuse
from benchrigor.model.comparison import Ranked
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import Floats, short
from benchrigor.stats.comparison.two_sample import rank
from benchrigor.stats.series.interval import (
    StandardError,
    exponential,
    student_t,
    t_interval,
)
from benchrigor.units import Direction, many
from benchrigor.workbench import models
from benchrigor.workbench.data import estimate_of
from benchrigor.workbench.designs import (
    Factor,
    Measured,
    Point,
    Space,
    show_point,
    spread,
    weak_samples,
)
from benchrigor.workbench.models import GaussianProcess, Quadratic, ResponseFit

_DRAWS, _MOST_POINTS, _STEPS = 4000, 500, 65
_LARGEST_LOG = 700.0  # its exponential is still a double
_LIKELY = 0.01  # of draws with a point as the best, for it to be measured again
OPTIONS = ("confidence", "direction", "seed", "interchangeable", "model")
"""Of `fit_surface`, apart from responses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Best(OneLine):
    """The configuration with the best predicted answer.

    Parameters
    ----------
    point
        The levels by factor.
    estimate
        The model's prediction, which the luck of a single sample moves little.
    regret
        How much better, relative to its answer, the truly best point may be; from 0 on.
    """

    point: Point
    estimate: Estimate
    regret: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover(OneLine):
    """The level at which two configurations change places.

    Parameters
    ----------
    factor
        The varied factor, which both have in common.
    at
        Its level with equal answers.
    below, above
        The better one on either side.
    probability
        That they change places in this way within the range of the factor.
    """

    factor: str
    at: Estimate
    below: Point
    above: Point
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(OneLine):
    """The prediction of a measured point from all other points.

    Parameters
    ----------
    point
        The levels by factor.
    measured
        The measurement there.
    predicted
        The prediction from the other points; its interval is for a measurement there.
    """

    point: Point
    measured: Estimate
    predicted: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSummary(OneLine):
    """The predictions of a surface for one response, as reports show them.

    Parameters
    ----------
    best
        The point with the best predicted answer.
    sensitivities
        By factor, the ratio of the best to the worst level.
    swaps
        The places where another level of a category becomes the best, the surest first.
    hosts
        The ratios of hosts to their mean; empty without effects of hosts.
    missed
        Mean absolute relative error of leave-one-out predictions.
    """

    best: Best
    sensitivities: Mapping[str, Estimate]
    swaps: tuple[Crossover, ...]
    hosts: Mapping[str, Estimate]
    missed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSummary(OneLine):
    """What reports show of a surface: data, which a map stores, so that no model is fitted again.

    Parameters
    ----------
    samples, model, loo_error, notices
        As of the `Surface`.
    categories
        Names of the factors without an order of levels.
    outside
        The samples at points where no load keeps the limits.
    rankings
        By response with an answer, the measured points.
    responses
        By response with a model, its predictions.
    """

    samples: tuple[Measured, ...] = ()
    model: str | None
    loo_error: float | None
    notices: tuple[Notice, ...]
    categories: tuple[str, ...]
    outside: tuple[int, ...]
    rankings: Mapping[str, tuple[Ranked, ...]]
    responses: Mapping[str, ResponseSummary]


@dataclass(frozen=True, kw_only=True)
class Surface(Reported):
    """How an answer depends on the factors of a map.

    Parameters
    ----------
    samples
        All samples, including those without a number.
    model
        "quadratic" or "gaussian-process", of the first response; None with too few samples.
    loo_error
        Mean absolute relative error of leave-one-out predictions; None with too few samples.
    notices
        Warnings and notes for the reader.
    """

    _facts = "benchrigor.workbench.maps.map_report:facts_of_surface"
    _sheet = "benchrigor.workbench.sheets:sheet_of_surface"

    samples: tuple[Measured, ...]
    model: str | None
    loo_error: float | None
    notices: tuple[Notice, ...]
    _space: Space = field(repr=False)
    _fits: Mapping[str, ResponseFit] = field(repr=False)
    _confidence: float = field(repr=False)
    _seed: int = field(repr=False)

    def _line(self) -> str:
        return f"Surface of {many(len(self.samples), 'sample')}, {self.model or 'without a model'}"

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors of the map."""
        return tuple(self._space.factors)

    @property
    def responses(self) -> tuple[str, ...]:
        """Names of the responses, the steering one first."""
        return tuple(self._fits)

    @cached_property
    def summary(self) -> MapSummary:
        """What reports show of it."""
        return MapSummary(
            **{name: getattr(self, name) for name in ("samples", "model", "loo_error", "notices")},
            categories=tuple(factor.name for factor in self.factors if factor.is_category),
            outside=tuple(found.sample.id for found in self.outside()),
            rankings={name: self.ranking(name) for name, fit in self._fits.items() if fit.points},
            responses={
                name: self._summarise(name) for name, fit in self._fits.items() if fit.model
            },
        )

    def _summarise(self, response: str) -> ResponseSummary:
        """Return its predictions for a response with a model."""
        best = self.best(response)
        swaps = [
            swap
            for factor in self.factors
            for level in (factor.levels if factor.is_category else ())
            if level != best.point[factor.name]
            for swap in self.crossovers(best.point, {**best.point, factor.name: level}, response)
        ]
        return ResponseSummary(
            best=best,
            sensitivities=self.sensitivities(response),
            swaps=tuple(sorted(swaps, key=lambda swap: -swap.probability)),
            hosts=self.hosts(response),
            missed=self.missed(response) or 0.0,
        )

    def missed(self, response: str | None = None) -> float | None:
        """Return ``loo_error`` of a response; None with too few samples."""
        return self._fit(response).loo_error

    def hosts(self, response: str | None = None) -> dict[str, Estimate]:
        """Return the ratios of hosts to their mean; empty without effects of hosts."""
        fit = self._fit(response)
        if not fit.hosts or fit.process is None:
            return {}
        means, sds = fit.process.host_effects(fit.points[0])
        return {
            host: self._estimate(response, mean, fit.scale * sd)
            for host, mean, sd in zip(fit.hosts, means.tolist(), sds.tolist(), strict=True)
        }

    def predict(self, point: Point, response: str | None = None) -> Estimate:
        """Predict the true answer at a point.

        Parameters
        ----------
        point
            A level for every factor; numbers may lie between levels.
        response
            Its name, if the map has several.

        Returns
        -------
        Estimate
            Its interval is for the true answer on these hosts, not for a further sample: standard
            deviations of the prediction are scaled by the root mean square of the standardised
            leave-one-out residuals if that is above 1. The quantile is the normal one for a
            Gaussian process, and Student's t on n - 1 degrees of freedom for a quadratic, n the
            number of points measured.

        Raises
        ------
        InvalidInput
            When the point lacks a factor, a level is out of range, or the response is unknown.
        NotEstimable
            When samples are too few.
        """
        refuse(self._space.wrong_point(point))
        mean, sd = self.predictions([point], response)
        return self._estimate(response, float(mean[0]), float(sd[0]))

    def predictions(
        self, points: Sequence[Point], response: str | None = None
    ) -> tuple[Floats, Floats]:
        """Return means and scaled standard deviations of the logarithm of the answer at points."""
        fit, model = self._model_of(response)
        mean, sd = model.predictions(points)
        return mean, fit.scale * sd

    def intervals(self, points: Sequence[Point], response: str | None = None) -> Floats:
        """Return the rows of predictions, low and high ends at points, as `predict` does."""
        mean, sd = self.predictions(points, response)
        freedom = self._fit(response).freedom
        half = student_t(freedom, self._confidence) * sd
        logs: Floats = np.stack([mean, mean - half, mean + half])
        return np.exp(np.minimum(logs, _LARGEST_LOG))

    def left_out(self, response: str | None = None) -> tuple[LeftOut, ...]:
        """Return the measured points with their predictions from the other points.

        Raises
        ------
        NotEstimable
            When samples are too few.
        """
        fit, model = self._model_of(response)
        measured = map(self._together, fit.several)
        found = zip(fit.points, measured, model.left_out, model.left_out_sd, strict=True)
        return tuple(
            LeftOut(
                point=point,
                measured=measured,
                predicted=self._estimate(
                    response, math.log(measured.value) - float(off), fit.scale * float(sd)
                ),
            )
            for point, measured, off, sd in found
        )

    def outside(self) -> tuple[Measured, ...]:
        """Return the samples without a peak, as no load keeps the limits at their points."""
        return tuple(found for found in self._lacking(*self._fits) if found.at_most is not None)

    def gains(self, points: Sequence[Point], response: str | None = None) -> Floats:
        """Return the gain in certainty from another sample at points.

        That is the reduction of the standard deviation there, always by the Gaussian process: a
        quadratic that fits by chance is too sure between its samples, and only asks for them again.
        """
        fit, _ = self._model_of(response)
        assert fit.process is not None  # noqa: S101  # every model comes with one
        _, sd = fit.process.predictions(points)
        less: Floats = sd - sd * fit.error / np.hypot(sd, fit.error)
        return less

    def draws(
        self, points: Sequence[Point], response: str | None = None, n: int = _DRAWS
    ) -> Floats:
        """Draw joint logarithms of the answers at points; the greater the better, a row each."""
        fit, model = self._model_of(response)
        moments = model.joint(points, np.eye(len(points)))
        return fit.sign * fit.draws(moments, n, self._rng())

    def best(self, response: str | None = None) -> Best:
        """Return the point of the grid with the best predicted answer.

        Points that failed, or at which no load keeps the limits, are excluded.

        Its regret is from joint draws: every draw compares its best point with this one. The
        interval begins at 0 and ends at the quantile of the confidence.
        """
        points, promise = self._likely(response)
        sign = self._fit(response).sign
        chosen = int(np.argmax(promise))
        drawn = self.draws(points, response)
        behind = np.max(drawn, axis=1) - drawn[:, chosen]
        losses = -np.expm1(-behind) if sign > 0.0 else np.expm1(behind)
        high = float(np.quantile(losses, self._confidence))
        regret = self._from_draws(response, min(float(np.mean(losses)), high), 0.0, high)
        point = points[chosen]
        return Best(point=point, estimate=self.predict(point, response), regret=regret)

    def leading(self, most: int, response: str | None = None) -> list[Point]:
        """Return the points of the grid that may be the best, the likeliest first.

        A point is included if it is the best in 1 % of the joint draws or more; the minimum is two.
        """
        grid, promise = self._likely(response)
        leaders = np.argmax(self.draws(grid, response), axis=1)
        times = np.bincount(leaders, minlength=len(grid))
        order = np.lexsort((-promise, -times))
        n = max(2, min(most, int(np.sum(times >= _LIKELY * _DRAWS))))
        return [grid[index] for index in order[:n]]

    def sensitivities(self, response: str | None = None) -> dict[str, Estimate]:
        """Return the ratio of the best to the worst level by factor.

        These are ratios of geometric means over the grid of the other factors. Predictions decide
        which level is the highest and which the lowest; the interval for a category allows for any
        pair (Bonferroni). It includes 1 if the factor may not matter.
        """
        fit, model = self._model_of(response)
        ratios = {}
        for factor in self._space.factors:
            others = self._grid_without(factor)
            points = [{**rest, factor.name: level} for level in factor.levels for rest in others]
            average = np.kron(np.eye(len(factor.levels)), np.full(len(others), 1 / len(others)))
            curve, covariance = model.joint(points, average)
            levels = np.eye(curve.size)
            contrast = levels[np.argmax(curve)] - levels[np.argmin(curve)]
            sd = fit.scale * math.sqrt(max(float(contrast @ covariance @ contrast), 0.0))
            pairs = math.comb(len(factor.levels), 2) if factor.is_category else 1
            sure = 1.0 - (1.0 - self._confidence) / pairs
            wide = student_t(fit.freedom, sure) / student_t(fit.freedom, self._confidence)
            found = self._estimate(response, float(np.ptp(curve)), sd * wide)
            ratios[factor.name] = replace(found, standard_error=sd * found.value)
        return ratios

    def crossovers(
        self, point_a: Point, point_b: Point, response: str | None = None
    ) -> tuple[Crossover, ...]:
        """Return the levels at which two configurations change places.

        Every numeric factor with the same level in both points is varied through its range, with
        the others fixed. A crossover is a change of sign of the predicted difference. Its interval
        comes from the nearest changes in the same direction in joint draws, within the range.

        Raises
        ------
        InvalidInput
            When a point does not belong to this map, or both are the same.
        """
        refuse(self._space.wrong_point(point_a), self._space.wrong_point(point_b))
        if self._space.key(point_a) == self._space.key(point_b):
            raise InvalidInput(f"both points are {short(dict(point_a))}, expected different ones")
        fit, model = self._model_of(response)
        tails = (1.0 - self._confidence) / 2.0, (1.0 + self._confidence) / 2.0
        found: list[Crossover] = []
        for factor in self._space.factors:
            if factor.is_category or point_a[factor.name] != point_b[factor.name]:
                continue
            levels = spread(factor, _STEPS)
            pairs = [{**point, factor.name: at} for point in (point_a, point_b) for at in levels]
            apart = np.kron(np.array([fit.sign, -fit.sign]), np.eye(len(levels)))
            moments = model.joint(pairs, apart)
            if (moments[0] > 0.0).all() or (moments[0] <= 0.0).all():
                continue
            drawn = fit.draws(moments, _DRAWS, self._rng())
            for step, steps, probability, is_a_below in _changes_of_sign(moments[0], drawn):
                low, high = np.quantile(steps, tails)
                ends = [step, min(low, step), max(high, step)]
                value, low, high = np.interp(ends, np.arange(len(levels)), levels).tolist()
                below, above = (point_a, point_b) if is_a_below else (point_b, point_a)
                found.append(
                    Crossover(
                        factor=factor.name,
                        at=self._from_draws(response, value, low, high),
                        below=below,
                        above=above,
                        probability=probability,
                    )
                )
        return tuple(found)

    def ranking(self, response: str | None = None) -> tuple[Ranked, ...]:
        """Rank the measured points by their measurements, as `benchrigor.stats.rank` does."""
        fit = self._fit(response)
        several: dict[str, list[Estimate]] = {}
        for point, estimates in zip(fit.points, fit.several, strict=True):
            several.setdefault(show_point(point), []).append(self._together(estimates))
        results = {name: self._together(estimates) for name, estimates in several.items()}
        direction = Direction.HIGHER if fit.sign > 0.0 else Direction.LOWER
        return rank(results, confidence=self._confidence, direction=str(direction))

    def _likely(self, response: str | None) -> tuple[list[Point], Floats]:
        """Return points of the grid, up to a maximum, and their logarithms; higher is better.

        Points that failed, or at which no load keeps the limits, are excluded.
        """
        lost = (found for found in self._lacking(response) if found.at_least is None)
        without = {self._space.key(found.sample.point) for found in lost}
        every = self._space.grid()
        grid = [point for point in every if self._space.key(point) not in without] or every
        mean, sd = self.predictions(grid, response)
        good = self._fit(response).sign * mean
        kept = np.argsort(-(good + 3.0 * sd), kind="stable")[:_MOST_POINTS]
        return [grid[index] for index in kept], good[kept]

    def _lacking(self, *responses: str | None) -> list[Measured]:
        """Return the samples at points without an estimate of any of these responses."""
        fits = map(self._fit, responses)
        known = {self._space.key(point) for fit in fits for point in fit.points}
        return [found for found in self.samples if self._space.key(found.sample.point) not in known]

    def _fit(self, response: str | None) -> ResponseFit:
        known = " or ".join(map(repr, self._fits))
        if not self._fits:
            raise NotEstimable(self.notices[0])
        if response is None and len(self._fits) == 1:
            return next(iter(self._fits.values()))
        if response not in self._fits:
            raise InvalidInput(f"response is {short(response)}, expected {known}")
        return self._fits[str(response)]

    def _model_of(self, response: str | None) -> tuple[ResponseFit, Quadratic | GaussianProcess]:
        fit = self._fit(response)
        if fit.model is None:
            raise NotEstimable(fit.notices[0])
        return fit, fit.model

    def _estimate(self, response: str | None, mean: float, sd: float) -> Estimate:
        fit, model = self._model_of(response)
        n = len(fit.points)
        return self._of_logarithm(mean, StandardError(sd, fit.freedom), n, model.name)

    def _together(self, estimates: Sequence[Estimate]) -> Estimate:
        """Return the average of estimates of one point."""
        if len(estimates) == 1:
            return estimates[0]
        log, error = models.average(estimates)
        n = sum(estimate.n for estimate in estimates)
        return self._of_logarithm(log, StandardError(error, math.inf), n, "average")

    def _of_logarithm(self, mean: float, error: StandardError, n: int, method: str) -> Estimate:
        size = float(n)
        log = t_interval(mean, error, self._confidence, n=n, n_effective=size, method=method)
        return exponential(log)

    def _from_draws(self, response: str | None, value: float, low: float, high: float) -> Estimate:
        fit, model = self._model_of(response)
        how: Any = {"n": len(fit.points), "method": f"draws from a {model.name}"}
        return estimate_of(value, low, high, confidence=self._confidence, **how)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self._seed)

    def _grid_without(self, factor: Factor) -> list[Point]:
        """Return the grid of the other factors, or some of it if it is large."""
        others = [other for other in self._space.factors if other is not factor]
        grid = Space(others).grid() if others else [{}]
        most = max(1, 2 * _MOST_POINTS // len(factor.levels))
        if len(grid) <= most:
            return grid
        return [grid[index] for index in self._rng().choice(len(grid), most, replace=False)]


def _changes_of_sign(
    difference: Floats, drawn: Floats
) -> Iterable[tuple[float, Floats, float, bool]]:
    """Yield changes of sign: place and drawn places in steps, probability, and direction."""
    for index in np.flatnonzero((difference[:-1] > 0.0) != (difference[1:] > 0.0)):
        is_first_better = bool(difference[index] > 0.0)
        better = drawn > 0.0 if is_first_better else drawn <= 0.0
        changes = better[:, :-1] & ~better[:, 1:]
        far = np.where(changes, np.abs(np.arange(changes.shape[1]) - index), np.inf)
        nearest = np.argmin(far, axis=1)
        row = np.arange(len(drawn))
        before, after = drawn[row, nearest], drawn[row, nearest + 1]
        has_change = changes[row, nearest]
        share = before / np.where(has_change, before - after, 1.0)
        end = np.where(better[:, 0], difference.size - 1.0, 0.0)
        places = np.where(has_change, nearest + share, end)
        place = index + difference[index] / (difference[index] - difference[index + 1])
        yield float(place), places, float(np.mean(has_change)), is_first_better


def fit_surface(
    space: Space,
    measured: Sequence[Measured],
    *,
    responses: Sequence[str] | None = None,
    confidence: float = 0.95,
    direction: str | Mapping[str, str] = "higher",
    seed: int = 1,
    interchangeable: bool = False,
    model: str = models.AUTO,
) -> Surface:
    """Fit a surface to the results of samples.

    The logarithm of a response, which is above 0, is modelled by a Gaussian process and, with
    enough samples, by a quadratic. Unless ``model`` names one, mean absolute leave-one-out errors
    choose between them: the
    quadratic's counts with its upper 99 % limit (chi-square, on samples less coefficients degrees
    of freedom), since its residuals are small by chance with few degrees of freedom.

    Parameters
    ----------
    space
        The factors.
    measured
        The results of samples. Those without an estimate do not count as values; samples of one
        point are averaged.
    responses
        The responses to model; `Surface.model` is for the first one. None for all in the samples.
    confidence
        Of all intervals.
    direction
        Which answers are better: "higher" or "lower"; or one of these by response, with "higher" as
        the default.
    seed
        Of draws from the posterior.
    interchangeable
        Whether hosts may be exchanged freely. Otherwise several hosts have effects of their own,
        and predictions are for the mean over these hosts.
    model
        "auto", "quadratic" or "gaussian-process". A quadratic does not model effects of hosts.

    Raises
    ------
    MissingExtra
        Without scikit-learn, which comes with ``pip install 'benchrigor[workbench]'``.

    Examples
    --------
    >>> from benchrigor.workbench.designs import Factor
    >>> from benchrigor.workbench.designs import MapSample
    >>> space = Space([Factor("threads", levels=[1, 2, 4, 8, 16, 32], scale="log2")])
    >>> def known(rate):
    ...     return Estimate(value=rate, low=0.98 * rate, high=1.02 * rate, confidence=0.95, n=10,
    ...                     n_effective=10.0, method="mean")
    >>> surface = fit_surface(space, [
    ...     Measured(sample=MapSample(id=index, point=point), estimates={"rate": known(rate)})
    ...     for index, (point, rate) in enumerate(zip(space.grid(), [100, 195, 360, 600, 800, 900]))
    ... ])
    >>> surface.best().point, surface.predict({"threads": 3}).value > 250
    ({'threads': 32}, True)
    """
    found_names = (name for sample in measured for name in sample.estimates)
    names = dict.fromkeys(found_names if responses is None else responses)
    how: dict[str, Any] = {"interchangeable": interchangeable, "wanted_model": model}
    ways = direction if isinstance(direction, Mapping) else dict.fromkeys(names, direction)
    fits = {
        name: replace(
            models.fit_response(space, measured, name, **how),
            sign=1.0 if ways.get(name, "higher") == "higher" else -1.0,
        )
        for name in names
    }
    if len(names) > 1:
        fits = {
            name: replace(fit, notices=_add_name(name, fit.notices)) for name, fit in fits.items()
        }
    first = next(iter(fits.values()), ResponseFit(points=(), several=()))
    notices = [*weak_samples(measured), *(one for fit in fits.values() for one in fit.notices)]
    if not fits:
        notices = [models.too_few(space, 0), *notices]
    return Surface(
        samples=tuple(measured),
        model=None if first.model is None else first.model.name,
        loo_error=first.loo_error,
        notices=tuple(notices),
        _space=space,
        _fits=fits,
        _confidence=confidence,
        _seed=seed,
    )


def _add_name(response: str, notices: Sequence[Notice]) -> tuple[Notice, ...]:
    """Return the notices of one of several responses, with its name."""
    return tuple(
        replace(
            notice,
            sentence=f"{response}: {notice.sentence}",
            evidence={**notice.evidence, "response": response},
        )
        for notice in notices
    )
