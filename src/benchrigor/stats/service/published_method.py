"""The arithmetic of Beard & Chamberlain: from counts of unblocked periods to the most of them.

Beard & Chamberlain, 'Run Time Approximation of Non-blocking Service Rates for Streaming Systems'
(2015), section IV. What its text leaves open (the window's length, sigma of the second filter, the
tolerance) is as in the authors' RaftLib of 2015.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchrigor.model import Floats

__all__ = ["WINDOW", "Settling", "settle", "window_quantiles"]

WINDOW = 16
"""Counts that one quantile is taken of, and looks at its error that must all be steady."""
_CONVERGED = 5e-7
"""Change of the error, in items, below which the published method has converged."""
_RELATIVE = 1e-5
"""The same in the running mean, so that it does not depend on how long a period is."""

_RADIUS = 2
_FILTERED = WINDOW - 2 * _RADIUS
"""Counts of a window that the filter leaves."""
_QUANTILE = 1.64485
"""0.95 quantile of a normal distribution (equation 3)."""
_KERNEL = np.exp(-(np.arange(-_RADIUS, _RADIUS + 1.0) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
"""Equation 2. It sums up to 0.990866 only, which makes every rate 0.9 % too low."""
_CURVATURE = 1.49577
"""Equation 4, sigma 1/2, at -1, 0, 1 is so many times 1, -2, 1; less its mean, without which it
would never reach 0."""


class Settling(NamedTuple):
    """How far the running mean of quantiles has come.

    ``n`` quantiles with their ``mean`` and the sum of squared deviations ``second``; the last two
    ``errors`` of the mean, and how many looks in a row have found it ``steady``.
    """

    n: int = 0
    mean: float = 0.0
    second: float = 0.0
    errors: tuple[float, ...] = ()
    steady: int = 0

    @property
    def deviation(self) -> float:
        """Standard deviation of the quantiles."""
        return math.sqrt(self.second / (self.n - 1)) if self.n > 1 else 0.0


def window_quantiles(counts: Floats, *, normalised: bool) -> Floats:
    """Return the 0.95 quantile of each window of 16 filtered counts.

    Parameters
    ----------
    counts
        Items of successive unblocked periods, shape (n,).
    normalised
        Let the filter's weights sum up to 1; as published they do not.

    Returns
    -------
    numpy.ndarray
        Shape (max(0, n - 15),), in items per period.

    Notes
    -----
    Beard & Chamberlain (2015), equations 2 and 3: Gaussian filter of radius 2 without padding,
    then mean + 1.64485 standard deviations of the 12 counts that are left.

    Examples
    --------
    >>> window_quantiles(np.full(17, 100.0), normalised=False).round(4)
    array([99.0866, 99.0866])
    """
    if counts.size < WINDOW:
        return np.zeros(0)
    kernel = _KERNEL / _KERNEL.sum() if normalised else _KERNEL
    filtered = np.convolve(counts, kernel, mode="valid")
    # A column for each window, one count on from the last: a view, for chunks are many.
    shape = _FILTERED, counts.size - WINDOW + 1
    windows = np.ndarray(shape, buffer=filtered, strides=2 * filtered.strides)
    means = windows.sum(axis=0) / _FILTERED
    off = windows - means
    found: Floats = means + _QUANTILE * np.sqrt((off * off).sum(axis=0) / (_FILTERED - 1))
    return found


def settle(
    before: Settling, quantiles: Sequence[float], *, relative: bool, start: int = 0
) -> tuple[Settling, int | None]:
    """Take more quantiles into their running mean, up to where it has converged.

    Parameters
    ----------
    before
        What went before.
    quantiles
        New ones, in order; a list is worked off the fastest.
    relative
        Take the tolerance relative to the mean; as published it is in items.
    start
        The first of them that counts.

    Returns
    -------
    tuple
        How far it has come, and the quantile with which it converged; None where it has not.

    Notes
    -----
    Converged when the curvature (equation 4) of the standard error of the mean has been within
    the tolerance for 16 looks. Mean and deviation by Welford (1962). One by one, since regular
    counts converge every 33 periods: there arrays would cost more than they save.
    """
    n, mean, second, errors, steady = before
    older, old = (math.inf, math.inf, *errors)[-2:]  # with fewer than three nothing is steady
    fixed, share = (0.0, _RELATIVE / _CURVATURE) if relative else (_CONVERGED / _CURVATURE, 0.0)
    sqrt = math.sqrt
    for place in range(start, len(quantiles)):
        quantile = quantiles[place]
        off = quantile - mean
        n += 1
        mean += off / n
        second += off * (quantile - mean)
        error = sqrt(second / ((n - 1 or 1) * n))
        bend = error - old - old + older
        older, old = old, error
        limit = fixed + share * mean
        if -limit <= bend <= limit:
            steady += 1
            if steady >= WINDOW:
                return Settling(n, mean, second, (older, old), steady), place
        else:
            steady = 0
    return Settling(n, mean, second, (older, old)[-n:] if n else (), steady), None
