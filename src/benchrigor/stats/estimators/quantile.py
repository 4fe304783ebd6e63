"""Quantiles of a series of readings: the median, the floor and the tail."""

from __future__ import annotations

import numpy.typing as npt

from benchrigor.model import Estimate, as_series
from benchrigor.model.checks import refuse, wrong_share
from benchrigor.stats.estimators.estimation import Policy, estimate
from benchrigor.stats.series.interval import check_confidence


def estimate_quantile(
    values: npt.ArrayLike, q: float, *, confidence: float = 0.95, trim: bool = False
) -> Estimate:
    """Estimate a quantile of (auto)correlated readings, with its interval.

    Parameters
    ----------
    values
        Readings in the order in which they were taken, shape (n,), n >= 2.
    q
        Share of readings below the quantile, in (0, 1): 0.5 for the median.
    confidence
        Nominal coverage, in (0, 1).
    trim
        Estimate the quantile of the stable phase, and weigh its readings so that the transients
        left in it do not count.

    Returns
    -------
    Estimate
        In the unit of the readings; both ends of the interval are readings.

    Raises
    ------
    InvalidInput
        When the values are no readings or an argument is out of range.
    NotEstimable
        With fewer than two readings, without a stable phase when ``trim`` is set, or when fewer
        than five effective readings lie in the tail (more where the confidence asks for it).

    Notes
    -----
    Order statistics, with as many effective readings as the autocorrelation of the indicators
    1{x <= quantile} leaves; see `stats.estimators.order_statistics`.

    Examples
    --------
    >>> import numpy as np
    >>> readings = np.random.default_rng(1).lognormal(0.0, 1.0, 400)
    >>> estimate = estimate_quantile(readings, 0.5)
    >>> estimate.value == float(np.median(readings))
    True
    >>> estimate.low in readings, estimate.high in readings
    (True, True)
    """
    series = as_series(values)
    check_confidence(confidence)
    refuse(wrong_share("q", q))
    policy = Policy(q=float(q), confidence=confidence, trim=trim)
    return estimate((series,), policy).required()
