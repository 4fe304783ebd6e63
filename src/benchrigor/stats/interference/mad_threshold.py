"""The threshold of each group, and the time of its segments beyond it.

A segment of duration t is interfered with if t > median + 4 MAD, where MAD = median(|X_i -
median(X)|) is not scaled; the interference is t - threshold (Shah et al. 2018, section 2).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from benchrigor.model import SegmentProfile
from benchrigor.model.interference import SegmentGroup
from benchrigor.model.series import Floats
from benchrigor.stats.interference.grouping import group_by_code, group_codes, without_delay

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
