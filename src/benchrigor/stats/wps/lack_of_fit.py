"""Whether duration is linear in work: how it bends, how it grows, and which rounds lie apart."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from benchrigor.model import Code, Estimate, Floats, Notice, Severity
from benchrigor.stats.series.interval import student_t
from benchrigor.stats.wps.hc3 import (
    CoefficientError,
    Regression,
    coefficient_errors,
    is_determined,
    noise_likelihoods,
    regress,
)

__all__ = ["Linearity", "judge_linearity", "outlying"]

_LEVEL = 0.01
_EXPONENTS = (0.05, 5.0)
_STEPS = 30
_LEAST_RANGE = 2.0
_VAGUE = 1.0
"""Width of the interval of the exponent from which on it names no shape."""
_ALIKE = 1e-3
"""Exponents, and speeds relative to each other, that nobody needs to tell apart."""
_SMALLEST = sys.float_info.min
_FEWEST = 5
"""Rounds to every one that may lie far from the others."""
_MOST = 10
_CARRY = 0.5
"""Half-widths by which few rounds may move the speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linearity:
    """What the rounds say against a line; the fields are those of `WpsFit`."""

    bend: Estimate | None = None
    growth: Estimate | None = None
    shape: str | None = None
    outliers: tuple[int, ...] = ()
    notices: tuple[Notice, ...] = ()


def judge_linearity(
    work: Floats,
    durations: Floats,
    *,
    slope: float,
    unit: float,
    estimator: str,
    confidence: float,
) -> Linearity:
    """Judge whether duration is linear in work.

    Parameters
    ----------
    work, durations
        As shares of their largest, in round order, shape (n,).
    slope
        Of the line.
    unit
        The largest amount of work.
    estimator
        As for `regress`.
    confidence
        Nominal coverage, in (0, 1).
    """
    bend, bends = _bend(work, durations, slope, estimator, confidence)
    growth = _growth(work, durations, estimator, confidence) if slope > 0.0 else None
    shape = None if growth is None else _shape(growth, work, unit)
    return Linearity(
        bend=bend,
        growth=growth,
        shape=shape,
        outliers=_outliers(_curve(work, growth) if bends else work[:, None], durations),
        notices=(_not_linear(bend, shape),) if bend is not None and bends else (),
    )


def _bend(
    work: Floats, durations: Floats, slope: float, estimator: str, confidence: float
) -> tuple[Estimate | None, bool]:
    """Estimate the bend, and say whether it is significant.

    With duration = a + b w + c w^2 the time per unit of work grows by 2 c (largest - smallest).
    It is held against the slope of the line, which is far better known.
    """
    if slope <= 0.0 or np.unique(work).size < 4 or work.size < 5:
        return None, False
    centred = work - work.mean()
    design = np.column_stack([np.ones(work.size), centred, centred**2])
    error = _last_coefficient(design, durations, estimator)
    if error is None:
        return None, False
    factor = 2.0 * float(np.ptp(work)) / slope
    bend = _estimate(error, confidence, work.size, "quadratic term", factor=factor)
    reach = student_t(error.degrees_of_freedom, 1.0 - _LEVEL) * error.standard_error
    # Rounding leaves an exact line a bend that is as exact.
    return bend, abs(error.value) > reach and abs(bend.value) > _ALIKE


def _growth(work: Floats, durations: Floats, estimator: str, confidence: float) -> Estimate | None:
    """Estimate the exponent p of duration = a + c w^p by nonlinear least squares."""
    if np.unique(work).size < 5 or work.min() * _LEAST_RANGE > work.max():
        return None
    exponent = _exponent(work, durations)
    if exponent is None:
        return None
    power = work**exponent
    centred = power - power.mean()
    factor = float(centred @ durations) / float(centred @ centred)
    # The line that touches the curve there: its last coefficient is the step left to take.
    curve = factor * power * np.log(np.maximum(work, _SMALLEST))
    error = _last_coefficient(
        np.column_stack([np.ones(work.size), power, curve]), durations, estimator
    )
    if error is None or factor <= 0.0:
        return None
    return _estimate(error, confidence, work.size, "nonlinear least squares", shift=exponent)


def _exponent(work: Floats, durations: Floats) -> float | None:
    """Return the exponent that leaves the least squares unexplained; None at an end."""
    centred = durations - durations.mean()

    def unexplained(exponent: float) -> float:
        power = work**exponent
        power = power - power.mean()
        rest = centred - power * (float(power @ centred) / float(power @ power))
        return float(rest @ rest)

    exponents = np.geomspace(*_EXPONENTS, _STEPS)
    best = int(np.argmin([unexplained(each) for each in exponents]))
    if best in (0, _STEPS - 1):
        return None
    around = (exponents[best - 1], exponents[best + 1])
    from scipy import optimize  # noqa: PLC0415  # a third of the import of the whole package

    found = optimize.minimize_scalar(unexplained, bounds=around, method="bounded")
    return float(found.x)


def _last_coefficient(design: Floats, durations: Floats, estimator: str) -> CoefficientError | None:
    if not is_determined(design):
        return None
    fit = regress(design, durations, estimator=estimator)
    return coefficient_errors(fit, np.eye(design.shape[1])[-1:])[0]


