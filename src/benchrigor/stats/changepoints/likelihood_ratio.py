"""Likelihood ratio of a split: how clearly the readings before it differ from those behind it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Ints
from benchrigor.stats.changepoints.rank_counts import THRESHOLDS, Counts

Ratios = npt.NDArray[np.float32]

_MAX_EXPLAINED = np.float32(0.95)
_ONES = np.ones(THRESHOLDS, dtype=np.float32)
_PLACES = np.arange(1, THRESHOLDS + 1, dtype=np.float32)


class Criterion(NamedTuple):
    """What makes a split a change point."""

    penalty: float  # that a change point must exceed
    inflation: float  # divides every log-likelihood ratio
    min_segment: int
    locating: bool = False  # compare places of one split: return R instead of T


def log_likelihood_ratio(
    left: Counts, whole: Counts, n_left: Ints, n: Ints, criterion: Criterion
) -> Ratios:
    """Return T = -(n/r - 3)/2 ln(1 - R) of S splits in each of I intervals; 0 next to the ends.

    R is the share of the variation of the readings' ranks that the split explains, r the variance
    inflation. ``left`` counts the readings left of the splits, shape (S, I, K), ``whole`` those of
    the intervals, shape (I, K), of n_left and n readings, shapes (S, I) and (I,).

    The energy distance of the ranks (Szekely & Rizzo 2005), weighted as by Anderson & Darling
    (1952), is the sum of the squared differences of the shares at or above each threshold, each
    over its variance. Over n and the largest eigenvalue of the indicators' correlations it is R,
    which behaves like the squared correlation of one normal variable with the side; the tail of T
    without change is about exp(-T)/2. The variance is that a third of the way from the whole's
    share to that of the smaller side, by which half the square is the Kullback-Leibler divergence
    to third order and holds for rare readings. To locate a split, the variance of the whole's share
    is better: slow noise has many splits that part few extreme readings perfectly. Thresholds that
    hardly any reading is above, or below, are left out.
    """
    size = np.maximum(n, 1).astype(np.float32)
    before = n_left.astype(np.float32)
    after = size - before
    share = whole.astype(np.float32)
    share /= size[:, np.newaxis]
    variance = share * (1 - share)
    usable = variance >= criterion.min_segment / 2 / size[:, np.newaxis]
    active = usable.astype(np.float32)
    gap = left.astype(np.float32)
    gap -= share * before[:, :, np.newaxis]
    # One half in place of the shares left out keeps the variance away from 0.
    between = np.where(usable, share, np.float32(0.5))
    if not criterion.locating:
        third = np.where(before <= after, 1 / np.maximum(before, 1), -1 / np.maximum(after, 1))
        third *= np.float32(1 / 3)
        between = gap * third[:, :, np.newaxis] + between
    between -= between * between
    gap *= gap
    gap /= between
    explained: Ratios = np.einsum("sik,ik->si", gap, active)
    explained /= _eigenvalue(share, variance, active) * np.maximum(before * after, 1)
    explained[np.minimum(before, after) < criterion.min_segment] = 0
    if criterion.locating:
        return explained
    np.minimum(explained, _MAX_EXPLAINED, out=explained)
    freedom = np.maximum(size / np.float32(criterion.inflation) - 3, 0)
    ratio: Ratios = np.log1p(-explained)
    ratio *= freedom / -2
    return ratio


def _eigenvalue(share: Ratios, variance: Ratios, active: Ratios) -> Ratios:
    """Return the largest eigenvalue of the correlations of the indicators ``x >= threshold``.

    By the Rayleigh quotient of the standard deviations (exact for many even thresholds): the
    variance of the readings' codes over the sum of the variances. The active thresholds, 1 where
    the others are 0, follow each other, behind those that nearly all readings reach.
    """
    shares = share * active
    total = shares @ _ONES
    skipped = np.where(share > np.float32(0.5), 1 - active, np.float32(0)) @ _ONES
    joint = 2 * (shares @ _PLACES) - (1 + 2 * skipped + total) * total
    least = np.maximum((variance * active) @ _ONES, np.float32(1e-6))
    return np.maximum(joint / least, np.float32(1))
