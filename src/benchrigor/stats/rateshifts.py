"""Where a rate has become another one, while it is being watched."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Floats
from benchrigor.stats.tallies import BORDERS, Row, rates_of

__all__ = ["find_shift"]

_MATERIAL = 0.10
"""Relative change of a rate from which on it is another phase."""
_FEWEST = 24
_BEFORE, _AFTER = 8, 4
_ERRORS = 5.0
"""Standard errors: the same stretches are looked at again and again, at every place."""
_CLIPPED = 3.0
"""Standard errors of its own beyond which a stretch says no more: one stall is no phase."""
_SCALES = (1, 2, 4, 8)
_FEWEST_STEPS = 12


def find_shift(tallies: Floats) -> int | None:
    """Find the stretch with which another rate begins, if the newest ones have another.

    Parameters
    ----------
    tallies
        Of stretches in which a stage was busy, shape (rows, n), in order.

    Returns
    -------
    int or None
        The first stretch of the new phase; None while there is none.

    Notes
    -----
    The largest standardised difference between the mean before and after any place (the statistic
    of CUSUM charts; Page 1954) of clipped deviations, against noise that is known from steps
    between neighbours, so that a shift does not hide itself. It must be five standard errors, and
    the median of the stretches since must differ by a tenth as well.
    """
    n = tallies.shape[1]
    if n < _FEWEST:
        return None
    rates, busy = rates_of(tallies), tallies[Row.BUSY]
    noise = _noise(rates, busy)
    deviations = (rates - _median(rates)) * np.sqrt(busy / noise)
    sums = np.cumsum(np.minimum(np.maximum(deviations, -_CLIPPED), _CLIPPED))
    before = np.arange(_BEFORE, n - _AFTER + 1)
    after = n - before
    below = sums[before - 1]
    standing = np.abs((sums[-1] - below) / after - below / before) * np.sqrt(before * after / n)
    best = int(np.argmax(standing))
    if standing[best] < _ERRORS:
        return None
    place = int(before[best])
    former, latter = _median(rates[:place]), _median(rates[place:])
    return place if abs(latter - former) >= _MATERIAL * former else None


def _median(values: Floats) -> float:
    """Return the (upper) median; of so few values, a fifth of what numpy's own costs."""
    return float(np.sort(values)[values.size // 2])


def _noise(rates: Floats, busy: Floats) -> float:
    """Return the variance of a count per busy second, by steps between neighbours.

    The most of that at scales of up to eight stretches, since slow noise shows only there.
    """
    found = BORDERS * rates.size / float(busy.sum())
    for scale in _SCALES:
        groups = rates.size // scale
        if groups <= _FEWEST_STEPS:
            break
        if scale > 1:
            spent = busy[: groups * scale].reshape(groups, scale)
            served = spent * rates[: groups * scale].reshape(groups, scale)
            spent = spent.sum(axis=1)
            each = served.sum(axis=1) / spent
        else:
            spent, each = busy, rates
        steps = (each[1:] - each[:-1]) ** 2 * spent[1:] * spent[:-1] / (spent[1:] + spent[:-1])
        found = max(found, float(steps.mean()))
    return found
