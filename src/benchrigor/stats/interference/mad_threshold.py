"""The threshold of each group, and the time of its segments beyond it.

Source: Shah, Mueller, Wolf et al., 'Estimating the impact of external interference on application
performance' (Euro-Par 2018), section 2, "Estimating Interference": a segment of duration t is
interfered with if t > median + 4 MAD, where MAD = median(|X_i - median(X)|) is not scaled; the
interference is the excess over the threshold, summed, in per cent of the wall time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchrigor.model import Floats, SegmentGroup, SegmentProfile
from benchrigor.stats.interference.clustering import Clusters, Indices
from benchrigor.stats.interference.grouping import Groups, group_by_code, group_codes, undelayed

__all__ = ["RunExcess", "excess_over_threshold", "segment_thresholds"]

_MADS = 4.0


@dataclass(frozen=True, slots=True)
class RunExcess:
    """The groups of a run and their excess; arrays have one item per group, times are seconds."""

    profile: SegmentProfile
    total_s: float
    """Wall time of all segments."""
    groups: Groups
    clusters: Sequence[Clusters]
    """By computation feature."""
    ordered: Floats
    """Durations without measured delay, sorted within each group: one item per segment."""
    medians: Floats
    mads: Floats
    thresholds: Floats
    durations: Floats
    """Wall time of each group."""
    flagged: Indices
    """How many segments exceed the threshold."""
    excess: Floats

    @property
    def excess_over_median(self) -> Floats:
        """By how much the flagged segments of each group exceed its median."""
        return self.excess + self.flagged * (self.thresholds - self.medians)

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
        """Return the groups as they are reported, the one with most excess first."""
        features = self.groups.features(self.profile)
        return tuple(
            SegmentGroup(
                n=int(self.groups.sizes[g]),
                computation=features[g][0],
                nominal=features[g][1],
                median_s=float(self.medians[g]),
                mad_s=float(self.mads[g]),
                threshold_s=float(self.thresholds[g]),
                duration_s=float(self.durations[g]),
                flagged=int(self.flagged[g]),
                excess_s=float(self.excess[g]),
            )
            for g in np.argsort(-self.excess, kind="stable").tolist()
        )


def excess_over_threshold(profile: SegmentProfile) -> RunExcess:
    """Group the segments of a run, and sum in each group what exceeds median + 4 MAD."""
    codes, clusters = group_codes(profile)
    groups = group_by_code(codes)
    ordered = groups.sorted(undelayed(profile, groups.order))
    durations = groups.sums(ordered)
    if profile.delays:
        durations += groups.sums(profile.delay_s[groups.order])
    medians = groups.medians(ordered)
    mads = groups.mads(ordered, medians)
    thresholds = medians + _MADS * mads
    excess = groups.spread(thresholds)
    np.subtract(ordered, excess, out=excess)
    np.maximum(excess, 0.0, out=excess)
    return RunExcess(
        profile=profile,
        total_s=float(profile.duration_s.sum()),
        groups=groups,
        clusters=clusters,
        ordered=ordered,
        medians=medians,
        mads=mads,
        thresholds=thresholds,
        durations=durations,
        flagged=groups.sums(excess > 0.0),
        excess=groups.sums(excess),
    )


def segment_thresholds(profile: SegmentProfile, groups: Iterable[SegmentGroup]) -> Floats:
    """Return the threshold of the group of each segment; NaN where it is in none of them."""
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
