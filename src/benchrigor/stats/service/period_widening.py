"""How wide a sampling period may be so that a stage still goes through some without waiting."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Floats, RateReason
from benchrigor.stats.service.moments import Row

__all__ = ["FEWEST_ITEMS", "FEWEST_SHARE", "joined", "longest_run", "widest"]

FEWEST_ITEMS = 16.0
"""Items that a period must hold: of fewer, some are free of waiting by luck."""
FEWEST_SHARE = 0.05
"""Share of periods free of waiting below which those that are were chosen by slow service."""
_GOOD_SHARE = 0.20
"""Share down to which periods are widened: choice by slow service then about makes up for what the
quantile lies above the mean."""
_IN_A_ROW = 5
_FEWEST_PERIODS = 25


def joined(periods: Floats, number: int) -> Floats:
    """Join each ``number`` of successive periods into one; those left over do not count.

    Parameters
    ----------
    periods
        First rows of their tallies, shape (Row.COUNT, n).
    number
        At least 1. A joined period is unblocked, or counts, only if all of its parts do.
    """
    if number == 1:
        return periods
    whole = periods.shape[1] // number
    parts = periods[:, : whole * number].reshape(len(periods), whole, number)
    found: Floats = parts.sum(axis=2)
    found[Row.PERIODS] = 1.0
    found[Row.UNBLOCKED] = parts[Row.UNBLOCKED].min(axis=1)
    found[Row.USED] = parts[Row.USED].min(axis=1)
    return found


def longest_run(flags: Floats) -> int:
    """Return how many flags in a row are set at most."""
    borders = np.flatnonzero(np.concatenate([[1.0], 1.0 - flags, [1.0]]))
    return int(np.diff(borders).max()) - 1


def widest(periods: Floats) -> int | RateReason:
    """Find how many periods to join into one sampling period, or say why none will do.

    Parameters
    ----------
    periods
        First rows of their tallies, shape (Row.COUNT, n).

    Notes
    -----
    Wide ones have less noise, narrow ones less waiting (Beard & Chamberlain 2015, section IV-A):
    it is the widest, of doubling ones, with five in a row free of waiting; and, so that this is no
    luck, with 16 items where it was free of waiting, and a fifth of the periods free (a twentieth
    where none has a fifth). Those that were told cannot be had any narrower: of them no five in a
    row are asked for.
    """
    few = periods.shape[1] < _FEWEST_PERIODS and periods[Row.UNBLOCKED].any()
    reason = RateReason.NOT_CONVERGED if few else RateReason.NO_NONBLOCKING
    best, number = 0, 1
    while periods.shape[1] // number >= _FEWEST_PERIODS:
        free = joined(periods, number)
        unblocked = free[Row.UNBLOCKED]
        share = float(unblocked.mean())
        if longest_run(unblocked) < (_IN_A_ROW if number > 1 else 1):
            break
        # Of the others nobody may know what they held.
        if float(free[Row.ITEMS] @ unblocked) < FEWEST_ITEMS * float(unblocked.sum()):
            reason = RateReason.FEW_ITEMS
        elif share < FEWEST_SHARE:
            reason = RateReason.FEW_NONBLOCKING
        elif share >= _GOOD_SHARE or not best:
            best = number
        number *= 2
    return best or reason
