"""Means and quantiles of readings: of a series, and over invocations of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate, Options
from benchrigor.model.checks import attempt, wrong_share
from benchrigor.model.series import Floats, as_invocations, as_series
from benchrigor.stats.changepoints.ruptures_adapter import detector_to_trim
from benchrigor.stats.readings.analysis import estimate, estimated
from benchrigor.stats.readings.asked_readings import Readings, Unit
from benchrigor.stats.readings.inference_units import INVOCATIONS, SUCCESSIVE
from benchrigor.stats.series.interval import LONG_RUN_VARIANCE
from benchrigor.stats.statistic import MEAN, Quantile, Statistic


def estimate_mean(
    values: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    trim: bool = False,
    method: str = LONG_RUN_VARIANCE,
    autocorrelation_limit: float = 0.1,
    detector: str = "ranks",
) -> Estimate:
    """Estimate the mean of (auto)correlated readings, with its interval.

    Parameters
    ----------
    values
        Readings in the order in which they were taken, shape (n,), n >= 2.
    confidence
        Nominal coverage, in (0, 1).
    trim
        Estimate the level of the stable phase, with transients fitted next to it; False estimates
        the mean of all readings.
    method
        "long-run-variance"; or "subsessions": adjacent readings are merged until neighbours
        hardly correlate, and Student t is applied to the merged ones. Its measured coverage is
        lower (``docs/interval.md``).
    autocorrelation_limit
        Largest absolute correlation of neighbouring subsessions, in (0, 1).
    detector
        What finds the stable phase, by its name; see `benchrigor.model.Options`.

    Returns
    -------
    Estimate
        In the unit of the readings; the interval is asymmetric if the readings are skewed.

    Raises
    ------
    InvalidInput
        When the values are not readings or an argument is out of range.
    NotEstimable
        With fewer than two readings, without a stable phase when ``trim`` is set, or where no
        merging decorrelates the readings.

    Notes
    -----
    Autoregressive long-run variance with delta-method degrees of freedom
    (`stats.series.long_run_variance`), Student t quantiles, longer towards the tail of skewed
    readings (Johnson 1978, Hall 1992). The interval of readings that are never below 0 is made on
    the logarithmic scale, by the delta method. Below 30 others: plain Student t.

    Examples
    --------
    >>> import numpy as np
    >>> readings = np.random.default_rng(1).lognormal(0.0, 1.0, 400)
    >>> estimate = estimate_mean(readings)
    >>> estimate.value - estimate.low < estimate.high - estimate.value  # as skewed as they are
    True
    """
    return _estimated(
        lambda: (as_series(values),),
        (detector, trim),
        confidence=confidence,
        method=method,
        autocorrelation_limit=autocorrelation_limit,
    )


def estimate_quantile(
    values: npt.ArrayLike,
    q: float,
    *,
    confidence: float = 0.95,
    trim: bool = False,
    detector: str = "ranks",
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
    detector
        What finds the stable phase, by its name; see `benchrigor.model.Options`.

    Returns
    -------
    Estimate
        In the unit of the readings; both ends of the interval are readings.

    Raises
    ------
    InvalidInput
        When the values are not readings or an argument is out of range.
    NotEstimable
        With fewer than two readings, without a stable phase when ``trim`` is set, or when fewer
        than five effective readings lie in the tail (more where the confidence asks for it).

    Notes
    -----
    Order statistics, with as many effective readings as the autocorrelation of the indicators
    1{x <= quantile} leaves; see `stats.shares_and_quantiles`.

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
    return _estimated(
        lambda: (as_series(values),),
        (detector, trim),
        *wrong_share("q", q),
        statistic=lambda: Quantile(float(q)),
        confidence=confidence,
    )


def estimate_invocations(
    invocations: Sequence[npt.ArrayLike],
    *,
    confidence: float = 0.95,
    trim: bool = False,
    detector: str = "ranks",
) -> Estimate:
    """Estimate the mean over invocations of a program from the readings of each.

    Readings of one process share its memory layout, hash seed and code placement. So the interval
    is Student's t interval of the invocations' levels.

    Parameters
    ----------
    invocations
        One series of readings per invocation, each of shape (n_i,); one reading is enough. All
        weigh equally.
    confidence
        Nominal coverage, in (0, 1).
    trim
        Cut the warm-up and cool-down that the invocations have in common, and fit transients
        next to each level. An invocation that is not longer than the cut does not count.
    detector
        What finds the stable phase, by its name; see `benchrigor.model.Options`. All but "ranks"
        cut each invocation by itself.

    Returns
    -------
    Estimate
        ``n`` counts invocations. With a single one it is the estimate of that process, and a
        Notice says so.

    Raises
    ------
    InvalidInput
        Without invocations, or if one of them holds no readings.
    NotEstimable
        When no invocation allows a number, or with ``trim`` when they have no steady state in
        common.

    Notes
    -----
    Source: Kalibera & Jones 2013 (repeat where the variance arises). Transients widen the interval
    by a quarter if all variance lies within invocations, and hardly at all where it lies
    between them; they remove the bias of slow warm-ups.

    Examples
    --------
    >>> estimate = estimate_invocations([[1.0, 1.1, 1.2], [1.3, 1.2, 1.4], [1.1, 1.0, 1.2]])
    >>> estimate.n, round(estimate.value, 3)
    (3, 1.167)
    """
    return _estimated(
        lambda: as_invocations(invocations),
        (detector, trim),
        unit=INVOCATIONS,
        confidence=confidence,
    )


def _estimated(
    read: Callable[[], tuple[Floats, ...]],
    search: tuple[str, bool],
    *wrong: str,
    statistic: Callable[[], Statistic] = lambda: MEAN,
    unit: Unit = SUCCESSIVE,
    **options: Any,
) -> Estimate:
    """Estimate a statistic; InvalidInput lists all that is wrong with the arguments."""
    problems = [*wrong]
    series = attempt(problems, read)
    detector = attempt(problems, detector_to_trim, *search)
    checked = attempt(problems, lambda: Options(**options))
    if problems or series is None or checked is None:
        raise InvalidInput(problems)
    readings = Readings(
        series=series,
        unit=unit,
        options=checked,
        statistic=statistic(),
        searched=search[1],
        detector=detector,
    )
    return estimated(estimate(readings))
