"""The arithmetic of Beard & Chamberlain: from counts of unblocked periods to the most of them.

Beard & Chamberlain, 'Run Time Approximation of Non-blocking Service Rates for Streaming Systems'
(2015), section IV. What its text leaves open (the window's length, sigma of the second filter, the
tolerance) is as in the authors' RaftLib of 2015.
"""

from __future__ import annotations

import math
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
_QUANTILE = 1.64485
"""0.95 quantile of a normal distribution (equation 3)."""
_KERNEL = np.exp(-(np.arange(-_RADIUS, _RADIUS + 1.0) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
"""Equation 2. It sums up to 0.990866 only, which makes every rate 0.9 % too low."""
_ONES = np.ones(WINDOW - 2 * _RADIUS)
_CURVATURE = 1.49577 * np.array([1.0, -2.0, 1.0])
"""Equation 4, sigma 1/2, at -1, 0, 1; less its mean, without which it would never reach 0."""


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
    centre = filtered.mean()
    off = filtered - centre  # so that squares lose no digits
    first = np.convolve(off, _ONES, mode="valid")
    second = np.convolve(off * off, _ONES, mode="valid") - first * first / _ONES.size
    deviations = np.sqrt(np.maximum(second, 0.0) / (_ONES.size - 1))
    found: Floats = centre + first / _ONES.size + _QUANTILE * deviations
    return found


def settle(
    before: Settling, quantiles: Floats, *, relative: bool, stopping: bool = True
) -> tuple[Settling, int | None]:
    """Take more quantiles into their running mean, up to where it has converged.

    Parameters
    ----------
    before
        What went before.
    quantiles
        New ones, in order, shape (n,), n >= 1.
    relative
        Take the tolerance relative to the mean; as published it is in items.
    stopping
        False takes all of them, converged or not.

    Returns
    -------
    tuple
        How far it has come, and the quantile with which it converged; None where it has not.

    Notes
    -----
    Converged when the curvature (equation 4) of the standard error of the mean has been within
    the tolerance for 16 looks. Mean and deviation by Chan, Golub & LeVeque (1983).
    """
    reference = before.mean if before.n else float(quantiles[0])
    off = quantiles - reference
    places = np.arange(quantiles.size)
    n = before.n + 1.0 + places
    first = np.cumsum(off)
    means = reference + first / n
    second = np.maximum(before.second + np.cumsum(off * off) - first * first / n, 0.0)
    errors = np.sqrt(second / np.maximum(n - 1.0, 1.0) / n)
    known = np.concatenate([before.errors, errors])
    steady = np.zeros(quantiles.size, dtype=np.int64)
    if known.size >= 3:
        bend = np.abs(np.convolve(known, _CURVATURE, mode="valid"))
        late = quantiles.size - bend.size
        limits = _RELATIVE * np.abs(means[late:]) if relative else _CONVERGED
        steady[late:] = _runs(bend <= limits, before.steady)
    hits = np.flatnonzero(steady >= WINDOW) if stopping else places[:0]
    last = int(hits[0]) if hits.size else quantiles.size - 1
    after = Settling(
        n=int(n[last]),
        mean=float(means[last]),
        second=float(second[last]),
        errors=tuple(known[: known.size - quantiles.size + last + 1][-2:].tolist()),
        steady=int(steady[last]),
    )
    return after, last if hits.size else None


def _runs(flags: np.ndarray, carried: int) -> np.ndarray:
    """Count for each place how many flags up to it are set in a row."""
    places = np.arange(flags.size)
    last = np.maximum.accumulate(np.where(flags, -1 - carried, places))
    found: np.ndarray = places - last
    return found
