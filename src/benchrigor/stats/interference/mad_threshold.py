"""Which segments of a run took longer than their like usually do, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchrigor.model import Floats, SegmentGroup, SegmentProfile
from benchrigor.stats.interference.clustering import Clusters, Indices
from benchrigor.stats.interference.grouping import Groups, grouped_by_features, undelayed

__all__ = ["Judged", "judged"]

_MADS = 4.0
_TRIPLES = ((0.05, 0.25, 0.6), (0.02, 0.07, 0.25))


@dataclass(frozen=True, slots=True)
class Judged:
    """A run's segments group by group, each judged by its group.

    Parameters
    ----------
    profile
        The run.
    total_s
        Wall time of all segments.
    groups
        Those of enough segments; the arrays below have an item for each of them.
    clusters
        By computation feature.
    medians, mads, thresholds
        Of the durations without measured delay, in seconds; a segment counts as interfered with
        beyond the threshold.
    quantiles
        Of each of two triples of shares, those quantiles of them, in seconds: up to where they
        are undisturbed when half of the segments were hit, or nine tenths.
    durations
        Wall time of each group, in seconds.
    flagged
        How many segments lie above the threshold.
    excess
        By how much, in seconds.
    """

    profile: SegmentProfile
    total_s: float
    groups: Groups
    clusters: Sequence[Clusters]
    medians: Floats
    mads: Floats
    thresholds: Floats
    quantiles: tuple[tuple[Floats, Floats, Floats], ...]
    durations: Floats
    flagged: Indices
    excess: Floats

    @property
    def above_median(self) -> Floats:
        """By how much the flagged segments of each group exceed its median, in seconds."""
        return self.excess + self.flagged * (self.thresholds - self.medians)

    def percent(self, seconds: float | Floats) -> float:
        """Return what share of the run's wall time some seconds, or their sum, are."""
        return 100.0 * float(np.sum(seconds)) / self.total_s

    @property
    def unclustered_percent(self) -> float:
        """What share of the time is in segments of no group."""
        if self.groups.order.size == self.profile.n:
            return 0.0
        return max(0.0, 100.0 - self.percent(self.durations))

    def described(self) -> tuple[SegmentGroup, ...]:
        """Return the groups for people, the one with most excess first."""
        groups, profile = self.groups, self.profile
        first = groups.order[groups.starts]
        nominal = {name: values[first].tolist() for name, values in profile.nominal.items()}
        extremes = {
            name: [each.tolist() for each in groups.extremes(values[groups.order])]
            for name, values in profile.computation.items()
        }
        columns = (self.medians, self.mads, self.thresholds, self.durations, self.excess)
        rows = list(zip(*(each.tolist() for each in columns), strict=True))
        return tuple(
            SegmentGroup(
                n=int(groups.sizes[g]),
                computation={name: (low[g], high[g]) for name, (low, high) in extremes.items()},
                nominal={name: values[g] for name, values in nominal.items()},
                median_s=median,
                mad_s=mad,
                threshold_s=threshold,
                duration_s=duration,
                flagged=int(self.flagged[g]),
                excess_s=excess,
            )
            for g in np.argsort(-self.excess, kind="stable").tolist()
            for median, mad, threshold, duration, excess in (rows[g],)
        )


def judged(profile: SegmentProfile) -> Judged:
    """Judge each segment of a run by its group: flagged above median + 4 MAD."""
    groups, clusters = grouped_by_features(profile)
    ordered = groups.sorted(undelayed(profile, groups.order))
    durations = groups.sums(ordered)
    if profile.delays:
        durations += groups.sums(profile.delay_s[groups.order])
    medians = groups.medians(ordered)
    quantiles = tuple(
        (groups.quantiles(ordered, a), groups.quantiles(ordered, b), groups.quantiles(ordered, c))
        for a, b, c in _TRIPLES
    )
    mads = groups.mads(ordered, medians)
    thresholds = medians + _MADS * mads
    excess = np.subtract(ordered, groups.spread(thresholds), out=ordered)
    flagged = groups.counts(excess > 0.0)
    return Judged(
        profile=profile,
        total_s=float(profile.duration_s.sum()),
        groups=groups,
        clusters=clusters,
        medians=medians,
        mads=mads,
        thresholds=thresholds,
        quantiles=quantiles,
        durations=durations,
        flagged=flagged,
        excess=groups.sums(np.maximum(excess, 0.0, out=excess)),
    )
