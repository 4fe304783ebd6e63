"""When a session stops: criteria of being satisfied, and limits; the first rule to stop wins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from benchrigor.model import Analysis, Decision, Estimate, Metric, Options, Progress, StopReason
from benchrigor.model.analysis import Kind, PhaseLabel
from benchrigor.model.options import LATEST
from benchrigor.protocols import StopRule
from benchrigor.stats.phases.trimming import STABLE_SHARE
from benchrigor.stats.series.interval import student_t
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION
from benchrigor.stats.statistics.proportion import whole_of

# Factor from one look to the next. A session that looked after every reading would stop when the
# variance is small by chance, and its intervals would not cover.
GROWTH = 1.5
HOPELESS = 1e6  # an interval this many times too wide takes "very many" readings
# Readings of all metrics that a session keeps: about a gigabyte at the peak of its last analysis
# (0.11 kB per reading, measured at 4 million), and 200 s or more of the fastest functions.
MOST_READINGS = 10_000_000
MOST_REJECTED = 100  # rounds in a row without a result
LITTLE = 0.2  # share of a variance, without which an interval is a tenth narrower
SETTLED_S, FEWEST_BLOCKS = 3.0, 10  # a busy machine changes from one second to the next
_END_LOOKS, _END_S = 4.0, 2.0  # looks that an end is worth; seconds of it beyond a budget
EFFECTIVE_ROUNDS = 20.0  # needed when there are enough to see autocorrelation


# Only where the budgets end before the second full look may early ones end a session: elsewhere
# they would choose the sessions that look narrow by chance.
EARLY_LOOKS = {Kind.UNIT_READINGS: 10, Kind.INVOCATIONS: 4}  # readings or rounds at the first one
_EARLY_SHARE = 0.1  # of the wanted half-width: an interval this narrow needs few readings


@dataclass(frozen=True, slots=True, kw_only=True)
class MinEvidence:
    """Evidence needed before a metric may be satisfied."""

    first_check: int  # readings, or rounds with one value, at the first full look
    effective: float  # effective sample size
    fewest: int  # of them that suffice for an interval a tenth as wide as wanted

    @property
    def second_check(self) -> int:
        """Readings or rounds at the second look, the first that may agree with one before."""
        return next_check(self.first_check)

    def share(self, units: int) -> float:
        """Return the share of the wanted half-width that an interval of that many may have.

        It grows with a power of their number, from a tenth at the fewest to 1 at the second full
        look, and is 1 from the first one on.
        """
        return self._between(units, _EARLY_SHARE, 1.0) if units >= self.fewest else 0.0

    def effective_of(self, readings: int) -> float:
        """Return the effective sample size needed of unit readings, the same from 20 on."""
        return self._between(readings, EFFECTIVE_ROUNDS, self.effective)

    def _between(self, units: int, at_fewest: float, in_full: float) -> float:
        """Interpolate between the values at the fewest and at the second full look."""
        if units >= self.first_check:
            return in_full
        way = math.log(units / self.fewest) / math.log(self.second_check / self.fewest)
        return at_fewest * math.exp(way * math.log(in_full / at_fewest))


def next_check(units: int) -> int:
    """Return the number of readings, or rounds, at the look after one at ``units``."""
    return math.ceil(units * GROWTH)


_MIN_EVIDENCE = {
    "quick": MinEvidence(first_check=200, effective=50.0, fewest=MIN_FOR_AUTOCORRELATION),
    "normal": MinEvidence(first_check=500, effective=100.0, fewest=MIN_FOR_AUTOCORRELATION),
    "strict": MinEvidence(first_check=1000, effective=200.0, fewest=1000),
}
_BY_ROUND = MinEvidence(first_check=10, effective=2.0, fewest=10)
_RESTARTED = replace(_BY_ROUND, fewest=6)  # show a warm-up that they share


def min_evidence(options: Options, kind: Kind) -> MinEvidence:
    """Return the least evidence for a metric.

    Rounds with one value have their first look at 10, regardless of the preset.
    """
    if kind is Kind.UNIT_READINGS:
        return _MIN_EVIDENCE[options.preset or "normal"]
    return _RESTARTED if kind is Kind.INVOCATIONS else _BY_ROUND


def asked_half_width(estimate: Estimate, metric: Metric, options: Options) -> float:
    """Return the `wanted_half_width` without the default target, which is nobody's wish."""
    return _narrower(estimate, metric, options.asked)


def wanted_half_width(estimate: Estimate, metric: Metric, options: Options) -> float:
    """Return the narrower of both targets, in the metric's unit; infinite if none is set."""
    return _narrower(estimate, metric, options.target)


