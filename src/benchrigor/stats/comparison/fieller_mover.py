"""Difference and ratio of two uncertain values: Fieller, MOVER, Welch.

The interval of candidate - R * baseline follows from the errors of each value, downwards and
upwards: the method of variance estimates recovery (MOVER; Zou & Donner 2008 for differences,
Donner & Zou 2012 for ratios). Symmetric errors give the interval of Welch (1947) for the difference
and that of Fieller (1954) for the ratio. The interval holds each ratio R for which the test of
candidate = R * baseline does not reject.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import scipy

from benchrigor.model import Estimate
from benchrigor.stats.series.interval import StandardError, satterthwaite, student_t, t_interval

_ITERATIONS = 8  # iterations for an end of a ratio's interval and its degrees of freedom


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertainValue:
    """A value with its standard errors downwards and upwards, and their degrees of freedom."""

    value: float
    below: float
    above: float
    degrees_of_freedom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Two values to compare, and the correlation of their errors."""

    baseline: UncertainValue
    candidate: UncertainValue
    correlation: float = 0.0


def uncertain_value(estimate: Estimate, *, symmetric: bool) -> UncertainValue:
    """Recover the errors of an estimate from its interval."""
    freedom = estimate.degrees_of_freedom or math.inf
    quantile = student_t(freedom, estimate.confidence)
    below = max(estimate.value - estimate.low, 0.0) / quantile
    above = max(estimate.high - estimate.value, 0.0) / quantile
    if symmetric:
        error = estimate.standard_error
        below = above = (below + above) / 2.0 if error is None else error
    return UncertainValue(
        value=estimate.value, below=below, above=above, degrees_of_freedom=freedom
    )


def exact_value(value: float) -> UncertainValue:
    """Return a value that is known without error."""
    return UncertainValue(value=value, below=0.0, above=0.0, degrees_of_freedom=math.inf)


def difference_of(
    contrast: Contrast,
    confidence: float,
    size: tuple[int, float],
    method: str,
    *,
    ratio: float = 1.0,
) -> Estimate:
    """Estimate candidate - ratio * baseline, with the interval of Welch (1947) or MOVER."""
    return t_interval(
        contrast.candidate.value - ratio * contrast.baseline.value,
        _error(contrast, ratio, down=True),
        confidence,
        above=_error(contrast, ratio, down=False),
        n=size[0],
        n_effective=size[1],
        method=method,
    )


def ratio_of(
    contrast: Contrast, confidence: float, size: tuple[int, float], method: str
) -> Estimate | None:
    """Estimate candidate over baseline, with the interval of Fieller (1954) or MOVER."""
    baseline = contrast.baseline
    lowest = student_t(baseline.degrees_of_freedom, confidence) * baseline.below
    if baseline.value <= lowest:
        return None
    # In units of the baseline, squares of tiny and of huge readings stay in range.
    one, other = (_scaled(each, baseline.value) for each in (baseline, contrast.candidate))
    scaled = replace(contrast, baseline=one, candidate=other)
    low = _end(scaled, confidence, down=True)
    high = _end(scaled, confidence, down=False)
    if low is None or high is None:
        return None
    value = scaled.candidate.value
    difference = difference_of(scaled, confidence, size, method, ratio=value)
    return replace(difference, value=value, low=low, high=high)


def p_value_at(contrast: Contrast, ratio: float) -> float:
    """Return the two-sided p-value of candidate = ratio * baseline.

    Student's t with the degrees of freedom of Welch (1947) and Satterthwaite (1946). Errors
    recovered from an asymmetric interval are scaled with the quantile, so the p-value is exact at
    the confidence of that interval.
    """
    gap = contrast.candidate.value - ratio * contrast.baseline.value
    error, freedom = _error(contrast, ratio, down=gap > 0.0)
    if error == 0.0:
        return 1.0 if gap == 0.0 else 0.0
    return min(1.0, 2.0 * float(scipy.special.stdtr(freedom, -abs(gap) / error)))


