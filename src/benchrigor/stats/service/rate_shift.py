"""Where a rate has become another one, while it is being watched."""

from __future__ import annotations

import math

import numpy as np

from benchrigor.model import Floats
from benchrigor.stats.series.interval import student_t
from benchrigor.stats.service.moments import BORDERS, Row, rates_of

__all__ = ["FEWEST", "find_shift"]

FEWEST = 24
"""Stretches below which no shift is found."""

_MATERIAL = 0.10
"""Relative change of a rate from which on it is another phase."""
_BEFORE, _AFTER = 8, 4
_ERRORS = 5.0
"""Standard errors: the same stretches are looked at again and again, at every place."""
_CLIPPED = 3.0
"""Standard errors of its own beyond which a stretch says no more: one stall is no phase."""
_SCALES = (1, 2, 4, 8)
_FEWEST_STEPS = 12
_BLOCKS = 12
"""Blocks that a phase is cut into; within the 10 to 30 that Schmeiser (1982) found to be enough."""
_FINER, _ALIKE = 4, 1.5
"""Blocks so many times shorter count where the longer ones scatter at most so much more: noise is
forgotten within them. Of a random walk the longer ones scatter four times as much."""
_CONFIDENCE = 1.0 - 5.7e-7
"""Of five standard errors of a normal variate."""


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

    Service times that are correlated over hundreds of items wander further than steps tell. So the
    plain means of both sides must lie apart by the method of batch means, too (Conway 1963): the
    noise is that of the means of blocks as long as the shorter side, of a dozen blocks at least,
    each about its own side's mean. The fewer blocks, the wider apart: the limit is Student's, at
    the level of five standard errors. Where shorter blocks scatter no less, noise is forgotten
    within them, and as there are more of them, less will do. Noise that is slower than the whole
    series cannot be told from shifts, by this or any other test.

    A rate that rises, or falls, from block to block all along is no noise: it is cut where its two
    sides differ most.
    """
    n = tallies.shape[1]
    if n < FEWEST:
        return None
    pairs = tallies[: Row.BUSY + 1]
    rates, busy = rates_of(tallies), pairs[Row.BUSY]
    noise = _noise(pairs)
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
    material = abs(latter - former) >= _MATERIAL * former
    return place if material and _stands_out(pairs, place) else None


def _stands_out(pairs: Floats, place: int) -> bool:
    """Tell whether means before and after a place differ by more than those of blocks do.

    Parameters
    ----------
    pairs
        Items and busy time of each stretch, shape (2, n).
    place
        The first stretch of the latter side.
    """
    if _drifts(pairs):
        return True
    n = pairs.shape[1]
    size = min(place, n - place, n // _BLOCKS)
    variance, freedom = _scatter(pairs, place, size)
    if size >= _FINER:
        finer, more = _scatter(pairs, place, size // _FINER)
        if variance <= _ALIKE * finer:
            variance, freedom = max(variance, finer), more
    items, busy = np.add.reduceat(pairs, [0, place], axis=1)
    variance = max(variance, BORDERS * n / float(busy.sum()))
    gap = abs(float(np.diff(items / busy)[0]))
    error = math.sqrt(variance * float((1.0 / busy).sum()))
    return gap >= student_t(freedom, _CONFIDENCE) * error


def _drifts(pairs: Floats) -> bool:
    """Tell whether the rate rises, or falls, from each of a dozen blocks to the next.

    A random walk does so once in a thousand times (2 in 2^11).
    """
    n = pairs.shape[1]
    items, busy = _blocks(pairs[:, n % _BLOCKS :], n // _BLOCKS)
    steps = np.diff(items / busy)
    return bool((steps > 0.0).all() or (steps < 0.0).all())


def _scatter(pairs: Floats, place: int, size: int) -> tuple[float, int]:
    """Return the variance of a count per busy second by blocks of a size, and its freedom.

    Blocks are laid from the place on, forwards and backwards.
    """
    before, after = place // size, (pairs.shape[1] - place) // size
    blocks = _blocks(pairs[:, place - before * size : place + after * size], size)
    squares = 0.0
    for items, busy in (blocks[:, :before], blocks[:, before:]):
        residuals = items - items.sum() / busy.sum() * busy
        squares += float((residuals**2 / busy).sum())
    freedom = before + after - 2
    return squares / freedom, freedom


def _median(values: Floats) -> float:
    """Return the (upper) median; of so few values, a fifth of what numpy's own costs."""
    return float(np.sort(values)[values.size // 2])


def _noise(pairs: Floats) -> float:
    """Return the variance of a count per busy second, by steps between neighbours.

    The most of that at scales of up to eight stretches, since slow noise shows only there.
    """
    size = pairs.shape[1]
    found: float = BORDERS * size / float(pairs[Row.BUSY].sum())
    for scale in _SCALES:
        groups = size // scale
        if groups <= _FEWEST_STEPS:
            break
        items, busy = _blocks(pairs[:, : groups * scale], scale)
        rates, weights = items / busy, 1.0 / busy
        steps = (rates[1:] - rates[:-1]) ** 2 / (weights[1:] + weights[:-1])
        found = max(found, float(steps.sum()) / steps.size)
    return found


def _blocks(pairs: Floats, size: int) -> Floats:
    """Return items and busy time of blocks of so many stretches each, shape (2, blocks)."""
    found: Floats = pairs.reshape(2, -1, size).sum(axis=2) if size > 1 else pairs
    return found
