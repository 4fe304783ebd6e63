"""Variance inflation: long-run over marginal variance, by which shifts look likelier than they are.

All figures are of the readings' ranks, so that tails and modes do not matter.

It also finds the ends of a series: readings at another level that are too few to call a change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy

from benchrigor.model import ChangePoints
from benchrigor.model.series import Floats, Ints
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
    """Estimate the variance inflation, 1 or more, of a series that may hold level shifts.

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
    # Five times as fast as searchsorted: no processor foresees its branches.
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
        # The rest of the variance at lag 2 must be above 0 to decay further.
        left = max(0.0, 1.0 - two / most)
        phi = np.sqrt(max(0.0, 1.0 - four / most) / left) if left else 0.0
        level = most
    return level, min(float(phi), 0.9999)


_FEWEST = 2  # one reading may be an outlier
_FEWEST_TO_TEST = 3  # two are judged by their distance alone
_NEAR = 1.5  # distance from the end, in min_segment, of a change that may be even nearer
_REACH = 8  # readings around the best place where a gap is the place
_REFERENCE = 1_024  # readings next to an end that it is compared with, at most
_MIN_REFERENCE = 10
_MIN_FOR_AUTOCORRELATION = 30
MIN_EFFECTIVE_TO_SEARCH = 40  # with a smaller effective sample size more changes are false
_LEVEL = 0.01  # where the detector promises none


def settle_ends(series: Floats, points: ChangePoints, min_segment: int) -> ChangePoints:
    """Count the readings at each end that are at another level, but too few to call a change.

    The search leaves ``min_segment`` readings before the first and after the last change point. So
    it places a later change too early, or misses it. Here normal scores of ranks (van der Waerden
    1952), with their variance inflated by the autocorrelation, compare the last 3 to
    ``2 * min_segment`` readings with the rest of their segment, one test for each number. By
    Bonferroni all tests together call a change in a series without change with a chance of at
    most ``points.level``.

    Readings farther from the rest of their segment than the span of the rest are at another level,
    whatever their autocorrelation. From ``min_segment`` on they begin with a change point. Two
    readings need half that distance as well: the last two of n exchangeable readings are the two
    greatest with the chance 2/(n(n-1)). A change point closer to an end than ``min_segment`` is
    withdrawn. If a gap separates an end from all readings before it, the change is at the gap.
    """
    late, places = _settle_end(series, list(points.indices), points, min_segment)
    stop = series.size - late
    mirrored = [stop - place for place in reversed(places)]
    early, mirrored = _settle_end(series[:stop][::-1], mirrored, points, min_segment)
    indices = tuple(stop - place for place in reversed(mirrored))
    return replace(points, indices=indices, early=early, late=late)


def _settle_end(
    series: Floats, places: list[int], points: ChangePoints, min_segment: int
) -> tuple[int, list[int]]:
    """Return how many readings at the end are unsettled, and the change points before them."""
    n, last = series.size, places[-1] if places else 0
    shortest = max(min_segment, math.ceil(2.0 * min(points.inflation, n / MIN_EFFECTIVE_TO_SEARCH)))
    is_near = bool(places) and n - last <= 2 * shortest
    part = series[(places[-2] if len(places) > 1 else 0) if is_near else last :]
    if not is_near and points.level is not None:
        clear = _clear_end(part[-2 * _REFERENCE :], min_segment)
        if clear:
            return 0, [*places, n - clear]
    part = part[-_REFERENCE - 2 * shortest :]
    most = min(2 * shortest, part.size - _MIN_REFERENCE)
    if most < _FEWEST:
        return 0, places
    scores = _normal_scores(part)
    counts = np.arange(1, most + 1)
    squares = _squares(scores, counts)
    best = int(np.argmax(squares))
    if best == counts.size - 1:  # a slow movement, or a change that was farther from the end
        return 0, places
    gaps = gaps_between(part)[part.size - counts - 1]
    near = slice(max(best - _REACH, 0), best + _REACH + 1)
    if gaps[near].max() > 0.0:
        best = near.start + int(np.argmax(gaps[near]))
    count = int(counts[best])
    span = float(np.ptp(part[:-count]))
    if count < _FEWEST_TO_TEST or (is_near and count >= shortest):
        is_apart = count == _FEWEST and not is_near and gaps[best] > span / 2.0
        return (count if is_apart else 0), places
    is_clear = gaps[best] > span
    if is_near:
        is_clear |= n - last < _NEAR * shortest
        return (count, places[:-1]) if is_clear else (0, places)
    if is_clear:
        return count, places
    level = (_LEVEL if points.level is None else points.level) / (2.0 * counts.size)
    distance = math.sqrt(float(squares[best]))
    if _chance(distance, points.inflation) > level:
        return 0, places
    inflation = max(points.inflation, _inflation(scores[:-most]))
    return (count if _chance(distance, inflation) <= level else 0), places


def _chance(distance: float, inflation: float) -> float:
    """Return the chance of a standard normal distance from 0, or more, at this inflation."""
    return 2.0 * float(scipy.special.ndtr(-distance / math.sqrt(inflation)))


def _clear_end(part: Floats, min_segment: int) -> int:
    """Return how many readings at the end are farther from the rest than it spans; 0 for none."""
    if part.size < 2 * min_segment:
        return 0
    counts = np.arange(min_segment, part.size - min_segment + 1)
    gaps = gaps_between(part)[part.size - counts - 1]
    best = int(np.argmax(gaps))
    count = int(counts[best])
    return count if gaps[best] > float(np.ptp(part[:-count])) else 0


def _squares(scores: Floats, counts: Ints) -> Floats:
    """Return the squared differences between each tail and the rest, in units of their variance."""
    # Scores add up to 0, so that the mean of the rest follows from the mean of the tail.
    tails, rest = np.cumsum(scores[::-1])[counts - 1], scores.size - counts
    squares: Floats = (tails / counts + tails / rest) ** 2 * (counts * rest / scores.size)
    return squares


def gaps_between(rows: Floats) -> Floats:
    """Return at each place of rows how far all after lie beyond all before; negative if they mix.

    Places are along the last axis, the first one after the first reading.
    """
    gaps = []
    for values in (rows, -rows):
        highest = np.maximum.accumulate(values, axis=-1)[..., :-1]
        lowest = np.minimum.accumulate(values[..., ::-1], axis=-1)[..., ::-1][..., 1:]
        gaps.append(lowest - highest)
    widest: Floats = np.maximum(*gaps)
    return widest


def doubled_ranks(ordered: Floats, values: Floats) -> Ints:
    """Return twice the ranks of values among readings in order; ties share the middle of theirs."""
    below: Ints = np.searchsorted(ordered, values)
    return below + np.searchsorted(ordered, values, side="right")


def _inflation(scores: Floats) -> float:
    """Return the variance inflation of scores, 1 or more; of few of them it is not known."""
    residuals = scores - scores.mean()
    square = float(residuals @ residuals)
    if scores.size < _MIN_FOR_AUTOCORRELATION or square == 0.0:
        return 1.0
    return max(1.0, long_run_variance(residuals).largest * scores.size / square)


def _normal_scores(series: Floats) -> Floats:
    """Return the normal quantiles of ranks, about their mean; ties share the score of their rank.

    Their variance is 1 or less: ties lower it, which makes the tests cautious.
    """
    scores: Floats = scipy.special.ndtri(
        doubled_ranks(np.sort(series), series) / (2.0 * series.size)
    )
    centred: Floats = scores - scores.mean()
    return centred