def _narrower(estimate: Estimate, metric: Metric, target: float | None) -> float:
    relative, absolute = metric.relative_half_width, metric.absolute_half_width
    if relative is None:
        relative = target
    known = relative is not None and relative < math.inf
    widths = (relative * whole_of(estimate)[0] if known and relative else None, absolute)
    return min((width for width in widths if width is not None), default=math.inf)


def needed_for_width(known: Estimate, excess: float, units: int, least: MinEvidence) -> float:
    """Return how many units in all make an interval narrower by the factor ``excess``."""
    factor = max(min(excess, HOPELESS) ** 2, least.effective / known.n_effective)
    return max(units * factor, least.second_check)


def early_size(excess: float, units: int, least: MinEvidence) -> float:
    """Return the units in all that suffice before the first full look; infinite if none do.

    ``excess`` is the half-width of the units so far over the wanted one.
    """
    power = -math.log(_EARLY_SHARE) / math.log(least.second_check / least.fewest)
    reached = excess / _EARLY_SHARE * math.sqrt(units / least.fewest)
    size = least.fewest * max(1.0, reached ** (1.0 / (power + 0.5)))
    return size if max(size, units) < least.first_check else math.inf


def needed_for_share(before: int) -> float:
    """Return the readings in all with which the phase after ``before`` holds its required share."""
    return before / (1.0 - STABLE_SHARE)


Criterion = Callable[[Progress], bool]


def _analyses_that_must(progress: Progress) -> list[Analysis]:
    return [analysis for analysis in progress.analyses if analysis.metric.must_satisfy]


def caution(analysis: Analysis, options: Options) -> float:
    """Return the factor, 1 or more, by which an interval of few readings must be narrower.

    Ten rounds often agree by chance, and looks at 10, 15 and 23 rounds find that chance. Half of
    the degrees of freedom raise the coverage of such sessions by 0.02 (to 0.91 to 0.94).
    """
    share = _share(analysis, options)
    if analysis.kind is Kind.UNIT_READINGS and share == 1.0:
        return 1.0
    return few_rounds(analysis.estimate) / share if share else math.inf


def _share(analysis: Analysis, options: Options) -> float:
    """Return the share of the wanted half-width that its interval may have: 1 at a full look."""
    known = analysis.estimate
    if known is None or analysis.kind not in EARLY_LOOKS:
        return 1.0
    units = analysis.n if analysis.kind is Kind.UNIT_READINGS else known.n
    return min_evidence(options, analysis.kind).share(units)


def few_rounds(known: Estimate | None) -> float:
    """Return the factor for the degrees of freedom of an interval."""
    if known is None or known.degrees_of_freedom is None:
        return 1.0
    freedom, confidence = known.degrees_of_freedom, known.confidence
    return student_t(freedom / 2.0, confidence) / student_t(freedom, confidence)


def narrow_enough(options: Options) -> Criterion:
    """Require that the intervals of all required metrics are as narrow as wanted.

    No interval is narrow relative to 0. Without a target, no early look is enough.
    """
    return lambda progress: all(
        _is_narrow(analysis, options) for analysis in _analyses_that_must(progress)
    )


def _is_narrow(analysis: Analysis, options: Options) -> bool:
    known = analysis.estimate
    if known is None:
        return False
    wanted = wanted_half_width(known, analysis.metric, options)
    if math.isinf(wanted):
        return _share(analysis, options) == 1.0
    return wanted > 0.0 and known.half_width * caution(analysis, options) <= wanted


def minimum_effective(least: MinEvidence) -> Criterion:
    """Require the effective sample size of all required series of unit readings.

    Few readings need less. Fewer than 30 rounds with one value may not all be equal, and restarted
    ones must have 30 readings; from 30 rounds on, 20 of them must be effective.
    """
    return lambda progress: all(
        _is_enough(analysis, least) for analysis in _analyses_that_must(progress)
    )


def _is_enough(analysis: Analysis, least: MinEvidence) -> bool:
    known = analysis.estimate
    if known is None or analysis.kind is Kind.UNIT_READINGS:
        return known is not None and known.n_effective >= least.effective_of(analysis.n)
    if known.n < MIN_FOR_AUTOCORRELATION:
        readings = analysis.n_kept if analysis.kind is Kind.INVOCATIONS else math.inf
        return known.half_width > 0.0 and readings >= MIN_FOR_AUTOCORRELATION
    return known.n_effective >= EFFECTIVE_ROUNDS


def after_full_look(options: Options) -> Criterion:
    """Require the readings, or rounds, of a first full look for all required metrics."""
    return lambda progress: all(
        _share(analysis, options) == 1.0 for analysis in _analyses_that_must(progress)
    )


