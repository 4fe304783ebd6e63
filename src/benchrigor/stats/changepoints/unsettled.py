"""The ends of a series: readings at another level that are too few to call a change."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy

from benchrigor.model import ChangePoints
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.series.long_run_variance import long_run_variance

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
    gaps = _gaps(part, counts)
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
    gaps = _gaps(part, counts)
    best = int(np.argmax(gaps))
    count = int(counts[best])
    return count if gaps[best] > float(np.ptp(part[:-count])) else 0


def _squares(scores: Floats, counts: Ints) -> Floats:
    """Return the squared differences between each tail and the rest, in units of their variance."""
    # Scores add up to 0, so that the mean of the rest follows from that of the tail.
    tails, rest = np.cumsum(scores[::-1])[counts - 1], scores.size - counts
    squares: Floats = (tails / counts + tails / rest) ** 2 * (counts * rest / scores.size)
    return squares


def _gaps(part: Floats, counts: Ints) -> Floats:
    """Return how far all of each tail lie above, or below, all before it; negative if they mix."""
    gaps = []
    for values in (part, -part):
        highest = np.maximum.accumulate(values)[part.size - counts - 1]
        lowest = np.minimum.accumulate(values[::-1])[counts - 1]
        gaps.append(lowest - highest)
    widest: Floats = np.maximum(*gaps)
    return widest


def _inflation(scores: Floats) -> float:
    """Return the variance inflation of scores, at least 1; of few of them it is not known."""
    residuals = scores - scores.mean()
    square = float(residuals @ residuals)
    if scores.size < _MIN_FOR_AUTOCORRELATION or square == 0.0:
        return 1.0
    return max(1.0, long_run_variance(residuals).largest * scores.size / square)


def _normal_scores(series: Floats) -> Floats:
    """Return the normal quantiles of ranks, about their mean; ties share the score of their rank.

    Their variance is at most 1: ties lower it, which makes the tests cautious.
    """
    ordered = np.sort(series)
    below = np.searchsorted(ordered, series) + np.searchsorted(ordered, series, side="right")
    scores: Floats = scipy.special.ndtri(below / (2.0 * series.size))
    centred: Floats = scores - scores.mean()
    return centred
