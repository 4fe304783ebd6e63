"""Groups of segments: clusters of computation, split by nominal features (Shah et al. 2018, 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model import SegmentProfile
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.interference.clustering import Clusters, Labels, find_clusters

MIN_IN_GROUP = 5  # smaller groups are not used for the estimate (published)
_MAX_SMALL_CODE = 2**16 - 1  # numpy's stable sort of numbers of 16 bits takes linear time
DIVERSE = 0.1  # distinct byte counts over segments: more would leave tiny groups


class Groups(NamedTuple):
    """Segments sorted by group: group g is ``order[starts[g] : starts[g] + sizes[g]]``."""

    codes: Labels
    order: Ints
    starts: Ints
    sizes: Ints

    def sorted(self, values: Floats) -> Floats:
        """Sort each group of values in `order`, in place, and return them."""
        stops = self.starts + self.sizes
        for start, stop in zip(self.starts.tolist(), stops.tolist(), strict=True):
            values[start:stop].sort()
        return values

    def medians(self, ordered: Floats) -> Floats:
        """Return the median of each group, of `sorted` values."""
        low, high = self.starts + (self.sizes - 1) // 2, self.starts + self.sizes // 2
        return np.asarray((ordered[low] + ordered[high]) / 2.0)

    def mads(self, ordered: Floats, medians: Floats) -> Floats:
        """Return the median absolute deviation of each group, of `sorted` values."""
        ranks = ((self.sizes + 1) // 2, self.sizes // 2 + 1)
        low, high = (self._deviations(ordered, medians, rank) for rank in ranks)
        return np.asarray((low + high) / 2.0)

    def _deviations(self, ordered: Floats, centres: Floats, rank: Ints) -> Floats:
        """Return the absolute deviation of this rank from the centre of each group.

        So many nearest values are a window of the sorted ones. Bisection finds it in all groups at
        once, in less time than sorting deviations takes.
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
        """Return the value below which about this share of each group lies, of `sorted` values."""
        places = self.starts + np.rint(share * (self.sizes - 1)).astype(np.int64)
        return np.asarray(ordered[places])

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sum of each group, of values in `order`; flags are counted."""
        dtype = np.int64 if values.dtype == np.bool_ else values.dtype
        return np.asarray(np.add.reduceat(values, self.starts, dtype=dtype))

    def features(self, profile: SegmentProfile) -> list[dict[str, Any]]:
        """Return the ranges of computation and the nominal values of each group."""
        firsts = self.order[self.starts]
        nominal = {name: values[firsts].tolist() for name, values in profile.nominal.items()}
        ranges = {}
        for name, values in profile.computation.items():
            ordered = values[self.order]
            low, high = (least.reduceat(ordered, self.starts) for least in (np.minimum, np.maximum))
            ranges[name] = list(zip(low.tolist(), high.tolist(), strict=True))
        return [
            {
                "computation": {name: span[g] for name, span in ranges.items()},
                "nominal": {name: each[g] for name, each in nominal.items()},
            }
            for g in range(self.sizes.size)
        ]


def without_delay(profile: SegmentProfile, which: Ints) -> Floats:
    """Return the durations of some segments without their measured delay."""
    durations: Floats = profile.duration_s[which]
    return durations - profile.delay_s[which] if profile.delays else durations


def group_codes(profile: SegmentProfile) -> tuple[Labels, list[Clusters]]:
    """Return a code for each segment, equal within a group, and the clusters of each feature."""
    clusters = [find_clusters(values) for values in profile.computation.values()]
    labels = [cluster.labels for cluster in clusters]
    return combination_codes([*labels, *profile.nominal.values()], profile.n), clusters


def group_by_code(codes: Labels, *, fewest: int = MIN_IN_GROUP) -> Groups:
    """Put segments of the same code side by side, if there are enough of them."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])
    sizes = np.diff(starts, append=codes.size)
    enough = sizes >= fewest
    if not enough.all():
        order = order[np.repeat(enough, sizes)]
    sizes = sizes[enough]
    return Groups(ordered[starts[enough]], order, np.cumsum(sizes) - sizes, sizes)


