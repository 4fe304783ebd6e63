"""When to stop: criteria of being satisfied, and rules of which the first answer wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from benchrigor.model import (
    Analysis,
    Decision,
    Estimate,
    Kind,
    Metric,
    Options,
    Progress,
    StopReason,
)
from benchrigor.protocols import StopRule
from benchrigor.stats.phases.trimming import STABLE_SHARE
from benchrigor.stats.series.interval import student_t
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION

GROWTH = 1.5
"""Factor from one look to the next: whoever looks after every reading stops on a lucky small
variance, and intervals no longer cover."""
EFFECTIVE_ROUNDS = 20.0
"""Effective rounds, at least, where autocorrelation can be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Evidence needed before a metric may count as satisfied."""

    first_check: int
    """Readings (or rounds, where a round gives one value) at which the first look is taken."""
    effective: float
    """Effective readings at least."""


_FLOORS = {
    "quick": Floor(first_check=200, effective=50.0),
    "normal": Floor(first_check=500, effective=100.0),
    "strict": Floor(first_check=1000, effective=200.0),
}
_BY_ROUND = Floor(first_check=10, effective=2.0)


def floor_for(options: Options, *, by_round: bool) -> Floor:
    """Return the floor of a metric; ``by_round`` where each round gives one value.

    Readings that cost a round each are dear: they are first judged at 10, whatever the preset.
    """
    return _BY_ROUND if by_round else _FLOORS[options.preset or "normal"]


def wanted_half_width(estimate: Estimate, metric: Metric, options: Options) -> float:
    """Return the half-width to reach, in the metric's unit: the narrower of both targets.

    Infinite where neither target is set.
    """
    relative = float("inf") if options.target is None else options.target * abs(estimate.value)
    absolute = metric.absolute_half_width
    return relative if absolute is None else min(relative, absolute)


def needed_for_share(analysis: Analysis) -> float:
    """Return the readings in all by which the stable phase will hold enough, if it goes on.

    A phase that is over does not: then it is what has followed that must come to hold enough.
    """
    lost = sum(
        phase.stop if phase.stop is not None and phase.stop < analysis.n else phase.start or 0
        for phase in analysis.phases
    )
    return lost / (1.0 - STABLE_SHARE)


Criterion = Callable[[Progress], bool]


def _required(progress: Progress) -> list[Analysis]:
    return [each for each in progress.analyses if each.metric.must_satisfy]


def caution(analysis: Analysis) -> float:
    """Return by how much narrower than wanted an interval of few rounds must be, at least 1.

    Ten rounds often look alike by luck, and whoever looks at 10, 15 and 23 finds that look. Half
    of the degrees of freedom raise the coverage of such sessions by 0.02 (to 0.91 to 0.94).
    """
    found = analysis.estimate
    if analysis.kind is Kind.UNIT_READINGS or found is None or found.degrees_of_freedom is None:
        return 1.0
    freedom, confidence = found.degrees_of_freedom, found.confidence
    return student_t(freedom / 2.0, confidence) / student_t(freedom, confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeWidth:
    """Each required metric's half-width is at most ``target`` times its value."""

    target: float

    def __call__(self, progress: Progress) -> bool:
        """Judge the standing."""
        return all(
            each.estimate is not None
            and each.estimate.value != 0.0  # nothing is narrow relative to 0
            and each.estimate.relative_half_width * caution(each) <= self.target
            for each in _required(progress)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsoluteWidth:
    """The half-width of the metric called ``metric`` is at most ``half_width``, in its unit."""

    metric: str
    half_width: float

    def __call__(self, progress: Progress) -> bool:
        """Judge the standing."""
        return any(
            each.estimate is not None
            and each.estimate.half_width * caution(each) <= self.half_width
            for each in progress.analyses
            if each.metric.name == self.metric
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumEffective:
    """Each required metric with one series of unit readings holds so many effective ones.

    Of rounds that give one reading or are invocations: from 30 on, 20 effective ones; before, they
    may not be all the same.
    """

    effective: float

    def __call__(self, progress: Progress) -> bool:
        """Judge the standing."""
        return all(each.estimate is not None and self._enough(each) for each in _required(progress))

    def _enough(self, analysis: Analysis) -> bool:
        found = analysis.estimate
        if found is None or analysis.kind is Kind.UNIT_READINGS:
            return found is not None and found.n_effective >= self.effective
        # A few rounds may be all alike, of which more would differ; later they may resemble
        # each other so much that few count.
        if analysis.kind is Kind.INVOCATIONS and found.n < _BY_ROUND.first_check:
            return False  # so many were told, but some did not count
        if found.n < MIN_FOR_AUTOCORRELATION:
            return found.half_width > 0.0
        return found.n_effective >= EFFECTIVE_ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class MostlyStable:
    """The stable phase of each required metric with one series goes on, and holds ``share`` of it.

    What has just changed may change again: sessions that stopped inside a slow cycle, of which a
    half looked like a level, covered in 0.3 of cases without it. And what is over before the last
    reading was no steady state, however long it was.
    """

    share: float

    def __call__(self, progress: Progress) -> bool:
        """Judge the standing."""
        return all(
            phase.stop == each.n and phase.n >= self.share * each.n
            for each in _required(progress)
            if each.kind is Kind.UNIT_READINGS
            for phase in each.phases
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumRounds:
    """At least ``rounds`` rounds were told."""

    rounds: int

    def __call__(self, progress: Progress) -> bool:
        """Judge the standing."""
        return progress.rounds >= self.rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Satisfied:
    """Stop when fresh analyses, each on enough readings for a first look, meet all criteria."""

    criteria: tuple[Criterion, ...]

    def __call__(self, progress: Progress) -> Decision | None:
        """Judge the standing."""
        known = bool(progress.analyses) and progress.fresh and not progress.missing
        if known and all(criterion(progress) for criterion in self.criteria):
            return Decision(stop=True, reason=StopReason.SATISFIED)
        return None


@dataclass(frozen=True, slots=True)
class Limit:
    """Stop for ``reason`` when what ``spent`` counts reaches ``most``."""

    reason: StopReason
    spent: Callable[[Progress], float]
    most: float

    def __call__(self, progress: Progress) -> Decision | None:
        """Compare what is spent with the limit."""
        if self.spent(progress) >= self.most:
            return Decision(stop=True, reason=self.reason)
        return None


def time_budget(seconds: float) -> Limit:
    """Stop when the rounds took ``seconds`` of wall time."""
    return Limit(StopReason.TIME_BUDGET, attrgetter("elapsed_s"), seconds)


def readings_budget(readings: int) -> Limit:
    """Stop when there are ``readings`` readings."""
    return Limit(StopReason.READINGS_BUDGET, attrgetter("readings"), readings)


def round_limit(rounds: int) -> Limit:
    """Stop when there are ``rounds`` rounds."""
    return Limit(StopReason.ROUND_LIMIT, attrgetter("rounds"), rounds)


def too_many_rejected(rounds: int) -> Limit:
    """Stop when ``rounds`` rounds in a row gave nothing to work with."""
    return Limit(StopReason.TOO_MANY_REJECTED, attrgetter("rejected_rounds"), rounds)


def stop_requested() -> Limit:
    """Stop when somebody asked for it."""
    return Limit(StopReason.STOP_REQUESTED, attrgetter("stop_requested"), 1)


def default_rules(options: Options, metrics: Sequence[Metric] = ()) -> tuple[StopRule, ...]:
    """Return the stop rules that options and metrics ask for, in the order of their say.

    A session takes a list of rules instead: ``[*default_rules(options), my_rule]``.
    """
    criteria: list[Criterion] = [
        MinimumRounds(rounds=options.min_rounds),
        MinimumEffective(effective=floor_for(options, by_round=False).effective),
        MostlyStable(share=STABLE_SHARE),
    ]
    if options.target is not None:
        criteria.append(RelativeWidth(target=options.target))
    criteria += [
        AbsoluteWidth(metric=each.name, half_width=each.absolute_half_width)
        for each in metrics
        if each.absolute_half_width is not None and each.must_satisfy
    ]
    rules: list[StopRule] = [
        Satisfied(criteria=tuple(criteria)),
        stop_requested(),
        too_many_rejected(options.max_rejected),
        time_budget(options.budget_s),
    ]
    if options.budget_readings is not None:
        rules.append(readings_budget(options.budget_readings))
    if options.max_rounds is not None:
        rules.append(round_limit(options.max_rounds))
    return tuple(rules)
