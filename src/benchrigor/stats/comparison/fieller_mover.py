"""Difference and ratio of two uncertain values: Fieller, MOVER, Welch.

The interval of candidate - R * baseline follows from the errors of each value, downwards and
upwards: the method of variance estimates recovery (MOVER; Zou & Donner 2008 for differences,
Donner & Zou 2012 for ratios). Symmetric errors give the interval of Welch (1947) for the difference
and that of Fieller (1954) for the ratio. The interval holds each ratio R for which the test of
candidate = R * baseline does not reject: of exchanged values it has the reciprocal ends.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import scipy

from benchrigor.model import Estimate
from benchrigor.stats.series.interval import StandardError, satterthwaite, student_t, t_interval

_HALVINGS = 53  # on the way to an end of a ratio's interval: the digits of a number
_LEAST_SHRINK = 1e-18  # squared: nobody takes 1e18 times as many readings
_LEAST_RATIO = sys.float_info.min  # one below it has few digits, and its reciprocal none

Weights = tuple[float, float]  # of baseline and candidate in a difference


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertainValue:
    """A value with its standard errors downwards and upwards, and their degrees of freedom."""

    value: float
    below: float
    above: float
    degrees_of_freedom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Two values to compare, and the correlation of their errors.

    ``freedom``: degrees of freedom of errors that have the same, being of pairs.
    """

    baseline: UncertainValue
    candidate: UncertainValue
    correlation: float = 0.0
    freedom: float | None = None

    def scaled(self, unit: float, candidate_unit: float) -> Contrast:
        """Return the contrast with either value in a unit of its own."""
        return replace(
            self,
            baseline=_scale(self.baseline, unit),
            candidate=_scale(self.candidate, candidate_unit),
        )

    def parts(self, weights: Weights, *, down: bool) -> tuple[float, float]:
        """Return the two errors that lower (``down``) or raise the weighted difference."""
        baseline, candidate = self.baseline, self.candidate
        above = down == (weights[0] >= 0.0)
        return (
            weights[0] * (baseline.above if above else baseline.below),
            weights[1] * (candidate.below if down else candidate.above),
        )

    def difference(self, weights: Weights) -> float:
        """Return the weighted difference of candidate and baseline."""
        return weights[1] * self.candidate.value - weights[0] * self.baseline.value

    def error(self, weights: Weights, *, down: bool) -> StandardError:
        """Return the standard error of the weighted difference."""
        first, second = parts = self.parts(weights, down=down)
        rho = self.correlation
        value = math.hypot(second - rho * first, math.sqrt(1.0 - rho**2) * first)
        if self.freedom is not None:
            return StandardError(value, self.freedom)
        freedoms = self.baseline.degrees_of_freedom, self.candidate.degrees_of_freedom
        return StandardError(value, satterthwaite(parts, freedoms) if any(parts) else sum(freedoms))


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
    weights = (ratio, 1.0)
    return t_interval(
        contrast.difference(weights),
        contrast.error(weights, down=True),
        confidence,
        above=contrast.error(weights, down=False),
        n=size[0],
        n_effective=size[1],
        method=method,
    )


def ratio_of(
    contrast: Contrast,
    confidence: float,
    size: tuple[int, float],
    method: str,
    *,
    positive: bool = False,
) -> Estimate | None:
    """Estimate candidate over baseline, with the interval of Fieller (1954) or MOVER.

    The ratio of ``positive`` quantities lies between 0 and infinity, which are the ends of a set
    that the values do not bound. Of other quantities such a set is None, as is a ratio that no
    float holds.
    """
    baseline, candidate = contrast.baseline, contrast.candidate
    positive = positive and candidate.value > 0.0
    if baseline.value <= 0.0 or not (
        positive or _excess(contrast, _weights(1.0), confidence) > 0.0
    ):
        return None
    # In units of the values, squares of tiny and of huge readings stay in range.
    unit = abs(candidate.value) or max(candidate.below, candidate.above) or 1.0
    in_units = contrast.scaled(baseline.value, unit)
    value, back = in_units.candidate.value, unit / baseline.value
    if not _LEAST_RATIO <= back <= 1.0 / _LEAST_RATIO:
        return None

    def excess(place: float) -> float:
        return _excess(in_units, _weights(place), confidence)

    centre = value / (1.0 + abs(value))
    low, high = (_end(excess, centre, limit) for limit in (0.0 if positive else -1.0, 1.0))
    difference = difference_of(in_units, confidence, size, method, ratio=value)
    return replace(
        difference,
        value=value * back,
        low=_ratio_at(low) * back,
        high=_ratio_at(high) * back,
        standard_error=(difference.standard_error or 0.0) * back,
    )


