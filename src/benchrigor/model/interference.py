"""Interference of one run, by groups of segments, and the composite of several runs."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.safe_text import escaped

KNOWN_FROM = 90.0  # per cent of a session's time for which delay must be measured, for a light
ELSEWHERE = "other threads or processes used most of the processor time"


class Light(enum.StrEnum):
    """The meaning of a share of interference for the numbers of a run."""

    GREEN = "green"  # Below 7.5 %: good for performance analysis
    YELLOW = "yellow"  # 7.5 to 15 %: the order of magnitude; worth another run
    RED = "red"  # Above 15 %: run it again
    # Of a session: delay is not known for nine tenths of its time; or it has no number, or fewer
    # than five readings, and is not red
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentGroup(OneLine):
    """Segments with the same features, which should take the same time.

    Attributes
    ----------
    computation
        By feature, its lowest and highest value in the group.
    nominal
        By feature, the common value of its segments.
    median_s, mad_s
        Median and median absolute deviation (not scaled by 1.4826) of their durations without
        measured delay.
    threshold_s
        Duration beyond which a segment is interfered with.
    duration_s
        Wall time of all of them, delays included.
    flagged, excess_s
        How many last longer than the threshold, and their time beyond it.
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
class Interference(OneLine):
    """The interference of one run; percentages are of its wall time, interference included.

    Attributes
    ----------
    percent
        Estimated, instantaneous: the time of segments beyond the threshold of their group.
    measured_percent
        Measured delay: waiting for a processor, throttling, steal.
    light
        Of the sum of both; a session has measured delay alone.
    probability_high
        Probability that a run with this sum is highly interfered (logistic function).
    unclustered_percent
        Time in groups of fewer than five segments; their interference is not counted.
    continuous_percent
        Percentage by which group medians exceed the medians of the reference; None without one.
    above_median_percent
        Time of the same segments beyond the median of their group: more than ``percent``.
    flagged_percent
        Share of segments, not of time, beyond the threshold of their group.
    known_percent
        Share of the rounds' time for which delay was measured. Below 90 % the light of a session
        is unknown, and the sum is a lower limit; a profile is judged by its estimate.
    n, duration_s
        Number of segments, and their wall time.
    delays
        Measured delay by source; the sum is larger if a segment has more delay than wall time.
    groups
        Groups of five segments or more, the one with most excess first.
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
    known_percent: float = 100.0

    @property
    def total_percent(self) -> float:
        """Measured and estimated together, the base of the light."""
        return self.measured_percent + self.percent

    @property
    def is_measured(self) -> bool:
        """Whether delay was measured, even if it was 0."""
        return bool(self.delays) or self.measured_percent > 0.0

    @property
    def least(self) -> str:
        """The words before a share that is a lower limit; else empty."""
        is_limit = self.light is Light.UNKNOWN and self.known_percent < KNOWN_FROM
        return "at least " if is_limit else ""

    def __str__(self) -> str:
        lost = f"{self.least}{self.total_percent:.1f}% of {self.duration_s:.3g} s lost"
        parts = [f"{self.light} light: {lost}"]
        parts.append(f"{self.measured_percent:.1f}% measured, {self.percent:.1f}% estimated")
        if self.continuous_percent is not None:
            parts.append(f"{self.continuous_percent:+.1f}% continuous")
        return escaped(" · ".join([*parts, f"{self.n:,} segments"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeGroup(OneLine):
    """Segments of several runs with the same features; see `SegmentGroup`.

    ``duration`` is of one undisturbed segment, in seconds; None if too few runs have enough.
    """

    n: int
    computation: Mapping[str, tuple[float, float]]
    nominal: Mapping[str, str | int | float]
    duration: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite(OneLine):
    """One program without instantaneous interference and measured delay, from several runs.

    ``duration`` is of the program, in seconds; the runs are the unit of inference.
    """

    duration: Estimate
    groups: tuple[CompositeGroup, ...]
    runs: tuple[Interference, ...]
    notices: tuple[Notice, ...] = ()
