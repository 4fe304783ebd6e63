"""Change points: where the distribution of a series changes."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from benchrigor.model import ChangePoints
from benchrigor.model.checks import refuse, wrong_choice, wrong_share, wrong_whole
from benchrigor.model.series import Floats, as_series
from benchrigor.stats.changepoints.edm import MIN_SEGMENT_BY_MEDIANS, detect_by_medians
from benchrigor.stats.changepoints.pruning import leading_bits
from benchrigor.stats.changepoints.segmentation import Segmenter
from benchrigor.stats.changepoints.unsettled import settle_ends
from benchrigor.stats.changepoints.variance_inflation import inflation_across

MIN_SEGMENT = 10  # readings between two change points, at least
MIN_FOR_CHANGES = 2 * MIN_SEGMENT  # fewer readings have no change points
MIN_SEGMENTS = {"ranks": MIN_SEGMENT, "edm": MIN_SEGMENT_BY_MEDIANS}  # of each method
_SHORT = 4_096


def detect_changes(
    values: npt.ArrayLike,
    *,
    level: float = 0.01,
    min_segment: int | None = None,
    method: str = "ranks",
) -> ChangePoints:
    """Find where a series changes its distribution.

    Parameters
    ----------
    values
        Readings in order of time, shape (n,).
    level
        Chance of any change point in a series without change, in (0, 1).
    min_segment
        Least readings between two change points, at least 2; twice the variance inflation where
        that is more. None for 10, or 30 with "edm". Fewer than ``2 * min_segment`` values have no
        change points.
    method
        "ranks"; or "edm", E-Divisive with medians as published: a reference to compare with,
        which has no test and does not use ``level``. It sees more than 5000 values as up to 5000
        means of neighbours.

    Returns
    -------
    ChangePoints
        The same for a*x + b, a > 0.

    Raises
    ------
    InvalidInput
        When the values or an option are invalid.

    Notes
    -----
    Like E-Divisive with medians (James, Kejariwal & Matteson 2016) a robust, non-parametric energy
    statistic, but at linear cost and with a significance test: likelihood ratios of the shares
    above 16 quantiles of the series, and of short windows of it; in seeded intervals; pruned by a
    penalty of 3.1 + ln(n/r)/2 + ln(0.05/level), fitted to series without change. The variance
    inflation r, by which every log-likelihood ratio is divided, is estimated from the whole series
    and again inside the segments. It is at most n/40, so that a perfect split remains visible
    however persistent the series is; an effective sample size below 40 has more false change
    points.

    Fewer than ``min_segment`` readings at an end that are at another level are no change point yet
    but counted as ``early`` and ``late``.

    What lasts for less than about sqrt(n)/2 readings (50 of 10,000) may be missed. Very slow noise
    hidden under white is taken for changes. Time and memory are O(n).

    Examples
    --------
    >>> detect_changes([4.0] * 30 + [9.0] * 130 + [4.0] * 30).indices
    (30, 160)
    """
    series = as_series(values)
    _check(level, MIN_SEGMENT if min_segment is None else min_segment, method)
    shortest = int(min_segment or MIN_SEGMENTS[method])
    if method == "edm":
        indices = detect_by_medians(series, min_segment=shortest)
        return ChangePoints(
            indices=indices, n=series.size, level=None, inflation=inflation_across(series)
        )
    if series.size < 2 * shortest or _repeats(series) == series.size:
        return settle_ends(series, _no_changes(series.size, level), shortest)
    return Segmenter(series, level, shortest).change_points(series)


class ChangeDetector:
    """Finds change points in a series that grows, at a cost that hardly grows with it.

    It follows the estimator interface of ruptures (``fit``, ``predict``), so that its metrics and
    displays work on it, and is itself a `protocols.Detector`.

    Parameters
    ----------
    level, min_segment
        As for `detect_changes`.

    Notes
    -----
    Quantiles, variance inflation and penalty are those of the first n' of n readings, where n' is n
    without all but its five leading bits, and n itself below 4096. So the result depends on the
    readings alone, not on the batches in which they came, and is that of `detect_changes` where n'
    = n. Only intervals that touch the end are searched again.

    Examples
    --------
    >>> detector = ChangeDetector()
    >>> detector.append([4.0] * 30 + [9.0] * 130)
    >>> detector.append([4.0] * 30)
    >>> detector.change_points().indices
    (30, 160)
    >>> detector.fit([4.0] * 30 + [9.0] * 130).predict()
    [30, 160]
    """

    def __init__(self, *, level: float = 0.01, min_segment: int = MIN_SEGMENT) -> None:
        _check(level, min_segment)
        self._level = level
        self._min_segment = int(min_segment)
        self._n = 0
        self._repeated = 0
        self._readings = np.empty(1_024)
        self._segmenter: Segmenter | None = None

    def __call__(self, values: npt.ArrayLike) -> ChangePoints:
        """Return the change points of other readings, as `detect_changes` does."""
        return detect_changes(values, level=self._level, min_segment=self._min_segment)

    def append(self, values: npt.ArrayLike) -> None:
        """Add readings, shape (m,); none of them if one is invalid (InvalidInput)."""
        more = as_series(values)
        n = self._n + more.size
        if n > self._readings.size:
            grown = np.empty(2 * n)
            grown[: self._n] = self._readings[: self._n]
            self._readings = grown
        self._readings[self._n : n] = more
        if self._repeated == self._n:
            self._repeated += _repeats(more, self._readings[0])
        self._n = n

    def change_points(self) -> ChangePoints:
        """Return the change points of all readings so far."""
        n = self._n
        if n < 2 * self._min_segment or self._repeated == n:
            unchanged = _no_changes(n, self._level)
            return settle_ends(self._readings[:n], unchanged, self._min_segment)
        known = n if n < _SHORT else leading_bits(n, 5)
        if self._repeated >= known:
            # Readings that are all the same have no quantiles to see others by.
            known = n
        if self._segmenter is None or self._segmenter.known != known:
            self._segmenter = Segmenter(self._readings[:known], self._level, self._min_segment)
        return self._segmenter.change_points(self._readings[:n])

    def fit(self, signal: npt.ArrayLike) -> Self:
        """Replace all readings by others, shape (n,) or (n, 1), unless one is invalid."""
        column = isinstance(signal, np.ndarray) and signal.ndim == 2 and signal.shape[1] == 1
        series = as_series(np.ravel(signal) if column else signal)
        self._n = self._repeated = 0
        self._segmenter = None
        self.append(series)
        return self

    def predict(self) -> list[int]:
        """Return the ends of all segments, n included."""
        return [*self.change_points().indices, self._n]


def _check(level: object, min_segment: object, method: object = "ranks") -> None:
    refuse(
        wrong_share("level", level),
        wrong_whole("min_segment", min_segment, least=2),
        wrong_choice("method", method, tuple(MIN_SEGMENTS)),
    )


def _no_changes(n: int, level: float) -> ChangePoints:
    return ChangePoints(indices=(), n=n, level=float(level), inflation=1.0)


def _repeats(readings: Floats, value: float | None = None) -> int:
    """Return how many of the first readings equal the value, or the first of them."""
    other = readings != (readings[0] if value is None else value)
    return int(other.argmax()) if other.any() else readings.size
