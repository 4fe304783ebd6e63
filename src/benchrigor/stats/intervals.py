"""The mean, or the level after a transient, with an interval that covers."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
import numpy.typing as npt
from scipy import special

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import (
    ChangePoints,
    Code,
    Estimate,
    Floats,
    LevelFit,
    Notice,
    Severity,
    StablePhase,
    as_series,
)
from benchrigor.stats.autoregression import LongRunVariance, batch_means, long_run_variance
from benchrigor.stats.phases import find_stable_phase, without_margin
from benchrigor.stats.steadiness import TRANSIENTS, transient_basis

__all__ = [
    "bearable_phase",
    "check_confidence",
    "estimate_level",
    "estimate_mean",
    "fit_level",
    "fit_stable",
    "required_readings",
    "student_t",
    "trimmed",
]

METHOD = "long-run-variance"
FEWEST = 2
FEW = 30
"""Below so many readings autocorrelation cannot be seen: a plain t interval, and a Notice."""
SHORT = 500
"""Below so many readings an unknown warm-up is not dependably removed, and a Notice says so."""
MATERIALITY = 0.01
"""Relative difference of medians from which on neighbouring phases are never one."""

_POINTS = 4096
_NOTHING = 1e-24
"""Variance, relative to the squared largest deviation, that is nothing but rounding."""
_FEWEST_BATCHES = 15
_LARGEST_RATIO = 1e9


def estimate_mean(
    values: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    trim: bool = False,
    method: str = METHOD,
) -> Estimate:
    """Estimate the mean of a series of (auto)correlated readings, with its interval.

    Parameters
    ----------
    values
        Readings in the order in which they were taken, shape (n,), n >= 2.
    confidence
        Nominal coverage, in (0, 1).
    trim
        Remove the non-stable phases first, and estimate the level after what they leave behind.
        Without it the plain mean of all readings is estimated. Neighbouring phases are one only
        where they differ by less than 1 % and a quarter of the half-width that comes of it.
    method
        "long-run-variance".

    Returns
    -------
    Estimate
        In the unit of the readings; the interval is asymmetric where the readings are skewed.

    Raises
    ------
    InvalidInput
        When the values are no readings or an argument is out of range.
    NotEstimable
        With fewer than two readings, or without a stable phase when ``trim`` is set.

    Notes
    -----
    Long-run variance by autoregression with delta-method degrees of freedom (see
    `benchrigor.stats.autoregression`), Student t quantiles, cube-root correction for skewness
    (Johnson 1978, Hall 1992). Below 30 readings: plain Student t.

    Examples
    --------
    >>> import numpy as np
    >>> readings = np.random.default_rng(1).lognormal(0.0, 1.0, 400)
    >>> estimate = estimate_mean(readings)
    >>> estimate.value - estimate.low < estimate.high - estimate.value  # as skewed as they are
    True
    """
    series = as_series(values)
    check_confidence(confidence)
    if method != METHOD:
        raise InvalidInput(f"method is {method!r}, expected {METHOD!r}")
    if not trim:
        return estimate_level(fit_level(series), confidence)
    return estimate_level(fit_stable(series, confidence), confidence)


def check_confidence(confidence: float) -> None:
    """Raise InvalidInput unless ``confidence`` lies strictly between 0 and 1."""
    if isinstance(confidence, bool) or not isinstance(confidence, Real):
        raise InvalidInput(f"confidence is {confidence!r}, expected a number between 0 and 1")
    if not 0.0 < float(confidence) < 1.0:
        raise InvalidInput(f"confidence is {confidence!r}, expected between 0 and 1, both excluded")


def student_t(degrees_of_freedom: float, confidence: float) -> float:
    """Return the quantile of Student's t that two-sided intervals of that confidence use."""
    # From the lower tail: one minus a tiny tail would round to one, whose quantile is infinite.
    return -float(special.stdtrit(degrees_of_freedom, (1.0 - confidence) / 2.0))


def trimmed(series: Floats, phase: StablePhase) -> Floats:
    """Return the readings of the stable phase without the margins next to the cuts.

    Raises
    ------
    NotEstimable
        When there is no stable phase; carries the phase's own Notice.
    """
    if phase.start is None or phase.stop is None:
        raise NotEstimable(phase.notices[0])
    return series[without_margin(phase.start, phase.stop, series.size)]