def p_value_at(contrast: Contrast, ratio: float) -> float:
    """Return the two-sided p-value of candidate = ratio * baseline, or of baseline = 0 at infinity.

    Student's t with the degrees of freedom of Welch (1947) and Satterthwaite (1946). Errors
    recovered from an asymmetric interval are scaled with the quantile, so the p-value is exact at
    the confidence of that interval.
    """
    weights = (ratio, 1.0) if math.isfinite(ratio) else (1.0, 0.0)
    gap = contrast.difference(weights)
    error, freedom = contrast.error(weights, down=gap > 0.0)
    if error == 0.0:
        return 1.0 if gap == 0.0 else 0.0
    return min(1.0, 2.0 * float(scipy.special.stdtr(freedom, -abs(gap) / error)))


def is_bounded(ratio: Estimate) -> bool:
    """Whether the interval of a ratio of positive values ends above 0 and below infinity."""
    return ratio.high < math.inf and (ratio.low != 0.0 or ratio.value == 0.0)


def further_units(contrast: Contrast, sizes: tuple[int, int], shrink: float) -> int | None:
    """Return how many more units either sample needs for an interval ``shrink`` times as wide.

    The k >= 0 that solves A / (m + k) + B / (n + k) = shrink^2 (A / m + B / n), with A / m and
    B / n the squared errors that baseline and candidate contribute. The gain in degrees of freedom
    is left out, so the answer is on the safe side. None if no error says how it shrinks, or
    where it takes more than anyone can measure.
    """
    if shrink >= 1.0:
        return 0
    m, n = sizes
    ratio = contrast.candidate.value / contrast.baseline.value
    first, second = contrast.parts((ratio, 1.0), down=True)
    whole = math.hypot(first, second)
    if whole == 0.0:  # of a candidate of 0 the error downwards is none
        return None
    share = (first / whole) ** 2
    wanted = shrink**2
    if wanted < _LEAST_SHRINK:
        return None
    half = (wanted * (m + n) - share * m - (1.0 - share) * n) / 2.0
    rest = m * n * (1.0 - wanted)
    k = (math.sqrt(half**2 + wanted * rest) - half) / wanted
    return math.ceil(k * (1.0 - 1e-12))


def _scale(uncertain: UncertainValue, unit: float) -> UncertainValue:
    value, below, above = uncertain.value / unit, uncertain.below / unit, uncertain.above / unit
    return replace(uncertain, value=value, below=below, above=above)


def _excess(contrast: Contrast, weights: Weights, confidence: float) -> float:
    """Return by how much a weighted difference exceeds the quantile of its error."""
    gap = contrast.difference(weights)
    error, freedom = contrast.error(weights, down=gap > 0.0)
    return abs(gap) - student_t(freedom, confidence) * error


def _end(excess: Callable[[float], float], inside: float, limit: float) -> float:
    """Return the last place on the way to a limit that the test does not reject."""
    if excess(limit) <= 0.0:
        return limit
    outside = limit
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2.0
        if excess(middle) > 0.0:
            outside = middle
        else:
            inside = middle
    return inside


def _weights(place: float) -> Weights:
    return place, 1.0 - abs(place)


def _ratio_at(place: float) -> float:
    """Return the ratio at a place from -1 to 1; reciprocal ratios are as far from 0 and from 1."""
    on_baseline, on_candidate = _weights(place)
    return on_baseline / on_candidate if on_candidate else math.copysign(math.inf, place)
