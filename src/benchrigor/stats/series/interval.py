"""From a fitted level to its confidence interval, and from an interval to the readings it takes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import scipy

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.analysis import LevelFit
from benchrigor.model.checks import refuse, wrong_number, wrong_share
from benchrigor.model.series import short
from benchrigor.model.text import show_plainly
from benchrigor.stats.series.level import BLOCKS, MIN_FOR_AUTOCORRELATION

PIECE_MEANS = "piece means"
LONG_RUN_VARIANCE = "long-run-variance"

MAX_RELATIVE_WIDTH = 1e9  # a half-width beyond so many values is relative to (nearly) 0
_WIDEST = 1.0  # half-width of a number that is never below 0, in values
_LARGEST_LOG = 700.0  # its exponential is still a double
_LARGEST_EXPONENT = 300.0  # of the ends of an interval, which stay among the finite numbers
# From this variance inflation and skewness of the mean on, as in queues, mean and spread are
# estimated from the same few bursts.
_PERSISTENT, _SKEWED, _BY_CHANCE = 10.0, 0.1, 10.0


class StandardError(NamedTuple):
    """A standard error and its degrees of freedom."""

    value: float
    degrees_of_freedom: float


def check_confidence(confidence: float) -> None:
    """Raise InvalidInput unless ``confidence`` lies strictly between 0 and 1."""
    refuse(wrong_share("confidence", confidence))


def student_t(degrees_of_freedom: float, confidence: float) -> float:
    """Return the quantile of Student's t that two-sided intervals of that confidence use."""
    # From the lower tail: one minus a tiny tail would round to one, whose quantile is infinite.
    return -float(scipy.special.stdtrit(degrees_of_freedom, (1.0 - confidence) / 2.0))


def satterthwaite(errors: Iterable[float], freedoms: Iterable[float]) -> float:
    """Return the degrees of freedom of a sum of independent errors (Satterthwaite 1946)."""
    errors = tuple(errors)
    total = math.hypot(*errors) or 1.0
    inverse = sum((e / total) ** 4 / freedom for e, freedom in zip(errors, freedoms, strict=True))
    return 1.0 / inverse if inverse > 0.0 else math.inf


def t_interval(
    value: float,
    below: StandardError,
    confidence: float,
    *,
    above: StandardError | None = None,
    n: int,
    n_effective: float,
    method: str,
    positive: bool = False,
) -> Estimate:
    """Return a value with Student's t interval; ``above`` if the error upwards is another.

    That of a quantity that is never below 0 (``positive``) is made on the logarithmic scale.
    """
    above = above or below
    low, high = _ends(
        value,
        student_t(below.degrees_of_freedom, confidence) * below.value,
        student_t(above.degrees_of_freedom, confidence) * above.value,
        positive=positive,
    )
    return Estimate(
        value=value,
        low=low,
        high=high,
        confidence=confidence,
        n=n,
        n_effective=n_effective,
        method=method,
        standard_error=(below.value + above.value) / 2.0,
        degrees_of_freedom=min(below.degrees_of_freedom, above.degrees_of_freedom),
    )


def exponential(log: Estimate) -> Estimate:
    """Return the estimate of a value from the estimate of its logarithm."""
    ends = (max(-_LARGEST_LOG, min(end, _LARGEST_LOG)) for end in (log.value, log.low, log.high))
    value, low, high = map(math.exp, ends)
    error = None if log.standard_error is None else log.standard_error * value
    return replace(log, value=value, low=low, high=high, standard_error=error)


def _ends(value: float, below: float, above: float, *, positive: bool) -> tuple[float, float]:
    """Return the ends of an interval that reaches so far below and above a value.

    On the logarithmic scale, by the delta method, those of a positive value stay positive.
    """
    if not positive or value <= 0.0:
        return value - below, value + above
    down, up = (min(reach / value, _LARGEST_EXPONENT) for reach in (below, above))
    return value * math.exp(-down), value * math.exp(up)


def is_wide(estimate: Estimate) -> bool:
    """Whether an interval that stays positive is wider than a number allows."""
    return estimate.low >= 0.0 and estimate.relative_half_width > _WIDEST


def refuse_wide(estimate: Estimate) -> Estimate:
    """Return an estimate; raise NotEstimable if it is too wide."""
    if not is_wide(estimate):
        return estimate
    value, low, high = estimate.value, estimate.low, estimate.high
    figures = {"n": estimate.n, "value": value, "low": low, "high": high}
    raise NotEstimable(Notice.of(Code.TOO_WIDE, **figures, unit_=""))


