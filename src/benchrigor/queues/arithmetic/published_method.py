"""The method of Beard & Chamberlain: service rates from counts of periods without waiting.

Beard & Chamberlain, 'Run Time Approximation of Non-blocking Service Rates for Streaming Systems'
(2015). What its text leaves open (the window's length, sigma of the second filter, the tolerance)
is as in the authors' RaftLib of 2015. Periods are columns of the sums of `moments.Row`, shape
(Row.COUNT, n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchrigor.model.checks import refuse, wrong_number, wrong_whole
from benchrigor.model.series import Floats
from benchrigor.queues.arithmetic.moments import Row
from benchrigor.queues.arithmetic.rate_arithmetic import rounded_up
from benchrigor.queues.data.service import RateReason

FEWEST_ITEMS = 16.0  # items that a period must hold: of fewer, some are free of waiting by chance
FEWEST_SHARE = 0.05  # share of periods free of waiting below which slow service has chosen them
# Share down to which periods are widened: the bias of choosing slow service then about cancels the
# bias of the quantile.
_GOOD_SHARE = 0.20
_IN_A_ROW = 5
_FEWEST_PERIODS = 25

QUANTILE_COUNTS = 16  # counts of one quantile
STEADY_QUANTILES = 16  # quantiles in a row whose error hardly bends, at convergence
_CONVERGED = 5e-7  # change of the error, in items, below which the published method has converged
# The same in terms of the running mean, so that the length of a period does not matter.
_RELATIVE = 1e-5
_RADIUS = 2
_FILTERED = QUANTILE_COUNTS - 2 * _RADIUS  # counts of a window that the filter leaves
_QUANTILE = 1.64485  # 0.95 quantile of a normal distribution (equation 3)
# Equation 2. Its sum is 0.990866, which makes every rate 0.9 % too low.
_KERNEL = np.exp(-(np.arange(-_RADIUS, _RADIUS + 1.0) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
# Equation 4, sigma 1/2, at -1, 0, 1 less its mean is this times 1, -2, 1; with its mean a constant
# error would never pass for steady.
_CURVATURE = 1.49577


def unblocked_read_probability(
    *, utilisation: float, service_rate: float, period_s: float
) -> float:
    """Return the chance that a stage never waits for input during a period, in an M/M/1 queue.

    A lower bound for periods of more than some five items, and a loose one for many: the formula
    wants all items of the period in the queue at its start. Of 32 items at utilisation 0.8, 13 % of
    simulated periods are free of waiting, by the formula 0.08 %. For one item it is too high.

    Parameters
    ----------
    utilisation
        Arrival rate over service rate, 0 or more; from 1 on the chance is 1.
    service_rate
        Items per second that the stage serves while it does not wait.
    period_s
        Length of the period, in seconds.

    Notes
    -----
    Beard & Chamberlain (2015), equations 1a and 1b: utilisation^k with
    k = ceil(service_rate * period_s), the chance that an M/M/1 queue holds k items or more.

    Examples
    --------
    >>> round(unblocked_read_probability(utilisation=0.8, service_rate=1e4, period_s=0.0032), 4)
    0.0008
    """
    refuse(*_wrong_period(utilisation, service_rate, period_s))
    return min(float(utilisation), 1.0) ** rounded_up(service_rate * period_s)


def unblocked_write_probability(
    *, utilisation: float, service_rate: float, period_s: float, capacity: int
) -> float:
    """Return the chance that a stage never waits to put its output during a period, in M/M/1.

    A lower bound like `unblocked_read_probability`: the formula wants room for all items of the
    period at its start.

    Parameters
    ----------
    utilisation
        Of the reader of the queue: rate at which the stage puts items over the rate at which the
        reader could take them, 0 or more; from 1 on the chance is 0.
    service_rate, period_s
        As of `unblocked_read_probability`.
    capacity
        Items that the queue holds, 1 or more.

    Notes
    -----
    Beard & Chamberlain (2015), equations 1a, 1c and 1d: 1 - utilisation^(capacity - k + 1) with
    k = ceil(service_rate * period_s), the chance that an M/M/1 queue holds capacity - k items or
    fewer; 0 if k exceeds the capacity.

    Examples
    --------
    >>> unblocked_write_probability(utilisation=0.5, service_rate=100.0, period_s=0.03, capacity=4)
    0.75
    """
    refuse(*_wrong_period(utilisation, service_rate, period_s), wrong_whole("capacity", capacity))
    room = int(capacity) - rounded_up(service_rate * period_s) + 1
    if room <= 0 or utilisation >= 1.0:
        return 0.0
    # This form avoids cancellation if the utilisation is near 1.
    return -math.expm1(room * math.log(utilisation)) if utilisation else 1.0


def join_periods(periods: Floats, number: int) -> Floats:
    """Join every ``number`` successive periods; one is unblocked, or counts, if all parts do."""
    if number == 1:
        return periods
    whole = periods.shape[1] // number
    parts = periods[:, : whole * number].reshape(len(periods), whole, number)
    sums: Floats = parts.sum(axis=2)
    sums[Row.PERIODS] = 1.0
    sums[Row.UNBLOCKED] = parts[Row.UNBLOCKED].min(axis=1)
    sums[Row.USED] = parts[Row.USED].min(axis=1)
    return sums


def widest(periods: Floats) -> int | RateReason:
    """Find how many periods to join into one sampling period, or why none will do.

    Wide ones have less noise, narrow ones less waiting (section IV-A): widths double as long as
    five in a row are free of waiting, and the widest wins. To exclude chance, periods free of
    waiting must hold 16 items, and be a fifth of all (a twentieth if no width has a fifth). Single
    periods cannot be narrower and need no five in a row.
    """
    few = periods.shape[1] < _FEWEST_PERIODS and periods[Row.UNBLOCKED].any()
    reason = RateReason.NOT_CONVERGED if few else RateReason.NO_NONBLOCKING
    best, number = 0, 1
    while periods.shape[1] // number >= _FEWEST_PERIODS:
        wide = join_periods(periods, number)
        unblocked = wide[Row.UNBLOCKED]
        share = float(unblocked.mean())
        if _longest_run(unblocked) < (_IN_A_ROW if number > 1 else 1):
            break
        # The items of blocked periods may be unknown.
        if float(wide[Row.ITEMS] @ unblocked) < FEWEST_ITEMS * float(unblocked.sum()):
            reason = RateReason.FEW_ITEMS
        elif share < FEWEST_SHARE:
            reason = RateReason.FEW_NONBLOCKING
        elif share >= _GOOD_SHARE or not best:
            best = number
        number *= 2
    return best or reason


class QuantileMean(NamedTuple):
    """The running mean of quantiles.

    Of ``n`` quantiles the ``mean`` and the sum of squared deviations ``second``; the last two
    standard ``errors`` of the mean, and how many quantiles in a row left them ``steady``.
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
    """Return the 0.95 quantiles of all windows of 16 counts of unblocked periods, shape (n - 15,).

    Equations 2 and 3: Gaussian filter of radius 2 without padding, then mean + 1.64485 standard
    deviations of the 12 remaining counts. ``normalised`` lets the filter's weights sum up to 1;
    as published they do not.

    >>> window_quantiles(np.full(17, 100.0), normalised=False).round(4)
    array([99.0866, 99.0866])
    """
    if counts.size < QUANTILE_COUNTS:
        return np.zeros(0)
    kernel = _KERNEL / _KERNEL.sum() if normalised else _KERNEL
    filtered = np.convolve(counts, kernel, mode="valid")
    # A column is a window, one count on from the last: a view, since there are many chunks.
    shape = _FILTERED, counts.size - QUANTILE_COUNTS + 1
    windows = np.ndarray(shape, buffer=filtered, strides=2 * filtered.strides)
    means = windows.sum(axis=0) / _FILTERED
    off = windows - means
    quantiles: Floats = means + _QUANTILE * np.sqrt((off * off).sum(axis=0) / (_FILTERED - 1))
    return quantiles


