"""Order the readings of two functions, and stop when their ratio is known. No I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import (
    Analysis,
    Comparison,
    Decision,
    Delays,
    Estimate,
    Metric,
    Notice,
    Options,
    Progress,
    StopReason,
)
from benchrigor.model.checks import as_share, attempt
from benchrigor.protocols import StopRule
from benchrigor.session.controller import FIGURE_READINGS, Controller, check_seed
from benchrigor.session.outcomes import warn_not_converged
from benchrigor.session.pairs.pairs_so_far import (
    RATIO,
    Look,
    Paces,
    PairsOfInvocations,
    PairsOfReadings,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlan:
    """Pairs of readings to take."""

    index: int
    order: tuple[str, ...]  # in blocks of four; the i-th readings of both are a pair
    seconds: float | None = None  # rest of the budget; None without one
    readings: int | None = None  # per invocation; None if pairs are of readings

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self.order) // 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairRound:
    """The readings of a plan by function, in the order in which they were taken.

    If pairs are of invocations, an invocation is a series.
    """

    plan: PairPlan
    baseline: Any  # shape (plan.pairs,), or a series per pair; fewer if the time was up
    candidate: Any
    elapsed_ns: int  # wall time since the plan before
    cut: bool = False  # whether the time was up
    notices: tuple[Notice, ...] = ()
    delays: Delays | None = None  # measured, of groups of successive pairs
    busy_s: float = 0.0  # of invocations: how long the calls of their readings took
    paces: Paces = ()  # of invocations, if all have a reference
    by_turns: bool = False  # whether the processes of a pair took their readings by turns


def _question(options: Options, margin: float, direction: str | None, *, goes_on: bool) -> Question:
    """Ask for the ratio of pairs; if more of them could follow, none has cooled down."""
    return Question(
        statistic=options.statistic,
        confidence=options.confidence,
        trim=True,
        detector=detector_named(options.detector),
        margin=margin,
        direction=direction,
        paired=True,
        goes_on=goes_on,
    )


class PairEngine(Controller[PairPlan, PairRound]):
    """A comparison without I/O: `ask` plans the order of readings, `tell` takes them.

    Parameters as of `measure_pair`; ``options`` are confidence, statistic, budget_s, preset
    and detector.

    Readings come in blocks, baseline-candidate-candidate-baseline or the reverse. Both kinds are
    equally frequent and shuffled. Drift that both sides share cancels within a block.

    The first look is at 500 pairs (by the preset), and the number grows by half from look to look.
    The engine stops by the width of the ratio's interval alone: two looks in a row must agree, with
    100 effective pairs and a stable phase of 0.9 of all pairs. It never looks at a verdict or a
    p-value: a measurement that continued until it found a difference would find one.

    With ``by_round`` a plan is one block of four invocations, an invocation is a series, and the
    first look is at 10 pairs.
    """

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
        super().__init__(checked)
        self.command_line = ""  # measures both sides again; kept with both runs
        self.names: tuple[str, ...] = ()  # of both sides for people
        self._question = _question(checked, margin, way, goes_on=not by_round)
        unit = SINGLE if by_round else SUCCESSIVE
        floor = self._floor = unit.evidence(checked.preset)
        self._rules: tuple[StopRule, ...] = (
            when_satisfied(minimum_effective(floor), self._is_steady, self._is_narrow),
            limit(StopReason.STOP_REQUESTED, 1),
            limit(StopReason.TIME_BUDGET, checked.budget_s),
            limit(StopReason.MEMORY_LIMIT, MOST_READINGS),
            in_time(checked.budget_s, calls=2),
        )
        self._by_round, self._by_turns, self._busy_s = by_round, False, 0.0
        self._so_far: PairsOfReadings | PairsOfInvocations = (
            PairsOfInvocations(self._question)
            if by_round
            else PairsOfReadings(self._question, disturbed=checked.disturbed)
        )
        self._last = (0, 0)
        self._next_check = self._floor.first_check
        self._latest: Look | None = None
        self._earlier: Estimate | None = None  # ratio of the last look
        self._agreed, self._checked_at = False, 0

    @property
    def pairs(self) -> int:
        """How many pairs were taken."""
        return self._so_far.taken

    def _pace(self) -> Pace:
        return Pace(
            readings=self._so_far.readings,
            elapsed_s=self._elapsed_ns / 1e9,
            last_readings=self._last[0],
            last_s=self._last[1] / 1e9,
            to_next_check=self._next_check - self.pairs,
            invocations=2 * self.pairs if self._by_round else 0,
            invocation=self._so_far.invocation,
            least_invocations=_LEAST_INVOCATIONS,
            busy_s=self._busy_s,
            as_long_as_start=self._by_turns,
        )

    def _next_plan(self) -> PairPlan:
        pace = self._pace()
        readings = next_readings(pace, self.options)
        blocks = 1 if self._by_round else math.ceil(readings / 2)
        left_s = self.options.budget_s - pace.elapsed_s
        return PairPlan(
            index=self._told,
            order=self._order(blocks),
            seconds=left_s if math.isfinite(left_s) else None,
            readings=readings if self._by_round else None,
        )

    def _order(self, blocks: int) -> tuple[str, ...]:
        """Shuffle equally many blocks of either kind; an odd one is of a random kind."""
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, self._told]))
        kinds = (np.arange(blocks) + rng.integers(2)) % 2
        return tuple(name for kind in rng.permutation(kinds) for name in _BLOCKS[kind])

    def tell(self, finished: PairRound) -> Decision:
        """Add the readings of a plan and decide whether to go on."""
        plan = finished.plan
        self._check_plan(plan)
        added = self.add(finished.baseline, finished.candidate, finished.delays, finished.paces)
        self._busy_s += finished.busy_s
        self._by_turns = finished.by_turns
        for notice in finished.notices:
            self.note(notice)
        self._last = added, finished.elapsed_ns
        return self._decide(finished.elapsed_ns)

    def add(self, baseline: Any, candidate: Any, delays: Delays | None, paces: Paces = ()) -> int:
        """Add pairs, as of a `PairRound`, that were not asked for; return how many readings."""
        return self._so_far.add(baseline, candidate, delays, paces)

    def result(self) -> Comparison:
        """Return the comparison of all pairs so far, also while it runs.

        If the pairs allow no estimate its verdict is UNDECIDED, and a Notice says why.
        """
        look = self._latest_look()
        comparison, ratio = look.comparison, look.comparison.ratio
        ended = self._decision is not None and not self._decision.satisfied
        before: tuple[Notice, ...] = ()
        if ended and self._is_asked and ratio is not None:
            wanted = self._wanted_at(ratio.value)
            before = (warn_not_converged(ratio.half_width, wanted, 1.0, "baseline"),)
        after = moved_on(look.n - look.stop, "pairs") if 0 < look.stop < look.n else ()
        notices = (*before, *comparison.notices, *after, *self._notices)
        difference = comparison.difference
        return replace(
            comparison,
            ratio=ratio and replace(ratio, notices=notices),
            difference=difference and replace(difference, notices=notices),
            notices=notices,
            reason=None if self._decision is None else self._decision.reason,
            elapsed_s=self._elapsed_ns / 1e9,
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
    def _is_due(self) -> bool:
        return self.pairs >= self._next_check

    def _look(self, *, fully: bool) -> None:
        if not fully:
            return
        ratio = self._latest_look().comparison.ratio
        if self.pairs > self._checked_at:
            self._agreed, self._checked_at = agrees(ratio, self._earlier), self.pairs
            self._earlier = ratio
        if self._is_due:
            self._next_check = next_check(self.pairs)

    def _rough_figure(self) -> Analysis | None:
        baseline, candidate = self._so_far.latest(FIGURE_READINGS)
        if not baseline.size:
            return None
        ratio = rough_figure(
            candidate,
            baseline,
            statistic=self._question.asked,
            confidence=self._question.confidence,
        )
        return Analysis(metric=_RATIO, kind=SUCCESSIVE.kind, n=self.pairs, estimate=ratio)

    def _stop_rules(self) -> Sequence[StopRule]:
        return self._rules

    def _current(self, *, fresh: bool) -> Progress:
        look = self._latest
        counted = self.pairs - (0 if look is None else look.taken - look.n)
        return self._progress_of(
            readings=self.pairs,
            rounds=self._told,
            rejected_rounds=0,
            analyses=() if self._latest is None else (self._analysis_of(self._latest),),
            fresh=fresh,
            agreed=self._agreed,
            reading_s=self._pace().reading_s,
            kept=2 * self.pairs,
            missing=() if counted >= self._floor.first_check else (_RATIO.name,),
        )

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
