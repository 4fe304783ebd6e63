"""Finds shifts of the service rate of a stream."""

from __future__ import annotations

import math

import numpy as np

from benchrigor.model.series import Floats
from benchrigor.queues.arithmetic.moments import BORDERS, Row, rates_of
from benchrigor.stats.series.interval import student_t

FEWEST = 24  # batches below which no shift is found

_MATERIAL = 0.10  # relative change of the rate that makes another phase
_BEFORE, _AFTER = 8, 4
_ERRORS = 5.0  # standard errors: the same batches are tested again and again, at every place
# Standard errors at which the deviation of a batch is clipped: one stall is not a phase.
_CLIPPED = 3.0
_SCALES = (1, 2, 4, 8)
_FEWEST_STEPS = 12
_BLOCKS = 12  # blocks of a phase; Schmeiser (1982) found 10 to 30 to be enough
# Blocks a quarter as long count if the longer ones have up to 1.5 times their variance: noise
# then decorrelates within them. In a random walk the longer ones have four times the variance.
_FINER, _ALIKE = 4, 1.5
_CONFIDENCE = 1.0 - 5.7e-7  # of five standard errors of a normal variable


def find_shift(batches: Floats) -> int | None:
    """Return the batch with which another rate begins, or None; the stage was busy in all batches.

    The statistic is the largest standardised difference between the mean deviations before and
    after a place (CUSUM; Page 1954). Deviations are clipped. Steps between neighbours give the
    noise, so that a shift does not hide itself. The difference must be five standard errors, and
    the medians must differ by a tenth.

    Service times that are correlated over hundreds of items wander further than steps show. So the
    plain means of both sides must differ by the method of batch means as well (Conway 1963). Blocks
    are as long as the shorter side, but at least a dozen fit into the series; they scatter about
    the mean of their own side. The limit is Student's at the level of five standard errors. No test
    separates shifts from noise slower than the whole series. A rate that rises, or falls, from
    block to block all along is not noise: the cut is where its two sides differ most.
    """
    n = batches.shape[1]
    if n < FEWEST:
        return None
    pairs = batches[: Row.BUSY + 1]
    rates, busy = rates_of(batches), pairs[Row.BUSY]
    noise = _noise(pairs)
    deviations = (rates - _median(rates)) * np.sqrt(busy / noise)
    sums = np.cumsum(np.minimum(np.maximum(deviations, -_CLIPPED), _CLIPPED))
    before = np.arange(_BEFORE, n - _AFTER + 1)
    after = n - before
    below = sums[before - 1]
    scores = np.abs((sums[-1] - below) / after - below / before) * np.sqrt(before * after / n)
    best = int(np.argmax(scores))
    if scores[best] < _ERRORS:
        return None
    place = int(before[best])
    former, latter = _median(rates[:place]), _median(rates[place:])
    material = abs(latter - former) >= _MATERIAL * former
    return place if material and _stands_out(pairs, place) else None


def _stands_out(pairs: Floats, place: int) -> bool:
    """Return whether the means before and after a place differ by more than block means do."""
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
    """Return whether the rate rises, or falls, for a dozen blocks; a random walk does 1 in 1000."""
    n = pairs.shape[1]
    items, busy = _blocks(pairs[:, n % _BLOCKS :], n // _BLOCKS)
    steps = np.diff(items / busy)
    return bool((steps > 0.0).all() or (steps < 0.0).all())


def _scatter(pairs: Floats, place: int, size: int) -> tuple[float, int]:
    """Return the variance of a count per busy second by blocks, and its degrees of freedom."""
    # Blocks are laid from the place on, forwards and backwards.
    before, after = place // size, (pairs.shape[1] - place) // size
    blocks = _blocks(pairs[:, place - before * size : place + after * size], size)
    squares = 0.0
    for items, busy in (blocks[:, :before], blocks[:, before:]):
        residuals = items - items.sum() / busy.sum() * busy
        squares += float((residuals**2 / busy).sum())
    freedom = before + after - 2
    return squares / freedom, freedom


def _median(values: Floats) -> float:
    """Return the upper median; for a few values five times as fast as numpy's."""
    return float(np.sort(values)[values.size // 2])


def _noise(pairs: Floats) -> float:
    """Return the variance of a count per busy second, by steps between neighbours.

    The largest at scales of up to eight batches, since slow noise shows only there.
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
    """Return items and busy time of blocks of ``size`` batches, shape (2, blocks)."""
    found: Floats = pairs.reshape(2, -1, size).sum(axis=2) if size > 1 else pairs
    return found
