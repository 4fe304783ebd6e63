"""The engine: asks a schedule for turns, gives a goal their rounds, and stops once. No I/O."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from benchrigor.errors import PlanMismatch, WorkTooShort
from benchrigor.model import (
    Code,
    Decision,
    Headway,
    Notice,
    Options,
    Progress,
    Round,
    RoundPlan,
    StopReason,
    Turn,
    Width,
)
from benchrigor.protocols import Schedule, StopRule
from benchrigor.session.outcomes import failed_hook
from benchrigor.session.schedules import HookRaised

G = TypeVar("G", bound="Goal")
_LOG = logging.getLogger("benchrigor.session")

# Interval and number of last readings of the figure shown before there is an estimate. It takes
# 0.2 ms, and up to 2 ms for a quantile of rounds with one reading.
_FIGURE_S = 0.25
FIGURE_READINGS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taken:
    """What two subjects gave in a turn."""

    plan: RoundPlan
    rounds: Sequence[tuple[Round, Round]]  # of both, those that were side by side
    elapsed_ns: int  # wall time since the turn before
    notices: tuple[Notice, ...] = ()


class Goal(Protocol):
    """What an engine measures for: the width of a level, or of the ratio of two."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def options(self) -> Options:
        """Budgets and targets."""

    @property
    def schedule(self) -> Schedule:
        """Who is measured next, and how much."""

    @property
    def rules(self) -> Sequence[StopRule]:
        """The rules that may end it: the first to stop wins."""

    @property
    def is_due(self) -> bool:
        """Whether there are enough new readings for the next analysis."""

    @property
    def is_early(self) -> bool:
        """Whether there are too few readings for a full look."""

    def headways(self, engine: Engine[Any]) -> Mapping[str, Headway]:
        """Return what its schedule may see, by the names of those under way."""

    def check(self, finished: Any) -> None:
        """Raise InvalidInput if the result of a plan is impossible."""

    def take(self, finished: Any, engine: Engine[Any]) -> None:
        """Add the result of a plan; the engine has counted its time."""

    def look(self, *, fully: bool) -> None:
        """Analyse the readings so far; if not ``fully``, only for the display of progress."""

    def state(self, engine: Engine[Any]) -> dict[str, Any]:
        """Return the fields of `Progress` that are known here."""

    def rough_figure(self, most: int) -> Width | None:
        """Make a figure of the latest readings, for people to look at."""

    def result(self, engine: Engine[Any]) -> Any:
        """Return the result of all readings so far."""


