"""The readings of one metric, as rounds add them: live, or of a stored run.

They say when the next look at them is due, and which half-width the budget still allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import scipy

from benchrigor.errors import DetectorFailed
from benchrigor.model import (
    Analysis,
    Code,
    Metric,
    Notice,
    Options,
    References,
    Round,
    StablePhase,
    Width,
)
from benchrigor.model.machine import INTERPRETER
from benchrigor.model.series import Floats, Ints
from benchrigor.protocols import Detector
from benchrigor.session.stop_rules import agrees
from benchrigor.stats.phases.stable_phase import ReferencesAlong
from benchrigor.stats.readings.analysis import look, observed_of, report
from benchrigor.stats.readings.asked_readings import (
    Readings,
    Unit,
    join_series,
    next_check,
    wanted_half_width,
)
from benchrigor.stats.readings.inference_units import unit_of
from benchrigor.stats.series.interval import MIN_FOR_VARIANCE
from benchrigor.stats.series.undisturbed import Groups, join_groups
from benchrigor.stats.shares_and_quantiles import whole_of
from benchrigor.stats.statistic import rough_figure, statistic_for
from benchrigor.units import Quantity

T = TypeVar("T")


def _by_series(
    numbers: Sequence[int], parts: Sequence[T], join: Callable[[Sequence[T]], T]
) -> list[T]:
    """Join the successive parts of every series."""
    whole: dict[int, list[T]] = {}
    for number, part in zip(numbers, parts, strict=True):
        whole.setdefault(number, []).append(part)
    return [parts[0] if len(parts) == 1 else join(parts) for parts in whole.values()]


# Before it the pace of the readings is known too badly; one reading alone may be a cold one.
SINCE_S, FIRST_S = 1.0, 2.5
# Chance that the noise is this much less than it looks; small, since a session looks often.
_CHANCE = 0.01
_UNDISTURBED = 0.9  # quantile of the shares: waiting for a processor only lowers them


@dataclass(slots=True, kw_only=True)
class MetricReadings:
    """The readings of one metric so far, round by round, and their latest analysis."""

    metric: Metric
    unit: Unit  # that their rounds give; few readings may be taken for another
    options: Options
    detector: Detector | None
    ended: bool  # whether no reading can follow
    is_forced: bool = False  # whether the budgets end before the second full look
    chunks: list[Floats] = field(default_factory=list)  # of rounds, later of series
    groups: list[Groups] = field(default_factory=list)  # the same
    series: list[int] = field(default_factory=list)  # the same: their numbers
    rounds: int = 0
    placed: list[tuple[Ints, Floats]] = field(default_factory=list)  # references: where, seconds
    busy: list[Floats] = field(default_factory=list)  # shares of the time between references
    weights: list[float] = field(default_factory=list)
    phases: list[StablePhase] = field(default_factory=list)  # of restarted rounds, by a detector
    n: int = 0
    usable: int = 0  # rounds that can add to an estimate
    last_units: int = 1  # that the last round added
    batch: int = 1
    busy_s: float = 0.0  # of readings that are durations: how long their calls took
    analysis: Analysis | None = None
    analysed: int = 0  # how many readings there were then
    report: Analysis | None = None
    reported: int = 0
    looked: Analysis | None = None  # the last full look
    looked_at: int = 0  # units then
    pieces_over: int = 0  # that there are readings of
    agreed: bool = False  # whether it agrees with the one before
    now: Unit = field(init=False)  # that the readings so far are taken for
    first_check: int = field(init=False)
    next_check: int = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.unit
        self.first_check, self.next_check = self.unit.first_looks(self.options)

    def add(self, finished: Round, values: Floats) -> bool:
        """Add the readings of a round; return whether they can make an estimate.

        Raises
        ------
        DetectorFailed
            When the user's detector fails on a restarted round, which is not added then.
        """
        calls = finished.calls_per_reading
        groups = self.unit.groups_of(finished, values, self.metric)
        # Rounds of one reading each so far are taken for single readings, and a longer one ends
        # that.
        alone = Readings(
            series=(values,), unit=self.unit, options=self.options, detector=self.detector
        )
        cut = self.unit.cut_alone(alone, groups)
        usable = all(phase.n >= MIN_FOR_VARIANCE for phase in cut) and self.unit.is_usable(values)
        self.phases += cut
        self.last_units = max(self.unit.take(values), 1)
        self.chunks.append(values)
        self.now = self.unit.taken_for(self.chunks)
        self.groups.append(groups)
        self.series.append(self.unit.series_of(finished.plan.piece, self.rounds))
        self.rounds += 1
        if finished.references is not None:
            self._place(finished.references, values, calls)
        self.busy_s += float(values.sum()) * calls
        self.weights += weights_of(finished, self.metric)
        self.n += int(groups.sizes.sum())
        self.usable += usable
        self.batch = max(self.batch, calls)
        return usable or self.is_single

    def _place(self, references: References, values: Floats, calls: int) -> None:
        """Place the references of a round among all readings, if they lie between these."""
        last = references.stops[-1]
        if last > values.size:
            return
        if INTERPRETER in references.seconds:
            self.placed.append((self.n + references.stops, references.seconds[INTERPRETER]))
        if references.busy is not None:
            starts = np.append(0, references.stops[:-1])
            took_s = np.add.reduceat(values[:last], starts) * calls
            self.busy.append(references.busy / np.maximum(took_s, 1e-12))

    def _references(self) -> ReferencesAlong | None:
        """Return the references along all readings; None without any."""
        if not self.placed:
            return None
        stops, seconds = (np.concatenate(column) for column in zip(*self.placed, strict=True))
        share = np.quantile(np.concatenate(self.busy), _UNDISTURBED) if self.busy else 1.0
        return ReferencesAlong(stops=stops, log_s=np.log(seconds), busy=min(float(share), 1.0))

    def spend(self, spent: Sequence[tuple[float | None, float, float]]) -> None:
        """Note whether the rest of the budgets is too small for two full looks.

        ``spent`` is each budget, how much of it all rounds spent, and the last one. The pace is
        taken from the last round, or from all so far if that is faster: a first call may take
        longer than many others.
        """
        left = max(next_check(self.first_check) - self.units, 0)
        self.is_forced = any(
            used + left * min(used / max(self.units, 1), last / self.last_units) > most
            for most, used, last in spent
            if most is not None
        )

    def end_pieces(self, stop: int) -> None:
        """Take all pieces before this one for over."""
        self.pieces_over = len({piece for piece in self.series if piece < stop})

    def end(self) -> None:
        """Take the workload for over: analyse again, since the last readings may be a cool-down."""
        self.ended, self.analysis, self.report = True, None, None

    def arranged(self) -> Readings:
        """Return the readings so far, as they are analysed: the rounds of each series joined."""
        self.chunks = _by_series(self.series, self.chunks, join_series)
        self.groups = _by_series(self.series, self.groups, join_groups)
        self.series = [*dict.fromkeys(self.series)]
        whole = Readings(
            series=tuple(self.chunks),
            unit=self.unit,
            metric=self.metric,
            options=self.options,
            phases=() if self.is_single else tuple(self.phases),
            detector=self.detector,
            weights=np.array(self.weights) if len(self.weights) == self.n else None,
            batch=self.batch,
            busy_s=self.busy_s if self.metric.is_duration else 0.0,
            is_forced=self.is_forced,
            ended=self.ended,
        )
        readings, groups = self.unit.at_look(whole, self.groups)
        if len(readings.series) == 1 and not self.is_single and self.metric.is_duration:
            readings = replace(readings, references=self._references())
        return readings.without_disturbed(groups)

    def look(self, *, fully: bool) -> int:
        """Analyse the readings if there are new ones, and choose when to analyse them again.

        Not ``fully``, only a line through work and duration, which is shown after each round.
        Return how many rounds have no phase with a variance, if none of enough has one.
        """
        rejected, is_new = 0, self.analysis is None or self.analysed < self.n
        if is_new and (fully or self.unit.is_line):
            found = self.analysis = look(self.arranged())
            self.analysed, rounds = self.n, len(self.chunks)
            if rounds >= self.first_check and unit_of(found).has_no_phase(found):
                rejected = rounds
        if fully and self.units >= self.next_check:
            self.next_check = self.unit.next_look(self.units, self.first_check)
        if fully and self.analysis is not self.looked:
            self.agreed = self._agrees()
            self.looked, self.looked_at = self.analysis, self.units
        return rejected

    def _agrees(self) -> bool:
        """Whether two looks agree: both full, or both early at what does not move."""
        if self.analysis is None or self.looked is None:
            return False
        known = self.analysis.estimate
        if known is None or not agrees(known, self.looked.estimate):
            return False
        if self.unit.early_look is None or self.looked_at >= self.first_check:
            return True
        return self.is_early and not self.unit.may_move(self.arranged(), known.n_effective)

    def in_full(self) -> Analysis:
        """Return the analysis for the record, made once, even if the detector fails."""
        if self.report is None or self.reported < self.n:
            fresh, self.reported = self.analysed == self.n, self.n
            try:
                self.report = report(self.arranged(), self.analysis if fresh else None)
            except DetectorFailed as error:
                self.report = self.described(Notice.of(Code.DETECTOR_FAILED, why_=str(error)))
        return self.report

    def described(self, why: Notice) -> Analysis:
        """Describe readings that cannot be analysed."""
        observed = observed_of(self.arranged())
        return Analysis(
            metric=self.metric, kind=self.unit.kind, n=self.n, notices=(why,), observed=observed
        )

    def rough_figure(self, most: int) -> Width | None:
        """Return a rough figure of the last readings, or of the figures of restarted rounds.

        Various work has none.
        """
        asked = statistic_for(self.options.statistic)
        if (latest := self.unit.latest(self.chunks, most, asked)) is None:
            return None
        values, statistic = latest
        figure = rough_figure(values, statistic=statistic, confidence=self.options.confidence)
        return Width(metric=self.metric, estimate=figure)

    def out_of_reach(self, elapsed_s: float) -> float | None:
        """Return the relative half-width that the budget allows if the target cannot be reached.

        Half-widths shrink with the root of the time. The target is out of reach if even the least
        noise that the readings are compatible with leaves the interval too wide for the number of
        readings, or rounds, that the budget holds. It is infinite without an estimate, and None if
        the target can be reached, or if that is not known yet.
        """
        units, options = self.units, self.options
        analysis = self.analysis or self.empty_analysis()
        is_soon = elapsed_s < (SINCE_S if units > 1 else FIRST_S)
        if is_soon or not units or not math.isfinite(options.budget_s):
            return None
        growth = max(options.budget_s / elapsed_s, 1.0)
        # The first ones may have been slow.
        most, evidence = math.ceil((units + 1) * growth), unit_of(analysis).evidence(options.preset)
        if most < evidence.second_check:  # from the first full look on only the second finds enough
            most = min(most, evidence.first_check - 1)
        share = evidence.share(most)
        known = analysis.estimate
        if known is None or not math.isfinite(known.half_width) or not whole_of(known)[0]:
            return math.inf if share == 0.0 else None
        wanted = wanted_half_width(known, self.metric, options.target)
        freedom, least = known.degrees_of_freedom or known.n - 1.0, 1.0
        if math.isfinite(freedom):
            least = math.sqrt(freedom / scipy.special.chdtri(freedom, _CHANCE))
        if known.n_effective < known.n / 2.0:  # the long-run variance of few is often too large
            least *= max(1.0 - 2.0 / math.sqrt(known.n_effective), 0.2)
        at_end = known.half_width * math.sqrt(self.looked_at / (units * growth))
        if math.isinf(wanted) or least * at_end <= share * wanted:
            return None
        return at_end / whole_of(known)[0]

    @property
    def is_single(self) -> bool:
        """Whether rounds are taken for single readings, as each gave one."""
        return self.now is not self.unit

    @property
    def units(self) -> int:
        """Units of inference so far: readings, or rounds that count."""
        return self.now.units_of(self.n, self.usable, self.pieces_over)

    def empty_analysis(self) -> Analysis:
        """Return an analysis without a look."""
        return Analysis(metric=self.metric, kind=self.now.kind, n=self.n)

    @property
    def is_early(self) -> bool:
        """Whether a look at this number of units is an early one."""
        return self.unit.early_look is not None and self.units < self.first_check

    @property
    def is_due(self) -> bool:
        """Whether there are enough new readings for the next analysis."""
        return self.units >= self.next_check and (not self.is_early or self.is_forced)

    @property
    def is_missing(self) -> bool:
        """Whether too few of the units count for a look of its kind."""
        least, disturbed = self.first_check, 0
        if self.is_early and self.is_forced and not self.is_single:
            least = min(self.unit.evidence(self.options.preset).fewest, least)
        if self.analysis is not None:
            disturbed = self.now.disturbed_of(self.analysis)
        return self.units - disturbed < least

    @property
    def to_next_check(self) -> int:
        """Further readings until the next full look is due; of a piece, no end."""
        return self.unit.readings_left(max(self.next_check, self.first_check), self.n)


def weights_of(finished: Round, metric: Metric) -> list[float]:
    """Return the weight of a round's single reading in the mean; empty if all are equal."""
    if metric.name not in finished.readings or metric.averaging != "auto":
        return []
    weight = finished.weights.get(metric.name)
    if weight is None and metric.kind is Quantity.RATE:
        weight = finished.duration_s
    return [weight] if weight else []
