"""Interference of one run, by groups of segments, and the composite of several runs."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice


class Light(enum.StrEnum):
    """What a share of interference means for the numbers of a run."""

    GREEN = "green"
    """Below 7.5 %: good for performance analysis."""
    YELLOW = "yellow"
    """7.5 to 15 %: the order of magnitude; worth another run."""
    RED = "red"
    """Above 15 %: run it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentGroup:
    """Segments with the same features, which should take the same time."""

    n: int
    computation: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By feature, its lowest and highest value in the group."""
    nominal: Mapping[str, str | int | float] = field(default_factory=dict)
    """By feature, the value that all of them have."""
    median_s: float
    """Of their durations without measured delay."""
    mad_s: float
    """Median absolute deviation, not scaled by 1.4826."""
    threshold_s: float
    """Duration beyond which a segment is interfered with."""
    duration_s: float
    """Wall time of all of them, delays included."""
    flagged: int
    """How many lasted longer than the threshold."""
    excess_s: float
    """Their time beyond the threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """The interference of one run; percentages are of its wall time, interference included."""

    percent: float
    """Estimated, instantaneous: the time of segments beyond the threshold of their group."""
    measured_percent: float
    """Measured delay: waiting for a processor, throttling, steal."""
    light: Light
    """Of the sum of both."""
    probability_high: float
    """Probability that a run with this sum is highly interfered (logistic function)."""
    unclustered_percent: float
    """Time in groups of fewer than five segments, whose interference is not counted."""
    continuous_percent: float | None
    """By how much group medians lie above those of the reference; None without one."""
    above_median_percent: float
    """Time of the same segments beyond the median of their group: more than `percent`."""
    flagged_percent: float
    """Share of segments, not of time, beyond the threshold of their group."""
    n: int
    """How many segments."""
    duration_s: float
    """Wall time of all segments."""
    delays: Mapping[str, float] = field(default_factory=dict)
    """Measured delay by source; the sum is more where a segment has more delay than wall time."""
    groups: tuple[SegmentGroup, ...] = ()
    """Those of five segments or more, the one with most excess first."""
    notices: tuple[Notice, ...] = ()

    @property
    def total_percent(self) -> float:
        """Measured and estimated together, the base of the light."""
        return self.measured_percent + self.percent

    def __str__(self) -> str:
        parts = [f"{self.light} light: {self.total_percent:.1f}% of {self.duration_s:.3g} s lost"]
        parts.append(f"{self.measured_percent:.1f}% measured, {self.percent:.1f}% estimated")
        if self.continuous_percent is not None:
            parts.append(f"{self.continuous_percent:+.1f}% continuous")
        return " · ".join([*parts, f"{self.n:,} segments"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeGroup:
    """Segments of several runs with the same features; see `SegmentGroup`."""

    n: int
    computation: Mapping[str, tuple[float, float]]
    nominal: Mapping[str, str | int | float]
    duration: Estimate | None
    """Of one undisturbed segment, in seconds; None where too few runs have enough of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite:
    """One program without instantaneous interference and measured delay, from several runs."""

    duration: Estimate
    """Of the program, in seconds; the runs are the unit of inference."""
    groups: tuple[CompositeGroup, ...]
    runs: tuple[Interference, ...]
    notices: tuple[Notice, ...] = ()