def estimate_level(fit: LevelFit, confidence: float, *, positive: bool = False) -> Estimate:
    """Turn the fit of a level, from `fit_level`, into an estimate with its interval.

    Parameters
    ----------
    fit
        From `fit_level`.
    confidence
        Nominal coverage, in (0, 1).
    positive
        Whether the readings are never below 0, as times are. Then the interval is made on the
        logarithmic scale, and stays above 0. Of fewer than 30 others it is symmetric.
    """
    t = student_t(fit.degrees_of_freedom, confidence)
    skewness = fit.skewness if positive or fit.n >= MIN_FOR_AUTOCORRELATION else 0.0
    low, high = _ends(
        fit.level,
        correct_for_skewness(t, -skewness) * fit.standard_error,
        correct_for_skewness(t, skewness) * fit.standard_error,
        positive=positive,
    )
    return Estimate(
        value=fit.level,
        low=low,
        high=high,
        confidence=confidence,
        n=fit.n,
        n_effective=fit.n_effective,
        method=fit.method,
        standard_error=fit.standard_error,
        degrees_of_freedom=fit.degrees_of_freedom,
        notices=tuple(_notices(fit)),
    )


def scale(estimate: Estimate, factor: float) -> Estimate:
    """Multiply an estimate by a number above 0, and stay among the finite numbers."""
    error, most = estimate.standard_error, sys.float_info.max

    def times(value: float) -> float:
        return min(max(value * min(factor, most), -most), most)

    return replace(
        estimate,
        value=times(estimate.value),
        low=times(estimate.low),
        high=times(estimate.high),
        standard_error=None if error is None else times(error),
    )


def reciprocal_of(estimate: Estimate) -> Estimate | None:
    """Return one over an estimate, by both ends of its interval; None if it may be 0."""
    if estimate.low <= 0.0:
        return None
    error, value = estimate.standard_error, 1.0 / estimate.value
    return replace(
        estimate,
        value=value,
        low=1.0 / estimate.high,
        high=1.0 / estimate.low,
        # Two factors, for the square of a tiny value may be 0.
        standard_error=None if error is None else error * value * value,
    )


def required_readings(estimate: Estimate, target: float) -> int:
    """Return how many readings in all bring the relative half-width down to ``target``.

    The half-width shrinks with the square root of their number.

    Parameters
    ----------
    estimate
        Of the readings so far.
    target
        Relative half-width wanted, above 0.

    Raises
    ------
    InvalidInput
        When the target is invalid or out of reach, or the value is (nearly) 0.

    Examples
    --------
    >>> estimate = Estimate(value=10.0, low=9.0, high=11.0, confidence=0.95, n=100,
    ...                     n_effective=100.0, method="long-run-variance")
    >>> required_readings(estimate, 0.05)
    400
    """
    if not isinstance(estimate, Estimate):
        raise InvalidInput(f"estimate is {short(estimate)}, expected an Estimate")
    refuse(wrong_number("target", target))
    width = estimate.relative_half_width
    ratio = width / target
    if ratio > MAX_RELATIVE_WIDTH:
        raise InvalidInput(
            f"the estimate is {show_plainly(estimate.value)}, "
            "no interval is narrow relative to (nearly) 0"
            if width > MAX_RELATIVE_WIDTH
            else f"target is {show_plainly(target)}, out of reach: "
            f"the half-width is {width:.3g} of the value"
        )
    return max(2, math.ceil(estimate.n * ratio**2 * (1.0 - 1e-12)))


def correct_for_skewness(quantile: float, skewness: float) -> float:
    """Lengthen a quantile of the studentised mean towards the tail of skewed readings.

    t + b (2 t^2 + 1) with b = skewness of the mean / 6 (Johnson 1978, Hall 1992). The end away from
    the tail keeps its own quantile: few readings hide much of their skewness.
    """
    return quantile + max(skewness, 0.0) / 6.0 * (2.0 * quantile**2 + 1.0)


def _notices(fit: LevelFit) -> Iterator[Notice]:
    n, effective, wanted = fit.n, fit.n_effective, MIN_FOR_AUTOCORRELATION
    if fit.standard_error == 0.0:
        case = "noiseless" if fit.transients else ""
        yield Notice.of(Code.CONSTANT, case, n=n, value=fit.level)
    if fit.method == BLOCKS:
        return  # few blocks are few regardless of the readings
    if n < wanted:
        yield Notice.of(Code.FEW_READINGS, n=n, wanted=wanted)
    elif effective < wanted:
        figures = {"n": n, "n_effective": effective}
        yield Notice.of(Code.FEW_EFFECTIVE, **figures, whole_=int(effective), wanted_=wanted)
    inflation, skewness = fit.inflation, fit.skewness
    if inflation >= _PERSISTENT and abs(skewness) >= max(_SKEWED, _BY_CHANCE / effective):
        yield Notice.of(Code.PERSISTENT_AND_SKEWED, inflation=inflation, skewness=skewness)
