"""All readings of one metric of a subject, the unit that they come in, and the evidence needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from benchrigor.model import (
    Analysis,
    Code,
    Disturbed,
    Estimate,
    Metric,
    Notice,
    Options,
    Pace,
    Round,
    StablePhase,
    Width,
)
from benchrigor.model.analysis import Kind, PhaseReason
from benchrigor.model.series import LARGEST, Floats
from benchrigor.stats.changepoints.ruptures_adapter import takes_longest
from benchrigor.stats.figures_at_full_speed import at_full_speed
from benchrigor.stats.phases.stable_phase import (
    STABLE_SHARE,
    FindChanges,
    ReferencesAlong,
    Search,
)
from benchrigor.stats.series.interval import (
    BLOCKS,
    MIN_FOR_AUTOCORRELATION,
    MIN_FOR_VARIANCE,
    refuse_wide,
    scale,
    student_t,
)
from benchrigor.stats.series.undisturbed import Groups, groups_of, join_groups, stops_in
from benchrigor.stats.shares_and_quantiles import are_outcomes, are_shares, whole_of
from benchrigor.stats.statistic import MEAN, Fitting, Statistic, latest, statistic_for
from benchrigor.units import Direction, Quantity

# Factor from one look to the next. A session that looked after every reading would stop when the
# variance is small by chance, and its intervals would not cover.
GROWTH = 1.5
HOPELESS = 1e6  # an interval this many times too wide takes "very many" readings
EFFECTIVE_ROUNDS = 20.0  # needed when there are enough to see autocorrelation
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


def wanted_half_width(estimate: Estimate, metric: Metric, target: float | None) -> float:
    """Return the narrower half-width of a metric and a target; infinite if none is set.

    The target of options is ``options.target``; their ``asked`` leaves out the default one, which
    is nobody's wish.
    """
    return Width(metric=metric, estimate=estimate, whole=whole_of(estimate)[0]).wanted(target)


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


def few_rounds(known: Estimate | None) -> float:
    """Return the factor for the degrees of freedom of an interval."""
    if known is None or known.degrees_of_freedom is None:
        return 1.0
    freedom, confidence = known.degrees_of_freedom, known.confidence
    return student_t(freedom / 2.0, confidence) / student_t(freedom, confidence)


_BARE, _USUAL = Metric(name="readings"), Options()


# Phases that count whole, as they are: nothing is fitted along with their level.
_AS_THEY_ARE = {PhaseReason.SLOW_NOISE, PhaseReason.LONGEST_SEGMENT}
BY_ROUND = MinEvidence(first_check=10, effective=2.0, fewest=10)


AtLook = tuple["Readings", Sequence[Groups]]


def join_series(parts: Sequence[Floats]) -> Floats:
    """Join readings; no array that is frozen is checked, and copied, again."""
    whole = np.concatenate(parts)
    whole.flags.writeable = False
    return whole


class Unit(Protocol):
    """How readings come, and the unit of inference: all that depends on it is here.

    The values here hold of rounds with one value each.
    """

    kind: Kind
    many: bool = False  # readings per round
    one_process: bool = False  # which goes on after a round
    restarted: bool = False  # every round is an invocation, with a process of its own
    early_look: int | None = None  # units at the first look, where the budgets may end soon
    is_line: bool = False  # whether a speed is fitted, which has one statistic
    is_foreseen: bool = True  # whether its number so far shows how many readings a width takes

    def evidence(self, _preset: str | None) -> MinEvidence:
        """Return the least evidence before the metric may be satisfied."""
        return BY_ROUND

    def first_looks(self, options: Options) -> tuple[int, int]:
        """Return the units at the first full look, and at the first of all."""
        first = self.evidence(options.preset).first_check
        return first, self.early_look or first

    def groups_of(self, finished: Round, values: Floats, metric: Metric) -> Groups:
        """Return the groups of a round's readings."""
        if metric.is_duration:
            return groups_of(finished.delays, self.seconds_of(finished, values))
        each_s = finished.duration_s / values.size
        return groups_of(finished.delays, np.full(values.size, each_s))

    def seconds_of(self, finished: Round, values: Floats) -> Floats:
        """Return how long the calls of each reading took."""
        return values * finished.calls_per_reading

    def stops_of(self, gaps: Sequence[tuple[Floats, Floats]]) -> Sequence[Floats]:
        """Return for how long the process stood still in each group of each round.

        ``gaps`` are the time of each group that is neither work nor delay, and its duration. Groups
        of rounds in one process are compared with each other.
        """
        rest_s, duration_s = (np.concatenate([[], *parts]) for parts in zip(*gaps, strict=True))
        sizes = [rest.size for rest, _ in gaps]
        return np.split(stops_in(rest_s, duration_s), np.cumsum(sizes)[:-1])

    def series_of(self, _piece: int, _rounds: int) -> int:
        """Return the number of the series that a round of a piece is of, by their number."""
        return 0

    def is_usable(self, _values: Floats) -> bool:
        """Whether the readings of a round can add to an estimate."""
        return True

    def take(self, values: Floats) -> int:
        """Take the readings of a round; return how many units it adds: all its readings."""
        return values.size

    def units_of(self, readings: int, _usable: int, _pieces: int) -> int:
        """Return the units of so many readings, of usable rounds, and of pieces that are over."""
        return readings

    def disturbed_of(self, analysis: Analysis) -> int:
        """Return how many units an analysis leaves out because of delay."""
        return 0 if analysis.disturbed is None else analysis.disturbed.left_out

    def next_look(self, units: int, first: int) -> int:
        """Return the units at the look after one at these; early looks do not move the full one."""
        return next_check(units) if units >= first else min(next_check(units), first)

    def readings_left(self, units: int, readings: int) -> int:
        """Return the further readings until a look at so many units."""
        return units - readings

    def cut_alone(self, _round: Readings, _groups: Groups) -> tuple[StablePhase, ...]:
        """Cut a round by itself, if all rounds are cut one by one."""
        return ()

    def has_no_phase(self, _analysis: Analysis) -> bool:
        """Whether rounds were cut, and no phase of any has a variance."""
        return False

    def taken_for(self, _series: Sequence[Floats]) -> Unit:
        """Return the unit that the series so far are taken for."""
        return self

    def at_look(self, readings: Readings, groups: Sequence[Groups]) -> AtLook:
        """Return the readings with the groups of each series, as a look takes them."""
        return readings, groups

    def may_move(self, _readings: Readings, _n_effective: float) -> bool:
        """Whether few readings climb or fall: not known of rounds."""
        return False

    def latest(
        self, rounds: list[Floats], most: int, statistic: Statistic
    ) -> tuple[Floats, Statistic] | None:
        """Return the last readings, and the statistic of these for a rough figure, if any."""
        return latest(rounds, most), statistic

    def inferred(self, analysis: Analysis) -> int:
        """Return how many units an analysis infers from."""
        return analysis.estimate.n if analysis.estimate else 0

    def caution(self, analysis: Analysis, share: float) -> float:
        """Return by which factor an interval must be narrower that may have a share of a width."""
        return few_rounds(analysis.estimate) / share

    def is_enough(self, analysis: Analysis, _least: MinEvidence) -> bool:
        """Whether few rounds are not all equal, and 20 of many are effective."""
        known = analysis.estimate
        if known is None or known.n < MIN_FOR_AUTOCORRELATION:
            return known is not None and known.half_width > 0.0
        return known.n_effective >= EFFECTIVE_ROUNDS

    def is_settled(self, _analysis: Analysis) -> bool:
        """Whether the latest readings count, and nearly all others: not known of rounds."""
        return True

    def leave_out(self, readings: Readings, by_series: Sequence[Groups]) -> Readings:
        """Leave the disturbed readings out of each series, by its groups."""
        ...

    def estimate(self, readings: Readings) -> Analysis:
        """Estimate the statistic."""
        ...

    def refusal(self, readings: Readings) -> Notice | None:
        """Refuse readings that no cut makes a number of."""
        return readings.statistic.refusal

    def cut(self, _readings: Readings) -> tuple[StablePhase, ...]:
        """Cut each series as asked, or find its stable phase; none of too few readings."""
        return ()

    def combine(self, readings: Readings) -> Analysis:
        """Estimate the statistic of readings that are cut."""
        raise TypeError(f"{self.kind} have no statistic but their line: {readings!r}")

    def tell(self, _readings: Readings) -> tuple[Notice, ...]:
        """Warn of what their number and their order leave unseen."""
        return ()

    def needed(self, readings: Readings, analysis: Analysis, excess: float) -> float | None:
        """Predict how many readings make the interval narrower by a factor; None if unknown."""
        ...

    def complete(self, readings: Readings, analysis: Analysis) -> Analysis:
        """Add what only people read."""
        ...

    def tell_of_modes(self, _readings: Readings, analysis: Analysis) -> Analysis:
        """Add the modes of a single series, and a Notice of several next to a mean."""
        return analysis

    def shown(self, readings: Readings) -> Floats:
        """Return the readings as they are described without an estimate."""
        return np.concatenate(readings.series)

    def is_paced(self, metric: Metric) -> bool:
        """Whether a metric follows the pace of the machine."""
        return metric.is_duration

    def paced(self, finished: Round, analysis: Analysis) -> Floats:
        """Return what follows the pace of the machine in a round: its readings."""
        found = analysis.readings_of(finished)
        return np.empty(0) if found is None else found

    def parts(self, _analysis: Analysis) -> int:
        """Return how many series have a pace of their own."""
        return 1

    def known_levels(self, pace: Pace, _analysis: Analysis) -> Pace:
        """Return a pace without levels at full speed that are not those of the readings."""
        return pace

    def at_full_speed(self, estimate: Estimate, pace: Pace, *, is_mean: bool) -> Estimate | None:
        """Return an estimate, measured at this pace, as it would be at full speed."""
        return at_full_speed(estimate, pace, is_mean=is_mean)

    def not_beyond(self, figure: Estimate, measured: Sequence[float]) -> Estimate:
        """Return a figure at full speed, whose interval is not wholly slower than measured."""
        fastest = min(measured) / figure.low if figure.low > 0.0 else 1.0
        return scale(figure, fastest) if 0.0 < fastest < 1.0 else figure


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readings:
    """All readings of one metric of a subject, and the question to them.

    Parameters
    ----------
    series
        One per restarted round or piece; of various work the amounts, and the durations in s.
    unit
        How they come.
    statistic
        The statistic, see `stated`.
    searched
        Whether stable phases are looked for or cut; if not, all readings count.
    phases
        Of each series, once it is cut; of restarted rounds a detector has cut them one by one.
    detector
        What finds change points; None for the built-in one.
    weights
        What single readings of rounds count in the mean.
    batch
        Calls per reading.
    busy_s
        Duration of the calls of all readings; 0 if readings are not durations.
    is_forced
        Whether the session may end before its first full look.
    narrow
        Whether an interval of a time or rate wider than its value is not a number.
    references
        Along a single series.
    ended
        Whether they ended by themselves, or were recorded: the last may be a cool-down.
    disturbed
        The selection that left readings out of the series.
    whole
        With the disturbed readings, if some were left out.
    """

    series: tuple[Floats, ...]
    unit: Unit
    metric: Metric = _BARE
    options: Options = _USUAL
    statistic: Statistic = MEAN
    searched: bool = True
    phases: tuple[StablePhase, ...] = ()
    detector: FindChanges | None = None
    weights: Floats | None = None
    batch: int = 1
    busy_s: float = 0.0
    is_forced: bool = False
    narrow: bool = True
    references: ReferencesAlong | None = None
    ended: bool = True
    notices: tuple[Notice, ...] = ()
    disturbed: Disturbed | None = None
    whole: Readings | None = None

    @property
    def is_share(self) -> bool:
        """Whether readings are outcomes, or shares of trials; a bare number may prove to be one."""
        if self.metric.kind is None:
            return all(map(are_outcomes, self.series)) or (
                self.weights is not None and all(map(are_shares, self.series))
            )
        return self.metric.kind is Quantity.SHARE

    @property
    def is_harmonic(self) -> bool:
        """Whether a rate is averaged over equal amounts of work, not over the time of rounds."""
        if self.metric.averaging != "auto":
            return self.metric.averaging == "harmonic"
        unweighted = self.metric.kind is Quantity.RATE and self.weights is None
        return unweighted and not self.rates_of_0

    @property
    def rates_of_0(self) -> int:
        """Number of readings at or below 0, which rule out a harmonic mean."""
        if self.metric.kind is not Quantity.RATE or self.metric.averaging != "auto":
            return 0
        return sum(int((values < 1.0 / LARGEST).sum()) for values in self.series)

    @property
    def kept(self) -> tuple[Floats | None, ...]:
        """Series as they are cut, the whole ones without phases; None without a stable phase."""
        if not self.phases:
            return self.series
        return tuple(
            None if phase.measured is None else values[phase.measured]
            for values, phase in zip(self.series, self.phases, strict=True)
        )

    @property
    def kept_weights(self) -> Floats | None:
        """Weights of the readings of a single series that are left."""
        if self.weights is None:
            return None
        return replace(self, series=(self.weights,)).kept[0]

    def fitting(self, transients: tuple[float, ...]) -> Fitting:
        """Return how levels are fitted: in blocks, or with these transients, as the phases ask."""
        options, reasons = self.options, {phase.reason for phase in self.phases}
        in_blocks = PhaseReason.CHANGING_PACE in reasons
        is_moving = self.is_searched and not reasons & _AS_THEY_ARE
        return Fitting(
            confidence=options.confidence,
            method=BLOCKS if in_blocks else options.method,
            autocorrelation_limit=options.autocorrelation_limit,
            transients=transients if is_moving and not in_blocks else (),
            shortest=0 if is_moving else MIN_FOR_VARIANCE,
        )

    def analysis(self, **found: Any) -> Analysis:
        """Return an analysis of them with these findings."""
        n = sum(values.size for values in self.series)
        return Analysis(
            metric=self.metric, kind=self.unit.kind, n=n, disturbed=self.disturbed, **found
        )

    @property
    def is_searched(self) -> bool:
        """Whether stable phases are looked for, and nothing is cut by its place."""
        return self.searched and self.options.cut_shares is None

    @property
    def search(self) -> Search:
        """How a stable phase is searched for."""
        is_higher = self.metric.direction is Direction.HIGHER
        return Search(
            confidence=self.options.confidence,
            rates=is_higher or self.statistic.averages_rates,
            goes_on=not self.ended,
            references=self.references,
            detector=self.detector,
        )

    @property
    def takes_longest(self) -> bool:
        """Whether the longest segment of each series counts whole, as published."""
        return takes_longest(self.detector)

    def as_one(self, unit: Unit, groups: Sequence[Groups]) -> AtLook:
        """Return them as a single series of another unit, with its groups."""
        return replace(self, unit=unit, series=(join_series(self.series),)), [join_groups(groups)]

    def stated(self) -> Readings:
        """Return them with the statistic that the options and the readings make."""
        asked = self.options.statistic
        statistic = statistic_for(asked, share=self.is_share, harmonic=self.is_harmonic)
        return replace(self, statistic=statistic)

    def without_disturbed(self, by_series: Sequence[Groups]) -> Readings:
        """Return them without those that were disturbed, unless the options keep these."""
        by_series = [series.with_stops() for series in by_series]
        if self.options.disturbed == "keep" or not any(one.are_hit.any() for one in by_series):
            return self.stated()
        return self.unit.leave_out(self.stated(), by_series)

    def number(self, estimate: Estimate) -> Estimate:
        """Return an estimate that is a number; raise NotEstimable if it is too wide for one."""
        is_narrow = self.narrow and self.metric.kind in (Quantity.TIME, Quantity.RATE)
        return refuse_wide(estimate) if is_narrow else estimate

    def by_time(self) -> Readings:
        """Return them with rates averaged over time, unless their metric says otherwise."""
        if self.metric.averaging != "auto" or self.metric.kind is not Quantity.RATE:
            return self
        metric = replace(self.metric, averaging="arithmetic")
        notice = Notice.of(Code.RATE_OF_0, "compared")
        return replace(self, metric=metric, weights=None, notices=(*self.notices, notice)).stated()
