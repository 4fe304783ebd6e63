"""The progress of a running session, and the decision to stop."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from benchrigor.model.analysis import Analysis
from benchrigor.model.checks import refuse, wrong_choice
from benchrigor.model.one_line import OneLine


class StopReason(enum.StrEnum):
    """Why a session ended; ``docs/codes.md`` explains each of them."""

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
    ALARM_STANDS = "alarm-stands"


COMPLETE = frozenset({StopReason.SATISFIED, StopReason.OUT_OF_REACH})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(OneLine):
    """Whether to stop, and why; ``reason`` is None while the session goes on.

    Rules of your own stop for `StopReason.STOP_REQUESTED`.
    """

    stop: bool
    reason: StopReason | None = None

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
        """Whether more readings would tell little: the target is met, or out of reach."""
        return self.reason in COMPLETE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Progress(OneLine):
    """How a session stands after a round, for stop rules and progress displays.

    Parameters
    ----------
    rounds
        Rounds so far.
    readings
        Readings so far, of the metric that has most of them.
    rejected_rounds
        Rounds in a row, up to the last one, that gave nothing.
    elapsed_s
        Sum of the rounds' wall time, in seconds.
    seconds_left
        Until the target is met or the time budget is spent, whichever comes first; None when
        neither is known.
    readings_needed
        Further readings until the target is met, as far as can be told.
    stop_requested
        Whether the session was asked to stop.
    analyses
        The latest analysis of each metric; empty before the first one.
    fresh
        Whether ``analyses`` includes the last round.
    agreed
        Whether the value of each metric that must be satisfied lies inside the interval of the
        look before.
    min_seconds
        Seconds that the rounds must have taken before the session may be satisfied.
    reading_s
        How long the next reading takes at least, by the pace of those before; 0 where that is not
        known, and where it can be cut short.
    kept
        Readings of all metrics that are kept in memory.
    provisional
        While the first metric that must be satisfied has no estimate: its latest readings, with a
        rough figure. For people to look at; stop rules must not.
    missing
        Names of the metrics that must be satisfied and lack readings for a first look.
    reachable
        Relative half-width that the budget allows, if the target cannot be reached within it;
        infinite if the budget holds too few readings. None if the target can be reached, as far as
        is known.
    decision
        None while the session runs.
    name
        What the session measures.
    piece
        The piece of the latest round, counted from 0.
    waiting_s
        Seconds until the next piece begins, at most where alarms are waited for; 0 while readings
        come.
    alarms
        Codes of the alarms whose end is waited for.
    """

    rounds: int
    readings: int
    rejected_rounds: int
    elapsed_s: float
    seconds_left: float | None
    readings_needed: int | None
    stop_requested: bool
    analyses: tuple[Analysis, ...]
    fresh: bool
    agreed: bool = False
    min_seconds: float = 0.0
    reading_s: float = 0.0
    kept: int = 0
    provisional: Analysis | None = None
    missing: tuple[str, ...] = ()
    reachable: float | None = None
    decision: Decision | None = None
    name: str = ""
    piece: int = 0
    waiting_s: float = 0.0
    alarms: tuple[str, ...] = ()

    @property
    def half_width(self) -> float | None:
        """The widest relative half-width among the metrics that must be satisfied."""
        widths = [
            analysis.estimate.relative_half_width
            for analysis in self.analyses
            if analysis.metric.must_satisfy and analysis.estimate is not None
        ]
        return max(widths, default=None)
