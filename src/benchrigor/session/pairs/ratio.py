"""The ratio of two subjects that take turns: their order, and whether it is known. No I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput, NotEstimable, WorkloadFailed
from benchrigor.model import (
    Code,
    Comparison,
    Estimate,
    Headway,
    Metric,
    Notice,
    Observed,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    Verdict,
    Width,
)
from benchrigor.model.checks import as_share, attempt
from benchrigor.model.machine import INTERPRETER
from benchrigor.model.run import BASELINE, CANDIDATE
from benchrigor.model.series import Floats
from benchrigor.session.engine import Engine, Taken
from benchrigor.session.outcomes import warn_not_converged
from benchrigor.session.red_rounds import was_stopped
from benchrigor.session.schedules import INVOCATION, Blocks, check_seed
from benchrigor.session.stop_rules import agrees, default_rules
from benchrigor.stats.changepoints.ruptures_adapter import detector_named
from benchrigor.stats.comparison.process_blocks import to_one_pace
from benchrigor.stats.comparison.samples import (
    answer,
    asked_of,
    check_margin,
    comparable_statistic,
    direction_named,
    refuse_zeros,
)
from benchrigor.stats.comparison.two_sample import compare_pairs, compare_samples
from benchrigor.stats.multimodality import observe
from benchrigor.stats.phases.stable_phase import STABLE_SHARE, moved_on
from benchrigor.stats.readings.analysis import notice_of
from benchrigor.stats.readings.asked_readings import (
    Readings,
    Unit,
    needed_for_share,
    needed_for_width,
    next_check,
)
from benchrigor.stats.readings.inference_units import SINGLE, SUCCESSIVE, unit_of_rounds
from benchrigor.stats.series.interval import MIN_FOR_VARIANCE, too_few
from benchrigor.stats.series.undisturbed import Groups, choose_undisturbed, groups_of, join_groups
from benchrigor.stats.statistic import latest, rough_figure

_TIME = "time"
_STOPPED_PAIR = Notice.of(Code.STOPPED, "pair")
Pair = tuple[Round, Round]  # of baseline and candidate, side by side
RATIO = "ratio"
# The pace of a machine changes less from one short invocation to the next.
_SHORT = 100
_WARMING = 1.05  # times as slow as later readings, in all invocations of the first block


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The comparison of the ``n`` undisturbed ones of all pairs.

    If there is an estimate, pairs from ``start`` to ``stop`` count.
    """

    comparison: Comparison
    taken: int
    n: int
    start: int
    stop: int


class Pairs:
    """Pairs of neighbouring readings so far, and how their sides compare."""

    unit: Unit = SUCCESSIVE  # of a series of pairs
    ended = False  # whether the last ones may be a cool-down: if more could follow, none is
    first = 1  # readings of the first turn, of each invocation

    def __init__(self, asked: Readings, margin: float, *, disturbed: str) -> None:
        self._asked, self._margin, self._disturbed = asked, margin, disturbed
        self._sides: tuple[list[Floats], list[Floats]] = ([], [])  # by round
        self._groups: list[Groups] = []
        self.taken = self.readings = 0  # readings of either side, of both in invocations
        self.invocations, self.invocation = 0, self.first  # readings that the next one takes
        self.busy_s = 0.0  # time of the readings of invocations
        self.by_turns = False  # whether the last two took theirs by turns
        self.stopped = False  # whether some pair does not count, as a process was stopped

    def add(self, pair: Pair) -> None:
        """Add two rounds; the delays of both count."""
        one, two = map(values_of, pair)
        self._sides[0].append(one)
        self._sides[1].append(two)
        self._groups.append(groups_of(pair[0].delays, one + two))
        self.taken += one.size
        self.readings = self.taken

    def latest(self, n: int) -> tuple[Floats, Floats]:
        """Return up to ``n`` of the last pairs, the means of invocations."""
        one, two = (latest(side, n) for side in self._sides)
        return one, two

    def look(self) -> Look:
        """Compare the pairs so far."""
        baseline, candidate, told = self._undisturbed()
        start = stop = 0
        try:
            refuse_zeros((BASELINE, baseline), (CANDIDATE, candidate))
            comparison, pairs = compare_pairs(baseline, candidate, self._asked, self._margin)
            comparison = replace(comparison, notices=(*comparison.notices, *told))
            start, stop = pairs.start, pairs.stop
        except NotEstimable as error:
            comparison = self._undecided(error)
        n = baseline.size
        return Look(comparison=comparison, taken=self.taken, n=n, start=start, stop=stop)

    def _undecided(self, why: NotEstimable) -> Comparison:
        refusal, undecided = (notice_of(why),), Verdict.UNDECIDED
        return answer(self._asked, self._margin, unit="pair", verdict=undecided, notices=refusal)

    def _undisturbed(self) -> tuple[Floats, Floats, tuple[Notice, ...]]:
        """Return the pairs of readings that count: both are undisturbed."""
        baseline, candidate = (np.concatenate([np.empty(0), *side]) for side in self._sides)
        self._sides = [baseline], [candidate]
        if self._disturbed == "keep" or not self._groups:
            return baseline, candidate, ()
        self._groups = [join_groups(self._groups)]
        chosen, notices = choose_undisturbed(self._groups[0])
        if chosen is None:
            return baseline, candidate, notices
        if chosen.matters:
            who = "A stop of the process, and other work," if chosen.stopped else "Other work"
            figures = {"measured_percent": 100.0 * chosen.lost, "left_out_": chosen.left_out}
            notices += (Notice.of(Code.DISTURBED, "pairs", who_=who, all_=chosen.n, **figures),)
        return baseline[chosen.indices], candidate[chosen.indices], notices


