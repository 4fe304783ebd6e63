"""Groups of segments: clusters of computation, split by nominal features (Shah et al. 2018, 2).

A segment of duration t is interfered with if t > median + 4 MAD of its group, where MAD =
median(|X_i - median(X)|) is not scaled; the interference is t - threshold (Shah et al. 2018,
section 2).

Clusters of amounts are by relative distance (section 2, too; the cuts are ours).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model import SegmentProfile
from benchrigor.model.segments import SegmentGroup
from benchrigor.model.series import Floats, Ints

_MADS = 4.0


class RunExcess:
    """The groups of a run, and their excess over the threshold; one item per group, in seconds."""

    def __init__(self, profile: SegmentProfile) -> None:
        codes, self.clusters = group_codes(profile)
        self.profile, self.groups = profile, group_by_code(codes)
        self.total_s = float(profile.duration_s.sum())
        self.ordered = self.groups.sorted(without_delay(profile, self.groups.order))
        self.durations = self.groups.sums(self.ordered)
        if profile.delays:
            self.durations += self.groups.sums(profile.delay_s[self.groups.order])
        self.medians = self.groups.medians(self.ordered)
        self.mads = self.groups.mads(self.ordered, self.medians)
        self.thresholds = self.medians + _MADS * self.mads
        excess = self.ordered - np.repeat(self.thresholds, self.groups.sizes)
        self.flagged = self.groups.sums(excess > 0.0)
        self.excess = self.groups.sums(np.maximum(excess, 0.0, out=excess))

    @property
    def excess_over_median(self) -> Floats:
        """By how much the flagged segments of each group exceed its median."""
        return np.asarray(self.excess + self.flagged * (self.thresholds - self.medians))

    @property
    def measured_percent(self) -> float:
        """Measured delay in per cent of the run's wall time."""
        return self.percent(self.profile.delay_s) if self.profile.delays else 0.0

    @property
    def unclustered_percent(self) -> float:
        """Time of the segments in no group, in per cent of the run's wall time."""
        if self.groups.order.size == self.profile.n:
            return 0.0
        return max(0.0, 100.0 - self.percent(self.durations))

    def percent(self, seconds: float | Floats) -> float:
        """Return the sum of some seconds in per cent of the run's wall time."""
        return 100.0 * float(np.sum(seconds)) / self.total_s

    def segment_groups(self) -> tuple[SegmentGroup, ...]:
        """Return the groups for the reader, the one with most excess first."""
        features = self.groups.features(self.profile)
        return tuple(
            SegmentGroup(
                n=int(self.groups.sizes[g]),
                **features[g],
                median_s=float(self.medians[g]),
                mad_s=float(self.mads[g]),
                threshold_s=float(self.thresholds[g]),
                duration_s=float(self.durations[g]),
                flagged=int(self.flagged[g]),
                excess_s=float(self.excess[g]),
            )
            for g in np.argsort(-self.excess, kind="stable").tolist()
        )


def segment_thresholds(profile: SegmentProfile, groups: Iterable[SegmentGroup]) -> Floats:
    """Return the threshold of the group of each segment; NaN if it is in none of them."""
    thresholds = np.full(profile.n, np.nan)
    for group in groups:
        inside = np.ones(profile.n, dtype=np.bool_)
        for name, value in group.nominal.items():
            inside &= profile.nominal[name] == value
        for name, (low, high) in group.computation.items():
            values = profile.computation.get(name, profile.nominal.get(name))
            inside &= (values >= low) & (values <= high)
        thresholds[inside] = group.threshold_s
    return thresholds


_THRESHOLD = 0.1
# Nine tenths of a class with 6 % normal noise spread over less. The ends are left aside: segments
# that are interfered with compute a little more, and belong in the group of the others.
_SPREAD, _TAIL = 0.25, 0.05
_STEPS, _WINDOW = 10, 3  # windows of three tenths of the threshold, a tenth apart
# A valley has up to half of the values on either side, and fewer by 3.5 standard deviations: the
# root of a count has one of 1/2
_SHALLOW, _ROOTS = 0.5, 2.5
_BLOCK = 64
_FEW_BOUNDS = 64  # this number of comparisons of all values costs less than a binary search of each

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
    one. Two cuts are against chains of neighbours with ends far apart: a cluster that spreads
    over more than 10 % is cut at valleys, ranges of 3 % with up to half as many values as one on
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
    # Within a block with ends near each other all neighbours are.
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
    """Cut each cluster with ends, but for tails, beyond the limit; return starts of pieces."""
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
    """Whether a count is up to half of another, and significantly less."""
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

        The nearest values are a window of the sorted ones. Bisection finds it in all groups at
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
