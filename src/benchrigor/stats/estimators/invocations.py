"""The mean over invocations of a program, each of which is one unit of inference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt

from benchrigor.model import Estimate, Kind, as_invocations
from benchrigor.stats.estimators.estimation import Policy, estimate
from benchrigor.stats.series.interval import check_confidence


def estimate_invocations(
    invocations: Sequence[npt.ArrayLike], *, confidence: float = 0.95, trim: bool = False
) -> Estimate:
    """Estimate the mean over invocations of a program from the readings of each.

    Readings of one process share its memory layout, hash seed and code placement. So the interval
    is Student's t interval of the invocations' levels.

    Parameters
    ----------
    invocations
        One series of readings per invocation, each of shape (n_i,), n_i >= 2. All weigh alike.
    confidence
        Nominal coverage, in (0, 1).
    trim
        Cut the warm-up and cool-down that the invocations have in common, and fit transients
        beside each level. An invocation that is not longer than the cut does not count.

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
    Source: Kalibera & Jones 2013 (repeat where the variance arises). Transients widen the interval
    by a quarter where all variance lies within invocations, and hardly at all where it lies
    between them; they remove the bias of slow warm-ups.

    Examples
    --------
    >>> estimate = estimate_invocations([[1.0, 1.1, 1.2], [1.3, 1.2, 1.4], [1.1, 1.0, 1.2]])
    >>> estimate.n, round(estimate.value, 3)
    (3, 1.167)
    """
    series = as_invocations(invocations)
    check_confidence(confidence)
    policy = Policy(kind=Kind.INVOCATIONS, confidence=confidence, trim=trim)
    return estimate(series, policy).required()