def _estimate(
    error: CoefficientError,
    confidence: float,
    n: int,
    method: str,
    *,
    factor: float = 1.0,
    shift: float = 0.0,
) -> Estimate:
    value, spread = error.value * factor + shift, error.standard_error * factor
    reach = student_t(error.degrees_of_freedom, confidence) * spread
    return Estimate(
        value=value,
        low=value - reach,
        high=value + reach,
        confidence=confidence,
        n=n,
        n_effective=n / error.inflation,
        method=method,
        standard_error=spread,
        degrees_of_freedom=error.degrees_of_freedom,
    )


def _shape(growth: Estimate, work: Floats, unit: float) -> str | None:
    """Name the growth; "n log n" grows in these amounts like a power of them, a little above 1."""
    if growth.high - growth.low > _VAGUE:
        return None
    logs = np.log(np.maximum(work, _SMALLEST)) + math.log(unit)
    exponents = {"linear": 1.0, "n log n": None, "quadratic": 2.0}
    if logs.min() > 0.0:
        exponents["n log n"] = _exponent(work, work * logs)
    for name, exponent in exponents.items():
        if exponent is not None and growth.low - _ALIKE <= exponent <= growth.high + _ALIKE:
            return name
    return "other"


def _curve(work: Floats, growth: Estimate | None) -> Floats:
    """Return regressors of a duration that bends, so that no round along it is called far."""
    if growth is not None:
        exponent = float(np.clip(growth.value, *_EXPONENTS))
        return work[:, None] ** exponent
    return np.column_stack([work, (work - work.mean()) ** 2])


def _outliers(regressors: Floats, durations: Floats) -> tuple[int, ...]:
    """Return the rounds that lie far from the line, by Rosner's (1983) generalized ESD test.

    The farthest round is left out and the line fitted again, up to ten times; those up to the
    last that lies beyond Bonferroni's t quantile are far. Each residual is divided by the size
    of noise that is most likely there, and held against the spread of the others.
    """
    design = np.column_stack([np.ones(durations.size), regressors])
    left = np.arange(durations.size)
    suspects: list[int] = []
    far = 0
    for _ in range(min(left.size // _FEWEST, _MOST)):
        if not is_determined(design[left]):
            break
        fit = regress(design[left], durations[left])
        if not fit.residuals.any():
            break
        farthest, beyond = _farthest(fit)
        suspects.append(int(left[farthest]))
        far = len(suspects) if beyond else far
        left = np.delete(left, farthest)
    return tuple(sorted(suspects[:far]))


def _farthest(fit: Regression) -> tuple[int, bool]:
    """Return the round farthest from the line, and whether it is beyond what chance explains."""
    n, k = fit.design.shape
    likelihoods = noise_likelihoods(fit, order=1)
    sizes = fit.levels ** max(likelihoods, key=likelihoods.__getitem__)
    squares = (fit.residuals / sizes) ** 2
    distances = squares / (1.0 - fit.leverages)
    farthest = int(np.argmax(distances))
    others = max(float(squares.sum() - distances[farthest]), 0.0) / (n - k - 1)
    limit = student_t(n - k - 1.0, 1.0 - _LEVEL / n)
    return farthest, float(distances[farthest]) > limit**2 * others


def _not_linear(bend: Estimate, shape: str | None) -> Notice:
    change = f"{'grows' if bend.value > 0.0 else 'shrinks'} by {abs(bend.value):.0%}"
    known = f" (duration grows like {shape})" if shape in ("n log n", "quadratic") else ""
    return Notice.warning(
        Code.NOT_LINEAR,
        "Duration is not linear in work: the time per unit of work "
        f"{change} from the smallest to the largest amount{known}.",
        bend=bend.value,
        low=bend.low,
        high=bend.high,
        shape=shape,
    )


def outlying(
    outliers: tuple[int, ...], n: int, speed: Estimate | None, faster: float | None
) -> tuple[Notice, ...]:
    """Say which rounds lie far from the line, and whether they carry the speed.

    Parameters
    ----------
    outliers
        Their indices.
    n
        Rounds fitted.
    speed
        Of all rounds; None where there is none.
    faster
        Share by which the speed rises without those rounds; None where none is left.
    """
    if not outliers:
        return ()
    far = f"{len(outliers)} of {n} rounds lie far from the line"
    carry = speed is not None and (
        faster is None or abs(faster) > max(_CARRY * speed.relative_half_width, _ALIKE)
    )
    if faster is None:
        change = "there is no speed"
    else:
        change = f"the speed is {abs(faster):.1%} {'higher' if faster > 0.0 else 'lower'}"
    notice = Notice(
        code=Code.OUTLYING_ROUNDS,
        severity=Severity.WARNING if carry else Severity.NOTE,
        sentence=f"{far} and carry the result: without them {change}." if carry else f"{far}.",
        evidence={
            "n": n,
            "outliers": len(outliers),
            **({"faster": faster} if carry else {}),
        },
    )
    return (notice,)
