"""Warm-ups joined end to end: one series that really is several rounds, each with its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy

from benchrigor.model import Floats, as_series
from benchrigor.model.series import Ints
from benchrigor.stats.series.long_run_variance import batch_means

_EXAMINED = 16_384  # readings from the start, then as many batch means of all: it has to be quick
_FEWEST = 5  # rounds; fewer lie at regular distances by chance
_SHORTEST = 40  # readings of a round
# Readings before and after a start whose means are compared.
_SCALES = ((1, 1), (2, 2), (8, 2), (4, 4), (16, 4), (8, 8), (16, 16), (32, 32))
_UNEVEN = 0.125  # by which the length of a round may differ from the typical one
_REGULAR = 0.75  # of many rises must be at regular distances; of fewer than nine, all
_MIN_T = 4.0  # Student's t over the rounds, of the height of their starts
_LASTING_T = 3.0  # and of what the two slowest readings leave of it
_PARTS = 16  # of the mean round, whose means are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedWarmUps:
    """Rounds, each with a warm-up, of which a series seems to be made.

    Parameters
    ----------
    starts
        First index of each round among the readings examined; the first one is 0.
    length
        Readings of a round: the median distance of two starts.
    excess
        Share by which the mean of the readings examined exceeds the median of the second halves of
        the rounds, if they have warmed up.
    examined
        How many readings from the first on were looked at.
    """

    starts: tuple[int, ...]
    length: int
    excess: float
    examined: int


def find_repeated_warm_ups(values: npt.ArrayLike) -> RepeatedWarmUps | None:
    """Say whether a series looks like rounds that warm up, joined end to end.

    Parameters
    ----------
    values
        Readings in order of time, shape (n,), that are high while warming up: of rates, take the
        negatives.

    Returns
    -------
    RepeatedWarmUps | None
        None if the series does not look so. The same for a*x, a > 0.

    Raises
    ------
    InvalidInput
        When the values are invalid.

    Notes
    -----
    Such a series repeats one pattern from its first reading on: a sudden rise, then a gradual fall.
    Its highest rises (the mean of 1 to 32 readings, less the mean of the same number before) lie at
    regular distances. In noise of any kind the distances are random, so that the test holds. Other
    periodic series differ in shape, or do not begin with a start: a round must start high for more
    than two readings, rise only at its start, and fall before its middle. A cycle of steps that
    happens to begin with the series looks the same. At least five rounds of 40 readings are needed,
    with lengths that differ by at most an eighth. The test reads the first 16,384 readings, or that
    number of batch means of the whole series.

    Examples
    --------
    >>> import numpy as np
    >>> round_ms = 1.0 + 2.0 * np.exp(-np.arange(300) / 20.0)
    >>> found = find_repeated_warm_ups(np.tile(round_ms, 10))
    >>> found.starts[:3], f"{found.excess:.0%}"
    ((0, 300, 600), '14%')
    >>> find_repeated_warm_ups(round_ms) is None
    True
    """
    series = as_series(values)
    for examined, batch in ((series[:_EXAMINED], 1), (series, -(-series.size // _EXAMINED))):
        points = batch_means(examined, batch)
        starts = _starts(points)
        if starts is not None:
            return _describe(points, starts, batch)
        if examined.size == series.size:
            break
    return None


def _describe(points: Floats, starts: Ints, batch: int) -> RepeatedWarmUps:
    borders = [*starts.tolist(), points.size]
    warm = np.concatenate([points[(start + stop) // 2 : stop] for start, stop in pairwise(borders)])
    level = float(np.median(warm))
    return RepeatedWarmUps(
        starts=tuple(batch * start for start in borders[:-1]),
        length=batch * round(float(np.median(np.diff(starts)))),
        excess=(float(points.mean()) - level) / abs(level) if level else math.inf,
        examined=batch * points.size,
    )


def _starts(points: Floats) -> Ints | None:
    """Return where the rounds start by the scale at which their rises stand out most."""
    if points.size < _FEWEST * _SHORTEST or points.min() == points.max():
        return None
    best, found = 0.0, None
    # As measured, a short warm-up stands out; by ranks, one among far outliers.
    for view in (points / np.abs(points).max(), _normal_scores(points)):
        for before, after in _SCALES:
            rises = _rises(view, before, after)
            length, typical = _common_length(rises, max(before, after, 8))
            if not length:
                continue
            starts = _track(rises, length)
            heights = rises[starts[1:]]
            clear = float(heights.mean() / rises[before : 1 - after or None].std())
            high = heights > 0.5 * typical
            regular = high[0] and high.mean() > _REGULAR
            if clear > best and regular and _warm_up(view, starts, after):
                best, found = clear, starts
    return found


def _normal_scores(series: Floats) -> Floats:
    ordered = np.sort(series)
    below = np.searchsorted(ordered, series) + np.searchsorted(ordered, series, side="right")
    return np.asarray(scipy.special.ndtri((below + 1.0) / (2.0 * series.size + 2.0)))


def _rises(series: Floats, before: int, after: int) -> Floats:
    """Return by how much the mean of what follows exceeds that before; -inf at either end."""
    sums = np.concatenate([[0.0], np.cumsum(series)])
    at = np.arange(before, series.size - after + 1)
    rises = np.full(series.size, -np.inf)
    rises[at] = (sums[at + after] - sums[at]) / after - (sums[at] - sums[at - before]) / before
    return rises


def _common_length(rises: Floats, apart: int) -> tuple[float, float]:
    """Return the typical distance and height of the highest rises, as many as are regular; or 0."""
    n = rises.size
    peaks = np.flatnonzero((rises > 0.0) & (rises == _highest_near(rises, apart)))
    peaks = peaks[np.argsort(-rises[peaks], kind="stable")]
    best, found = _REGULAR, (0.0, 0.0)
    count = _FEWEST - 1
    while count <= min(peaks.size, n // _SHORTEST):
        borders = np.concatenate([[0], np.sort(peaks[:count]), [n]])
        gaps = borders[1:] - borders[:-1]
        ordered = np.sort(gaps)  # a median without the cost of calling numpy's
        length = float(ordered[(gaps.size - 1) // 2] + ordered[gaps.size // 2]) / 2.0
        regular = np.abs(gaps - length) <= _UNEVEN * length
        regular[-1] |= gaps[-1] < length  # the last round may be cut short
        share = float(regular.sum()) / max(gaps.size, round(n / length))
        if share > best and (share == 1.0 or count >= 2 * (_FEWEST - 1)) and length >= _SHORTEST:
            best, found = share, (length, float(rises[peaks[count // 2]]))
        count += max(1, count // 10)
    return found


def _highest_near(series: Floats, reach: int) -> Floats:
    """Return the maximum of the values at most so far away."""
    beyond = np.full(reach, -np.inf)
    highest = np.concatenate([beyond, series, beyond])
    width = 1
    while width <= 2 * reach:
        step = min(width, 2 * reach + 1 - width)
        highest = np.maximum(highest[:-step], highest[step:])
        width += step
    return highest


def _track(rises: Floats, length: float) -> Ints:
    """Go from the first reading to the highest rise at about the distance, and so on."""
    starts, reach = [0], int(_UNEVEN * length)
    while starts[-1] + length + reach <= rises.size:
        first = starts[-1] + round(length) - reach
        starts.append(first + int(np.argmax(rises[first : first + 2 * reach + 1])))
    return np.array(starts)


def _warm_up(view: Floats, starts: Ints, after: int) -> bool:
    """Whether the rounds warm up: all alike, from the first on, and not by single slow readings."""
    lengths = np.diff([*starts.tolist(), view.size])
    if 2 * lengths[-1] < np.median(lengths):
        starts, lengths = starts[:-1], lengths[:-1]
    size = int(lengths.min())
    rows = view[starts[:, None] + np.arange(size)]
    profile = rows.mean(axis=0)
    middle = (profile[: max(after, 3)].mean() + profile[size // 2 :].mean()) / 2.0
    fallen = np.flatnonzero(profile < middle)
    high = int(np.clip(fallen[0] if fallen.size else size, 3, size // 2))
    return _starts_high(rows, high) and _lasts(rows, high) and _falls(profile, high)


def _starts_high(rows: Floats, high: int) -> bool:
    heights = rows[:, :high].mean(axis=1) - rows[:, rows.shape[1] // 2 :].mean(axis=1)
    typical = float(np.median(heights))
    if typical <= 0.0 or _students_t(heights) < _MIN_T:
        return False
    apart = np.abs(heights / typical - 1.0)
    like_others = 0.9 - min(4.0 * float(np.median(apart)), 0.25)
    return bool(heights[0] > like_others * typical and np.mean(apart < 0.5) > _REGULAR)


def _lasts(rows: Floats, high: int) -> bool:
    """Whether rounds start high even without their two slowest readings: garbage collection."""
    near = max(6, high + 2)
    excess = np.sort(rows[:, :near], axis=1) - np.sort(rows[:, -near:], axis=1)
    left = excess[:, :-2].mean(axis=1)
    return _students_t(left) > _LASTING_T and left.mean() > 0.1 * excess[:, -2:].mean()


def _falls(profile: Floats, high: int) -> bool:
    """Whether the mean round rises at its start alone and has fallen by its middle.

    A wave, wherever it is cut, goes on rising at the start, falls too late, or rises before the
    end.
    """
    part = profile.size // _PARTS
    means = profile[: _PARTS * part].reshape(_PARTS, part).mean(axis=1)
    first, last = float(profile[: min(high, part + 1)].mean()), float(means[-1])
    warm, end = float(means[8:12].mean()), float(means[14:].mean())
    height = float(means[0]) - warm
    return (
        means[3] - warm <= 1.1 * height
        and means[6:8].mean() - warm < 0.45 * height
        and warm - end < 0.5 * height
        and first - last > 0.6 * (max(first, means.max()) - means.min())
    )


def _students_t(values: Floats) -> float:
    return float(values.mean()) * math.sqrt(values.size) / max(float(values.std(ddof=1)), 1e-9)
