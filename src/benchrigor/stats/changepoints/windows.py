"""A series as its changes are looked for: from afar, and through short windows.

From afar all readings are seen by the quantiles of the whole series, through a window those of a
stretch by its own: a step between two levels that hardly differ on the scale of the whole series
shows only there.
"""

from __future__ import annotations

import math

import numpy as np

from benchrigor.model import Floats
from benchrigor.model.series import Ints
from benchrigor.stats.changepoints.likelihood_ratio import Search, Strengths, strength
from benchrigor.stats.changepoints.rank_counts import THRESHOLDS, RankCounts, quantiles

__all__ = ["WINDOW", "Lens", "Lenses"]

WINDOW = 128
"""Multiples of the grid in a window."""
_SAMPLE_FAR = 16_384
_SAMPLE_NEAR = 128
_CHUNK = 30_720


class Lens:
    """Rank counts of windows that half overlap, or of one that holds everything.

    Window r holds ``size`` readings from ``r * hop`` on. Its counts lie behind those of window
    r - 1, as if the windows were laid end to end.

    Parameters
    ----------
    grid
        Intervals begin and end at multiples of this many readings.
    size
        Readings in a window; 0 for one that grows with the series.

    Attributes
    ----------
    n
        Readings of the series that can be seen.
    windows
        Number of windows.
    """

    def __init__(self, grid: int, size: int = 0) -> None:
        self.grid = grid
        self.hop = size // 2
        self.n = 0
        self.windows = 0
        self.ranks = RankCounts(max(8, grid))

    def window(self, positions: Ints) -> Ints:
        """Return the windows in whose middle the positions lie, as far as there are any."""
        if not self.hop:
            return np.zeros_like(positions)
        nearest = (positions - self.hop // 2) // self.hop
        return np.minimum(np.maximum(nearest, 0), self.windows - 1)

    def within(self, window: Ints, start: Ints, stop: Ints) -> tuple[Ints, Ints]:
        """Return what can be seen of intervals through a window each."""
        if not self.hop:
            return start, stop
        left = window * self.hop
        end = np.minimum(stop, np.minimum(left + 2 * self.hop, self.n))
        return np.minimum(np.maximum(start, left), end), end

    def strengths(
        self,
        window: Ints,
        start: Ints,
        split: Ints,
        stop: Ints,
        search: Search,
        *,
        on_grid: bool = False,
    ) -> Strengths:
        """Return the strength of splits, shape (S, I), of intervals seen through a window each."""
        on_blocks = on_grid and self.grid == self.ranks.step
        counts = self.ranks.before_blocks if on_blocks else self.ranks.before
        chunks = []
        at_once = max(1, _CHUNK // (THRESHOLDS * split.shape[0]))
        for at in range(0, start.size, at_once):
            some = slice(at, at + at_once)
            begin, middle, end = start[some], split[:, some], stop[some]
            places = np.concatenate((begin[np.newaxis], middle, end[np.newaxis]))
            found = counts(places + window[some] * self.hop)
            found[1:] -= found[0]
            chunks.append(strength(found[1:-1], found[-1], middle - begin, end - begin, search))
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)


class Lenses:
    """Both views of a series; readings can be appended, the quantiles stay as they are.

    Parameters
    ----------
    series
        The readings by whose quantiles all are seen, shape (n,).

    Attributes
    ----------
    grid
        Readings between two places where an interval may begin, about the root of n over 16.
    far, near
        The two views; ``near`` has no windows where the series is hardly longer than one.
    whole
        Complete windows of ``near``; one more, shorter, may lie behind them.
    """

    def __init__(self, series: Floats) -> None:
        self.grid = min(64, 1 << max(0, math.ceil(math.log2(series.size) / 2.0 - 4.0)))
        self.far = Lens(self.grid)
        self.near = Lens(self.grid, WINDOW * self.grid)
        self.whole = 0
        self._thresholds = quantiles(series[np.newaxis], _SAMPLE_FAR)
        self._windowed = series.size >= 1.5 * WINDOW * self.grid
        self.extend(series)
        if self._windowed:
            self._look_at_end(series)

    def extend(self, series: Floats) -> None:
        """Take in what lies behind the readings known so far; ``series`` holds all."""
        far = self.far
        far.ranks.truncate(far.ranks.n - far.ranks.n % far.ranks.step)
        far.ranks.append(series[np.newaxis, far.ranks.n :], self._thresholds)
        far.n, far.windows = series.size, 1
        if self._windowed:
            self._look_through_windows(series)

    def _look_through_windows(self, series: Floats) -> None:
        near, size = self.near, 2 * self.near.hop
        whole = (series.size - size) // near.hop + 1
        if whole > self.whole:
            near.ranks.truncate(self.whole * size)
            rows = np.lib.stride_tricks.sliding_window_view(series, size)
            rows = rows[self.whole * near.hop :: near.hop]
            near.ranks.append(rows, quantiles(rows, _SAMPLE_NEAR))
            self.whole = near.windows = whole
            near.n = (whole + 1) * near.hop

    def _look_at_end(self, series: Floats) -> None:
        """Add a shorter window for what the complete ones leave over."""
        near = self.near
        rest = series[np.newaxis, self.whole * near.hop :]
        padded = np.full((1, 2 * near.hop), -np.inf)
        padded[:, : rest.size] = rest
        near.ranks.append(padded, quantiles(rest, _SAMPLE_NEAR))
        near.windows = self.whole + 1
        near.n = series.size