def ends_in_phase(progress: Progress) -> bool:
    """Require that the latest readings are of the longest phase, if one holds more than half.

    The readings that count must be nine tenths: without references a pace that held less of a short
    session would pass for its warm-up, which .78 of such sessions then hold, instead of .91.
    Without this rule, sessions that stopped inside a slow cycle covered in 0.3 of cases: half of a
    cycle looks like a level.
    """
    return all(
        (labels[-1] is PhaseLabel.STABLE or PhaseLabel.STABLE not in labels)
        and phase.n >= STABLE_SHARE * analysis.n
        for analysis in _analyses_that_must(progress)
        if analysis.kind is Kind.UNIT_READINGS
        for phase in analysis.phases
        if phase.is_judged
        for labels in [[part.label for part in phase.phases]]
    )


def agrees(later: Estimate | None, earlier: Estimate | None) -> bool:
    """Return whether the value of a later look lies inside the interval of an earlier one."""
    return later is not None and earlier is not None and earlier.low <= later.value <= earlier.high


def when_satisfied(*criteria: Criterion, reason: StopReason = StopReason.SATISFIED) -> StopRule:
    """Stop when two looks in a row agree, and the last one, at enough readings, meets all criteria.

    A machine is in one of its paces for a moment: one look finds a narrow interval there by luck.
    So the rounds must also have taken the seconds that are asked for on the wall clock.
    """
    return _stop_for(
        reason,
        lambda progress: progress.fresh and bool(progress.analyses) and not progress.missing,
        lambda progress: progress.agreed and progress.elapsed_s >= progress.min_seconds,
        *criteria,
    )


_SPENT = {
    StopReason.TIME_BUDGET: "elapsed_s",
    StopReason.READINGS_BUDGET: "readings",
    StopReason.MEMORY_LIMIT: "kept",
    StopReason.ROUND_LIMIT: "rounds",
    StopReason.TOO_MANY_REJECTED: "rejected_rounds",
    StopReason.STOP_REQUESTED: "stop_requested",
}


def limit(reason: StopReason, most: float) -> StopRule:
    """Stop for ``reason`` when its part of the progress reaches ``most``."""
    return _stop_for(reason, lambda progress: getattr(progress, _SPENT[reason]) >= most)


def in_time(budget_s: float, *, calls: int = 1) -> StopRule:
    """Stop when the next reading, of ``calls`` calls, would end too late at the pace of the last.

    Of the first two readings, only the last call must begin in time. The end of a session takes as
    long as several of its looks, and may last two seconds more.
    """

    def is_late(progress: Progress) -> bool:
        elapsed_s, next_s = progress.elapsed_s, progress.reading_s
        if progress.readings < 2:
            return elapsed_s + next_s * (calls - 1) / calls >= budget_s
        end_s = max(_END_LOOKS * progress.look_s - _END_S, 0.0)
        return elapsed_s + next_s + end_s > LATEST * budget_s

    return _stop_for(StopReason.TIME_BUDGET, is_late)


def _stop_for(reason: StopReason, *criteria: Criterion) -> StopRule:
    stop = Decision(stop=True, reason=reason)
    return lambda progress: stop if all(is_met(progress) for is_met in criteria) else None


def default_rules(
    options: Options, *, no_narrower: Criterion | None = None
) -> tuple[StopRule, ...]:
    """Return the stop rules for options; the first to stop wins.

    A session takes a list of rules instead: ``[*default_rules(options), my_rule]``.
    ``no_narrower`` says whether more readings cannot help.
    """
    least = min_evidence(options, Kind.UNIT_READINGS)
    criteria = [lambda progress: progress.rounds >= options.min_rounds, ends_in_phase]
    enough = minimum_effective(least)
    rules = [when_satisfied(*criteria, enough, narrow_enough(options))]
    if no_narrower is not None:
        full = after_full_look(options)
        rules.append(when_satisfied(*criteria, full, no_narrower, reason=StopReason.OUT_OF_REACH))
    limits = {
        StopReason.STOP_REQUESTED: 1,
        StopReason.TOO_MANY_REJECTED: MOST_REJECTED,
        StopReason.TIME_BUDGET: options.budget_s,
        StopReason.READINGS_BUDGET: options.budget_readings,
        StopReason.MEMORY_LIMIT: MOST_READINGS,
        StopReason.ROUND_LIMIT: options.max_rounds,
    }
    spent = (limit(reason, most) for reason, most in limits.items() if most is not None)
    return (*rules, *spent, in_time(options.budget_s))
