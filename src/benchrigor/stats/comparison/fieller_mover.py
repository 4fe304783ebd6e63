"""Two estimates held against each other: difference, ratio, and how probable a gap is.

An interval of candidate - R * baseline is recovered from each side's own errors, downwards and
upwards: the method of variance estimates recovery (MOVER; Zou & Donner 2008 for differences,
Donner & Zou 2012 for ratios). Where errors are symmetric it is the interval of Welch (1947) for
the difference, and that of Fieller (1954) for the ratio. A ratio R belongs to its interval just
when the test of candidate = R * baseline does not reject it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from benchrigor.model import Estimate
from benchrigor.stats.series.interval import student_t

_ROUNDS = 8
"""Of refining an end of a ratio's interval together with its degrees of freedom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A value with its standard errors downwards and upwards, and their degrees of freedom."""

    value: float
    below: float
    above: float
    degrees_of_freedom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Two sides, and the correlation of their errors."""

    baseline: Side
    candidate: Side
    correlation: float = 0.0


def side_of(estimate: Estimate, *, symmetric: bool) -> Side:
    """Read the errors of an estimate."""
    freedom = estimate.degrees_of_freedom or math.inf
    quantile = student_t(freedom, estimate.confidence)
    below, above = (
        max(reach, 0.0) / quantile
        for reach in (estimate.value - estimate.low, estimate.high - estimate.value)
    )
    if symmetric:
        error = estimate.standard_error
        below = above = (below + above) / 2.0 if error is None else error
    return Side(value=estimate.value, below=below, above=above, degrees_of_freedom=freedom)


def exact_side(value: float) -> Side:
    """Return a side that is known without error."""
    return Side(value=value, below=0.0, above=0.0, degrees_of_freedom=math.inf)


def difference_of(
    contrast: Contrast, confidence: float, size: tuple[int, float], method: str
) -> Estimate:
    """Estimate candidate minus baseline, with the interval of Welch (1947) or its like."""
    value = contrast.candidate.value - contrast.baseline.value
    down, freedom_down = _error(contrast, 1.0, down=True)
    up, freedom_up = _error(contrast, 1.0, down=False)
    return Estimate(
        value=value,
        low=value - student_t(freedom_down, confidence) * down,
        high=value + student_t(freedom_up, confidence) * up,
        confidence=confidence,
        n=size[0],
        n_effective=size[1],
        method=method,
        standard_error=(down + up) / 2.0,
        degrees_of_freedom=min(freedom_down, freedom_up),
    )


def ratio_of(
    contrast: Contrast, confidence: float, size: tuple[int, float], method: str
) -> Estimate | None:
    """Estimate candidate over baseline, with the interval of Fieller (1954) or its like."""
    baseline = contrast.baseline
    lowest = student_t(baseline.degrees_of_freedom, confidence) * baseline.below
    if baseline.value <= lowest:
        return None
    # In units of the baseline squares of tiny and of huge readings stay in range.
    scaled = Contrast(
        baseline=_scaled(baseline, baseline.value),
        candidate=_scaled(contrast.candidate, baseline.value),
        correlation=contrast.correlation,
    )
    low = _end(scaled, confidence, down=True)
    high = _end(scaled, confidence, down=False)
    if low is None or high is None:
        return None
    value = scaled.candidate.value
    down, freedom_down = _error(scaled, value, down=True)
    up, freedom_up = _error(scaled, value, down=False)
    return Estimate(
        value=value,
        low=low,
        high=high,
        confidence=confidence,
        n=size[0],
        n_effective=size[1],
        method=method,
        standard_error=(down + up) / 2.0,
        degrees_of_freedom=min(freedom_down, freedom_up),
    )


def chance_at(contrast: Contrast, ratio: float) -> float:
    """Return the two-sided p-value of candidate = ratio * baseline.

    Notes
    -----
    Student's t with the degrees of freedom of Welch (1947) and Satterthwaite (1946). Errors read
    off an asymmetric interval count in the direction in which they matter, and are taken to
    scale with the quantile: the p-value is exact at the confidence of that interval.
    """
    gap = contrast.candidate.value - ratio * contrast.baseline.value
    error, freedom = _error(contrast, ratio, down=gap > 0.0)
    if error == 0.0:
        return 1.0 if gap == 0.0 else 0.0
    return min(1.0, 2.0 * float(special.stdtr(freedom, -abs(gap) / error)))


def further_units(contrast: Contrast, sizes: tuple[int, int], shrink: float) -> int:
    """Return how many more units each side needs for an interval ``shrink`` times as wide.

    Notes
    -----
    The k >= 0 that solves A / (m + k) + B / (n + k) = shrink^2 (A / m + B / n), with A / m and
    B / n the squared errors that baseline and candidate contribute. What a larger sample gains
    in degrees of freedom is left out, so the answer is on the safe side.
    """
    if shrink >= 1.0:
        return 0
    m, n = sizes
    first, second = _parts(contrast, contrast.candidate.value / contrast.baseline.value, down=True)
    whole = math.hypot(first, second)
    share = (first / whole) ** 2
    wanted = shrink**2
    half = (wanted * (m + n) - share * m - (1.0 - share) * n) / 2.0
    rest = m * n * (1.0 - wanted)
    k = (math.sqrt(half**2 + wanted * rest) - half) / wanted
    return math.ceil(k * (1.0 - 1e-12))


def _scaled(side: Side, unit: float) -> Side:
    return Side(
        value=side.value / unit,
        below=side.below / unit,
        above=side.above / unit,
        degrees_of_freedom=side.degrees_of_freedom,
    )


def _parts(contrast: Contrast, ratio: float, *, down: bool) -> tuple[float, float]:
    """Return what the errors of R * baseline and of candidate add to that of their difference.

    ``down``: how far the difference may have come out too high.
    """
    baseline, candidate = contrast.baseline, contrast.candidate
    above = down == (ratio >= 0.0)
    return (
        ratio * (baseline.above if above else baseline.below),
        candidate.below if down else candidate.above,
    )


def _error(contrast: Contrast, ratio: float, *, down: bool) -> tuple[float, float]:
    """Return the standard error of candidate - R * baseline and its degrees of freedom."""
    first, second = _parts(contrast, ratio, down=down)
    correlation = contrast.correlation
    error = math.hypot(second - correlation * first, math.sqrt(1.0 - correlation**2) * first)
    freedoms = contrast.baseline.degrees_of_freedom, contrast.candidate.degrees_of_freedom
    whole = math.hypot(first, second)
    if whole == 0.0:
        return error, sum(freedoms)
    shares = (first / whole) ** 2, (second / whole) ** 2
    inverse = sum(share**2 / freedom for share, freedom in zip(shares, freedoms, strict=True))
    return error, 1.0 / inverse if inverse > 0.0 else math.inf


def _end(contrast: Contrast, confidence: float, *, down: bool) -> float | None:
    """Solve |candidate - R| = t(R) error(R) for one end R of the ratio's interval.

    The baseline is 1. For a fixed t this is a quadratic equation; t depends a little on R, by
    the degrees of freedom, so that it is solved a few times over.
    """
    value = contrast.candidate.value
    end: float | None = value
    for _ in range(_ROUNDS):
        if end is None:
            break
        quantile = student_t(_error(contrast, end, down=down)[1], confidence)
        own = quantile * _parts(contrast, 1.0, down=down)[1]
        # The end lies above 0 just when the candidate's own end does.
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