class PairsOfInvocations(Pairs):
    """Pairs of invocations: series, both cut in one way."""

    unit, ended, first = SINGLE, True, INVOCATION

    def __init__(self, asked: Readings, margin: float, *, disturbed: str) -> None:
        super().__init__(asked, margin, disturbed=disturbed)
        self._paces: list[list[float]] = []  # of the reference next to invocations

    def add(self, pair: Pair) -> None:
        """Add two invocations, unless one was stopped; those by turns share the same pace."""
        self.busy_s += sum(float(values_of(one).sum()) * one.calls_per_reading for one in pair)
        self.by_turns = any(bool(finished.facts.get("by_turns")) for finished in pair)
        if any(map(was_stopped, pair)):
            self.stopped = True
            return
        for side, finished in zip(self._sides, pair, strict=True):
            side.append(_series_of(finished))
            self.readings += side[-1].size
        self.taken += 1
        self.invocations += 2
        self.invocation = self._next_size()
        paces = [one.references.seconds.get(INTERPRETER) for one in pair if one.references]
        times = [float(np.median(pace)) for pace in paces if pace is not None]
        if len(times) == len(pair) and not self.by_turns:
            self._paces.append(times)

    def _next_size(self) -> int:
        """Return few readings, unless the first invocations still warm up."""
        first = [series for side in self._sides for series in side[:2]]
        is_warming = all(
            series.size <= _SHORT
            or np.median(series[_SHORT // 2 : _SHORT])
            > _WARMING * np.median(series[max(series.size // 2, _SHORT) :])
            for series in first
        )
        return INVOCATION if is_warming else _SHORT

    def latest(self, n: int) -> tuple[Floats, Floats]:
        """Return the means of up to ``n`` of the last ones of either side."""
        one, two = (np.array([series.mean() for series in side[-n:]]) for side in self._sides)
        return one, two

    def look(self) -> Look:
        """Compare the invocations so far, which are cut one by one."""
        try:
            comparison = self._compare()
        except NotEstimable as error:
            comparison = self._undecided(error)
        return Look(comparison=comparison, taken=self.taken, n=self.taken, start=0, stop=self.taken)

    def _compare(self) -> Comparison:
        """Compare the invocations; a quantile of single readings is taken over all of them."""
        asked, margin = self._asked, self._margin
        if self.taken < MIN_FOR_VARIANCE:
            raise NotEstimable(too_few(self.taken, MIN_FOR_VARIANCE))
        refuse_zeros(*zip((BASELINE, CANDIDATE), map(tuple, self._sides), strict=True))
        are_series = any(series.size > 1 for side in self._sides for series in side)
        if asked.statistic.q is not None and not are_series:
            one, two = map(np.concatenate, self._sides)
            return compare_pairs(one, two, replace(asked, searched=False), margin)[0]
        asked = replace(asked, searched=are_series)
        return compare_samples(*self._at_one_pace(), asked, margin, paired=True, positive=True)

    def _at_one_pace(self) -> tuple[Sequence[Floats], Sequence[Floats]]:
        """Return the invocations as at the same pace, as far as they follow the reference."""
        if len(self._paces) != self.taken:
            return self._sides
        levels = np.array([[series.mean() for series in side] for side in self._sides]).T
        factors = to_one_pace(levels, np.array(self._paces)).T
        one, two = (
            [series * factor for series, factor in zip(*side, strict=True)]
            for side in zip(self._sides, factors, strict=True)
        )
        return one, two


def values_of(finished: Round) -> Floats:
    """Return the times of a round: of its units of work, or of the whole."""
    units: Floats | None = finished.unit_readings.get(_TIME)
    if units is not None:
        return units
    if _TIME not in finished.readings:
        raise WorkloadFailed(f"it gave no readings of {_TIME!r}, expected some to compare")
    return np.array([finished.readings[_TIME]])


def _series_of(finished: Round) -> Floats:
    """Return the times of an invocation, without those with delay if enough others remain."""
    values = values_of(finished)
    if values.size == 1:
        return values
    chosen, _ = choose_undisturbed(groups_of(finished.delays, values))
    kept: Floats = values if chosen is None else values[chosen.indices]
    return kept


_IN_PROPORTION = 2.0  # The half-width wanted grows with ratios above this
_CLASSICAL = 0.005  # default half-width without a margin
_RATIO = Metric(name=RATIO)  # candidate over baseline; its readings are pairs


def whole_of_ratio(ratio: float) -> float:
    """Return what a relative half-width is a share of: the ratio itself above 2, in proportion."""
    return max(1.0, ratio / _IN_PROPORTION)


class Ratio:
    """The ratio of two subjects, baseline and candidate: the goal of measuring both in turn.

    Parameters as of `measure_pair`; ``options`` are confidence, statistic, budget_s, preset
    and detector.

    Readings come in `Blocks`.

    The first look is at 500 pairs (by the preset), and the number grows by half from look to look.
    The engine stops by the width of the ratio's interval alone: two looks in a row must agree, with
    100 effective pairs and a stable phase of 0.9 of all pairs. It never looks at a verdict or a
    p-value: a measurement that continued until it found a difference would find one.

    With restarted rounds a plan is one block of four invocations, an invocation is a series, and
    the first look is at 10 pairs; else the readings of a plan are its pairs.
    """

    name, is_early = RATIO, False

    def __init__(
        self,
        *,
        margin: float | str = 0.01,
        target: float | str | None = None,
        direction: str | None = "lower",
        seed: int | None = 0,
        **options: Any,
    ) -> None:
        problems: list[str] = []
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
        self.runs: tuple[str, ...] = ()  # ids of both sides where they are kept, from the end on
        kind = PairsOfInvocations if unit_of_rounds(checked).restarted else Pairs
        self._asked = asked_of(
            checked.statistic,
            checked.confidence,
            way,
            trim=True,
            detector=detector_named(checked.detector),
            ended=kind.ended,
        )
        self.schedule = Blocks((BASELINE, CANDIDATE), checked, self.seed)
        self._floor = kind.unit.evidence(checked.preset)
        self.rules = default_rules(checked, calls=2)
        self._so_far = kind(self._asked, margin, disturbed=checked.disturbed)
        self._last = (0, 0.0)
        self._next_check = self._floor.first_check
        self._latest: Look | None = None
        self._earlier: Estimate | None = None  # ratio of the last look
        self._agreed, self._checked_at = False, 0

    @property
    def pairs(self) -> int:
        """How many pairs were taken."""
        return self._so_far.taken

    def headways(self, engine: Engine[Any]) -> dict[str, Headway]:
        """Return what its schedule sees."""
        last_readings, last_s = self._last
        headway = Headway(
            turns=engine.told,
            readings=self._so_far.readings,
            elapsed_s=engine.elapsed_s,
            last_readings=last_readings,
            last_s=last_s,
            to_next_check=self._next_check - self.pairs,
            invocations=self._so_far.invocations,
            first_invocation=self._so_far.invocation,
            busy_s=self._so_far.busy_s,
            as_long_as_start=self._so_far.by_turns,
        )
        return {self.name: headway}

    def check(self, finished: Taken) -> None:
        """Take the result of a loop of this package as it is."""

    def take(self, finished: Taken, engine: Engine[Any]) -> None:
        """Add the rounds of a turn, but no pair of which a process was stopped."""
        before = self.pairs
        for pair in finished.rounds:
            self._so_far.add(pair)
        for notice in finished.notices:
            engine.note(notice)
        if self._so_far.stopped:
            engine.note(_STOPPED_PAIR)
        self._last = self.pairs - before, finished.elapsed_ns / 1e9

    def result(self, engine: Engine[Any]) -> Comparison:
        """Return the comparison of all pairs so far.

        If the pairs allow no estimate its verdict is UNDECIDED, and a Notice says why.
        """
        look, decision = self._latest_look(), engine.decision
        comparison, ratio = look.comparison, look.comparison.ratio
        ended = decision is not None and not decision.satisfied
        before: tuple[Notice, ...] = ()
        if ended and self._is_asked and ratio is not None:
            wanted = self._target * whole_of_ratio(ratio.value)
            before = (warn_not_converged(ratio.half_width, wanted, 1.0, "baseline"),)
        after = moved_on(look.n - look.stop, "pairs") if 0 < look.stop < look.n else ()
        notices = (*before, *comparison.notices, *after, *engine.notices)
        difference = comparison.difference
        return replace(
            comparison,
            ratio=ratio and replace(ratio, notices=notices),
            difference=difference and replace(difference, notices=notices),
            notices=notices,
            reason=None if decision is None else decision.reason,
            elapsed_s=engine.elapsed_s,
            observed=self._observe() if ratio is None and self.pairs else {},
            readings_in="s",
            names=self.names,
        )

    def _observe(self) -> dict[str, Observed]:
        """Describe readings, or means, of both, and their ratios, by themselves."""
        baseline, candidate = self._so_far.latest(self.pairs)
        series = {BASELINE: baseline, CANDIDATE: candidate}
        if baseline.min() > 0.0:
            series[RATIO] = candidate / baseline
        return {name: observe(values) for name, values in series.items()}

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

    def rough_figure(self, most: int) -> Width | None:
        """Make a figure of the latest pairs."""
        baseline, candidate = self._so_far.latest(most)
        if not baseline.size:
            return None
        ratio = rough_figure(
            candidate,
            baseline,
            statistic=self._asked.statistic,
            confidence=self.options.confidence,
        )
        return Width(metric=_RATIO, estimate=ratio)

    def state(self, engine: Engine[Any]) -> dict[str, Any]:
        """Return the progress."""
        look, (last_readings, last_s) = self._latest, self._last
        counted = self.pairs - (0 if look is None else look.taken - look.n)
        return {
            "readings": self.pairs,
            "rounds": engine.told,
            "rejected_rounds": 0,
            "widths": () if look is None else (self._width_of(look),),
            "agreed": self._agreed,
            "reading_s": last_s / max(last_readings, 1),
            "kept": 2 * self.pairs,
            "missing": () if counted >= self._floor.first_check else (_RATIO.name,),
        }

    def _width_of(self, look: Look) -> Width:
        """Return how wide the interval of a look is, with the pairs that it takes in all."""
        ratio, n = look.comparison.ratio, look.n
        if ratio is None:
            return Width(metric=_RATIO, estimate=None, is_enough=False, is_settled=False)
        wanted, is_open = self._target * whole_of_ratio(ratio.value), look.stop < n
        needed = needed_for_width(ratio, ratio.half_width / wanted, n, self._floor)
        before = look.stop if is_open else look.start  # an ended phase counts not
        return Width(
            metric=_RATIO,
            estimate=ratio,
            whole=whole_of_ratio(ratio.value),
            is_enough=ratio.n_effective >= self._floor.effective_of(n),
            is_settled=not is_open and look.stop - look.start >= STABLE_SHARE * n,
            required=math.ceil(max(needed, needed_for_share(before)) * look.taken / n),
        )


def shared_rounds(runs: Sequence[RunRecord]) -> list[tuple[Round, ...]]:
    """Return the rounds of each run that all of them have, by index, and that ran to their ends.

    Runs that take turns have a round in each: those of the same index were side by side.
    """
    whole = [{round_.plan.index: round_ for round_ in run.rounds if not round_.cut} for run in runs]
    shared = sorted(set.intersection(*map(set, whole)))
    return [tuple(rounds[index] for index in shared) for rounds in whole]


def compare_in_turn(
    baseline: RunRecord, candidate: RunRecord, *, statistic: str | None = None, **asked: Any
) -> Comparison:
    """Compare both runs of a comparison pair by pair, as it did; ``asked`` as of `Ratio`."""
    own = baseline.options
    ratio = Ratio(
        rounds=own.rounds,
        statistic=statistic or own.statistic,
        disturbed=own.disturbed,
        detector=own.detector,
        **asked,
    )
    ratio.names = (baseline.name, candidate.name)
    pairs, engine = [*zip(*shared_rounds([baseline, candidate]), strict=True)], Engine(ratio)
    ratio.take(Taken(plan=RoundPlan(index=0), rounds=pairs, elapsed_ns=0), engine)
    return replace(ratio.result(engine), elapsed_s=None)
