"""Least squares with errors that hold under unequal and autocorrelated noise, and lack of fit.

The covariance of the noise is estimated from the residuals three ways, and the largest counts: HC3;
HC3 with the autocorrelation of the scores; and autoregressive noise that grows with the measured
values. Lack of fit is whether duration bends with work, how it grows, and which rounds are
outliers: Notices hold all that the user of a work line must know of it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy

from benchrigor.model import Code, Estimate, Notice, WpsFit
from benchrigor.model.series import Floats
from benchrigor.stats.series.interval import StandardError, scale, student_t, t_interval
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


NEGLIGIBLE = 1e-3  # difference of exponents, relative difference of speeds
_LEVEL = 0.01
_EXPONENTS = (0.05, 5.0)
_STEPS = 30
MIN_RANGE = 2.0  # largest over smallest amount below which a line says little of other amounts
_VAGUE = 1.0  # width of the interval of the exponent from which on it names no shape
_SMALLEST = sys.float_info.min
_MIN_ROUNDS_PER_OUTLIER = 5
_MAX_OUTLIERS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LackOfFit:
    """What speaks against a line; fields as of `WpsFit`."""

    bend: Estimate | None
    significant: bool
    growth: Estimate | None
    shape: str | None
    outliers: tuple[int, ...]


def find_lack_of_fit(
    work: Floats, durations: Floats, *, slope: float, unit: float, estimator: str, confidence: float
) -> LackOfFit:
    """Look for lack of fit; work and durations are shares of their largest, ``unit`` of work."""
    bend, significant = _bend(work, durations, slope, estimator, confidence)
    growth = _growth(work, durations, estimator, confidence) if slope > 0.0 else None
    return LackOfFit(
        bend=bend,
        significant=significant,
        growth=growth,
        shape=None if growth is None else _shape(growth, work, unit),
        outliers=_outliers(_curve(work, growth) if significant else work[:, None], durations),
    )


def _bend(
    work: Floats, durations: Floats, slope: float, estimator: str, confidence: float
) -> tuple[Estimate | None, bool]:
    """Estimate the bend, and say whether it is significant.

    With duration = a + b w + c w^2 the time per unit of work grows by 2 c (largest - smallest),
    here as a share of the slope of the line.
    """
    if slope <= 0.0 or np.unique(work).size < 4 or work.size < 5:
        return None, False
    centred = work - work.mean()
    design = np.column_stack([np.ones(work.size), centred, centred**2])
    error = _last_coefficient(design, durations, estimator)
    if error is None:
        return None, False
    bend, strict = (
        scale(error.estimate(level, work.size, "quadratic term"), 2.0 * float(np.ptp(work)) / slope)
        for level in (confidence, 1.0 - _LEVEL)
    )
    # Rounding gives an exact line a bend that is as exact.
    return bend, abs(bend.value) > max(strict.half_width, NEGLIGIBLE)


def _growth(work: Floats, durations: Floats, estimator: str, confidence: float) -> Estimate | None:
    """Estimate the exponent p of duration = a + c w^p by nonlinear least squares."""
    if np.unique(work).size < 5 or work.min() * MIN_RANGE > work.max():
        return None
    exponent = _exponent(work, durations)
    if exponent is None:
        return None
    power = work**exponent
    centred = power - power.mean()
    factor = float(centred @ durations) / float(centred @ centred)
    # The line that touches the curve there: its last coefficient is the step left to take.
    curve = factor * power * np.log(np.maximum(work, _SMALLEST))
    design = np.column_stack([np.ones(work.size), power, curve])
    step = _last_coefficient(design, durations, estimator)
    if step is None or factor <= 0.0:
        return None
    growth = replace(step, value=exponent + step.value)
    return growth.estimate(confidence, work.size, "nonlinear least squares")


def _exponent(work: Floats, durations: Floats) -> float | None:
    """Return the exponent with the least sum of squares; None at an end of the range."""
    centred = durations - durations.mean()

    def unexplained(exponent: float) -> float:
        power = work**exponent
        power = power - power.mean()
        rest = centred - power * (float(power @ centred) / float(power @ power))
        return float(rest @ rest)

    exponents = np.geomspace(*_EXPONENTS, _STEPS)
    best = int(np.argmin([unexplained(exponent) for exponent in exponents]))
    if best in (0, _STEPS - 1):
        return None
    around = (exponents[best - 1], exponents[best + 1])
    from scipy import optimize  # noqa: PLC0415  # a third of the import of the whole package

    return float(optimize.minimize_scalar(unexplained, bounds=around, method="bounded").x)


def _last_coefficient(design: Floats, durations: Floats, estimator: str) -> CoefficientError | None:
    if not is_determined(design):
        return None
    fit = regress(design, durations, estimator=estimator)
    return coefficient_errors(fit, np.eye(design.shape[1])[-1:])[0]


def _shape(growth: Estimate, work: Floats, unit: float) -> str | None:
    """Name the growth; "n log n" grows in these amounts like a power of them, a little above 1."""
    if growth.high - growth.low > _VAGUE:
        return None
    logs = np.log(np.maximum(work, _SMALLEST)) + math.log(unit)
    exponents = {"linear": 1.0, "n log n": None, "quadratic": 2.0}
    if logs.min() > 0.0:
        exponents["n log n"] = _exponent(work, work * logs)
    for name, exponent in exponents.items():
        if exponent is not None and growth.low - NEGLIGIBLE <= exponent <= growth.high + NEGLIGIBLE:
            return name
    return "other"


def _curve(work: Floats, growth: Estimate | None) -> Floats:
    """Return regressors of a duration that bends, so that no round along it is an outlier."""
    if growth is not None:
        return work[:, None] ** float(np.clip(growth.value, *_EXPONENTS))
    return np.column_stack([work, (work - work.mean()) ** 2])


def _outliers(regressors: Floats, durations: Floats) -> tuple[int, ...]:
    """Return the rounds far from the line, by Rosner's (1983) generalized ESD test."""
    design = np.column_stack([np.ones(durations.size), regressors])
    left = np.arange(durations.size)
    suspects: list[int] = []
    outliers = 0
    for _ in range(min(left.size // _MIN_ROUNDS_PER_OUTLIER, _MAX_OUTLIERS)):
        if not is_determined(design[left]):
            break
        fit = regress(design[left], durations[left])
        if not fit.residuals.any():
            break
        farthest, beyond = _farthest(fit)
        suspects.append(int(left[farthest]))
        outliers = len(suspects) if beyond else outliers
        left = np.delete(left, farthest)
    return tuple(sorted(suspects[:outliers]))


def _farthest(fit: Regression) -> tuple[int, bool]:
    """Return the round farthest from the line, and whether it is beyond what chance explains."""
    n, k = fit.design.shape
    likelihoods = noise_likelihoods(fit, order=1)
    sizes = fit.levels ** max(likelihoods, key=likelihoods.__getitem__)
    # Each residual over the size of noise that is likeliest there.
    squares = (fit.residuals / sizes) ** 2
    distances = squares / (1.0 - fit.leverages)
    farthest = int(np.argmax(distances))
    others = max(float(squares.sum() - distances[farthest]), 0.0) / (n - k - 1)
    limit = student_t(n - k - 1.0, 1.0 - _LEVEL / n)
    return farthest, float(distances[farthest]) > limit**2 * others


_ENOUGH_ROUNDS = 10
_POOR_PREDICTION = 0.1
_WIDE = 0.25
_EXACT = 1e-9  # error of prediction below which every round is on the line
# Rank correlation of work with the order of rounds from which on a drift is taken for work; in
# sessions it stays below 0.6
_RAMP = 0.7
_TINY = 1e-300
_MATERIAL = 0.5  # half-widths by which outliers may move the speed


def diagnose_line(
    work: Floats, line: Regression, speed: Estimate | None, prediction_error: float
) -> Iterator[Notice]:
    """Yield what weakens a line fitted to rounds."""
    n = line.residuals.size
    if speed is None:
        yield Notice.of(Code.NO_SPEED, n=n)
    if not line.residuals.any():
        which = "The" if prediction_error < _EXACT else "Most of the"
        yield Notice.of(Code.CONSTANT, "line", n=n, which_=which)
    if n < (wanted := _ENOUGH_ROUNDS):
        yield Notice.of(Code.FEW_READINGS, "rounds", n=n, wanted=wanted)
    yield from _doubtful_model(work, speed, prediction_error)
    yield from _ramp(work)


def _doubtful_model(
    work: Floats, speed: Estimate | None, prediction_error: float
) -> Iterator[Notice]:
    spread = float(work.max() / max(work.min(), _TINY))
    width = 0.0 if speed is None else speed.relative_half_width
    unmet = [
        f"predicts a round to {prediction_error:.1%} (10% wanted)"
        * (prediction_error > _POOR_PREDICTION),
        f"gives the speed to {width:.1%} (25% wanted)" * (width > _WIDE),
        f"covers amounts up to {spread:.3g} times the smallest ({MIN_RANGE:g} times wanted)"
        * (spread < MIN_RANGE),
    ]
    if any(unmet):
        yield Notice.of(
            Code.WPS_DOUBTFUL,
            unmet_=", and ".join(filter(None, unmet)),
            prediction_error=prediction_error,
            relative_half_width=width,
            spread=spread,
        )


def _ramp(work: Floats) -> Iterator[Notice]:
    _, places, counts = np.unique(work, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2.0)[places]  # equal amounts rank equally
    correlation = float(np.corrcoef(ranks, np.arange(work.size))[0, 1])
    if work.size >= _ENOUGH_ROUNDS and abs(correlation) >= _RAMP:
        yield Notice.of(Code.RAMP, rank_correlation=correlation)


def diagnose_lack_of_fit(lack: LackOfFit) -> Iterator[Notice]:
    """Yield a warning where duration is not linear in work."""
    bend, shape = lack.bend, lack.shape
    if bend is not None and lack.significant:
        known = f" (duration grows like {shape})" if shape in ("n log n", "quadratic") else ""
        figures = {"bend": bend.value, "low": bend.low, "high": bend.high, "shape": shape}
        yield Notice.of(Code.NOT_LINEAR, known_=known, **figures)


def diagnose_further(fit: WpsFit, work: Floats, duration_s: Floats) -> Iterator[Notice]:
    """Yield a warning where rounds of larger amounts than those fitted are far from the line.

    The line is known to the half-width of its slope, and rounds to twice the error at a round that
    it was fitted without.
    """
    if fit.speed is None or not work.size:
        return
    expected_s = fit.overhead.value + fit.slope.value * work
    excess = float(duration_s.sum() / expected_s.sum()) - 1.0
    if abs(excess) <= fit.slope.relative_half_width + 2.0 * fit.prediction_error:
        return
    figures = {"excess": excess, "largest": float(work.max())}
    yield Notice.of(Code.NOT_LINEAR, "larger", rounds_=work.size, **figures)


def diagnose_outliers(
    outliers: int, n: int, speed: Estimate | None, faster: float | None
) -> Iterator[Notice]:
    """Yield a warning where outliers change the speed, which is that much faster without them."""
    if not outliers:
        return
    if speed is None or (
        faster is not None and abs(faster) <= max(_MATERIAL * speed.relative_half_width, NEGLIGIBLE)
    ):
        yield Notice.of(Code.OUTLYING_ROUNDS, n=n, outliers=outliers)
        return
    change = "the speed is not known"
    if faster is not None:
        change = f"the speed is {abs(faster):.1%} {'higher' if faster > 0.0 else 'lower'}"
    figures = {"n": n, "outliers": outliers, "faster": faster}
    yield Notice.of(Code.OUTLYING_ROUNDS, "matter", change_=change, **figures)
