"""The line duration = overhead + work / speed, fitted to rounds of various amounts of work.

The published estimator merges the pairs of rounds to subsessions before the fit. Its standard
errors come from fits without each subsession in turn.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice, WpsFit
from benchrigor.model.checks import attempt, refuse, wrong_choice, wrong_share
from benchrigor.model.options import check_work
from benchrigor.model.series import Floats, as_series, check_items, short
from benchrigor.stats.least_squares import (
    ESTIMATORS,
    CoefficientError,
    Regression,
    coefficient_errors,
    diagnose_lack_of_fit,
    diagnose_line,
    diagnose_outliers,
    find_lack_of_fit,
    is_determined,
    regress,
)
from benchrigor.stats.series.interval import LONG_RUN_VARIANCE, is_wide, reciprocal_of, scale
from benchrigor.stats.series.long_run_variance import batch_means
from benchrigor.stats.series.subsessions import (
    MERGED,
    MIN_MERGED,
    SUBSESSIONS,
    merge_subsessions,
    refuse_correlated,
)


def merge_pairs(work: Floats, durations: Floats, limit: float) -> tuple[Floats, Floats, int]:
    """Merge adjacent rounds until times per work of neighbours hardly correlate.

    Return the mean work and the mean duration of each subsession, and the rounds in each; rounds
    left over at the end are dropped.
    """
    size = subsession_size(durations / work, limit)
    return batch_means(work, size), batch_means(durations, size), size


def least_squares_errors(
    fit: Regression, combinations: npt.ArrayLike
) -> tuple[CoefficientError, ...]:
    """Return combinations of coefficients with the standard errors of ordinary least squares."""
    freedom = float(fit.residuals.size - fit.design.shape[1])
    variance = float(fit.residuals @ fit.residuals) / freedom
    inverse = np.linalg.inv(fit.design.T @ fit.design)
    return tuple(
        CoefficientError(
            value=float(row @ fit.coefficients),
            standard_error=math.sqrt(variance * float(row @ inverse @ row)),
            degrees_of_freedom=freedom,
            inflation=1.0,
        )
        for row in np.asarray(combinations, dtype=np.float64)
    )


_DETERMINED = 1e-9  # of the determinant that must be left without a subsession


def subsession_size(series: Floats, limit: float, what: str = "") -> int:
    """Return how many rounds to merge so that neighbours (``what`` they have) hardly correlate."""
    merged, n = merge_subsessions(series, limit=limit), series.size
    if merged.size is None or merged.means.size < MIN_MERGED:
        raise NotEstimable(refuse_correlated(merged, f"{what}{n} rounds", n=n))
    return merged.size


def jackknife_errors(
    fit: Regression, combinations: npt.ArrayLike, size: int
) -> tuple[CoefficientError, ...]:
    """Return combinations of coefficients, with standard errors from subsessions of this size.

    The variance is (h - 1)/h times the sum of squares of the changes of the coefficients without
    each of h groups of adjacent rounds (Kuensch 1989, blocks that do not overlap), and has h - k
    degrees of freedom. Rounds left over at the end belong to the last group.
    """
    moves, single = _moves(fit, size), _moves(fit, 1)
    errors = []
    for row in np.asarray(combinations, dtype=np.float64):
        grouped, plain = (
            (len(moved) - 1.0) / len(moved) * float(np.sum((moved @ row) ** 2))
            for moved in (moves, single)
        )
        errors.append(
            CoefficientError(
                value=float(row @ fit.coefficients),
                standard_error=math.sqrt(grouped),
                degrees_of_freedom=float(len(moves) - row.size),
                inflation=max(grouped / plain, 1.0) if plain > 0.0 else 1.0,
            )
        )
    return tuple(errors)


def _moves(fit: Regression, size: int) -> Floats:
    """Return by how much the coefficients move without each group, shape (h, k)."""
    design, n = fit.design, fit.residuals.size
    starts = np.arange(n // size) * size
    scores = np.add.reduceat(design * fit.residuals[:, None], starts)
    squares = np.add.reduceat(design[:, :, None] * design[:, None, :], starts)
    whole = squares.sum(axis=0)
    left = np.linalg.det(whole - squares)
    if left.min() <= _DETERMINED * float(np.linalg.det(whole)):
        raise NotEstimable(Notice.of(Code.TOO_FEW_READINGS, "subsessions", n=n, size_=size))
    moves: Floats = np.linalg.solve(whole - squares, scores[:, :, None])[:, :, 0]
    return moves


WPS = "wps"  # the method of an estimate by work and duration begins so

_MIN_ROUNDS = 3
_PLAIN = (ESTIMATORS[0], LONG_RUN_VARIANCE)
_LARGEST = sys.float_info.max
_FLAT = 1e-13  # rise of the line, relative to the longest duration, that is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rounds:
    """Amounts and durations as shares of their largest, and those: powers stay in range."""

    work: Floats
    durations: Floats
    unit: float
    seconds: float


def fit_wps(
    work: npt.ArrayLike,
    duration_s: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    estimator: str = "ols",
    method: str = LONG_RUN_VARIANCE,
    autocorrelation_limit: float = 0.1,
    checks: bool = True,
) -> WpsFit:
    """Fit the line duration = overhead + work / speed to rounds of various amounts of work.

    Parameters
    ----------
    work
        Work amount of each round, in the order in which they were run, shape (n,), n >= 3, above
        0 and up to 1e300.
    duration_s
        How long each round took, in seconds, shape (n,), 0 or more.
    confidence
        Nominal coverage, in (0, 1).
    estimator
        "ols"; "weighted", for noise that grows with the duration; "robust", which limits the pull
        of rounds far from the line (Huber's T): the line of typical rounds, not of their mean.
    method
        "long-run-variance"; or "subsessions": adjacent rounds are merged until the residuals of
        neighbours hardly correlate, and the line without each subsession gives the interval; or
        "merged-subsessions", as published: adjacent rounds are merged until their times per work
        hardly correlate, and the line goes through the mean work and duration of each subsession,
        by least squares with Student's t. In bisecting order its intervals are wide, since
        subsessions do equal work.
    autocorrelation_limit
        Largest absolute correlation of neighbouring subsessions, in (0, 1).
    checks
        False leaves out bend, growth and outliers, which take most of the time.

    Returns
    -------
    WpsFit
        Speed in units of work per second, overhead in seconds.

    Raises
    ------
    InvalidInput
        When an argument is invalid.
    NotEstimable
        With fewer than three rounds, where amounts differ in one round only, if all durations
        are 0, or where no merging decorrelates the residuals.

    Notes
    -----
    Work per second: Li et al. 2016. Standard errors are HC3, extended to autocorrelated noise
    (`least_squares`), or those of a grouped jackknife, whose groups are subsessions. The interval
    of the speed is that of the reciprocal slope.

    Examples
    --------
    >>> fit = fit_wps([1e6, 4e6, 2e6, 3e6], [0.52, 1.98, 1.03, 1.49])
    >>> round(fit.speed.value), round(fit.overhead.value, 3), round(fit.naive_speed)
    (2066116, 0.045, 1992032)
    """
    refuse(
        wrong_share("confidence", confidence),
        wrong_choice("estimator", estimator, ESTIMATORS),
        wrong_choice("method", method, (LONG_RUN_VARIANCE, SUBSESSIONS, MERGED)),
        wrong_share("autocorrelation_limit", autocorrelation_limit),
    )
    rounds = _check(work, duration_s)
    fitted, merged = rounds, 1
    if method == MERGED:
        *pairs, merged = merge_pairs(rounds.work, rounds.durations, autocorrelation_limit)
        fitted = replace(rounds, work=pairs[0], durations=pairs[1])
        _check_spread(fitted.work, rounds.seconds)
    line, centre = _line(fitted, estimator)
    combinations = [[0.0, 1.0], [1.0, -centre]]
    if method == MERGED:
        errors = least_squares_errors(line, combinations)
    elif method == SUBSESSIONS:
        merged = subsession_size(line.residuals, autocorrelation_limit, "the residuals of ")
        errors = jackknife_errors(line, combinations, merged)
    else:
        errors = coefficient_errors(line, combinations)
    n, rate = rounds.work.size, rounds.unit / rounds.seconds
    name = "-".join([WPS, *(word for word in (estimator, method) if word not in _PLAIN)])
    slope, speed = _slope_and_speed(errors[0], confidence, n, name)
    overhead = errors[1].estimate(confidence, n, name)
    prediction_error = float(np.sqrt(np.mean(line.left_out**2)) / fitted.durations.mean())
    notices = tuple(diagnose_line(fitted.work, line, speed, prediction_error))
    fit = WpsFit(
        speed=None if speed is None else replace(scale(speed, rate), notices=notices),
        overhead=scale(overhead, rounds.seconds),
        slope=scale(slope, rounds.seconds / rounds.unit),
        n=n,
        naive_speed=min(float(rounds.work.sum() / rounds.durations.sum()) * rate, _LARGEST),
        prediction_error=prediction_error,
        inflation=errors[0].inflation,
        merged=merged,
        notices=notices,
    )
    return _with_checks(fit, rounds, float(line.coefficients[1]), estimator) if checks else fit


def _slope_and_speed(
    error: CoefficientError, confidence: float, n: int, method: str
) -> tuple[Estimate, Estimate | None]:
    """Return the slope, and the speed; None if the slope may be noise, which may be below 0."""
    slope = error.estimate(confidence, n, method, positive=True)
    speed = None if is_wide(slope) else reciprocal_of(slope)
    return (slope if speed else error.estimate(confidence, n, method)), speed


def check_fit(fit: WpsFit, work: Floats, duration_s: Floats) -> WpsFit:
    """Add bend, growth and outliers to a least-squares fit of these rounds."""
    rounds = _check(work, duration_s)
    slope = fit.slope.value * (rounds.unit / rounds.seconds)
    return _with_checks(fit, rounds, slope, ESTIMATORS[0])


def _with_checks(fit: WpsFit, rounds: _Rounds, slope: float, estimator: str) -> WpsFit:
    lack = find_lack_of_fit(
        rounds.work,
        rounds.durations,
        slope=slope,
        unit=rounds.unit,
        estimator=estimator,
        confidence=fit.slope.confidence,
    )
    faster = _faster_without(lack.outliers, rounds, slope, estimator)
    outliers = diagnose_outliers(len(lack.outliers), fit.n, fit.speed, faster)
    notices = (*fit.notices, *diagnose_lack_of_fit(lack), *outliers)
    return replace(
        fit,
        speed=fit.speed and replace(fit.speed, notices=notices),
        bend=lack.bend,
        growth=lack.growth,
        shape=lack.shape,
        outliers=lack.outliers,
        notices=notices,
    )


def _check(work: object, duration_s: object) -> _Rounds:
    """Check amounts and durations, and that they determine a line."""
    amounts = _amounts(work)
    durations = as_series(duration_s, name="duration_s")
    if len(amounts) != durations.size:
        raise InvalidInput(
            f"work has {len(amounts)} amounts and duration_s {durations.size} durations, "
            "expected one of each per round"
        )
    check_items(durations, durations >= 0.0, "at least 0", name="duration_s")
    unit, seconds = max(amounts), float(durations.max())
    shares = np.array([amount / unit for amount in amounts])
    _check_spread(shares, seconds)
    return _Rounds(work=shares, durations=durations / seconds, unit=unit, seconds=seconds)


def _amounts(work: object) -> list[float]:
    """Check amounts one by one: they may be larger than `as_series` lets readings be."""
    if not isinstance(work, Iterable) or isinstance(work, str | bytes | Mapping):
        raise InvalidInput(f"work is {short(work)}, expected a 1-D sequence of amounts")
    amounts = []
    items = np.atleast_1d(work).tolist() if isinstance(work, np.ndarray) else work
    for index, item in enumerate(items):
        amount = attempt([], check_work, item)
        if amount is None or isinstance(amount, tuple):
            raise InvalidInput(
                f"work[{index}] is {short(item)}, expected an amount above 0 and at most 1e300"
            )
        amounts.append(float(amount))
    return amounts


def _check_spread(work: Floats, seconds: float) -> None:
    """Raise unless rounds of these amounts, the longest of seconds, determine a line."""
    n = work.size
    if n < _MIN_ROUNDS:
        notice = Notice.of(Code.TOO_FEW_READINGS, "rounds", n=n, wanted_=_MIN_ROUNDS)
    elif not is_determined(_design(work)[0]):
        notice = Notice.of(Code.TOO_FEW_READINGS, "one amount", n=n)
    elif seconds == 0.0:
        notice = Notice.of(Code.COARSE_CLOCK, "rounds", n=n)
    else:
        return
    raise NotEstimable(notice)


def _design(work: Floats) -> tuple[Floats, float]:
    """Return the regressors of duration = level + slope * (work - centre), and the centre."""
    centre = float(work.mean())
    return np.column_stack([np.ones(work.size), work - centre]), centre


def _line(rounds: _Rounds, estimator: str) -> tuple[Regression, float]:
    design, centre = _design(rounds.work)
    line = regress(design, rounds.durations, estimator=estimator)
    flat = abs(line.coefficients[1]) * np.ptp(rounds.work) <= _FLAT
    return replace(line, coefficients=line.coefficients * [1.0, not flat]), centre


def _faster_without(
    outliers: tuple[int, ...], rounds: _Rounds, slope: float, estimator: str
) -> float | None:
    """Return the share by which the speed rises without some rounds; None without a speed."""
    work, durations = (np.delete(column, outliers) for column in (rounds.work, rounds.durations))
    if not outliers or not is_determined(_design(work)[0]):
        return 0.0
    rest, _ = _line(replace(rounds, work=work, durations=durations), estimator)
    without = float(rest.coefficients[1])
    return slope / without - 1.0 if without > 0.0 else None
