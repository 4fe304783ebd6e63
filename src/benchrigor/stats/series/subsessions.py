"""Subsessions: merging adjacent readings until neighbours are (nearly) uncorrelated."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real

import numpy as np
import numpy.typing as npt

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Notice, Subsessions
from benchrigor.model.analysis import LevelFit
from benchrigor.model.checks import refuse, wrong_choice, wrong_values, wrong_whole
from benchrigor.model.series import Floats, as_series, check_items
from benchrigor.stats.series.interval import exact_fit, too_few

SUBSESSIONS = "subsessions"
MERGED = "merged-subsessions"  # of work and duration, to the letter

MIN_MERGED = 5  # the autocorrelation of fewer merged readings is near 0 whatever they are
_MIN_READINGS = 3
_EXHAUSTIVE = 16
_GROWTH = 1.05


def autocorrelation(values: npt.ArrayLike, lag: int = 1) -> float:
    """Return the autocorrelation of a series at one lag.

    Parameters
    ----------
    values
        Readings, shape (n,).
    lag
        Whole number, 0 <= lag < n.

    Returns
    -------
    float
        sum (x_i - m)(x_{i+lag} - m) / sum (x_i - m)^2 about the mean of all readings, in [-1, 1]
        (Box & Jenkins 1976, equation 2.1.10); 0.0 for constant values.

    Raises
    ------
    InvalidInput
        When the values or the lag are invalid.

    Examples
    --------
    >>> round(autocorrelation([1.0, -1.0, 1.0, -1.0]), 2)
    -0.75
    """
    series = as_series(values)
    refuse(wrong_whole("lag", lag, least=0, most=series.size - 1))
    return _autocorrelation(series, lag)


def _autocorrelation(series: Floats, lag: int = 1) -> float:
    deviations = series - series.mean()
    squares = float(deviations @ deviations)
    if squares <= series.size * (1e-15 * float(series[0])) ** 2:  # constant but for rounding
        return 0.0
    return float(deviations[: series.size - lag] @ deviations[lag:]) / squares


def merge_subsessions(
    values: npt.ArrayLike, *, limit: float = 0.1, mean: str = "arithmetic"
) -> Subsessions:
    """Merge every q adjacent readings into their mean, with the least q that decorrelates them.

    Parameters
    ----------
    values
        Readings, shape (n,).
    limit
        Largest absolute lag-1 autocorrelation of the merged readings, in (0, 1].
    mean
        "arithmetic", or "harmonic" for rates over equal amounts of work (positive values only).

    Returns
    -------
    Subsessions
        ``size`` is None when no q up to n/3 brings the autocorrelation within the limit.

    Raises
    ------
    InvalidInput
        When the values or an option are invalid.

    Notes
    -----
    Subsession analysis of Pilot (Li et al. 2016). Beyond 16, q grows by 5 % a step; merged readings
    come from running sums, so that the search costs O(n).

    Examples
    --------
    >>> merge_subsessions([1.0, 2.0, 1.5, 1.2, 1.9, 1.4], limit=0.6).size
    1
    """
    series = as_series(values)
    within = isinstance(limit, Real) and not isinstance(limit, bool) and 0.0 < limit <= 1.0
    refuse(
        wrong_choice("mean", mean, ("arithmetic", "harmonic")),
        wrong_values([("limit", limit, within, "more than 0 and up to 1")]),
    )
    harmonic = mean == "harmonic"
    if harmonic:
        check_items(series, series > 0.0, "a number above 0 for a harmonic mean")
    averaged = 1.0 / series if harmonic else series
    size: int | None
    sums = np.empty(0)
    for size in _sizes(series.size // _MIN_READINGS):
        if size > 1 and not sums.size:
            sums = np.cumsum(np.append(0.0, averaged - averaged[0]))
        means = averaged if size == 1 else averaged[0] + np.diff(sums[::size]) / size
        merged = 1.0 / means if harmonic else means
        correlation = _autocorrelation(merged)
        if abs(correlation) <= limit:
            break
    else:
        size, merged, correlation = None, series[:0], _autocorrelation(series)
    merged = np.array(merged)
    merged.flags.writeable = False
    return Subsessions(
        size=size,
        means=merged,
        autocorrelation=correlation,
        dropped=series.size % size if size else 0,
        limit=float(limit),
    )


def fit_merged(series: Floats, *, limit: float = 0.1) -> LevelFit:
    """Fit the mean of a series, with Student's t on readings merged until uncorrelated.

    Of h merged readings s_i the standard error is sqrt(sum (s_i - m)^2 / (h - 1) / h) with m the
    mean of all readings (Li et al. 2016). Raises NotEstimable with fewer than three readings, or
    when no size that leaves five merged readings is within the limit.
    """
    if series.size < _MIN_READINGS:
        raise NotEstimable(too_few(series.size, _MIN_READINGS))
    merged = merge_subsessions(series, limit=limit)
    constant = float(series.min()) == float(series.max())
    # Few means, or means that happen to be equal, seem uncorrelated whatever they are.
    if (
        merged.size is None
        or (merged.size > 1 and merged.means.size < MIN_MERGED)
        or (merged.means.min() == merged.means.max() and not constant)
    ):
        raise NotEstimable(refuse_correlated(merged, f"{series.size} readings", n=series.size))
    if constant:
        return replace(exact_fit(float(series[0]), series.size), method=SUBSESSIONS)
    level, count = float(series.mean()), merged.means.size
    between = float(np.sum((merged.means - level) ** 2)) / (count - 1)
    return LevelFit(
        level=level,
        n=series.size,
        transients=(),
        variance=float(series.var(ddof=1)),
        long_run_variance=between * merged.size,
        order=0,
        batch=merged.size,
        degrees_of_freedom=count - 1.0,
        skewness=0.0,
        standard_error=math.sqrt(between / count),
        method=SUBSESSIONS,
    )


def refuse_correlated(merged: Subsessions, what: str, n: int) -> Notice:
    """Refuse n readings, or rounds, that no merging decorrelates."""
    figures = {"n": n, "autocorrelation": merged.autocorrelation, "limit": merged.limit}
    return Notice.of(Code.STILL_CORRELATED, fewest_=MIN_MERGED, what_=what, **figures)


def _sizes(largest: int) -> list[int]:
    sizes = list(range(1, min(largest, _EXHAUSTIVE) + 1))
    while sizes and sizes[-1] < largest:
        sizes.append(min(largest, max(sizes[-1] + 1, int(sizes[-1] * _GROWTH))))
    return sizes
