"""The progress of a running session, and the decision to stop."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from benchrigor.model.analysis import Analysis, VarianceSplit
from benchrigor.model.checks import refuse, wrong_choice
from benchrigor.model.estimate import Estimate
from benchrigor.model.metric import Metric
from benchrigor.model.one_line import OneLine
from benchrigor.model.readings import RoundPlan


class StopReason(enum.StrEnum):
    """Why a session ended; ``docs/codes.md`` explains the reasons."""

    SATISFIED = "satisfied"
    TIME_BUDGET = "time-budget-spent"
    READINGS_BUDGET = "readings-budget-spent"
    MEMORY_LIMIT = "memory-limit-reached"
    ROUND_LIMIT = "round-limit-reached"
    OUT_OF_REACH = "target-out-of-reach"
    TOO_MANY_REJECTED = "too-many-rejected-rounds"
    STOP_REQUESTED = "stop-requested"
    EXHAUSTED = "workload-exhausted"
    HOOK_FAILED = "hook-failed"
    DETECTOR_FAILED = "detector-failed"
    WORKLOAD_FAILED = "workload-failed"
    WORK_TOO_SHORT = "work-too-short"
    INTERRUPTED = "interrupted"


COMPLETE = frozenset({StopReason.SATISFIED, StopReason.OUT_OF_REACH})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(OneLine):
    """Whether to stop, and why; ``reason`` is None while the session goes on.

    Rules of your own stop for `StopReason.STOP_REQUESTED`.
    """

    stop: bool
    reason: StopReason | None = None

    # A reason of earlier versions, and what stands for it where a stored run names it.
    _retired: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "reason": {"alarm-stands": "stop-requested"}
    }

    def __post_init__(self) -> None:
        if self.stop:
            refuse(wrong_choice("reason", self.reason, tuple(map(str, StopReason))))
            object.__setattr__(self, "reason", StopReason(str(self.reason)))

    @property
    def satisfied(self) -> bool:
        """Whether every metric that must be satisfied is."""
        return self.reason is StopReason.SATISFIED

    @property
    def complete(self) -> bool:
        """Whether more readings would add little: the target is met, or out of reach."""
        return self.reason in COMPLETE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Width(OneLine):
    """How wide the interval of a goal is, a level or a ratio, and the evidence for it.

    Parameters
    ----------
    metric
        What must be known.
    estimate
        Its latest estimate; None without a number.
    whole
        What a relative half-width is a share of, in the metric's unit.
    caution
        Factor by which the interval must be narrower, as there are few readings; infinite if there
        are too few. 1 at a full look.
    is_full
        Whether the look was at enough readings for a full one.
    is_enough
        Whether the evidence is enough: effective readings, or rounds.
    is_settled
        Whether the latest readings are of the longest stable phase, which has nearly all.
    required
        Readings in all that the half-width is expected to take; None without a forecast.
    """

    metric: Metric
    estimate: Estimate | None
    whole: float = 0.0
    caution: float = 1.0
    is_full: bool = True
    is_enough: bool = True
    is_settled: bool = True
    required: int | None = None

    def wanted(self, target: float | None) -> float:
        """Return the narrower of the metric's half-widths; infinite if none is asked for.

        ``target`` is the relative one of a metric without its own.
        """
        relative, absolute = self.metric.relative_half_width, self.metric.absolute_half_width
        if relative is None:
            relative = target
        known = relative is not None and relative < math.inf
        widths = (relative * self.whole if known and relative else None, absolute)
        return min((width for width in widths if width is not None), default=math.inf)

    def is_narrow(self, target: float | None) -> bool:
        """Whether the interval is as narrow as wanted; if no width is asked for, at a full look.

        No interval is narrow relative to 0.
        """
        wanted = self.wanted(target)
        if self.estimate is None or math.isinf(wanted):
            return self.estimate is not None and self.is_full
        return 0.0 < wanted >= self.estimate.half_width * self.caution


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Progress(OneLine):
    """State of a session after a round, for stop rules and progress displays.

    Parameters
    ----------
    rounds
        Rounds so far.
    readings
        Readings so far of the metric with the most readings.
    rejected_rounds
        Number of successive rounds without a result, up to the last round.
    elapsed_s
        Sum of the rounds' wall time, in seconds.
    seconds_left
        Seconds until the target is met or the time budget is spent, whichever comes first; None
        without a forecast.
    readings_needed
        Further readings until the target is met; None without a forecast.
    stop_requested
        Whether the session was asked to stop.
    analyses
        The latest analyses, one per metric; empty before the first one, and for a ratio.
    widths
        How wide the intervals are that must be narrow: of required metrics, or of a ratio. Empty
        before the first look.
    fresh
        Whether ``widths`` include the last round.
    agreed
        Whether the values of all ``widths`` lie inside the intervals of the previous look.
    min_seconds
        Seconds that the rounds must have taken before the session may be satisfied.
    reading_s
        Shortest expected time of the next reading, in seconds; 0 if unknown, or if the reading can
        be cut short.
    look_s
        Seconds that the analysis before this one took, with the decision; 0 if unknown.
    kept
        Readings of all metrics that are kept in memory.
    provisional
        A rough figure of the latest readings of the first required metric, until it has an
        estimate. For display only: stop rules must ignore it.
    missing
        Names of required metrics with too few readings for a first look.
    reachable
        Relative half-width that the budget allows, if the target cannot be reached within it;
        infinite if the budget holds too few readings. None if the target can be reached.
    decision
        None while the session runs.
    name
        Name of the session.
    piece
        The piece of the latest round, counted from 0.
    waiting_s
        Seconds until the next piece begins; 0 during a round.
    """

    rounds: int
    readings: int
    rejected_rounds: int
    elapsed_s: float
    seconds_left: float | None
    readings_needed: int | None
    stop_requested: bool
    analyses: tuple[Analysis, ...] = ()
    fresh: bool
    widths: tuple[Width, ...] = ()
    agreed: bool = False
    min_seconds: float = 0.0
    reading_s: float = 0.0
    look_s: float = 0.0
    kept: int = 0
    provisional: Width | None = None
    missing: tuple[str, ...] = ()
    reachable: float | None = None
    decision: Decision | None = None
    name: str = ""
    piece: int = 0
    waiting_s: float = 0.0

    @property
    def half_width(self) -> float | None:
        """The widest relative half-width among the metrics that must be satisfied."""
        known = (width.estimate for width in self.widths if width.estimate is not None)
        return max((estimate.relative_half_width for estimate in known), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(OneLine):
    """Rounds that are carried out together: one of each subject, or several.

    Parameters
    ----------
    order
        Names of the subjects in the order in which they are measured: one name per reading, or per
        process. The i-th readings, or rounds, of two subjects are a pair.
    plan
        What the rounds of the turn have in common: ``index`` counts the turns. Subjects that
        measure by themselves add their own work amount, seed and piece.
    names
        What each process measures of a suite; empty for all of it.
    """

    order: tuple[str, ...]
    plan: RoundPlan
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Headway(OneLine):
    """How far a goal has come, for schedules: counts, durations and widths, but no number.

    Parameters
    ----------
    turns
        Number of turns so far.
    readings
        Most unit readings of any metric; 0 if rounds give single readings.
    elapsed_s
        Wall time of all turns.
    last_readings, last_s
        Readings of the last turn, and its wall time.
    to_next_check
        Further unit readings until the next analysis is due.
    piece
        The piece that the next round is of, counted from 0.
    invocations
        Restarted rounds with unit readings.
    first_invocation
        Readings per invocation until their variance is known; None for the usual number.
    busy_s
        Time that all readings took.
    as_long_as_start
        Whether readings of an invocation take no less time than its start.
    split
        Variance of the invocations at the last look.
    may_be_short
        Whether short invocations show a stable phase, as far as is known.
    width
        Half-width of the interval at the last look, over the one that is wanted; None without one.
    narrow
        How many looks in a row it was narrow enough.
    """

    turns: int = 0
    readings: int = 0
    elapsed_s: float = 0.0
    last_readings: int = 0
    last_s: float = 0.0
    to_next_check: int = 1
    piece: int = 0
    invocations: int = 0
    first_invocation: int | None = None
    busy_s: float = 0.0
    as_long_as_start: bool = False
    split: VarianceSplit | None = None
    may_be_short: bool = False
    width: float | None = None
    narrow: int = 0

    @property
    def reading_s(self) -> float:
        """Mean time of the last readings."""
        return self.last_s / max(self.last_readings, 1)
