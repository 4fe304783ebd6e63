"""From a fitted level to an interval that covers, and from an interval to the readings it takes."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from scipy import special

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Estimate, Evidence, LevelFit, Notice
from benchrigor.model.series import short
from benchrigor.stats.series.level import FEW

__all__ = ["METHOD", "check_confidence", "estimate_level", "required_readings", "student_t"]

METHOD = "long-run-variance"

_LARGEST_RATIO = 1e9
_PERSISTENT = 10.0
_SKEWED = 0.1
_BY_CHANCE = 10.0
"""Inflation, and skewness of the mean, from which on mean and spread are learned from the same few
stretches: both are common, together they are what queues do."""


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
    below = fit.level - _cube_root(upper, fit.skewness) * fit.standard_error
    above = fit.level - _cube_root(-upper, fit.skewness) * fit.standard_error
    return Estimate(
        value=fit.level,
        # At confidences of a few per cent the correction exceeds the interval.
        low=min(below, fit.level),
        high=max(above, fit.level),
        confidence=confidence,
        n=fit.n,
        n_effective=fit.n_effective,
        method=fit.method,
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
        When the estimate is none, the target is not a finite number above 0 or out of reach, or
        the value is (nearly) 0 (nothing is narrow relative to 0).

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
    if not isinstance(estimate, Estimate):
        raise InvalidInput(f"estimate is {short(estimate)}, expected an Estimate")
    if (
        isinstance(target, bool)
        or not isinstance(target, Real)
        or not 0.0 < float(target) < math.inf
    ):
        raise InvalidInput(f"target is {target!r}, expected a finite number above 0")
    width = estimate.relative_half_width
    ratio = width / target
    if ratio > _LARGEST_RATIO:
        raise InvalidInput(
            f"the estimate is {estimate.value!r}, no interval is narrow relative to (nearly) 0"
            if width > _LARGEST_RATIO
            else f"target is {target!r}, out of reach: the half-width is {width:.3g} of the value"
        )
    return max(2, math.ceil(estimate.n * ratio**2 * (1.0 - 1e-12)))


def _cube_root(quantile: float, skewness: float) -> float:
    """Correct a quantile of the studentised mean for skewness (Johnson 1978, Hall 1992).

    G(t) = ((1 + 6 b (t - b))^(1/3) - 1) / (2 b) with b = skewness of the mean / 6, in the form
    used for batch means by Tafazzoli, Steiger & Wilson (2011).
    """
    b = skewness / 6.0
    if abs(b) < 1e-6:
        return quantile
    return float((np.cbrt(1.0 + 6.0 * b * (quantile - b)) - 1.0) / (2.0 * b))


def _notices(fit: LevelFit) -> tuple[Notice, ...]:
    sentences: list[tuple[Code, bool, str, Evidence]] = [
        (
            Code.CONSTANT,
            fit.standard_error == 0.0,
            f"The {fit.n} readings hold no noise: the interval has no width."
            if fit.transients
            else f"All {fit.n} readings are {fit.level!r}: the interval has no width.",
            {"n": fit.n, "value": fit.level},
        ),
        (
            Code.FEW_READINGS,
            fit.n < FEW,
            f"Only {fit.n} readings: below {FEW}, autocorrelation cannot be seen.",
            {"n": fit.n, "wanted": FEW},
        ),
        (
            Code.FEW_EFFECTIVE,
            fit.n >= FEW and fit.n_effective < FEW,
            f"{fit.n} readings hold only {int(fit.n_effective)} effective ones: "
            f"unreliable below {FEW}.",
            {"n": fit.n, "n_effective": fit.n_effective},
        ),
        (
            Code.PERSISTENT_AND_SKEWED,
            fit.inflation >= _PERSISTENT
            and abs(fit.skewness) >= max(_SKEWED, _BY_CHANCE / fit.n_effective),
            f"Strongly autocorrelated ({fit.inflation:.0f}-fold) and skewed, as in a busy queue: "
            "of such intervals at 95%, 85 to 90% were measured to hold the truth.",
            {"inflation": fit.inflation, "skewness": fit.skewness},
        ),
    ]
    return tuple(
        Notice.warning(code, sentence, **evidence)
        for code, holds, sentence, evidence in sentences
        if holds
    )
