"""Clusters of amounts by relative distance (Shah et al. 2018, section 2; the cuts are ours)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Floats, Ints

_THRESHOLD = 0.1
# Nine tenths of a class with 6 % normal noise spread over less. The ends are left aside: segments
# that are interfered with compute a little more, and belong in the group of the others.
_SPREAD, _TAIL = 0.25, 0.05
_STEPS, _WINDOW = 10, 3  # windows of three tenths of the threshold, a tenth apart
# A valley has at most half of the values on either side, and fewer by 3.5 standard deviations: the
# root of a count has one of 1/2
_SHALLOW, _ROOTS = 0.5, 2.5
_BLOCK = 64
_FEW_BOUNDS = 64  # so many comparisons of all values cost less than a binary search of each

Labels = npt.NDArray[np.integer[Any]]


class Clusters(NamedTuple):
    """The label of each value, and by label the chain of which a cluster is a piece."""

    labels: Labels
    chains: Ints

    @property
    def chained(self) -> bool:
        """Whether any cluster is a piece of a chain."""
        return int(self.chains[-1]) < self.chains.size - 1


def find_clusters(series: Floats) -> Clusters:
    """Cluster amounts of work by their relative distance; equal values share a cluster.

    Neighbours in order of value belong together when they differ by less than 10 % of the smaller
    one. Two cuts are against chains of neighbours whose ends are far apart: a cluster that spreads
    over more than 10 % is cut at valleys, ranges of 3 % with at most half as many values as one on
    either side; where nine tenths of it still spread over more than 25 %, it is a chain, and is cut
    wherever a value lies farther than that from the first one of its piece.
    """
    ordered = np.sort(series)
    starts = np.concatenate([[0], cluster_starts(ordered)])
    starts = np.concatenate(_cut_clusters(ordered, starts, 0.0, _THRESHOLD, _valleys))
    pieces = _cut_clusters(ordered, starts, _TAIL, _SPREAD, _links)
    chains = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    return Clusters(count_bounds(series, ordered[np.concatenate(pieces)[1:]]), chains)


def cluster_starts(ordered: Floats) -> Ints:
    """Return where values begin that are 10 % or more away from the one before (published)."""
    # Within a block whose ends are near each other all neighbours are.
    edges = ordered[np.minimum(np.arange(0, ordered.size + _BLOCK, _BLOCK), ordered.size - 1)]
    blocks = np.flatnonzero(relative_distances(edges[:-1], edges[1:]) >= _THRESHOLD)
    before = np.add.outer(blocks * _BLOCK, np.arange(_BLOCK)).ravel()
    before = before[before < ordered.size - 1]
    return before[relative_distances(ordered[before], ordered[before + 1]) >= _THRESHOLD] + 1


def count_bounds(series: npt.NDArray[Any], bounds: npt.NDArray[Any]) -> Labels:
    """Count, for each value, the bounds in ascending order that it has reached."""
    if bounds.size > _FEW_BOUNDS:
        return np.searchsorted(bounds, series, side="right")
    labels = np.zeros(series.size, dtype=np.uint8)
    for bound in bounds:
        labels += series >= bound
    return labels


def relative_distances(low: Floats, high: Floats) -> Floats:
    """Return the gaps between values over the smaller of them in size; 0 if they are equal."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gaps = high - low
        return np.where(gaps > 0.0, gaps / np.minimum(np.abs(low), np.abs(high)), 0.0)


def _cut_clusters(
    ordered: Floats,
    starts: Ints,
    tail: float,
    limit: float,
    find_cuts: Callable[[Floats], list[int]],
) -> list[list[int]]:
    """Cut each cluster whose ends, but for tails, are beyond the limit; return starts of pieces."""
    stops = np.append(starts[1:], ordered.size)
    tails = (tail * (stops - starts)).astype(np.int64)
    far = relative_distances(ordered[starts + tails], ordered[stops - 1 - tails]) > limit
    return [
        [start, *(start + cut for cut in find_cuts(ordered[start:stop]))] if apart else [start]
        for start, stop, apart in zip(starts.tolist(), stops.tolist(), far.tolist(), strict=True)
    ]


def _valleys(ordered: Floats) -> list[int]:
    """Return where values begin beyond a stretch with hardly any; all have one sign."""
    if ordered[0] < 0.0:
        return [ordered.size - cut for cut in reversed(_valleys(-ordered[::-1]))]
    step = math.log1p(_THRESHOLD) / _STEPS
    steps = math.ceil((math.log(ordered[-1]) - math.log(ordered[0])) / step)
    with np.errstate(over="ignore"):
        edges = ordered[0] * np.exp(step * np.arange(1 - _WINDOW, steps + _WINDOW))
    starts = np.searchsorted(ordered, edges)
    counts = (starts[_WINDOW:] - starts[:-_WINDOW]).tolist()
    cuts: list[int] = []
    peak = least = sparsest = 0
    for place, count in enumerate(counts):
        if _is_less(least, peak) and _is_less(least, count):
            low, high = int(starts[sparsest]) - 1, int(starts[sparsest + _WINDOW])
            cuts.append(low + 1 + int(np.diff(ordered[low : high + 1]).argmax()))
            peak = 0
        if count > peak:
            peak = least = count
        elif count < least:
            least, sparsest = count, place
    return cuts


def _is_less(count: int, than: int) -> bool:
    """Whether a count is at most half of another, and significantly less."""
    return count <= _SHALLOW * than and math.sqrt(than) - math.sqrt(count) >= _ROOTS


def _links(ordered: Floats) -> list[int]:
    """Return where values begin that lie too far from the first of the piece before."""
    cuts: list[int] = []
    start = 0
    while True:
        low = float(ordered[start])
        limit = low * (1.0 + _SPREAD) if low > 0.0 else low / (1.0 + _SPREAD)
        start += int(np.searchsorted(ordered[start:], limit, side="right"))
        if start == ordered.size:
            return cuts
        cuts.append(start)
