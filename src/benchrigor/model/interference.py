"""How far a single run can be trusted: what of its time was lost to others."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice

__all__ = ["Composite", "CompositeGroup", "Interference", "Light", "SegmentGroup"]


class Light(enum.StrEnum):
    """What the share of lost time means for whoever reads the run's numbers."""

    GREEN = "green"
    """Below 7.5 %: good for performance analysis."""
    YELLOW = "yellow"
    """7.5 to 15 %: the order of magnitude; worth another run."""
    RED = "red"
    """Above 15 %: run it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentGroup:
    """Segments that did the same, and should have taken the same time.

    Parameters
    ----------
    n
        How many there are.
    computation
        By feature, its lowest and highest value in the group.
    nominal
        By name, what all of them have in common.
    median_s, mad_s
        Median of their durations without measured delay, and the median of the absolute
        deviations from it, in seconds, not scaled by 1.4826.
    threshold_s
        Beyond what one counts as interfered with, in seconds.
    duration_s
        Wall time of all of them, delays included, in seconds.
    flagged
        How many lasted longer than the threshold.
    excess_s
        By how much they did, in all, in seconds.
    """

    n: int
    computation: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    nominal: Mapping[str, str | int | float] = field(default_factory=dict)
    median_s: float
    mad_s: float
    threshold_s: float
    duration_s: float
    flagged: int
    excess_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """What of one run's time was lost to others, and whether to trust the run.

    All percentages are of the run's wall time, losses included.

    Parameters
    ----------
    percent
        Estimated: instantaneous interference, the excess of segments over the threshold of
        their group.
    measured_percent
        Measured delay: waiting for a processor, a throttled control group, a stolen processor.
    light
        What the sum of both means.
    probability_high
        The sum as a probability that the run is highly interfered with, by the logistic function.
    unclustered_percent
        Time in groups of too few segments to tell anything; what was lost there is not counted.
    continuous_percent
        By how much group medians lie above those of the reference; negative where the reference
        was slower; None without one.
    above_median_percent
        The excess of the same segments over the median of their group: an upper reading of
        `percent`.
    flagged_percent
        Share of segments, not of time, that lasted longer than their group's threshold.
    n
        Segments.
    duration_s
        Wall time of all segments, in seconds.
    delays
        By source, per cent measured; their sum may be more than `measured_percent`, since no
        segment loses more than its wall time.
    groups
        The groups that could be judged, the one with most excess first.
    notices
        What the reader must know.
    """

    percent: float
    measured_percent: float
    light: Light
    probability_high: float
    unclustered_percent: float
    continuous_percent: float | None
    above_median_percent: float
    flagged_percent: float
    n: int
    duration_s: float
    delays: Mapping[str, float] = field(default_factory=dict)
    groups: tuple[SegmentGroup, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def total_percent(self) -> float:
        """Measured and estimated together; the light stands on it."""
        return self.measured_percent + self.percent

    def __str__(self) -> str:
        parts = [f"{self.light} light: {self.total_percent:.1f}% of {self.duration_s:.3g} s lost"]
        parts.append(f"{self.measured_percent:.1f}% measured, {self.percent:.1f}% estimated")
        if self.continuous_percent is not None:
            parts.append(f"{self.continuous_percent:+.1f}% continuous")
        return " · ".join([*parts, f"{self.n:,} segments"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeGroup:
    """Like segments of several runs.

    Parameters
    ----------
    n
        Segments of all runs, disturbed ones included.
    computation, nominal
        As in `SegmentGroup`.
    duration
        How long one segment takes undisturbed, in seconds; None where too few runs have any.
    """

    n: int
    computation: Mapping[str, tuple[float, float]]
    nominal: Mapping[str, str | int | float]
    duration: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite:
    """One program's profile free of instantaneous interference, from several runs.

    Parameters
    ----------
    duration
        How long the program takes without instantaneous interference and measured delay, in
        seconds; the runs are the unit of inference.
    groups
        Per group of like segments, how long one takes, in seconds.
    runs
        The interference of each run.
    notices
        What the reader must know.
    """

    duration: Estimate
    groups: tuple[CompositeGroup, ...]
    runs: tuple[Interference, ...]
    notices: tuple[Notice, ...] = ()
