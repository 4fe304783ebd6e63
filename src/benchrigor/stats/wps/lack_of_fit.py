"""Lack of fit: whether duration bends with work, how it grows, and which rounds are outliers.

Notices hold all that the user of a work line must know of it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.model import Code, Estimate, Notice, WpsFit
from benchrigor.model.series import Floats
from benchrigor.stats.series.interval import scale, student_t
from benchrigor.stats.wps.hc3 import (
    CoefficientError,
    Regression,
    coefficient_errors,
    is_determined,
    noise_likelihoods,
    regress,
)

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