class Engine(Generic[G]):
    """Decides what to measure next and when to stop; a loop outside does the measuring.

    Attributes
    ----------
    decision
        Why it ended; None while it runs.
    progress
        Its state after the last plan; None before the first.
    min_seconds
        Of the options, if rounds run on the wall clock.
    look_s
        Time that the latest analysis took.
    """

    def __init__(self, goal: G) -> None:
        self.goal = goal
        self.min_seconds = self.look_s = 0.0
        self.decision: Decision | None = None
        self.progress: Progress | None = None
        self.notices: list[Notice] = []
        self.told = self.elapsed_ns = 0
        self.is_asked_to_stop = False
        self._pending: Turn | None = None
        self._figure: Width | None = None
        self._figure_ns = 0

    @property
    def elapsed_s(self) -> float:
        """Wall time of all plans so far."""
        return self.elapsed_ns / 1e9

    def request_stop(self) -> None:
        """End after the round under way."""
        self.is_asked_to_stop = True

    def end(self, reason: StopReason, notice: Notice | None = None) -> None:
        """End from outside, unless it has ended."""
        if self.decision is not None:
            return
        if notice is not None:
            self.note(notice)
        self._pending = None
        self.decision = Decision(stop=True, reason=reason)

    def note(self, notice: Notice) -> None:
        """Add a Notice about the whole, unless it has this one."""
        if notice not in self.notices:
            self.notices.append(notice)
            _LOG.debug("notice: %s", notice)

    def ask(self) -> Turn | None:
        """Return the next turn, the same one until its result is passed; None when finished."""
        if self.is_asked_to_stop and self._pending is None:
            self.end(StopReason.STOP_REQUESTED)
        if self.decision is None and self._pending is None:
            self._pending = self._next_turn()
        return self._pending

    def _next_turn(self) -> Turn | None:
        """Ask the schedule; end if there can be no turn."""
        try:
            return self.goal.schedule.next(self.goal.headways(self))
        except WorkTooShort as error:
            refusal = Notice.of(Code.WORK_TOO_SHORT, why_=str(error))
            self.end(StopReason.WORK_TOO_SHORT, refusal)
            raise
        except HookRaised as error:
            self.end(StopReason.HOOK_FAILED, failed_hook("next_work", error.__cause__ or error))
            return None

    def tell(
        self,
        finished: Any,
        keep: Callable[[Any], object] = lambda _: None,
        *,
        asked: bool = True,
    ) -> Decision:
        """Add the result of the plan, and decide whether to go on; ``keep`` stores it before.

        One that was not ``asked`` for was stored before, or comes from elsewhere.

        Raises
        ------
        PlanMismatch
            When `ask` did not return its plan, or its result was passed before.
        InvalidInput
            When the result is impossible; the plan stays open.
        """
        plan = finished.plan
        if asked and (self._pending is None or plan != self._pending.plan):
            told = plan.index < self.told
            raise PlanMismatch(
                f"plan {plan.index} {'has been told already' if told else 'was never asked for'}; "
                "tell the plan that ask() returned, once"
            )
        self.goal.check(finished)
        keep(finished)
        self.elapsed_ns += finished.elapsed_ns
        self.goal.take(finished, self)
        self._pending, self.told = None, self.told + 1
        progress = self._assess(look=self.goal.is_due)
        if progress.decision is not None and not progress.fresh:
            # The last look of a session covers all its readings.
            progress = self._assess(look=True)
        self.progress, self.decision = progress, progress.decision
        return self.decision or Decision(stop=False)

    def result(self) -> Any:
        """Return the result of all readings so far, also while it runs."""
        return self.goal.result(self)

    def _assess(self, *, look: bool) -> Progress:
        """Analyse the readings if asked to, and ask the stop rules: the first to stop wins."""
        self.goal.look(fully=look)
        progress = self.state(fresh=look)
        answers = (rule(progress) for rule in self.goal.rules)
        stops = (answer for answer in answers if answer is not None and answer.stop)
        decision = next(stops, None)
        if decision is None and self.goal.is_early:  # shown instead: a newer figure
            progress = replace(progress, analyses=(), widths=(), provisional=self._provisional())
        return replace(progress, decision=decision)

    def state(self, *, fresh: bool) -> Progress:
        """Return the state so far, with the time until the target or the budget."""
        elapsed_s, options = self.elapsed_s, self.goal.options
        known = self.goal.state(self)
        readings, widths = known["readings"], known["widths"]
        required = [width.required for width in widths]
        sizes = [size for size in required if size is not None]
        needed = None
        if sizes and len(sizes) == len(required):
            needed = max(0, max(sizes) - readings)
        left = options.budget_s - elapsed_s
        if needed is not None and readings:
            left = min(left, max(needed * elapsed_s / readings, self.min_seconds - elapsed_s))
        return Progress(
            **known,
            fresh=fresh,
            readings_needed=needed,
            elapsed_s=elapsed_s,
            min_seconds=self.min_seconds,
            look_s=self.look_s,
            seconds_left=max(left, 0.0) if math.isfinite(left) else None,
            stop_requested=self.is_asked_to_stop,
            provisional=None if widths and widths[0].estimate else self._provisional(),
        )

    def _provisional(self) -> Width | None:
        """Return a figure of the latest readings, up to a moment old."""
        if self._figure is None or self.elapsed_ns - self._figure_ns >= _FIGURE_S * 1e9:
            self._figure = self.goal.rough_figure(FIGURE_READINGS)
            self._figure_ns = self.elapsed_ns
        return self._figure
