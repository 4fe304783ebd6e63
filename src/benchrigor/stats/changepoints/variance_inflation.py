"""Variance inflation: long-run over marginal variance, by which shifts look likelier than they are.

All figures are of the readings' ranks, so that tails and modes do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Floats
from benchrigor.stats.series.long_run_variance import long_run_variance

MIN_EFFECTIVE = 20  # least effective sample size that is estimated
_SAMPLE = 8_192
_RUN = 256
_RANKS = 64
_TRIMMED = 0.01
_MOVING = 0.05
_MIN_READINGS = 10
_WINDOWS = 3
_WINDOW = 1_024
_MIN_SEGMENT = 100
_BATCH = 24
_MIN_READINGS_FOR_BATCHES = 1_000
_MEDIAN_OF_CHI2 = 0.455
_SLOW = 1.5


def inflation_across(series: Floats) -> float:
    """Estimate the variance inflation, at least 1, of a series that may hold level shifts.

    From mean squared differences, proportional to 1 - rho(k) at lag k, which a few shifts hardly
    touch once the largest 1 % are trimmed. rho(k) = phi^k (lags 1 and 2) gives one figure, c phi^k
    (lags 1, 2 and 4: autocorrelation hidden under white noise) another where it differs
    significantly, the means of adjacent batches of 24 a third from 1000 readings on. Medians for
    AR(1) 0.9 and n = 200, 600, 1000, 10000: 13, 16, 17, 18 (truth 18.5).
    """
    rows = series[np.newaxis]
    if series.size > _SAMPLE:
        starts = np.linspace(0, series.size - _RUN, _SAMPLE // _RUN).astype(np.int64)
        rows = series[starts[:, np.newaxis] + np.arange(_RUN)]
    return _by_differences(rows, series.size)


def inflation_within(series: Floats, borders: Sequence[int]) -> float | None:
    """Estimate the variance inflation inside the segments between ``borders``.

    None when no segment holds 100 readings. Differences at short lags see no shifts;
    autoregressions, which see slow noise too, count where their median over three windows is much
    larger: slow noise shows in all of them, an overlooked change only in its own.
    """
    long = [(start, stop) for start, stop in pairwise(borders) if stop - start >= _MIN_SEGMENT]
    if not long:
        return None
    length = min(max(_MIN_SEGMENT, series.size // 4), _WINDOW)
    windows = [
        series[start : min(start + length, stop)]
        for first, stop in long
        for start in range(first, stop - _MIN_SEGMENT + 1, length)
    ]
    segments = [series[start : min(start + _WINDOW, stop)] for start, stop in long]
    fast = [_by_differences(segment[np.newaxis], segment.size) for segment in _spread(segments)]
    slow = [_by_autoregression(window) for window in _spread(windows)]
    quick, thorough = float(np.median(fast)), float(np.median(slow))
    return thorough if thorough > _SLOW * quick else quick


def _spread(parts: list[Floats]) -> list[Floats]:
    return parts[:: -(-len(parts) // _WINDOWS)]


def _by_autoregression(segment: Floats) -> float:
    ranks = _ranks(segment).astype(np.float64)
    ranks -= ranks.mean()
    variance = float(ranks.var())
    if variance == 0.0:
        return 1.0
    most = segment.size / MIN_EFFECTIVE
    return min(max(1.0, long_run_variance(ranks).largest / variance), most)


def _by_differences(rows: Floats, n: int) -> float:
    """Estimate it from squared differences at lags 1, 2 and 4; n at most."""
    moving = np.count_nonzero(rows[:, 1:] != rows[:, :-1])
    if moving < _MOVING * rows.size or n < _MIN_READINGS:
        return 1.0
    ranks = _ranks(rows)
    one, two, four = (_mean_square_difference(ranks, lag) for lag in (1, 2, 4))
    if one == 0.0:
        # The readings move, but so slowly that the coarse ranks hardly do.
        return float(n)
    if one >= two:
        return 1.0
    most = 2.0 * float(ranks.var())
    standard_error = 1.0 / np.sqrt(ranks.size)
    level = min(one / max(2.0 - two / one, 1e-9), most)
    phi = 1.0 - one / level
    inflation = (1.0 + phi) / (1.0 - phi)
    if two - one > 4.0 * standard_error * one:
        level, decay = _decay(one, two, four, most)
        if decay > phi + 3.0 * standard_error:
            inflation = max(inflation, 1.0 + 2.0 * (1.0 - one / level) / (1.0 - decay))
    inflation = max(inflation, _by_batches(ranks, one / (2.0 * (1.0 - phi))))
    return min(max(1.0, float(inflation)), float(n))


def _ranks(readings: Floats) -> npt.NDArray[np.float32]:
    """Return ranks in up to 64 classes: coarser ones would look like white noise."""
    knots = np.sort(readings, axis=None)
    knots = knots[np.linspace(0, knots.size - 1, min(_RANKS, knots.size)).astype(np.int64)]
    # Five times as fast as searchsorted, whose branches no processor foresees.
    reached = (readings.reshape(1, -1) >= knots[:, np.newaxis]).view(np.uint8)
    ranks: npt.NDArray[np.uint8] = np.add.reduce(reached, axis=0, dtype=np.uint8)
    return ranks.astype(np.float32).reshape(readings.shape)


def _mean_square_difference(ranks: npt.NDArray[np.float32], lag: int) -> float:
    """Return the mean squared difference at a lag, the largest differences trimmed."""
    steps = np.abs(ranks[:, lag:] - ranks[:, :-lag]).ravel()
    kept: int = steps.size - int(_TRIMMED * steps.size)
    least = np.partition(steps, kept - 1)[:kept]
    return float(np.vdot(least, least)) / kept


def _by_batches(ranks: npt.NDArray[np.float32], variance: float) -> float:
    """Estimate it from the means of adjacent batches, if significant."""
    rows, width = ranks.shape
    count = width // _BATCH
    if ranks.size < _MIN_READINGS_FOR_BATCHES or count < 2:
        return 1.0
    means = ranks[:, : count * _BATCH].reshape(rows, count, _BATCH).mean(axis=2)
    steps = np.diff(means, axis=1) ** 2
    inflation = float(np.median(steps)) / _MEDIAN_OF_CHI2 * _BATCH / (2.0 * variance)
    # The median of m of them has a relative standard error of about 1.2 over the root of m.
    return inflation if inflation > 1.0 + 3.0 * 1.2 / np.sqrt(steps.size) else 1.0


def _decay(one: float, two: float, four: float, most: float) -> tuple[float, float]:
    """Solve level * (1 - c phi^k) for the differences at lags 1, 2, 4; return level and phi."""
    ratio = max(0.0, (four - two) / (two - one))
    phi = min((np.sqrt(1.0 + 4.0 * ratio) - 1.0) / 2.0, 0.9999)
    level = one + (two - one) / (1.0 - phi)
    if level > most:
        # What is left of the variance at lag 2 must be more than nothing to decay further.
        left = max(0.0, 1.0 - two / most)
        phi = np.sqrt(max(0.0, 1.0 - four / most) / left) if left else 0.0
        level = most
    return level, min(float(phi), 0.9999)
