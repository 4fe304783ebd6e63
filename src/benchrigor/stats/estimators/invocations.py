"""Invocations: when a program is started afresh, the start is the unit of inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import NotEstimable
from benchrigor.model import (
    Code,
    Estimate,
    Floats,
    LevelFit,
    Notice,
    Severity,
    as_invocations,
)
from benchrigor.stats.phases.common_warm_up import common_phases
from benchrigor.stats.phases.trimming import trimmed
from benchrigor.stats.series.interval import check_confidence, estimate_level, student_t
from benchrigor.stats.series.level import fit_level
from benchrigor.stats.series.transients import TRANSIENTS

__all__ = [
    "METHOD",
    "combine_levels",
    "combine_values",
    "estimate_invocations",
    "fit_invocations",
    "of_one",
    "rejected_notices",
]

METHOD = "invocation means"
ENOUGH = 10
"""Below so many invocations a rare memory layout or code path is easily missed."""


def estimate_invocations(
    invocations: Sequence[npt.ArrayLike], *, confidence: float = 0.95, trim: bool = False
) -> Estimate:
    """Estimate the mean over invocations of a program, each with readings of its own.

    Readings of one process share its memory layout, hash seed and code placement, so that they
    tell about that process only. The interval is a Student t interval of the invocations' levels;
    autocorrelation is never taken across the border of two invocations.

    Parameters
    ----------
    invocations
        One series of readings per invocation, each of shape (n_i,), n_i >= 2. Each counts alike.
    confidence
        Nominal coverage, in (0, 1).
    trim
        Cut the warm-up and cool-down that the invocations have in common (`common_cut`), with a
        margin, and estimate the level after what they leave behind. An invocation that is not
        longer than the cut contributes nothing.

    Returns
    -------
    Estimate
        ``n`` counts invocations. With a single one it is the estimate of that process, and a
        Notice says so.

    Raises
    ------
    InvalidInput
        When there is no invocation, or one of them holds no readings.
    NotEstimable
        When no invocation allows a number, or with ``trim`` when they have no steady state in
        common.

    Notes
    -----
    Source: Kalibera & Jones 2013 (repeat where the variance arises). The transients fitted beside
    each level (as in `estimate_mean`) widen the interval by a quarter where all variance lies
    within invocations, and hardly where it lies between them; without them slow warm-ups leave a
    bias, which does not average out.

    Examples
    --------
    >>> estimate = estimate_invocations([[1.0, 1.1, 1.2], [1.3, 1.2, 1.4], [1.1, 1.0, 1.2]])
    >>> estimate.n, round(estimate.value, 3)
    (3, 1.167)
    """
    series = as_invocations(invocations)
    check_confidence(confidence)
    fits, notices = fit_invocations(series, confidence, trim)
    found = combine_levels(fits, confidence)
    said = {notice.code for notice in notices}
    further = (notice for notice in found.notices if notice.code not in said)
    return replace(found, notices=(*notices, *further))


def fit_invocations(
    series: tuple[Floats, ...], confidence: float, trim: bool
) -> tuple[tuple[LevelFit, ...], tuple[Notice, ...]]:
    """Fit the level of each invocation; also say what is to be known of them.

    Raises
    ------
    NotEstimable
        When no invocation allows a number.
    """
    phases = common_phases(series, confidence=confidence) if trim else ()
    kept = [phase.notices for phase in phases if phase.start is not None]
    fits = []
    refusals = []
    for index, each in enumerate(series):
        try:
            values = trimmed(each, phases[index]) if trim else each
            fits.append(fit_level(values, transients=TRANSIENTS if trim else ()))
        except NotEstimable as error:
            refusals.append(error)
    if not fits:
        raise refusals[0]
    rejected = rejected_notices(len(refusals), len(series))
    return tuple(fits), (*rejected, *(kept[0] if kept else ()))


def rejected_notices(rejected: int, total: int) -> tuple[Notice, ...]:
    """Say how many of so many invocations do not count; nothing when all of them do."""
    if rejected == 0:
        return ()
    notice = Notice(
        code=Code.ROUNDS_REJECTED,
        severity=Severity.REFUSAL if rejected == total else Severity.WARNING,
        sentence=f"No stable phase in {rejected} of {total} rounds: they do not count.",
        evidence={"rejected": rejected, "rounds": total},
    )
    return (notice,)


def combine_levels(fits: tuple[LevelFit, ...], confidence: float) -> Estimate:
    """Combine the levels of one or more invocations into an estimate over invocations.

    Parameters
    ----------
    fits
        One per invocation, at least one.
    confidence
        Nominal coverage, in (0, 1).
    """
    if len(fits) == 1:
        return of_one(estimate_level(fits[0], confidence))
    return combine_values([fit.level for fit in fits], confidence)


def combine_values(values: Sequence[float], confidence: float) -> Estimate:
    """Estimate the mean over invocations from one number of each, two at least."""
    levels = np.array(values)
    count = levels.size
    alike = float(levels.min()) == float(levels.max())  # exactly, whatever rounding makes of it
    value = float(levels[0]) if alike else float(levels.mean())
    error = 0.0 if alike else float(levels.std(ddof=1)) / math.sqrt(count)
    reach = student_t(count - 1.0, confidence) * error
    return Estimate(
        value=value,
        low=value - reach,
        high=value + reach,
        confidence=confidence,
        n=count,
        n_effective=float(count),
        method=METHOD,
        standard_error=error,
        degrees_of_freedom=count - 1.0,
        notices=_notices(count, error, value),
    )


def of_one(inner: Estimate) -> Estimate:
    """Make an estimate over a single invocation of that of its readings."""
    only = Notice.warning(
        Code.THIS_PROCESS_ONLY,
        "One invocation: the interval is about this process only.",
        invocations=1,
    )
    return replace(inner, n=1, n_effective=1.0, notices=(only, *inner.notices))


def _notices(count: int, error: float, value: float) -> tuple[Notice, ...]:
    notices = []
    if error == 0.0:
        notices.append(
            Notice.warning(
                Code.CONSTANT,
                f"All {count} invocations are at {value!r}: the interval has no width.",
                n=count,
                value=value,
            )
        )
    if count < ENOUGH:
        notices.append(
            Notice.warning(
                Code.FEW_INVOCATIONS,
                f"Only {count} invocations: below {ENOUGH}, a rare case is easily missed.",
                invocations=count,
                wanted=ENOUGH,
            )
        )
    return tuple(notices)