def bearable_phase(
    series: Floats, confidence: float, change_points: ChangePoints | None = None
) -> StablePhase:
    """Find the stable phase, with no more joined into it than its level bears.

    Neighbouring phases are one where they differ by less than 1 %, then, while any are, by less
    than a quarter of the half-width that came of it: a bias of half the half-width would already
    lower the coverage from 0.95 to 0.84.
    """
    materiality = MATERIALITY
    phase = find_stable_phase(series, materiality=materiality, change_points=change_points)
    while phase.start is not None and len(phase.phases) <= len(phase.change_points.indices):
        fit = fit_level(trimmed(series, phase), transients=TRANSIENTS)
        bearable = estimate_level(fit, confidence).relative_half_width / 4.0
        if bearable >= materiality:
            break
        materiality = bearable
        phase = find_stable_phase(
            series, materiality=materiality, change_points=phase.change_points
        )
    return phase


def fit_stable(series: Floats, confidence: float) -> LevelFit:
    """Fit the level of the stable phase, see `bearable_phase`.

    Raises
    ------
    NotEstimable
        When there is no stable phase, or it holds fewer than two readings.
    """
    return fit_level(trimmed(series, bearable_phase(series, confidence)), transients=TRANSIENTS)


def fit_level(series: Floats, *, transients: tuple[float, ...] = ()) -> LevelFit:
    """Fit the level of a series and its standard error.

    Parameters
    ----------
    series
        Readings, shape (n,).
    transients
        Time constants, as shares of n, of decaying exponentials that are always fitted beside
        the level: they take up the part of a transient too small to be detected, which would
        bias the mean by a standard error or two. Not used below 30 readings.

    Raises
    ------
    NotEstimable
        With fewer than two readings.
    """
    n = series.size
    if n < FEWEST:
        raise NotEstimable(_too_few(n))
    mean = float(series.mean())
    # Scaled by the largest deviation, powers of tiny and of huge readings stay in range.
    scale = float(np.abs(series - mean).max())
    if series.min() == series.max() or scale == 0.0:
        return _exact(float(series[0]), n, ())
    deviations = (series - mean) / scale
    shares = transients if n >= FEW else ()
    points = batch_means(deviations, max(1, n // _POINTS))
    size = n // points.size
    shift, factor, residuals = _regress(points, transient_basis(points.size, shares))
    level = mean + shift * scale
    constants = tuple(share * n for share in shares)
    explained = float(points @ points - residuals @ residuals) * size
    marginal = (float(deviations @ deviations) - explained) / max(n - 1 - len(shares), 1)
    if marginal <= _NOTHING:
        return _exact(level, n, constants)
    found = LongRunVariance(value=marginal, degrees_of_freedom=n - 1.0, order=0, batch=1)
    if n >= FEW:
        found = long_run_variance(residuals, fitted=1 + len(shares))
    total = found.value * size
    return LevelFit(
        level=level,
        n=n,
        transients=constants,
        variance=marginal * scale**2,
        long_run_variance=total * scale**2,
        order=found.order,
        batch=found.batch * size,
        degrees_of_freedom=found.degrees_of_freedom,
        skewness=_skewness(residuals, total / marginal / size) if n >= FEW else 0.0,
        standard_error=math.sqrt(total * factor / n) * scale,
    )


def estimate_level(fit: LevelFit, confidence: float) -> Estimate:
    """Turn the fit of a level into an estimate with its interval.

    Parameters
    ----------
    fit
        From `fit_level`.
    confidence
        Nominal coverage, in (0, 1).
    """
    upper = student_t(fit.degrees_of_freedom, confidence)
    return Estimate(
        value=fit.level,
        low=fit.level - _cube_root(upper, fit.skewness) * fit.standard_error,
        high=fit.level - _cube_root(-upper, fit.skewness) * fit.standard_error,
        confidence=confidence,
        n=fit.n,
        n_effective=fit.n_effective,
        method=METHOD,
        standard_error=fit.standard_error,
        degrees_of_freedom=fit.degrees_of_freedom,
        notices=_notices(fit),
    )


def required_readings(estimate: Estimate, target: float) -> int:
    """Return how many readings in all bring the relative half-width down to ``target``.

    Parameters
    ----------
    estimate
        What is known so far.
    target
        Relative half-width wanted, more than 0.

    Raises
    ------
    InvalidInput
        When the target is not a finite number above 0, or the value is 0 (nothing is narrow
        relative to 0).

    Notes
    -----
    The half-width shrinks with the square root of the number of readings; the gain in degrees
    of freedom is left out, so the answer is on the safe side.

    Examples
    --------
    >>> estimate = Estimate(value=10.0, low=9.0, high=11.0, confidence=0.95, n=100,
    ...                     n_effective=100.0, method="long-run-variance")
    >>> required_readings(estimate, 0.05)
    400
    """
    if (
        isinstance(target, bool)
        or not isinstance(target, Real)
        or not 0.0 < float(target) < math.inf
    ):
        raise InvalidInput(f"target is {target!r}, expected a finite number above 0")
    ratio = estimate.relative_half_width / target
    if ratio > _LARGEST_RATIO:
        raise InvalidInput(
            f"the estimate is {estimate.value!r}, no interval is narrow relative to (nearly) 0"
        )
    return max(2, math.ceil(estimate.n * ratio**2 * (1.0 - 1e-12)))


def _regress(points: Floats, basis: Floats) -> tuple[float, float, Floats]:
    """Fit transients beside the level of points whose mean was taken off.

    Returns the shift from mean to level, the factor by which the transients raise the variance
    of the level, and the residuals.
    """
    means = basis.mean(axis=1)
    centred = basis - means[:, None]
    residuals = points - points.mean()
    inverse = np.linalg.inv(centred @ centred.T)
    weights: Floats = inverse @ (centred @ residuals)
    factor = 1.0 + points.size * float(means @ inverse @ means)
    rest: Floats = residuals - weights @ centred
    return -float(weights @ means), factor, rest


def _skewness(residuals: Floats, tau: float) -> float:
    """Estimate the skewness of the mean from batches that are nearly independent.

    Batches hold about two correlation times ``tau`` (in points), and there are at least 15 of
    them. Skewness of a mean of k independent batches: that of one batch over sqrt(k).
    """
    size = int(min(max(round(2.0 * tau), 1), residuals.size // _FEWEST_BATCHES))
    batches = batch_means(residuals, size) if size > 1 or tau > 1.0 else residuals
    deviations = batches - batches.mean()
    spread = float(np.mean(deviations**2))
    if spread <= 0.0:
        return 0.0
    return float(np.mean(deviations**3) / spread**1.5) / math.sqrt(batches.size)


def _cube_root(quantile: float, skewness: float) -> float:
    """Correct a quantile of the studentised mean for skewness (Johnson 1978, Hall 1992).

    G(t) = ((1 + 6 b (t - b))^(1/3) - 1) / (2 b) with b = skewness of the mean / 6, in the form
    used for batch means by Tafazzoli, Steiger & Wilson (2011).
    """
    b = skewness / 6.0
    if abs(b) < 1e-6:
        return quantile
    return float((np.cbrt(1.0 + 6.0 * b * (quantile - b)) - 1.0) / (2.0 * b))


def _exact(level: float, n: int, transients: tuple[float, ...]) -> LevelFit:
    """Return the fit of readings that hold no noise at all."""
    return LevelFit(
        level=level,
        n=n,
        transients=transients,
        variance=0.0,
        long_run_variance=0.0,
        order=0,
        batch=1,
        degrees_of_freedom=float(n - 1),
        skewness=0.0,
        standard_error=0.0,
    )


def _too_few(n: int) -> Notice:
    return Notice(
        code=Code.TOO_FEW_READINGS,
        severity=Severity.REFUSAL,
        sentence=f"{n} reading{'' if n == 1 else 's'}, expected at least 2.",
        evidence={"n": n},
    )


def _notices(fit: LevelFit) -> tuple[Notice, ...]:
    notices = []
    if fit.variance == 0.0:
        sentence = f"All {fit.n} readings are {fit.level!r}: the interval has no width."
        if fit.transients:
            sentence = f"The {fit.n} readings hold no noise: the interval has no width."
        notices.append(
            Notice(
                code=Code.CONSTANT,
                severity=Severity.WARNING,
                sentence=sentence,
                evidence={"n": fit.n, "value": fit.level},
            )
        )
    if fit.n < FEW:
        sentence = f"Only {fit.n} readings: below {FEW}, autocorrelation cannot be seen."
        notices.append(
            Notice(
                code=Code.FEW_READINGS,
                severity=Severity.WARNING,
                sentence=sentence,
                evidence={"n": fit.n, "wanted": FEW},
            )
        )
    effective = fit.n_effective
    if fit.n >= FEW and effective < FEW:
        sentence = (
            f"{fit.n} readings hold only {int(effective)} effective ones: unreliable below {FEW}."
        )
        notices.append(
            Notice(
                code=Code.FEW_EFFECTIVE,
                severity=Severity.WARNING,
                sentence=sentence,
                evidence={"n": fit.n, "n_effective": effective},
            )
        )
    return tuple(notices)
