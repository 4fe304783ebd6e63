"""What sessions share: each is asked for a plan, told what came of it, and ends once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from benchrigor.model import Decision, Notice, Options, Progress, StopReason
from benchrigor.protocols import StopRule


class Plan(Protocol):
    """What a controller asks for; ``index`` is its identity, counted from 0."""

    @property
    def index(self) -> int:
        """The plan's identity."""
        ...


P = TypeVar("P", bound=Plan)
R = TypeVar("R")

ROUND_S = 1.0
"""A round lasts about so long at most: progress is seen, a stop is heeded, little can be lost."""
_GROWTH = 10
"""A round takes at most so many times the readings of the one before: the first ones may lie."""
_INVOCATION = 500
"""Unit readings of a restarted round: enough to tell its warm-up from its stable phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast readings came so far."""

    readings: int
    """Unit readings of the metric that has most; 0 where rounds give single readings."""
    elapsed_s: float
    last_readings: int
    last_s: float
    to_next_check: int
    """Further unit readings until the next analysis is due."""


def next_readings(pace: Pace, options: Options) -> int:
    """Return how many unit readings the next round should take.

    The first round of a continuous session takes a single reading, to learn what one costs. Later
    ones go up to the next analysis, but not beyond what fits into one second, or into what is
    left of the budgets. Rounds of a given size, and restarted ones, are cut short only by a
    budget of readings: a round is the least that can be measured.
    """
    most = math.inf
    if options.budget_readings is not None:
        most = max(1, options.budget_readings - pace.readings)
    if options.readings_per_round is not None:
        return int(min(options.readings_per_round, most))
    if options.rounds == "restarted":
        return int(min(_INVOCATION, most))
    if pace.readings == 0:
        return 1
    wanted = int(min(max(1, pace.to_next_check), most, _GROWTH * pace.last_readings))
    per_reading = pace.last_s / max(pace.last_readings, 1)
    seconds = min(ROUND_S, options.budget_s - pace.elapsed_s)
    if per_reading > 0.0:
        wanted = min(wanted, math.ceil(seconds / per_reading))
    return max(1, wanted)


class Controller(ABC, Generic[P, R]):
    """Decides what to measure next, and when it is known well enough; does nothing itself."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._notices: list[Notice] = []
        self._pending: P | None = None
        self._elapsed_ns = 0
        self._stop_requested = False
        self._decision: Decision | None = None
        self._progress: Progress | None = None

    @property
    def decision(self) -> Decision | None:
        """How the session ended; None while it runs."""
        return self._decision

    @property
    def progress(self) -> Progress | None:
        """How the session stands since the last round; None before it."""
        return self._progress

    def request_stop(self) -> None:
        """Let the round under way be told, then end with what there is."""
        self._stop_requested = True

    def end(self, reason: StopReason, notice: Notice | None = None) -> None:
        """End the session from outside with what there is; nothing once it has ended."""
        if self._decision is not None:
            return
        if notice is not None:
            self.note(notice)
        self._pending = None
        self._decision = Decision(stop=True, reason=reason)

    def note(self, notice: Notice) -> None:
        """Add a Notice that concerns the session as a whole."""
        self._notices.append(notice)

    def ask(self) -> P | None:
        """Return the next plan, the same one until it is told; None when finished."""
        if self._stop_requested and self._pending is None:
            self.end(StopReason.STOP_REQUESTED)
        if self._decision is not None:
            return None
        if self._pending is None:
            self._pending = self._next_plan()
        return self._pending

    @abstractmethod
    def tell(self, finished: R) -> Decision:
        """Take in what came of the plan, and decide whether to go on."""

    def _decide(self, elapsed_ns: int) -> Decision:
        """Count the time of a round whose readings were taken in, and ask the stop rules."""
        self._pending = None
        self._elapsed_ns += elapsed_ns
        progress = self._judge(look=self._is_due)
        if progress.decision is not None and not progress.fresh:
            # Before it ends, a session looks once more at all its readings.
            progress = self._judge(look=True)
        self._progress = progress
        self._decision = progress.decision
        return self._decision or Decision(stop=False)

    def _judge(self, *, look: bool) -> Progress:
        """Look at the readings, or not yet, and ask the stop rules: the first to stop wins."""
        self._look(fully=look)
        progress = self._standing(fresh=look)
        answers = (rule(progress) for rule in self._stop_rules())
        stops = (answer for answer in answers if answer is not None and answer.stop)
        return replace(progress, decision=next(stops, None))

    def _seconds_left(self, needed: int | None, readings: int) -> float | None:
        """Predict the seconds until the target is met or the budget is spent; None if unknown."""
        elapsed_s = self._elapsed_ns / 1e9
        left = self.options.budget_s - elapsed_s
        if needed is not None and readings:
            left = min(left, needed * elapsed_s / readings)
        return max(left, 0.0) if math.isfinite(left) else None

    @abstractmethod
    def _next_plan(self) -> P | None:
        """Choose the next plan; None where the session has ended instead."""

    @property
    @abstractmethod
    def _is_due(self) -> bool:
        """Whether there are enough new readings for another look."""

    @abstractmethod
    def _look(self, *, fully: bool) -> None:
        """Analyse the readings so far; where not ``fully``, only what is shown meanwhile."""

    @abstractmethod
    def _standing(self, *, fresh: bool) -> Progress:
        """Return how the session stands, without a decision."""

    @abstractmethod
    def _stop_rules(self) -> Sequence[StopRule]:
        """Return the rules that may end the session."""