def further_units(contrast: Contrast, sizes: tuple[int, int], shrink: float) -> int | None:
    """Return how many more units either sample needs for an interval ``shrink`` times as wide.

    The k >= 0 that solves A / (m + k) + B / (n + k) = shrink^2 (A / m + B / n), with A / m and
    B / n the squared errors that baseline and candidate contribute. The gain in degrees of freedom
    is left out, so the answer is on the safe side. None where no error says how it shrinks.
    """
    if shrink >= 1.0:
        return 0
    m, n = sizes
    first, second = _parts(contrast, contrast.candidate.value / contrast.baseline.value, down=True)
    whole = math.hypot(first, second)
    if whole == 0.0:  # of a candidate of 0 the error downwards is none
        return None
    share = (first / whole) ** 2
    wanted = shrink**2
    half = (wanted * (m + n) - share * m - (1.0 - share) * n) / 2.0
    rest = m * n * (1.0 - wanted)
    k = (math.sqrt(half**2 + wanted * rest) - half) / wanted
    return math.ceil(k * (1.0 - 1e-12))


def _scaled(uncertain: UncertainValue, unit: float) -> UncertainValue:
    value, below, above = uncertain.value / unit, uncertain.below / unit, uncertain.above / unit
    return replace(uncertain, value=value, below=below, above=above)


def _parts(contrast: Contrast, ratio: float, *, down: bool) -> tuple[float, float]:
    """Return the errors of R * baseline and of candidate that lower (``down``) their difference."""
    baseline, candidate = contrast.baseline, contrast.candidate
    above = down == (ratio >= 0.0)
    return (
        ratio * (baseline.above if above else baseline.below),
        candidate.below if down else candidate.above,
    )


def _error(contrast: Contrast, ratio: float, *, down: bool) -> StandardError:
    """Return the standard error of candidate - R * baseline."""
    first, second = _parts(contrast, ratio, down=down)
    correlation = contrast.correlation
    error = math.hypot(second - correlation * first, math.sqrt(1.0 - correlation**2) * first)
    freedoms = contrast.baseline.degrees_of_freedom, contrast.candidate.degrees_of_freedom
    exact = first == second == 0.0
    return StandardError(
        error, sum(freedoms) if exact else satterthwaite((first, second), freedoms)
    )


def _end(contrast: Contrast, confidence: float, *, down: bool) -> float | None:
    """Solve |candidate - R| = t(R) error(R) for one end R of the ratio's interval.

    The baseline is 1. For a fixed t this is a quadratic equation. It is solved repeatedly, because
    t depends a little on R by the degrees of freedom.
    """
    value = contrast.candidate.value
    end: float | None = value
    for _ in range(_ITERATIONS):
        if end is None:
            break
        quantile = student_t(_error(contrast, end, down=down).degrees_of_freedom, confidence)
        own = quantile * _parts(contrast, 1.0, down=down)[1]
        # The end has the sign of the candidate's own end.
        sign = math.copysign(1.0, value - own if down else value + own)
        other = quantile * abs(_parts(contrast, sign, down=down)[0])
        end = _root(value, own, other, contrast.correlation, down=down)
    return end


def _root(
    value: float, own: float, other: float, correlation: float, *, down: bool
) -> float | None:
    """Solve (value - R)^2 = own^2 - 2 correlation own other R + (other R)^2 for one of its roots.

    None where the baseline's error reaches 0 and the interval has no end on that side.
    """
    lead = (1.0 - other) * (1.0 + other)
    middle = value - correlation * own * other
    last = (value - own) * (value + own)
    root = math.sqrt(max(middle**2 - lead * last, 0.0))
    if down:
        root = -root
    if middle != 0.0 and (middle > 0.0) == down:  # the form in which nothing cancels
        return last / (middle - root)
    return (middle + root) / lead if lead > 0.0 else None
