"""How strongly a split tells the readings before it from those behind it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Ints
from benchrigor.stats.changepoints.rank_counts import THRESHOLDS, Counts

__all__ = ["Search", "Strengths", "strength"]

Strengths = npt.NDArray[np.float32]

_MOST = np.float32(0.95)
_ONES = np.ones(THRESHOLDS, dtype=np.float32)
_PLACES = np.arange(1, THRESHOLDS + 1, dtype=np.float32)


class Search(NamedTuple):
    """What counts as a change.

    Parameters
    ----------
    threshold
        Least strength of a split.
    inflation
        Divides every strength.
    shortest
        Least readings on either side of a split.
    placing
        Splits are not judged, but the best place of one is looked for: only R is returned.
    """

    threshold: float
    inflation: float
    shortest: int
    placing: bool = False


def strength(left: Counts, whole: Counts, n_left: Ints, n: Ints, search: Search) -> Strengths:
    """Return how strongly splits tell their intervals' two sides apart.

    Parameters
    ----------
    left, whole
        Counts left of the splits, shape (S, I, K), and in the intervals, shape (I, K).
    n_left, n
        Readings there, shapes (S, I) and (I,).
    search
        What counts as a change.

    Returns
    -------
    numpy.ndarray
        T = -(n/r - 3)/2 ln(1 - R), shape (S, I), where R is the share of the variation of the
        readings' ranks that the split explains; 0 where a side is too short.

    Notes
    -----
    The energy distance with exponent 1 is twice the integral of the squared difference of the
    distribution functions (Szekely & Rizzo 2005), here over ranks and weighted as by Anderson &
    Darling (1952): the squared differences of the shares at or above each threshold, each over
    its variance, are summed and divided by the largest eigenvalue of the indicators'
    correlations. That over n is R: like the squared correlation of one normal variable with the
    side, and so turned into a likelihood ratio, which tells a perfect split of few readings from
    a vague one of many. Without change the tail of T is about exp(-T)/2 for intervals of 20
    readings and of any more, for one threshold and for many (measured: 0.2 to 0.8 up to T = 6,
    for splits in the middle and at a quarter).

    The difference of the smaller side from the whole is standardised by the variance that a
    share has a third of the way from the whole's to its own: half its square over that is the
    Kullback-Leibler divergence to third order, which stays true for rare readings. Thresholds
    that hardly any reading is above, or below, are left out.

    That correction favours splits that part few extreme readings perfectly, of which slow noise
    has many. To place a split, the variance of the whole's share serves better: 2 sd under AR(1)
    0.5 are placed within 12 readings in 0.96 instead of 0.93 of series (measured).
    """
    size = np.maximum(n, 1).astype(np.float32)
    before = n_left.astype(np.float32)
    after = size - before
    share = whole.astype(np.float32)
    share /= size[:, np.newaxis]
    variance = share * (1 - share)
    usable = variance >= search.shortest / 2 / size[:, np.newaxis]
    active = usable.astype(np.float32)
    gap = left.astype(np.float32)
    gap -= share * before[:, :, np.newaxis]
    # One half in place of the shares left out keeps the variance away from 0.
    between = np.where(usable, share, np.float32(0.5))
    if not search.placing:
        third = np.where(before <= after, 1 / np.maximum(before, 1), -1 / np.maximum(after, 1))
        third *= np.float32(1 / 3)
        between = gap * third[:, :, np.newaxis] + between
    between -= between * between
    gap *= gap
    gap /= between
    explained: Strengths = np.einsum("sik,ik->si", gap, active)
    explained /= _eigenvalue(share, variance, active) * np.maximum(before * after, 1)
    explained[np.minimum(before, after) < search.shortest] = 0
    if search.placing:
        return explained
    np.minimum(explained, _MOST, out=explained)
    freedom = np.maximum(size / np.float32(search.inflation) - 3, 0)
    total: Strengths = np.log1p(-explained)
    total *= freedom / -2
    return total


def _eigenvalue(share: Strengths, variance: Strengths, active: Strengths) -> Strengths:
    """Return the largest eigenvalue of the correlations of the indicators ``x >= threshold``.

    By the Rayleigh quotient of the standard deviations (exact for many even thresholds), which
    is the variance of the readings' codes over the sum of the variances. The active thresholds,
    1 where the others are 0, follow each other: their places are those among all less the
    number of those that nearly all readings reach.
    """
    shares = share * active
    total = shares @ _ONES
    skipped = np.where(share > np.float32(0.5), 1 - active, np.float32(0)) @ _ONES
    joint = 2 * (shares @ _PLACES) - (1 + 2 * skipped + total) * total
    least = np.maximum((variance * active) @ _ONES, np.float32(1e-6))
    return np.maximum(joint / least, np.float32(1))