def add_quantiles(
    before: QuantileMean, quantiles: Sequence[float], *, relative: bool, start: int = 0
) -> tuple[QuantileMean, int | None]:
    """Add quantiles to the running mean; return it, and the index of the one it converged with.

    Converged: the curvature (equation 4) of the standard error of the mean was within the tolerance
    for 16 quantiles in a row. The tolerance is in items, as published, or ``relative`` to the mean.
    Mean and deviation by Welford (1962), one by one: regular counts converge every 33 periods, for
    which arrays cost more than they save.
    """
    n, mean, second, errors, steady = before
    older, old = (math.inf, math.inf, *errors)[-2:]  # fewer than three are not steady
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
            if steady >= STEADY_QUANTILES:
                return QuantileMean(n, mean, second, (older, old), steady), place
        else:
            steady = 0
    return QuantileMean(n, mean, second, (older, old)[-n:] if n else (), steady), None


def _longest_run(flags: Floats) -> int:
    """Return the length of the longest run of set flags."""
    borders = np.flatnonzero(np.concatenate([[1.0], 1.0 - flags, [1.0]]))
    return int(np.diff(borders).max()) - 1


def _wrong_period(utilisation: float, service_rate: float, period_s: float) -> list[list[str]]:
    return [
        wrong_number("utilisation", utilisation, zero=True),
        wrong_number("service_rate", service_rate),
        wrong_number("period_s", period_s),
    ]
