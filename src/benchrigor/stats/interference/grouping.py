"""Groups of segments that did the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats, SegmentProfile
from benchrigor.stats.interference.clustering import Clusters, Indices, Labels, clusters_of, reached

__all__ = [
    "FEWEST",
    "Groups",
    "aggregated",
    "codes_of",
    "grouped",
    "grouped_by_features",
    "undelayed",
]

FEWEST = 5
"""Of fewer like segments the paper does not say what is usual."""
_DENSE = 2**16
_BLOCK = 2**14
_WIDE = 8
_LETTERS = 32
"""Of longer words a look-up of each costs less than a look at each letter."""
_DIVERSE = 0.1
"""Share of the segments that, as distinct byte counts, would leave groups of hardly any."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Like segments side by side: group g is ``order[starts[g] : starts[g] + sizes[g]]``.

    Parameters
    ----------
    codes
        What the segments of each group have in common, shape (g,), ascending.
    order
        Indices of the segments that are in a group.
    starts, sizes
        Of each group, shape (g,).
    """

    codes: Labels
    order: Indices
    starts: Indices
    sizes: Indices

    def sorted(self, values: Floats) -> Floats:
        """Sort each group of values in `order`, in place, and return them."""
        for start, stop in zip(
            self.starts.tolist(), (self.starts + self.sizes).tolist(), strict=True
        ):
            values[start:stop].sort()
        return values

    def medians(self, ordered: Floats) -> Floats:
        """Return the median of each group, of values that are `sorted`."""
        low, high = self.starts + (self.sizes - 1) // 2, self.starts + self.sizes // 2
        return np.asarray((ordered[low] + ordered[high]) / 2.0)

    def mads(self, ordered: Floats, medians: Floats) -> Floats:
        """Return the median absolute deviation of each group, of values that are `sorted`."""
        low, high = (
            self._nearest(ordered, medians, rank)
            for rank in ((self.sizes + 1) // 2, self.sizes // 2 + 1)
        )
        return np.asarray((low + high) / 2.0)

    def _nearest(self, ordered: Floats, centres: Floats, rank: Indices) -> Floats:
        """Return how far the value of this rank in distance lies from the centre of each group.

        So many nearest values are a window of the sorted ones; its place is found by bisection,
        in all groups at once, with no array of distances to fill and sort.
        """
        low, high = self.starts, self.starts + self.sizes - rank
        while (low < high).any():
            middle = (low + high) // 2
            beyond = np.minimum(middle + rank, ordered.size - 1)
            farther = centres - ordered[middle] > ordered[beyond] - centres
            farther &= low < high
            low, high = np.where(farther, middle + 1, low), np.where(farther, high, middle)
        return np.asarray(np.maximum(centres - ordered[low], ordered[low + rank - 1] - centres))

    def quantiles(self, ordered: Floats, share: float) -> Floats:
        """Return the value below which about this share of each group lies, likewise."""
        places = self.starts + np.rint(share * (self.sizes - 1)).astype(np.int64)
        return np.asarray(ordered[places])

    def sums(self, values: Floats) -> Floats:
        """Return the sum of each group, of values in `order`."""
        return np.asarray(np.add.reduceat(values, self.starts) if self.sizes.size else values[:0])

    def counts(self, flags: npt.NDArray[np.bool_]) -> Indices:
        """Return how many of each group are flagged, of flags in `order`."""
        if not self.sizes.size:
            return self.sizes
        return np.asarray(np.add.reduceat(flags, self.starts, dtype=np.int64))

    def extremes(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the lowest and the highest of each group, of values in `order`."""
        if not self.sizes.size:
            return values, values
        return np.minimum.reduceat(values, self.starts), np.maximum.reduceat(values, self.starts)

    def spread(self, per_group: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return, for each segment in `order`, what holds for its group."""
        return np.repeat(per_group, self.sizes)


def undelayed(profile: SegmentProfile, which: Indices) -> Floats:
    """Return how long some segments took without what was measured to be lost."""
    durations: Floats = profile.duration_s[which]
    if profile.delays:
        durations -= profile.delay_s[which]
    return durations


def grouped(codes: Labels, *, fewest: int = FEWEST) -> Groups:
    """Put segments of the same code side by side, where there are enough of them."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])
    sizes = np.diff(starts, append=codes.size)
    enough = sizes >= fewest
    if not enough.all():
        order = order[np.repeat(enough, sizes)]
    sizes = sizes[enough]
    return Groups(
        codes=ordered[starts[enough]], order=order, starts=np.cumsum(sizes) - sizes, sizes=sizes
    )


def grouped_by_features(profile: SegmentProfile) -> tuple[Groups, Sequence[Clusters]]:
    """Return the groups of one run, and the clusters of each of its computation features."""
    clusters = [clusters_of(values) for values in profile.computation.values()]
    labels = [each.labels for each in clusters]
    return grouped(_combined([*labels, *profile.nominal.values()], profile.n)), clusters


def codes_of(profiles: Sequence[SegmentProfile]) -> list[Labels]:
    """Return, for each of several runs, the code of each segment: alike in all runs for like work.

    The features of all runs are clustered together, so that a value that lies near a bound in
    one run cannot fall to one side of it there and to the other elsewhere. All must have the
    features of the first.
    """
    columns: list[npt.NDArray[Any]] = [
        clusters_of(np.concatenate([each.computation[name] for each in profiles])).labels
        for name in profiles[0].computation
    ]
    columns += [
        np.concatenate([each.nominal[name] for each in profiles]) for name in profiles[0].nominal
    ]
    sizes = [each.n for each in profiles]
    return np.split(_combined(columns, sum(sizes)), np.cumsum(sizes)[:-1])


def aggregated(profile: SegmentProfile, *others: SegmentProfile) -> list[SegmentProfile]:
    """Move columns of bytes that hardly ever repeat from the nominal features to computation.

    A column is moved in all profiles when its name ends in "bytes", it is numeric, and has more
    distinct values than a tenth of the segments of the first.
    """
    moved = [
        name
        for name, values in profile.nominal.items()
        if name.endswith("bytes")
        and values.dtype.kind in "iuf"
        and name not in profile.computation
        and _distinct(values) > _DIVERSE * profile.n
    ]
    return [_moved(each, moved) for each in (profile, *others)]


def _moved(profile: SegmentProfile, names: list[str]) -> SegmentProfile:
    more = {name: profile.nominal[name] for name in names if name in profile.nominal}
    if not more:
        return profile
    kept = {name: values for name, values in profile.nominal.items() if name not in more}
    return replace(profile, computation={**profile.computation, **more}, nominal=kept)


def _distinct(column: npt.NDArray[Any]) -> int:
    """Count the distinct values of a column of numbers."""
    codes = _combined([column], column.size)
    return _dense(codes, int(codes.max()) + 1)[1]


def _combined(columns: Sequence[npt.NDArray[Any]], n: int) -> Labels:
    """Return a code for each combination of values, in 16 bits where that is enough.

    Of 16 bits numpy's stable sort takes linear time.
    """
    codes: Labels = np.zeros(n, dtype=np.uint16)
    count = 1
    pending = [part for column in reversed(columns) for part in _parts(column)]
    while pending:
        column = pending.pop()
        low, high = column.min(), column.max()
        if low == high:
            continue
        fold = int(min(high.item() - low.item(), _DENSE)) + 1
        if count * fold >= _DENSE > count:
            codes, count = _dense(codes, count)
        folded = _folded(codes, column, low, fold) if count * fold < _DENSE else None
        if folded is None and column.dtype.itemsize == _WIDE:
            pending.extend(_pieces(column))
            continue
        if folded is None:
            column = _compact(column)
            fold = int(column.max()) + 1
            folded = _folded(codes, column, 0, fold) if count * fold < _DENSE else None
        if folded is None:
            codes = _compact(codes.astype(np.int64) * fold + column)
            count = int(codes.max()) + 1
        else:
            codes, count = folded, count * fold
    return codes


def _parts(column: npt.NDArray[Any]) -> Iterable[npt.NDArray[Any]]:
    """Return columns of numbers that tell apart what the column does: of words, their letters."""
    if column.dtype.kind != "U":
        return (column,)
    width = column.dtype.itemsize // 4
    if width > _LETTERS:
        return (_compact(column),)
    return np.ascontiguousarray(column).view(np.uint32).reshape(column.size, width).T


def _pieces(column: npt.NDArray[Any]) -> Iterable[npt.NDArray[Any]]:
    """Cut numbers of 64 bits into four columns of 16: few values have few of each."""
    if column.dtype.kind == "f":
        column = column + 0.0  # of -0.0, which is the same
    return np.ascontiguousarray(column).view(np.uint16).reshape(column.size, 4).T


def _folded(codes: Labels, column: npt.NDArray[Any], low: Any, fold: int) -> Labels | None:
    """Return 16-bit codes that also tell how many steps of 1 values lie above the lowest.

    None where not all lie a whole number of steps above it. Block by block: what stays in the
    cache takes a third of the time.
    """
    kind = column.dtype
    exact = kind if kind.kind == "u" or kind.itemsize >= _WIDE else np.result_type(kind, np.int64)
    folded = np.empty_like(codes)
    for start in range(0, codes.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        steps = np.subtract(column[part], low, dtype=exact).astype(np.uint16)
        if kind.kind == "f" and not (np.add(steps, low, dtype=exact) == column[part]).all():
            return None
        np.multiply(codes[part], np.uint16(fold), out=folded[part])
        folded[part] += steps
    return folded


def _dense(codes: Labels, count: int) -> tuple[Labels, int]:
    """Return codes without gaps, and how many there are."""
    found = np.zeros(count, dtype=np.bool_)
    found[codes] = True
    return (np.cumsum(found) - 1).astype(codes.dtype)[codes], int(np.count_nonzero(found))


def _compact(column: npt.NDArray[Any]) -> Labels:
    """Return a whole number from 0 on for each distinct value, without sorting indices or words."""
    if column.dtype.kind == "U":
        words = column.tolist()
        codes = {word: code for code, word in enumerate(dict.fromkeys(words))}
        places: Labels = np.fromiter(map(codes.__getitem__, words), np.int64, len(words))
        count = len(codes)
    elif column.dtype == np.uint16:
        places, count = _dense(column, _DENSE)
    else:
        values = np.unique(column)
        places, count = reached(column, values[1:]), values.size
    return np.asarray(places, dtype=np.uint16 if count < _DENSE else np.int64)
