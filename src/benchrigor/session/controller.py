"""The base of sessions and comparisons: gives plans, takes their results, ends once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from benchrigor.errors import PlanMismatch
from benchrigor.model import Analysis, Decision, Notice, Options, Progress, StopReason
from benchrigor.model.checks import checked
from benchrigor.protocols import StopRule
from benchrigor.settings import SETTINGS


class Plan(Protocol):
    """A round to carry out."""

    @property
    def index(self) -> int:
        """Identity of the plan, counted from 0."""
        ...


P = TypeVar("P", bound=Plan)
R = TypeVar("R")

# Interval and number of last readings of the figure shown before there is an estimate. It takes
# 0.2 ms, and up to 2 ms for a quantile of rounds with one reading.
_FIGURE_S = 0.25
FIGURE_READINGS = 2_000


def check_seed(seed: object) -> int:
    """Return a seed, drawn for None; raise InvalidInput unless it is a whole number from 0 on."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return int(checked("seed", SETTINGS["seed"], seed))


def seed_of(seed: int, index: int) -> int:
    """Return the seed of one of several sessions."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


class Controller(ABC, Generic[P, R]):
    """Decides what to measure next and when to stop; a loop outside does the measuring."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.min_seconds = 0.0  # of the options, if rounds run on the wall clock
        self.look_s = 0.0  # that the latest analysis took
        self._notices: list[Notice] = []
        self._pending: P | None = None
        self._told = 0
        self._elapsed_ns = 0
        self._stop_requested = False
        self._decision: Decision | None = None
        self._progress: Progress | None = None
        self._figure: Analysis | None = None
        self._figure_ns = 0

    @property
    def decision(self) -> Decision | None:
        """Why the session ended; None while it runs."""
        return self._decision

    @property
    def progress(self) -> Progress | None:
        """State of the session after the last round; None before the first."""
        return self._progress

    def request_stop(self) -> None:
        """End the session after the round under way."""
        self._stop_requested = True

    def end(self, reason: StopReason, notice: Notice | None = None) -> None:
        """End the session from outside, unless it has ended."""
        if self._decision is not None:
            return
        if notice is not None:
            self.note(notice)
        self._pending = None
        self._decision = Decision(stop=True, reason=reason)

    def note(self, notice: Notice) -> None:
        """Add a Notice about the whole session, unless it has this one."""
        if notice not in self._notices:
            self._notices.append(notice)

    def ask(self) -> P | None:
        """Return the next plan, the same one until its result is passed; None when finished."""
        if self._stop_requested and self._pending is None:
            self.end(StopReason.STOP_REQUESTED)
        if self._decision is not None:
            return None
        if self._pending is None:
            self._pending = self._next_plan()
        return self._pending

    @abstractmethod
    def tell(self, finished: R) -> Decision:
        """Add the result of the plan, and decide whether to go on."""

    def _check_plan(self, plan: P) -> None:
        """Raise PlanMismatch unless this is the plan whose result is due."""
        if plan != self._pending:
            told = plan.index < self._told
            raise PlanMismatch(
                f"plan {plan.index} {'has been told already' if told else 'was never asked for'}; "
                "tell the plan that ask() returned, once"
            )

    def _decide(self, elapsed_ns: int) -> Decision:
        """Count a round whose readings were added, and ask the stop rules."""
        self._pending = None
        self._told += 1
        self._elapsed_ns += elapsed_ns
        progress = self._assess(look=self._is_due)
        if progress.decision is not None and not progress.fresh:
            # The last look of a session covers all its readings.
            progress = self._assess(look=True)
        self._progress = progress
        self._decision = progress.decision
        return self._decision or Decision(stop=False)

    def _assess(self, *, look: bool) -> Progress:
        """Analyse the readings if asked to, and ask the stop rules: the first to stop wins."""
        self._look(fully=look)
        progress = self._current(fresh=look)
        answers = (rule(progress) for rule in self._stop_rules())
        stops = (answer for answer in answers if answer is not None and answer.stop)
        decision = next(stops, None)
        if decision is None and self._is_early:  # shown instead: a newer figure
            progress = replace(progress, analyses=(), provisional=self._provisional())
        return replace(progress, decision=decision)

    def _progress_of(
        self, *, readings: int, analyses: tuple[Analysis, ...], **more: Any
    ) -> Progress:
        """Return the state of the session, with the time until its target or its budget."""
        required = [analysis.required for analysis in analyses if analysis.metric.must_satisfy]
        known = [size for size in required if size is not None]
        estimated = [analysis.estimate for analysis in analyses if analysis.metric.must_satisfy][:1]
        needed = None
        if known and len(known) == len(required):
            needed = max(0, max(known) - readings)
        elapsed_s = self._elapsed_ns / 1e9
        left = self.options.budget_s - elapsed_s
        if needed is not None and readings:
            left = min(left, max(needed * elapsed_s / readings, self.min_seconds - elapsed_s))
        return Progress(
            readings=readings,
            readings_needed=needed,
            elapsed_s=elapsed_s,
            min_seconds=self.min_seconds,
            look_s=self.look_s,
            seconds_left=max(left, 0.0) if math.isfinite(left) else None,
            stop_requested=self._stop_requested,
            analyses=analyses,
            provisional=None if any(estimated) else self._provisional(),
            **more,
        )

    def _provisional(self) -> Analysis | None:
        """Return a figure of the latest readings, up to a moment old."""
        if self._figure is None or self._elapsed_ns - self._figure_ns >= _FIGURE_S * 1e9:
            self._figure, self._figure_ns = self._rough_figure(), self._elapsed_ns
        return self._figure

    @abstractmethod
    def _rough_figure(self) -> Analysis | None:
        """Make a figure of the latest readings, for people to look at."""

    @abstractmethod
    def _next_plan(self) -> P | None:
        """Choose the next plan, or end the session and return None."""

    @property
    @abstractmethod
    def _is_due(self) -> bool:
        """Whether there are enough new readings for the next analysis."""

    @property
    def _is_early(self) -> bool:
        """Whether there are too few readings for a full look."""
        return False

    @abstractmethod
    def _look(self, *, fully: bool) -> None:
        """Analyse the readings so far; if not ``fully``, only for the display of progress."""

    @abstractmethod
    def _current(self, *, fresh: bool) -> Progress:
        """Return the state of the session, without a decision."""

    @abstractmethod
    def _stop_rules(self) -> Sequence[StopRule]:
        """Return the rules that may end the session."""
