"""Rates: total work over total time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate
from benchrigor.model.series import Floats, as_series, check_items
from benchrigor.stats.series.interval import check_confidence, estimate_level, reciprocal_of
from benchrigor.stats.series.level import fit_level

HARMONIC = "harmonic"
BY_DURATION = "by duration"

_SMALLEST = 1e-150  # below this the square of a reciprocal leaves the range of a double


def estimate_rate(
    values: npt.ArrayLike, *, confidence: float = 0.95, weights: str | npt.ArrayLike = "work"
) -> Estimate:
    """Estimate a rate, total work over total time, from a series of (auto)correlated rates.

    Parameters
    ----------
    values
        Rates (work per second, say) in the order in which they were taken, shape (n,), n >= 2.
    confidence
        Nominal coverage, in (0, 1).
    weights
        "work" if each reading took the same amount of work (the harmonic mean), "time" if each
        took the same time (the arithmetic mean), else how long each took, in seconds, shape (n,),
        more than 0.

    Returns
    -------
    Estimate
        In the unit of the readings. ``method`` is "long-run-variance", followed by ", harmonic"
        or ", by duration" where the mean is not arithmetic.

    Raises
    ------
    InvalidInput
        When the values are not readings, or not above 0 while ``weights`` is "work"; when the
        durations are not as many, or not above 0.
    NotEstimable
        With fewer than two readings.

    Notes
    -----
    Equal work: the reciprocal of the interval of the mean reciprocal. Durations d_i: R = sum d_i
    r_i / sum d_i, and the interval of the mean of R + d_i (r_i - R) / mean(d), the delta method
    for a ratio of two means (Cochran 1977, section 6.3). Which mean is right: Smith 1988.

    Examples
    --------
    >>> rates = [10.0, 40.0] * 6
    >>> round(estimate_rate(rates).value, 9), estimate_rate(rates, weights="time").value
    (16.0, 25.0)
    >>> round(estimate_rate(rates, weights=[4.0, 1.0] * 6).value, 9)
    16.0
    """
    series = as_series(values)
    check_confidence(confidence)
    if isinstance(weights, str):
        if weights not in ("work", "time"):
            raise InvalidInput(f"weights is {weights!r}, expected 'work', 'time' or durations")
        if weights == "time":
            return _level(series, confidence)
        check_items(series, series >= _SMALLEST, "a rate above 0 (at least 1e-150)")
        if are_equal(series):
            return averaged_as(HARMONIC, _level(series, confidence))
        return reciprocal(_level(1.0 / series, confidence))
    durations = as_series(weights, name="weights")
    if durations.size != series.size:
        raise InvalidInput(
            f"weights holds {durations.size} durations for {series.size} values, expected as many"
        )
    positive = "a duration above 0 (at least 1e-150)"
    check_items(durations, durations >= _SMALLEST, positive, name="weights")
    return weighted_mean(series, durations, confidence)


def reciprocal(estimate: Estimate) -> Estimate:
    """Turn an estimated time per work into the rate, or a rate into the time per work."""
    inverse = reciprocal_of(estimate)
    assert inverse is not None  # noqa: S101  # for the type checker: its interval lies above 0
    return averaged_as(HARMONIC, inverse)


def are_equal(*series: Floats) -> bool:
    """Return whether all readings are equal: regardless of their mean, it is their value."""
    return all(float(rates.min()) == float(rates.max()) == float(series[0][0]) for rates in series)


def averaged_as(mean: str, estimate: Estimate) -> Estimate:
    """Name the mean in the method of an estimate."""
    return replace(estimate, method=f"{estimate.method}, {mean}")


def weighted_mean(series: Floats, durations: Floats, confidence: float) -> Estimate:
    """Estimate a mean by durations, with the delta method for a ratio of two means."""
    shares = durations / float(durations.mean())
    rate = float(np.mean(shares * series))
    values = series if are_equal(series) else rate + shares * (series - rate)
    return averaged_as(BY_DURATION, _level(values, confidence, least=float(series.min())))


def _level(values: Floats, confidence: float, least: float | None = None) -> Estimate:
    """Return the estimate of a level; ``least`` reading, if the values are not readings."""
    positive = (float(values.min()) if least is None else least) >= 0.0
    return estimate_level(fit_level(values), confidence, positive=positive)
