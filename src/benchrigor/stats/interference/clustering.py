"""Clusters of numbers by relative distance: which amounts of work are alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Floats, as_series
from benchrigor.model.series import short

__all__ = ["SPREAD", "THRESHOLD", "Clusters", "clusters_of", "reached", "relative_clusters"]

THRESHOLD = 0.1
SPREAD, _TAIL = 0.25, 0.05
"""Nine tenths of a class with normal noise spread over 3.3 standard deviations: noise of up to 6 %
makes no chain. The ends are left aside since whoever is held up computes a little more as well,
so that a cut there would put those held up in a group of their own, in which they are usual."""
_STEPS, _WINDOW = 10, 3
"""Values are counted in windows of three tenths of the threshold, a tenth apart."""
_SHALLOW, _ROOTS = 0.5, 2.5
"""A valley holds at most half of what lies on either side, and surely less: the root of a count
varies by 1/2 whatever the count, so 2.5 are 3.5 standard deviations of a difference."""
_BLOCK = 64
_FEW_BOUNDS = 64
"""So many comparisons of all values cost less than one binary search for each of them."""

Indices = npt.NDArray[np.int64]
Labels = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Clusters:
    """The cluster of each value, and which clusters are pieces of one chain.

    Parameters
    ----------
    labels
        Shape (n,), from 0 on in order of value.
    chains
        By label, the cluster before the cut of chains, from 0 on: alike for pieces of one chain.
    """

    labels: Labels
    chains: Indices

    @property
    def chained(self) -> bool:
        """Whether any cluster is a piece of a chain."""
        return int(self.chains[-1]) < self.chains.size - 1


def relative_clusters(
    values: npt.ArrayLike, *, threshold: float = THRESHOLD, spread: float = SPREAD
) -> Indices:
    """Tell which values are alike, relative to their size.

    Parameters
    ----------
    values
        Amounts of work in any unit, shape (n,).
    threshold
        Neighbours in order of value belong together when they differ by less than this share of
        the smaller one (in size, where they are negative).
    spread
        Guards against chains of neighbours whose ends are far apart. Where these differ by more
        than the threshold, a cluster is cut at valleys: stretches of three tenths of the threshold
        that hold at most half as many values as one on either side. Where nine tenths of what is
        left still spread over more than ``spread``, it is cut wherever a value lies farther than
        that from the first one of its piece. ``math.inf``: no guard, no cuts.

    Returns
    -------
    numpy.ndarray
        Shape (n,), int64: the cluster of each value, from 0 on in order of value. Equal values
        are always together; nothing else is with zero.

    Raises
    ------
    InvalidInput
        When the values are no numbers, or the threshold or the spread is not above 0.

    Notes
    -----
    Shah, Mueller, Wolf et al., 'Estimating the impact of external interference on application
    performance' (Euro-Par 2018), section 2, "Clustering with Relative Distance". The guard is
    ours. Without it, 300 values spread evenly over a factor of 20 are one cluster, and so are two
    classes 17 % apart, of 10,000 values with 1 % noise, whose tails come within 10 %.

    Examples
    --------
    >>> relative_clusters([200.0, 100.0, 101.0, 0.0, 199.0])
    array([2, 1, 1, 0, 2])
    """
    series = as_series(values)
    problems = [
        f"{name} is {short(given)}, expected a number above 0"
        for name, given in (("threshold", threshold), ("spread", spread))
        if isinstance(given, bool) or not isinstance(given, Real) or not float(given) > 0.0
    ]
    if problems:
        raise InvalidInput(problems)
    return clusters_of(series, threshold=threshold, spread=spread).labels.astype(np.int64)


def clusters_of(
    series: Floats, *, threshold: float = THRESHOLD, spread: float = SPREAD
) -> Clusters:
    """Cluster as `relative_clusters` does, and tell of chains."""
    ordered = np.sort(series)
    firsts = np.concatenate([[0], _openings(ordered, threshold)])
    far = math.inf if math.isinf(spread) else threshold
    parts = _parted(ordered, firsts, 0.0, far, partial(_valleys, threshold=threshold))
    firsts = np.concatenate(parts)
    pieces = _parted(ordered, firsts, _TAIL, spread, partial(_distant, spread=spread))
    chains = np.repeat(np.arange(len(pieces)), [len(each) for each in pieces])
    return Clusters(reached(series, ordered[np.concatenate(pieces)[1:]]), chains)


def _parted(
    ordered: Floats,
    firsts: Indices,
    tail: float,
    beyond: float,
    cuts: Callable[[Floats], list[int]],
) -> list[list[int]]:
    """Return, of each cluster, where its pieces begin: of one unless it spreads too far.

    A share ``tail`` of its values at either end may lie as far as they like.
    """
    stops = np.append(firsts[1:], ordered.size)
    tails = (tail * (stops - firsts)).astype(np.int64)
    far = _distances(ordered[firsts + tails], ordered[stops - 1 - tails]) > beyond
    return [
        [first, *(first + cut for cut in cuts(ordered[first:stop]))] if cut_it else [first]
        for first, stop, cut_it in zip(firsts.tolist(), stops.tolist(), far.tolist(), strict=True)
    ]


def _distances(low: Floats, high: Floats) -> Floats:
    """Return how far apart values are, relative to the smaller in size; 0 where they are equal."""
    gaps = high - low
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(gaps > 0.0, gaps / np.minimum(np.abs(low), np.abs(high)), 0.0)


def _openings(ordered: Floats, threshold: float) -> Indices:
    """Return where values begin that are too far from the one before.

    Within a block whose ends are near each other all neighbours are: most need no closer look.
    """
    edges = ordered[np.minimum(np.arange(0, ordered.size + _BLOCK, _BLOCK), ordered.size - 1)]
    low, high = edges[:-1], edges[1:]
    # Across 0 the ends may be nearer, relative to their size, than those between them.
    blocks = np.flatnonzero((_distances(low, high) >= threshold) | ((low < 0.0) & (high > 0.0)))
    last = np.add.outer(blocks * _BLOCK, np.arange(_BLOCK)).ravel()
    last = last[last < ordered.size - 1]
    return last[_distances(ordered[last], ordered[last + 1]) >= threshold] + 1


def _valleys(ordered: Floats, threshold: float) -> list[int]:
    """Return where values begin beyond a stretch with hardly any, where all have one sign."""
    if ordered[0] < 0.0 < ordered[-1]:
        return []
    if ordered[0] < 0.0:
        return [ordered.size - cut for cut in reversed(_valleys(-ordered[::-1], threshold))]
    step = math.log1p(threshold) / _STEPS
    steps = math.ceil((math.log(ordered[-1]) - math.log(ordered[0])) / step)
    with np.errstate(over="ignore"):
        edges = ordered[0] * np.exp(step * np.arange(1 - _WINDOW, steps + _WINDOW))
    starts = np.searchsorted(ordered, edges)
    counts = (starts[_WINDOW:] - starts[:-_WINDOW]).tolist()
    found: list[int] = []
    peak = least = sparsest = 0
    for place, count in enumerate(counts):
        if _surely_less(least, peak) and _surely_less(least, count):
            low, high = int(starts[sparsest]) - 1, int(starts[sparsest + _WINDOW])
            found.append(low + 1 + int(np.diff(ordered[low : high + 1]).argmax()))
            peak = 0
        if count > peak:
            peak = least = count
        elif count < least:
            least, sparsest = count, place
    return found


def _surely_less(count: int, than: int) -> bool:
    return count <= _SHALLOW * than and math.sqrt(than) - math.sqrt(count) >= _ROOTS


def _distant(ordered: Floats, spread: float) -> list[int]:
    """Return where values begin that lie too far from the first of the piece before."""
    found: list[int] = []
    first = 0
    while True:
        low = float(ordered[first])
        limit = low * (1.0 + spread) if low > 0.0 else low / (1.0 + spread)
        first += int(np.searchsorted(ordered[first:], limit, side="right"))
        if first == ordered.size:
            return found
        found.append(first)


def reached(series: npt.NDArray[Any], bounds: npt.NDArray[Any]) -> Labels:
    """Count, for each value, the bounds in ascending order that it has reached."""
    if bounds.size > _FEW_BOUNDS:
        return np.searchsorted(bounds, series, side="right")
    labels = np.zeros(series.size, dtype=np.uint8)
    for bound in bounds:
        labels += series >= bound
    return labels