def merge_columns(
    profiles: Sequence[SegmentProfile],
    kind: str,
    merge: Callable[[Sequence[npt.NDArray[Any]]], npt.NDArray[Any]],
) -> dict[str, npt.NDArray[Any]]:
    """Merge the columns of one kind of several profiles, name by name."""
    return {
        name: merge([getattr(profile, kind)[name] for profile in profiles])
        for name in getattr(profiles[0], kind)
    }


def concatenate(profiles: Sequence[SegmentProfile]) -> SegmentProfile:
    """Return the segments of several runs as one, so that their groups have the same bounds."""
    return SegmentProfile(
        duration_s=np.concatenate([profile.duration_s for profile in profiles]),
        computation=merge_columns(profiles, "computation", np.concatenate),
        nominal=merge_columns(profiles, "nominal", np.concatenate),
        delays={"all": np.concatenate([profile.delay_s for profile in profiles])},
    )


def volumes_as_computation(profiles: Sequence[SegmentProfile]) -> list[SegmentProfile]:
    """Cluster columns of bytes with more distinct values than a tenth of the first's segments.

    As nominal features they would leave hardly any segment with enough others like it.
    """
    first = profiles[0]
    moved = [
        name
        for name, values in first.nominal.items()
        if name.endswith("bytes")
        and values.dtype.kind in "iuf"
        and name not in first.computation
        and 1 + np.count_nonzero(np.diff(np.sort(values))) > DIVERSE * first.n
    ]
    if not moved:
        return list(profiles)
    return [
        replace(
            profile,
            computation={**profile.computation, **{name: profile.nominal[name] for name in moved}},
            nominal={name: profile.nominal[name] for name in profile.nominal if name not in moved},
        )
        for profile in profiles
    ]


def combination_codes(columns: Iterable[npt.NDArray[Any]], n: int) -> Labels:
    """Return a code for each combination of values, in 16 bits if that is enough."""
    codes: Labels = np.zeros(n, dtype=np.uint16)
    count = 1
    for digits in chain.from_iterable(map(_digits, columns)) if n else ():
        low, high = int(digits.min()), int(digits.max())
        if low == high:
            continue
        places: Labels = digits - np.uint16(low)
        values = high - low + 1
        if count * values > _MAX_SMALL_CODE:
            codes, count = _without_gaps(codes, count)
            places, values = _without_gaps(places, values)
        if count * values <= _MAX_SMALL_CODE:
            codes, count = codes * np.uint16(values) + places, count * values
            continue
        combined, codes = np.unique(codes.astype(np.int64) * values + places, return_inverse=True)
        count = combined.size
        if count <= _MAX_SMALL_CODE:
            codes = codes.astype(np.uint16)
    return codes


def _digits(column: npt.NDArray[Any]) -> Iterable[npt.NDArray[np.uint16]]:
    """Cut values into digits of 16 bits, the leading one first: few values have few of each."""
    if column.dtype == np.uint8:
        return [column.astype(np.uint16)]
    if column.dtype.kind == "U":
        letters = np.ascontiguousarray(column).view(np.uint32).reshape(column.size, -1)
        return chain.from_iterable(map(_digits, letters.T[::-1]))
    if column.dtype.kind == "f":
        column = (column.astype(np.float64) + 0.0).view(np.int64)  # -0.0 equals 0.0
    column = column.astype(np.int64, copy=False)
    low = column.min()
    if int(column.max()) - int(low) <= _MAX_SMALL_CODE:
        return [(column - low).astype(np.uint16)]
    return np.ascontiguousarray(column).view(np.uint16).reshape(column.size, -1).T[::-1]


def _without_gaps(codes: Labels, count: int) -> tuple[Labels, int]:
    """Return codes from 0 to count without gaps, and how many are left."""
    used = np.bincount(codes, minlength=count) > 0
    return (np.cumsum(used) - 1).astype(codes.dtype)[codes], int(np.count_nonzero(used))
