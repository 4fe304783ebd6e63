"""Seeded intervals: the splits of a series that tell two distributions apart."""

from __future__ import annotations

import math
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.stats.rankcounts import Counts, Ints, RankCounts

__all__ = ["Search", "find_splits"]

Strengths = npt.NDArray[np.float32]

_SCREENING = 5
_SPLITS = 31
_HOPEFUL = 0.4
_ZOOM = 65
_CHUNK = 512
_FEWEST_BLOCKS = 12
_MOST_POINTS = 4_096


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
    """

    threshold: float
    inflation: float
    shortest: int


class _Found(NamedTuple):
    """The best splits of intervals, each array of shape (I,)."""

    start: Ints
    split: Ints
    stop: Ints
    strength: Strengths

    def where(self, kept: npt.NDArray[np.bool_ | np.int64]) -> _Found:
        return _Found(self.start[kept], self.split[kept], self.stop[kept], self.strength[kept])


def find_splits(ranks: RankCounts, search: Search) -> Ints:
    """Return the first reading of each new segment, ascending; all are significant.

    Notes
    -----
    Intervals are fixed in advance, half overlapping, of lengths that grow by sqrt 2 (Kovacs,
    Li, Buehlmann & Munk 2023). The strongest significant split is taken, the intervals that hold
    it are dropped, and so on; each split is then moved to its strongest place between its
    neighbours and dropped if it is not significant there.
    """
    splits, reach = _selected(_candidates(ranks, search), max(64, ranks.n // 512))
    if splits.size == 0:
        return splits
    return _confirmed(ranks, _relocated(ranks, splits, reach, search), search)


def _strength(left: Counts, whole: Counts, n_left: Ints, n: Ints, search: Search) -> Strengths:
    """Return how strongly splits tell their intervals' two sides apart.

    Parameters
    ----------
    left, whole
        Counts left of the splits, shape (K, S, I), and in the intervals, shape (K, I).
    n_left, n
        Readings there, shapes (S, I) and (I,).

    Returns
    -------
    numpy.ndarray
        T = sum over thresholds of the squared standardised difference of the two shares at or
        above them, over twice the largest eigenvalue of their correlations, shape (S, I); 0
        where a side is too short.

    Notes
    -----
    The energy distance with exponent 1 is twice the integral of the squared difference of the
    distribution functions (Szekely & Rizzo 2005), here over ranks and weighted as by Anderson &
    Darling (1952). Without change the tail of T is about exp(-T) for one threshold and for many.
    The difference of the smaller side from the whole is standardised by the variance that a
    share has a third of the way from the whole's to its own: half its square over that is the
    Kullback-Leibler divergence to third order, which stays true for rare readings. Thresholds
    that hardly any reading is above, or below, are left out.
    """
    size = n.astype(np.float32)
    before = n_left.astype(np.float32)
    after = size - before
    share = whole.astype(np.float32)
    share /= size
    variance = share * (1 - share)
    active = (variance * size > search.shortest / 2).astype(np.float32)
    gap = left.astype(np.float32)
    gap -= share[:, np.newaxis] * before
    third = np.where(before <= after, 1 / np.maximum(before, 1), -1 / np.maximum(after, 1))
    third /= 3
    between = gap * third
    # One half in place of the shares left out keeps the variance away from 0.
    between += (active * share + (1 - active) / 2)[:, np.newaxis]
    between -= between * between
    gap *= gap
    gap /= between
    total: Strengths = np.einsum("ksi,ki->si", gap, active)
    total *= size / (np.float32(2 * search.inflation) * _eigenvalue(share, variance, active))
    total /= np.maximum(before * after, 1)
    total[np.minimum(before, after) < search.shortest] = 0
    return total


def _eigenvalue(share: Strengths, variance: Strengths, active: Strengths) -> Strengths:
    """Return the largest eigenvalue of the correlations of the indicators ``x >= threshold``.

    By the Rayleigh quotient of the standard deviations (exact for many even thresholds), which
    is the variance of the readings' codes over the sum of the variances. The active thresholds,
    1 where the others are 0, follow each other: their places are those among all less the
    number of those that nearly all readings reach.
    """
    ones = np.ones(len(share), dtype=np.float32)
    shares = share * active
    total = ones @ shares
    skipped = ones @ ((1 - active) * (share > np.float32(0.5)))
    joint = 2 * (ones.cumsum() @ shares) - (1 + 2 * skipped + total) * total
    quotient: Strengths = joint / np.maximum(ones @ (variance * active), np.float32(1e-6))
    np.maximum(quotient, 1, out=quotient)
    return quotient


def _intervals(blocks: int, shortest: int) -> tuple[Ints, Ints]:
    """Return starts and stops, in blocks; one interval of each length touches the end."""
    starts, sizes = [], []
    size = min(shortest, blocks)
    growing = float(size)
    while True:
        starts.append([*range(0, blocks - size, max(1, size // 2)), blocks - size])
        sizes.append(size)
        if size == blocks:
            break
        growing *= math.sqrt(2.0)
        size = min(round(growing), blocks)
    start = np.array(list(chain.from_iterable(starts)), dtype=np.int64)
    return start, start + np.repeat(sizes, [len(each) for each in starts])


def _candidates(ranks: RankCounts, search: Search) -> _Found:
    """Return the best split of every seeded interval that has a significant one, in readings.

    A few splits of each interval tell whether it is worth trying more: beside a split of
    strength T the next of those few has about 0.45 T or more.
    """
    # Even a perfect split of so few readings (strength 0.39 n) would not be significant.
    readings = max(2 * search.shortest, round(2.5 * search.threshold * search.inflation))
    fewest = _FEWEST_BLOCKS if ranks.step > 1 else 1
    start, stop = _intervals(ranks.blocks, max(-(-readings // ranks.step), fewest))
    found = _best(ranks, start, stop, _SCREENING, search)
    found = found.where(found.strength > _HOPEFUL * search.threshold)
    if found.start.size:
        found = _best(ranks, found.start, found.stop, _SPLITS, search)
        found = found.where(found.strength > search.threshold)
    first = ranks.first_readings
    return _Found(first(found.start), first(found.split), first(found.stop), found.strength)


def _best(ranks: RankCounts, start: Ints, stop: Ints, splits: int, search: Search) -> _Found:
    """Return the strongest of so many evenly spaced splits of each interval, all in blocks."""
    places = np.arange(1, splits + 1)[:, np.newaxis]
    split = start + (stop - start) * places // (splits + 1)
    strength = _strengths(ranks, start, split, stop, search, blocks=True)
    best = strength.argmax(axis=0)
    columns = np.arange(best.size)
    return _Found(start, split[best, columns], stop, strength[best, columns])


def _selected(found: _Found, most: int) -> tuple[Ints, Ints]:
    """Return the splits taken, ascending, and how far off each may be."""
    order = np.argsort(-found.strength, kind="stable")
    left = np.stack((found.start, found.split, found.stop))[:, order]
    chosen: list[tuple[int, int]] = []
    while left.size and len(chosen) < min(most, _MOST_POINTS):
        start, split, stop = left[:, 0].tolist()
        chosen.append((split, max(4, 2 * (stop - start) // (_SPLITS + 1))))
        left = left[:, (left[0] >= split) | (left[2] <= split)]
    splits = np.array(sorted(chosen), dtype=np.int64).reshape(-1, 2)
    return splits[:, 0], splits[:, 1]


def _relocated(ranks: RankCounts, splits: Ints, reach: Ints, search: Search) -> Ints:
    """Move every split to its strongest place between its neighbours, zooming in."""
    start, stop = _neighbours(splits, ranks.n)
    columns = np.arange(splits.size)
    fractions = np.linspace(0.0, 1.0, _ZOOM)[:, np.newaxis]
    while True:
        low = np.maximum(splits - reach, start + 1)
        width = np.minimum(splits + reach, stop - 1) - low
        trial = low + np.rint(width * fractions).astype(np.int64)
        splits = trial[_strengths(ranks, start, trial, stop, search).argmax(axis=0), columns]
        spacing = -(-width // (_ZOOM - 1))
        if spacing.max() <= 1:
            return splits
        reach = 2 * spacing


def _confirmed(ranks: RankCounts, splits: Ints, search: Search) -> Ints:
    """Drop the weakest split until all are significant between their neighbours."""
    splits = np.unique(splits)
    while splits.size:
        start, stop = _neighbours(splits, ranks.n)
        strength = _strengths(ranks, start, splits[np.newaxis], stop, search)[0]
        # Splits that are not neighbours' neighbours do not touch each other: drop them at once.
        rivals = np.concatenate(([np.inf], strength, [np.inf]))
        weakest = (strength < rivals[:-2]) & (strength <= rivals[2:])
        dropped = weakest & (strength <= search.threshold)
        if not dropped.any():
            break
        splits = splits[~dropped]
    return splits


def _neighbours(splits: Ints, n: int) -> tuple[Ints, Ints]:
    borders = np.concatenate(([0], splits, [n]))
    return borders[:-2], borders[2:]


def _strengths(
    ranks: RankCounts, start: Ints, split: Ints, stop: Ints, search: Search, *, blocks: bool = False
) -> Strengths:
    """Return the strength of splits, shape (S, I), of intervals, both in readings or blocks."""
    counts = ranks.before_blocks if blocks else ranks.before
    chunks = []
    for at in range(0, start.size, _CHUNK):
        begin, middle, end = (each[..., at : at + _CHUNK] for each in (start, split, stop))
        skipped = counts(begin)
        left = counts(middle) - skipped[:, np.newaxis]
        whole = counts(end) - skipped
        if blocks:
            begin, middle, end = (ranks.first_readings(each) for each in (begin, middle, end))
        chunks.append(_strength(left, whole, middle - begin, end - begin, search))
    return np.concatenate(chunks, axis=1)
