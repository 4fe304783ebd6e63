"""The mean of a series of readings."""

from __future__ import annotations

import numpy.typing as npt

from benchrigor.model import Estimate, as_series
from benchrigor.model.checks import refuse, wrong_choice
from benchrigor.stats.estimators.estimation import Policy, estimate
from benchrigor.stats.series.interval import METHOD, check_confidence
from benchrigor.stats.series.subsessions import MERGING


def estimate_mean(
    values: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    trim: bool = False,
    method: str = METHOD,
) -> Estimate:
    """Estimate the mean of (auto)correlated readings, with its interval.

    Parameters
    ----------
    values
        Readings in the order in which they were taken, shape (n,), n >= 2.
    confidence
        Nominal coverage, in (0, 1).
    trim
        Estimate the level of the stable phase, with transients fitted beside it; False estimates
        the mean of all readings.
    method
        "long-run-variance"; or "subsessions": adjacent readings are merged until neighbours
        correlate by 0.1 at most, and Student t is applied to the merged ones. Its measured
        coverage is lower (``docs/interval.md``).

    Returns
    -------
    Estimate
        In the unit of the readings; the interval is asymmetric where the readings are skewed.

    Raises
    ------
    InvalidInput
        When the values are no readings or an argument is out of range.
    NotEstimable
        With fewer than two readings, without a stable phase when ``trim`` is set, or where no
        merging decorrelates the readings.

    Notes
    -----
    Autoregressive long-run variance with delta-method degrees of freedom
    (`stats.series.long_run_variance`), Student t quantiles, cube-root correction for skewness
    (Johnson 1978, Hall 1992). Below 30 readings: plain Student t.

    Examples
    --------
    >>> import numpy as np
    >>> readings = np.random.default_rng(1).lognormal(0.0, 1.0, 400)
    >>> estimate = estimate_mean(readings)
    >>> estimate.value - estimate.low < estimate.high - estimate.value  # as skewed as they are
    True
    """
    series = as_series(values)
    check_confidence(confidence)
    refuse(wrong_choice("method", method, (METHOD, MERGING)))
    policy = Policy(confidence=confidence, trim=trim, method=method)
    return estimate((series,), policy).required()
