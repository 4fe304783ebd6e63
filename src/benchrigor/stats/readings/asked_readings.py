"""All readings of one metric of a subject, and the unit of inference that they come in."""

from __future__ import annotations

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
    StablePhase,
)
from benchrigor.model.analysis import Kind
from benchrigor.model.series import LARGEST, Floats
from benchrigor.stats.changepoints.ruptures_adapter import takes_longest
from benchrigor.stats.phases.phase_search import FindChanges, ReferencesAlong, Search
from benchrigor.stats.readings.evidence import EFFECTIVE_ROUNDS, MinEvidence, few_rounds
from benchrigor.stats.series.interval import refuse_wide
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION
from benchrigor.stats.series.undisturbed import Groups
from benchrigor.stats.statistics.proportion import are_outcomes, are_shares
from benchrigor.stats.statistics.statistic import MEAN, Statistic, statistic_for
from benchrigor.units import Direction, Quantity

_BARE, _USUAL = Metric(name="readings"), Options()


BY_ROUND = MinEvidence(first_check=10, effective=2.0, fewest=10)


class Unit(Protocol):
    """How readings come, and what is inferred from: all that depends on it is here.

    What is given here holds of rounds with one value each.
    """

    kind: Kind
    noun: str  # the unit of inference
    many: bool = False  # readings per round
    early_look: int | None = None  # units at the first look, where the budgets may end soon
    is_line: bool = False  # whether a speed is fitted, which has one statistic
    is_foreseen: bool = True  # whether its number so far tells how many readings a width takes

    def evidence(self, _preset: str | None) -> MinEvidence:
        """Return the least evidence before the metric may be satisfied."""
        return BY_ROUND

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
        """Whether the latest readings count, and nearly all others: of rounds nothing tells."""
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

    def combine(self, cut: Any, /) -> Any:
        """Return the `Estimation` of readings that are `Cut`."""
        raise TypeError(f"{self.kind} have no statistic but their line: {cut!r}")

    def tell(self, _readings: Readings, _phases: Sequence[StablePhase]) -> tuple[Notice, ...]:
        """Warn of what their number and their order leave unseen."""
        return ()

    def needed(self, readings: Readings, analysis: Analysis, excess: float) -> float | None:
        """Predict how many readings make the interval narrower by a factor; None if unknown."""
        ...

    def complete(self, readings: Readings, analysis: Analysis) -> Analysis:
        """Add what only people read."""
        ...

    def tell_of_modes(self, _readings: Readings, analysis: Analysis) -> Analysis:
        """Add the modes of a single series, and a Notice of several beside a mean."""
        return analysis

    def shown(self, readings: Readings) -> Floats:
        """Return the readings as they are described where there is no estimate."""
        return np.concatenate(readings.series)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readings:
    """All readings of one metric of a subject, and what is asked of them.

    Parameters
    ----------
    series
        One per restarted round or piece; of various work the amounts, and the durations in s.
    unit
        How they come.
    statistic
        What is estimated, see `stated`.
    searched
        Whether stable phases are looked for or cut; if not, all readings count.
    phases
        Those of restarted rounds, if a detector has cut them one by one.
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
        Whether an interval of a time or rate wider than its value is no number.
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
    def shares_cut(self) -> tuple[float, float] | None:
        """The shares to cut at both ends, as the options ask; None to search for phases."""
        return self.options.cut_shares

    @property
    def is_searched(self) -> bool:
        """Whether stable phases are looked for, and nothing is cut by its place."""
        return self.searched and self.shares_cut is None

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
