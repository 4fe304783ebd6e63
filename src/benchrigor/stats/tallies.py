"""What stretches of a stream came to: sums that add up, and moments that combine.

A tally is a column of numbers (`Row`); a block of them is a matrix, shape (rows, n), one column
per stretch, in order. Pooling adjacent stretches loses nothing that is asked for later, so a stream
of any length fits into a bounded number of columns.
"""

from __future__ import annotations

import enum
import math

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats, ServiceMoments, ServiceProcess

__all__ = ["Row", "matured", "observed", "pooled", "rates_of", "service_moments", "tallied"]

_FEWEST = 30
"""Observations below which nothing is said of moments beyond the mean."""
_DETERMINISTIC = 0.1
"""Squared coefficient of variation below which service counts as deterministic."""
_EXPONENTIAL, _ERRORS = 0.15, 2.0
"""A squared coefficient of variation within 15 %, or two standard errors, of 1 counts as that of
exponential service."""


class Row(enum.IntEnum):
    """Rows of a tally."""

    ITEMS = 0
    BUSY = 1
    WALL = 2
    PERIODS = 3
    UNBLOCKED = 4
    USED = 5
    CPU = 6
    DELAY = 7
    COUNT = 8
    RECIPROCAL = 9
    SECOND = 10
    THIRD = 11


_SUMS = slice(Row.ITEMS, Row.COUNT)


def tallied(columns: npt.ArrayLike) -> Floats:
    """Return tallies of single periods from their first eight rows, shape (8, n)."""
    sums = np.asarray(columns, dtype=np.float64)
    return np.vstack([sums, np.zeros((len(Row) - Row.COUNT, sums.shape[1]))])


def observed(tallies: Floats) -> Floats:
    """Return the same, each stretch in which a stage was busy as one observation of its rate."""
    busy = tallies[Row.BUSY]
    found = tallies.copy()
    found[Row.COUNT] = busy > 0.0
    found[Row.RECIPROCAL] = np.divide(1.0, busy, out=np.zeros_like(busy), where=busy > 0.0)
    found[Row.SECOND :] = 0.0
    return found


def pooled(tallies: Floats, starts: npt.NDArray[np.int64]) -> Floats:
    """Pool adjacent stretches.

    Parameters
    ----------
    tallies
        Shape (rows, n), n >= 1.
    starts
        First column of each group, ascending from 0, shape (groups,).

    Notes
    -----
    Moments are of rates weighted by busy time. With group means mu_i, weights w_i and mean mu:
    M2 = sum M2_i + w_i (mu_i - mu)^2 and M3 = sum M3_i + 3 M2_i (mu_i - mu) + w_i (mu_i - mu)^3
    (Pébay 2008, the pairwise formulas summed over a group).
    """
    sums: Floats = np.add.reduceat(tallies, starts, axis=1)
    sizes = np.diff(starts, append=tallies.shape[1])
    rates = rates_of(tallies)
    off = rates - np.repeat(rates_of(sums), sizes)
    second = tallies[Row.BUSY] * off**2
    sums[Row.SECOND] += np.add.reduceat(second, starts)
    sums[Row.THIRD] += np.add.reduceat(3.0 * tallies[Row.SECOND] * off + second * off, starts)
    return sums


def rates_of(tallies: Floats) -> Floats:
    """Return items per busy second of each stretch; 0 where it was never busy."""
    busy = tallies[Row.BUSY]
    rates: Floats = np.divide(tallies[Row.ITEMS], busy, out=np.zeros_like(busy), where=busy > 0.0)
    return rates


def matured(tallies: Floats, *, items: float = 16.0) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Pool adjacent stretches until they hold so many items in the mean.

    Returns
    -------
    tuple
        The pooled tallies, and the first stretch of each.
    """
    size = tallies.shape[1]
    served = float(tallies[Row.ITEMS].sum())
    group = 1
    while group < size and served * group < items * size:
        group *= 2
    # What is left over at the end joins the last group.
    starts = np.arange(0, max(size - group, 0) + 1, group, dtype=np.int64)
    if group == 1:
        return tallies, starts
    return observed(pooled(tallies, starts)), starts


def service_moments(tallies: Floats) -> ServiceMoments | None:
    """Tell the moments of the time that one item takes, from how counts vary with busy time.

    Parameters
    ----------
    tallies
        Of stretches that have `matured`, shape (rows, n).

    Returns
    -------
    ServiceMoments or None
        None with fewer than 30 observations, or without any item.

    Notes
    -----
    Counts of a renewal process over a long time t have the cumulants t a, t b, t c with a = 1/m,
    b = s^2/m^3, c = 3 s^4/m^5 - k/m^4, for service times of mean m, variance s^2 and third central
    moment k (Cox 1962, Renewal Theory, chapter 4; the cumulant generating functions are inverse to
    each other). b and c are read off the weighted moments of the rates: a residual of busy time w
    has variance b w, and third moment c w.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> periods = np.zeros((8, 5000))
    >>> periods[Row.ITEMS], periods[Row.BUSY] = rng.poisson(100.0, 5000), 0.1
    >>> found = service_moments(observed(tallied(periods)))
    >>> str(found.process), round(found.mean_s * 1e3, 2)
    ('exponential', 1.0)
    """
    whole = tallies[:, 0]
    if tallies.shape[1] > 1:
        whole = pooled(tallies, np.zeros(1, dtype=np.int64))[:, 0]
    count, items = float(whole[Row.COUNT]), float(whole[Row.ITEMS])
    if count < _FEWEST or items <= 0.0:
        return None
    mean_s = float(whole[Row.BUSY]) / items
    spread = float(whole[Row.SECOND]) / (count - 1.0)
    skew = float(whole[Row.THIRD]) / float(whole[Row.RECIPROCAL])
    variance_s2 = spread * mean_s**3
    variation = spread * mean_s
    return ServiceMoments(
        n=int(count),
        mean_s=mean_s,
        variance_s2=variance_s2,
        third_s3=3.0 * variance_s2**2 / mean_s - skew * mean_s**4,
        process=_resembling(variation, count),
    )


def _resembling(variation: float, count: float) -> ServiceProcess:
    """Name the process of a squared coefficient of variation."""
    # The variance of so many counts has a relative standard error of sqrt(2 / n).
    reach = max(_EXPONENTIAL, _ERRORS * math.sqrt(2.0 / count))
    if variation < _DETERMINISTIC:
        return ServiceProcess.DETERMINISTIC
    return ServiceProcess.EXPONENTIAL if abs(variation - 1.0) < reach else ServiceProcess.OTHER
