"""The ratio of two subjects that take turns: their order, and whether it is known. No I/O."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import (
    Analysis,
    Comparison,
    Estimate,
    Metric,
    Notice,
    Options,
    Progress,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.model.checks import as_share, attempt
from benchrigor.protocols import StopRule
from benchrigor.session.conditions.red_rounds import was_stopped
from benchrigor.session.engine import Engine, Turn, check_seed
from benchrigor.session.metric_readings import calls_per_reading
from benchrigor.session.outcomes import warn_not_converged
from benchrigor.session.pairs.pairs_so_far import (
    RATIO,
    STOPPED_PAIR,
    Look,
    PairsOfInvocations,
    PairsOfReadings,
    is_by_turns,
    values_of,
)
from benchrigor.session.schedule.pacing import Pace, next_readings
from benchrigor.session.stop_rules import (
    MOST_READINGS,
    agrees,
    in_time,
    limit,
    minimum_effective,
    when_satisfied,
)
from benchrigor.session.stored_runs import BASELINE, CANDIDATE
from benchrigor.stats.changepoints.ruptures_adapter import detector_named
from benchrigor.stats.comparison.samples import (
    Question,
    check_margin,
    comparable_statistic,
    direction_named,
)
from benchrigor.stats.estimators.rough_figure import rough_figure
from benchrigor.stats.phases.phase_search import STABLE_SHARE, moved_on
from benchrigor.stats.readings.evidence import needed_for_share, needed_for_width, next_check
from benchrigor.stats.readings.inference_units import SINGLE, SUCCESSIVE

_BLOCKS = ((BASELINE, CANDIDATE, CANDIDATE, BASELINE), (CANDIDATE, BASELINE, BASELINE, CANDIDATE))
_IN_PROPORTION = 2.0  # The half-width wanted grows with ratios above this
_LEAST_INVOCATIONS = 40  # so that the time holds two looks, which may agree
_CLASSICAL = 0.005  # default half-width without a margin
_RATIO = Metric(name=RATIO)  # candidate over baseline; its readings are pairs


class Ratio:
    """The ratio of two subjects, baseline and candidate: the goal of measuring both in turn.

    Parameters as of `measure_pair`; ``options`` are confidence, statistic, budget_s, preset
    and detector.

    Readings come in blocks, baseline-candidate-candidate-baseline or the reverse. Both kinds are
    equally frequent and shuffled. Drift that both sides share cancels within a block.

    The first look is at 500 pairs (by the preset), and the number grows by half from look to look.
    The engine stops by the width of the ratio's interval alone: two looks in a row must agree, with
    100 effective pairs and a stable phase of 0.9 of all pairs. It never looks at a verdict or a
    p-value: a measurement that continued until it found a difference would find one.

    With ``by_round`` a plan is one block of four invocations, an invocation is a series, and the
    first look is at 10 pairs; else the readings of a plan are its pairs.
    """

    is_early = False

    def __init__(
        self,
        *,
        margin: float | str = 0.01,
        target: float | str | None = None,
        direction: str | None = "lower",
        seed: int | None = 0,
        by_round: bool = False,
        **options: Any,
    ) -> None:
        problems: list[str] = []
        options |= {"rounds": "restarted"} if by_round else {}
        margin = attempt(problems, check_margin, margin) or 0.0
        self._is_asked = target is not None
        self._target = (margin / 2.0 or _CLASSICAL) if target is None else as_share(target)
        checked = attempt(problems, partial(Options, target=self._target, **options))
        if checked is not None:
            attempt(problems, comparable_statistic, checked.statistic)
        way = attempt(problems, direction_named, direction)
        self.seed = attempt(problems, check_seed, seed) or 0
        if problems or checked is None:
            raise InvalidInput(problems)
        self.options = checked
        self.command_line = ""  # measures both sides again; kept with both runs
        self.names: tuple[str, ...] = ()  # of both sides for people
        self._question = Question(
            statistic=checked.statistic,
            confidence=checked.confidence,
            trim=True,
            detector=detector_named(checked.detector),
            margin=margin,
            direction=way,
            paired=True,
            goes_on=not by_round,  # if more pairs could follow, none has cooled down
        )
        unit = SINGLE if by_round else SUCCESSIVE
        floor = self._floor = unit.evidence(checked.preset)
        self.rules: tuple[StopRule, ...] = (
            when_satisfied(minimum_effective(floor), self._is_steady, self._is_narrow),
            limit(StopReason.STOP_REQUESTED, 1),
            limit(StopReason.TIME_BUDGET, checked.budget_s),
            limit(StopReason.MEMORY_LIMIT, MOST_READINGS),
            in_time(checked.budget_s, calls=2),
        )
        self.by_round = by_round
        self._so_far: PairsOfReadings | PairsOfInvocations = (
            PairsOfInvocations(self._question)
            if by_round
            else PairsOfReadings(self._question, disturbed=checked.disturbed)
        )
        self._turns, self._busy_s, self._by_turns = 0, 0.0, False
        self._last = (0, 0.0)
        self._notices: list[Notice] = []
        self._next_check = self._floor.first_check
        self._latest: Look | None = None
        self._earlier: Estimate | None = None  # ratio of the last look
        self._agreed, self._checked_at = False, 0

    @property
    def pairs(self) -> int:
        """How many pairs were taken."""
        return self._so_far.taken

    def next_plan(self, engine: Engine[Any]) -> RoundPlan:
        """Choose how many pairs to take, or how many readings per invocation."""
        elapsed_s = engine.elapsed_ns / 1e9
        last_readings, last_s = self._last
        pace = Pace(
            readings=self._so_far.readings,
            elapsed_s=elapsed_s,
            last_readings=last_readings,
            last_s=last_s,
            to_next_check=self._next_check - self.pairs,
            invocations=2 * self.pairs if self.by_round else 0,
            invocation=self._so_far.invocation,
            least_invocations=_LEAST_INVOCATIONS,
            busy_s=self._busy_s,
            as_long_as_start=self._by_turns,
        )
        readings = next_readings(pace, self.options)
        left_s = self.options.budget_s - elapsed_s
        return RoundPlan(
            index=engine.told,
            readings=readings if self.by_round else 2 * math.ceil(readings / 2),
            seconds=left_s if 0.0 < left_s < math.inf else None,
        )

    def order(self, plan: RoundPlan) -> tuple[str, ...]:
        """Shuffle equally many blocks of either kind; an odd one is of a random kind.

        The i-th readings, or rounds, of both are a pair.
        """
        blocks = 1 if self.by_round else plan.readings // 2
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, plan.index]))
        kinds = (np.arange(blocks) + rng.integers(2)) % 2
        return tuple(name for kind in rng.permutation(kinds) for name in _BLOCKS[kind])

    def check(self, finished: Turn) -> None:
        """Take what a loop of this package tells as it is."""

    def end(self) -> None:
        """Cut no cool-down: readings of pairs end with the engine."""

    def take(self, finished: Turn, _: float) -> None:
        """Add the rounds of a turn."""
        before = self.pairs
        for pair in finished.rounds:
            self.add(pair)
            if self.by_round:
                self._busy_s += sum(
                    float(values_of(one).sum()) * calls_per_reading(one) for one in pair
                )
                self._by_turns = any(map(is_by_turns, pair))
        for notice in finished.notices:
            self._note(notice)
        self._turns += 1
        self._last = self.pairs - before, finished.elapsed_ns / 1e9

    def add(self, pair: tuple[Round, Round]) -> None:
        """Add the rounds of both that were side by side, unless a process was stopped."""
        if self.by_round and any(map(was_stopped, pair)):
            self._note(STOPPED_PAIR)
        else:
            self._so_far.add(pair)

    def _note(self, notice: Notice) -> None:
        if notice not in self._notices:
            self._notices.append(notice)

    def result(self, engine: Engine[Any]) -> Comparison:
        """Return the comparison of all pairs so far.

        If the pairs allow no estimate its verdict is UNDECIDED, and a Notice says why.
        """
        look, decision = self._latest_look(), engine.decision
        comparison, ratio = look.comparison, look.comparison.ratio
        ended = decision is not None and not decision.satisfied
        before: tuple[Notice, ...] = ()
        if ended and self._is_asked and ratio is not None:
            wanted = self._wanted_at(ratio.value)
            before = (warn_not_converged(ratio.half_width, wanted, 1.0, "baseline"),)
        after = moved_on(look.n - look.stop, "pairs") if 0 < look.stop < look.n else ()
        notices = (*before, *comparison.notices, *after, *self._notices, *engine.notices)
        difference = comparison.difference
        return replace(
            comparison,
            ratio=ratio and replace(ratio, notices=notices),
            difference=difference and replace(difference, notices=notices),
            notices=notices,
            reason=None if decision is None else decision.reason,
            elapsed_s=engine.elapsed_ns / 1e9,
            observed=self._so_far.observe() if ratio is None and self.pairs else {},
            readings_in="s",
            names=self.names,
        )

    def _wanted_at(self, ratio: float) -> float:
        """Return the half-width wanted at a ratio, in proportion to a ratio above 2."""
        return self._target * max(1.0, ratio / _IN_PROPORTION)

    def _latest_look(self) -> Look:
        if self._latest is None or self._latest.taken != self.pairs:
            self._latest = self._so_far.look()
        return self._latest

    @property
    def is_due(self) -> bool:
        """Whether there are enough new pairs for the next look."""
        return self.pairs >= self._next_check

    def look(self, *, fully: bool) -> None:
        """Compare the pairs so far, if ``fully``."""
        if not fully:
            return
        ratio = self._latest_look().comparison.ratio
        if self.pairs > self._checked_at:
            self._agreed, self._checked_at = agrees(ratio, self._earlier), self.pairs
            self._earlier = ratio
        if self.is_due:
            self._next_check = next_check(self.pairs)

    def rough_figure(self, most: int) -> Analysis | None:
        """Make a figure of the latest pairs."""
        baseline, candidate = self._so_far.latest(most)
        if not baseline.size:
            return None
        ratio = rough_figure(
            candidate,
            baseline,
            statistic=self._question.asked,
            confidence=self._question.confidence,
        )
        return Analysis(metric=_RATIO, kind=SUCCESSIVE.kind, n=self.pairs, estimate=ratio)

    def state(self, _: float) -> dict[str, Any]:
        """Return what is known of the progress."""
        look, (last_readings, last_s) = self._latest, self._last
        counted = self.pairs - (0 if look is None else look.taken - look.n)
        return {
            "readings": self.pairs,
            "rounds": self._turns,
            "rejected_rounds": 0,
            "analyses": () if look is None else (self._analysis_of(look),),
            "agreed": self._agreed,
            "reading_s": last_s / max(last_readings, 1),
            "kept": 2 * self.pairs,
            "missing": () if counted >= self._floor.first_check else (_RATIO.name,),
        }

    def _analysis_of(self, look: Look) -> Analysis:
        """Return the look for stop rules and displays of progress, with the pairs needed in all."""
        ratio, required = look.comparison.ratio, None
        if ratio is not None:
            excess = ratio.half_width / self._wanted_at(ratio.value)
            needed = needed_for_width(ratio, excess, look.n, self._floor)
            before = look.start if look.stop == look.n else look.stop  # an ended phase counts not
            required = math.ceil(max(needed, needed_for_share(before)) * look.taken / look.n)
        return Analysis(
            metric=_RATIO,
            kind=SUCCESSIVE.kind,
            n=look.n,
            n_kept=look.stop - look.start,
            estimate=ratio,
            required=required,
            notices=look.comparison.notices,
        )

    def _is_steady(self, _: Progress) -> bool:
        look = self._latest
        if look is None or look.stop < look.n:
            return False
        return look.stop - look.start >= STABLE_SHARE * look.n

    def _is_narrow(self, progress: Progress) -> bool:
        return all(
            analysis.estimate is not None
            and analysis.estimate.half_width <= self._wanted_at(analysis.estimate.value)
            for analysis in progress.analyses
        )


def compare_in_turn(baseline: RunRecord, candidate: RunRecord, question: Question) -> Comparison:
    """Compare both sides of a comparison pair by pair, as it did."""
    own = baseline.options
    ratio = Ratio(
        margin=question.margin,
        direction=question.direction,
        by_round=own.rounds == "restarted",
        statistic=question.statistic or own.statistic,
        confidence=question.confidence,
        disturbed=own.disturbed,
        detector=own.detector,
    )
    ratio.names = (baseline.name, candidate.name)
    # A process that was ended has none next to it.
    whole = ([round_ for round_ in run.rounds if not round_.cut] for run in (baseline, candidate))
    for pair in zip(*whole, strict=False):
        ratio.add(pair)
    return replace(ratio.result(Engine(ratio)), elapsed_s=None)
