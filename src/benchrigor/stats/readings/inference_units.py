"""The units of inference, each with all that depends on how its readings come."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import (
    Analysis,
    ChangePoints,
    Estimate,
    Notice,
    Options,
    Pace,
    StablePhase,
)
from benchrigor.model.analysis import Kind, LevelFit, PhaseLabel
from benchrigor.model.notice import one_each
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.detector import MIN_FOR_CHANGES
from benchrigor.stats.figures_at_full_speed import pieces_at_full_speed
from benchrigor.stats.phases.chosen_phase import choose_at_one_pace, few_in_order
from benchrigor.stats.phases.rounds_cut import (
    behind_cold,
    cold_first,
    cut_rounds,
    first_piece,
    measured_from,
    phase_by_shares,
    whole_piece,
)
from benchrigor.stats.phases.stability_rules import may_move
from benchrigor.stats.phases.stable_phase import (
    STABLE_SHARE,
    Search,
    measured_phase,
    moved_on,
    short_run,
)
from benchrigor.stats.readings.analysis import (
    describe,
    estimate,
    needed_units,
    notice_of,
    tell_of_modes,
)
from benchrigor.stats.readings.asked_readings import (
    BY_ROUND,
    AtLook,
    MinEvidence,
    Readings,
    Unit,
    few_rounds,
    needed_for_share,
)
from benchrigor.stats.readings.work_rounds import ByWork, needed_rounds
from benchrigor.stats.series.interval import (
    COMPLETE,
    LONG_RUN_VARIANCE,
    MIN_FOR_AUTOCORRELATION,
    MIN_FOR_VARIANCE,
    TRANSIENTS,
)
from benchrigor.stats.series.subsessions import SUBSESSIONS, merge_subsessions
from benchrigor.stats.series.undisturbed import (
    Groups,
    choose_undisturbed,
    hardly_any_of,
    stops_in,
    together,
)
from benchrigor.stats.statistic import (
    MEAN,
    MIN_PIECES,
    Fitting,
    Several,
    Statistic,
    few_pieces,
    split_variance,
)

_OF_PRESETS = {
    "quick": MinEvidence(first_check=200, effective=50.0, fewest=MIN_FOR_AUTOCORRELATION),
    "normal": MinEvidence(first_check=500, effective=100.0, fewest=MIN_FOR_AUTOCORRELATION),
    "strict": MinEvidence(first_check=1000, effective=200.0, fewest=1000),
}
_RESTARTED = replace(BY_ROUND, fewest=6)  # show a warm-up that they share
_MOST_OF_THEM = 0.75  # of the invocations: leaving out a few of them hardly matters
_ROUNDS_SHOWN = 100  # of restarted rounds, in the figure that is shown before there is an estimate


class _Values(Unit):
    """Readings that are values of one metric, in one series or several."""

    def leave_out(self, readings: Readings, by_series: Sequence[Groups]) -> Readings:
        """Leave the disturbed readings out; a round with hardly any others keeps all of its own."""
        chosen = [choose_undisturbed(series) for series in by_series]
        notices = one_each(hardly_any_of(notice for _, told in chosen for notice in told))
        told = replace(readings, notices=(*readings.notices, *notices))
        disturbed = together([groups for groups, _ in chosen], by_series)
        if disturbed is None:
            return told
        weights, references = readings.weights, readings.references
        return replace(
            told,
            series=tuple(
                values if counted is None else values[counted.indices]
                for values, (counted, _) in zip(readings.series, chosen, strict=True)
            ),
            weights=None if weights is None else weights[disturbed.indices],
            references=references and references.of(disturbed.indices),
            disturbed=disturbed,
            whole=readings,
        ).stated()

    estimate = staticmethod(estimate)


class _Series(_Values):
    """Readings in one series."""

    fewest: int  # in which change points are looked for
    transients: tuple[float, ...] = ()  # that are fitted along with its level

    def inferred(self, analysis: Analysis) -> int:
        """Return the number of readings."""
        return analysis.n

    def refusal(self, readings: Readings) -> Notice | None:
        """Refuse few readings that climb or fall to the end, if phases are looked for."""
        is_judged = readings.is_searched and not readings.takes_longest
        refusal = readings.statistic.refusal
        if refusal is None and is_judged and readings.statistic.follows_pace:
            return few_in_order(readings.series[0])
        return refusal

    def cut(self, readings: Readings) -> tuple[StablePhase, ...]:
        """Cut the series as asked, or find its stable phase; none of fewer readings."""
        if readings.options.cut_shares is not None or readings.takes_longest:
            return _cut_each(readings)
        (series,), search, fewest = readings.series, readings.search, self.fewest
        points = search.changes_in(series) if series.size >= fewest else None
        found = (_choose(series, readings, search, points),) if series.size >= fewest else ()
        cold = None if search.rates else cold_first(series)
        if cold is None or (found and measured_from(found[0]) != 0):
            return found
        rest, found = series[1:], ()
        if rest.size >= fewest:
            alone = replace(search, references=None)  # they are along the whole series
            found = (_choose(rest, readings, alone, points and points.within(1, series.size)),)
        return (behind_cold(series, cold, found),)

    def combine(self, readings: Readings) -> Analysis:
        """Estimate the statistic of the series."""
        (series,) = readings.kept
        fits: tuple[LevelFit, ...] = ()
        if series is None:
            return readings.analysis()
        try:
            fitting, weights = readings.fitting(self.transients), readings.kept_weights
            known, fits = readings.statistic.of_series(series, fitting, weights)
            return readings.analysis(estimate=readings.number(known), fits=fits)
        except NotEstimable as error:
            return readings.analysis(fits=fits, notices=(notice_of(error),))

    def complete(self, readings: Readings, analysis: Analysis) -> Analysis:
        """Add median, floor, subsessions and modes."""
        (values,) = replace(readings, phases=analysis.phases).kept
        analysis = describe(readings, analysis)
        if values is None:
            return analysis
        limit = readings.options.autocorrelation_limit
        analysis = replace(analysis, subsessions=merge_subsessions(values, limit=limit))
        return tell_of_modes(readings, analysis) if analysis.estimate else analysis

    def tell_of_modes(self, readings: Readings, analysis: Analysis) -> Analysis:
        """Add the modes, and a Notice of several next to a mean."""
        return tell_of_modes(readings, analysis)


class _Successive(_Series):
    """Readings that continue one series, many per round."""

    kind, many, one_process, early_look = Kind.UNIT_READINGS, True, True, 10
    fewest, transients = MIN_FOR_CHANGES, COMPLETE

    def evidence(self, preset: str | None) -> MinEvidence:
        """Return the evidence that the preset asks for."""
        return _OF_PRESETS[preset or "normal"]

    def may_move(self, readings: Readings, n_effective: float) -> bool:
        """Whether few readings climb or fall."""
        return may_move(readings.series[0], n_effective)

    def caution(self, analysis: Analysis, share: float) -> float:
        """Return the factor for few readings; there is none at a full look."""
        return 1.0 if share == 1.0 else few_rounds(analysis.estimate) / share

    def is_enough(self, analysis: Analysis, least: MinEvidence) -> bool:
        """Whether there are as many effective readings as their number asks for."""
        known = analysis.estimate
        return known is not None and known.n_effective >= least.effective_of(analysis.n)

    def is_settled(self, analysis: Analysis) -> bool:
        """Whether the latest readings are of the longest phase, and nine tenths count."""
        return all(
            (labels[-1] is PhaseLabel.STABLE or PhaseLabel.STABLE not in labels)
            and phase.n >= STABLE_SHARE * analysis.n
            for phase in analysis.phases
            if phase.is_judged
            for labels in [[part.label for part in phase.phases]]
        )

    def tell(self, readings: Readings) -> tuple[Notice, ...]:
        """Warn of a warm-up that few readings hide; of a running session, that its phase ended."""
        n = readings.series[0].size
        short = short_run(n) if readings.is_searched else ()
        after = [
            n - phase.stop
            for phase in readings.phases
            if phase.is_judged
            if phase.stop is not None and phase.stop < n - phase.change_points.late
        ]
        return (*short, *moved_on(after[-1])) if after and not readings.ended else short

    def needed(self, readings: Readings, analysis: Analysis, excess: float) -> float:
        """Predict the readings with which the interval is narrow and the phase long enough."""
        before = sum(
            phase.stop if phase.stop is not None and phase.stop < analysis.n else phase.start or 0
            for phase in analysis.phases
            if phase.is_judged
        )
        needed = max(needed_units(readings, analysis, excess), needed_for_share(before))
        return needed * analysis.taken / analysis.n  # disturbed readings have to be taken, too


class _Single(_Series):
    """One reading per round, each behind its own warm-up."""

    kind = Kind.READINGS
    fewest = MIN_FOR_AUTOCORRELATION

    def needed(self, readings: Readings, analysis: Analysis, excess: float) -> float:
        """Predict the rounds that make the interval narrow, disturbed ones included."""
        needed = needed_rounds(readings, analysis, excess)
        return needed * analysis.taken / analysis.n


class _ManySeries(_Values):
    """Readings in several series, of which each gives a value."""

    @abstractmethod
    def fitting(self, readings: Readings) -> Fitting:
        """Return how the value of each series is found."""

    def combine(self, readings: Readings) -> Analysis:
        """Estimate the statistic of each series, and combine their values."""
        fitting, statistic = self.fitting(readings), readings.statistic
        fits, values = list[LevelFit](), list[float | None]()
        counted, refusals = list[tuple[Floats, float]](), list[Notice]()
        for series in readings.kept:
            value = None
            try:
                if series is not None:
                    value, found = statistic.of_each(series, fitting)
                    fits += found
                    counted.append((series, value))
            except NotEstimable as error:
                refusals.append(notice_of(error))
            values.append(value)
        each = readings.analysis(fits=tuple(fits), levels=tuple(values))
        if not counted:
            return replace(each, notices=tuple(refusals[:1]))
        several = Several(
            series=[series for series, _ in counted],
            values=[value for _, value in counted],
            fits=each.fits,
            fitting=fitting,
            unit=self.kind.noun,
        )
        try:
            return replace(each, estimate=readings.number(statistic.of_several(several)))
        except NotEstimable as error:
            return replace(each, notices=(notice_of(error),))


class _Pieces(_ManySeries):
    """Many readings per round, in parts of one run that may lie minutes apart."""

    kind, many, one_process, is_foreseen = Kind.PIECES, True, True, False

    def first_looks(self, options: Options) -> tuple[int, int]:
        """Return from how many pieces on their levels make an interval, and one look before."""
        return min(MIN_PIECES, options.pieces), min(MIN_PIECES - 1, max(2, options.pieces - 1))

    def series_of(self, piece: int, _rounds: int) -> int:
        """Return the piece."""
        return piece

    def take(self, _values: Floats) -> int:
        """Return 1: how many pieces count is known where they are over."""
        return 1

    def units_of(self, _readings: int, _usable: int, pieces: int) -> int:
        """Return the pieces that are over."""
        return pieces

    def disturbed_of(self, _analysis: Analysis) -> int:
        """Return 0: every piece has undisturbed readings."""
        return 0

    def next_look(self, units: int, _first: int) -> int:
        """Return one piece more: there are few."""
        return units + 1

    def readings_left(self, _units: int, _readings: int) -> int:
        """Return no end: a piece ends by its time."""
        return sys.maxsize

    def at_look(self, readings: Readings, groups: Sequence[Groups]) -> AtLook:
        """Return a single series where too few pieces make an interval."""
        told, options = len(readings.series), readings.options
        if told >= self.first_looks(options)[1]:
            return readings, groups
        notices = (few_pieces(told, options.pieces),)
        return replace(readings, notices=notices).as_one(SUCCESSIVE, groups)

    def cut(self, readings: Readings) -> tuple[StablePhase, ...]:
        """Cut pieces as asked, or take those after the first whole: the first had the warm-up."""
        if readings.options.cut_shares is not None or readings.takes_longest:
            return _cut_each(readings)
        first, *others = readings.series
        found = SUCCESSIVE.cut(replace(readings, series=(first,)))
        return (first_piece(first, found), *map(whole_piece, others))

    def fitting(self, readings: Readings) -> Fitting:
        """Take the mean or quantile of each, and fit no level."""
        return Fitting(confidence=readings.options.confidence, shortest=math.inf)

    def parts(self, analysis: Analysis) -> int:
        """Return the number of pieces."""
        return len(analysis.levels)

    def at_full_speed(self, estimate: Estimate, pace: Pace, *, is_mean: bool) -> Estimate | None:  # noqa: ARG002  # of all statistics alike
        """Return the estimate from the levels of the pieces."""
        return pieces_at_full_speed(estimate, pace)

    def needed(self, _readings: Readings, _analysis: Analysis, _excess: float) -> None:
        """Predict nothing: pieces differ, however many readings they hold."""

    complete = staticmethod(describe)


class _Invocations(_ManySeries):
    """Many readings per round, and every round has its own warm-up."""

    kind, many, restarted, early_look = Kind.INVOCATIONS, True, True, 4

    def stops_of(self, gaps: Sequence[tuple[Floats, Floats]]) -> Sequence[Floats]:
        """Compare groups within their round; commands have one, and are compared with others."""
        if any(rest_s.size > 1 for rest_s, _ in gaps):
            return [stops_in(*gap) for gap in gaps]
        return super().stops_of(gaps)

    def parts(self, analysis: Analysis) -> int:
        """Return the number of rounds that were cut."""
        return len(analysis.phases) or 1

    def known_levels(self, pace: Pace, analysis: Analysis) -> Pace:
        """Return a factor alone if few rounds have a level, which may not represent the others."""
        told = zip(analysis.phases, pace.by_piece, strict=True) if pace.by_piece else ()
        known = [level is not None for phase, level in told if phase.start is not None]
        if sum(known) > 1 and sum(known) >= _MOST_OF_THEM * len(known):
            return pace
        return replace(pace, level=None, by_piece=())

    def at_full_speed(self, estimate: Estimate, pace: Pace, *, is_mean: bool) -> Estimate | None:
        """Return the estimate from the levels of the rounds, of a mean that has them."""
        if is_mean and pace.by_piece:
            return pieces_at_full_speed(estimate, pace)
        return super().at_full_speed(estimate, pace, is_mean=is_mean)

    def units_of(self, _readings: int, usable: int, _pieces: int) -> int:
        """Return the usable rounds."""
        return usable

    def disturbed_of(self, _analysis: Analysis) -> int:
        """Return 0: a round with hardly any undisturbed readings keeps all."""
        return 0

    def cut_alone(self, single: Readings, groups: Groups) -> tuple[StablePhase, ...]:
        """Cut a round by the detector of the user, who may find phases in each."""
        return self.cut(single.without_disturbed([groups])) if single.detector else ()

    def has_no_phase(self, analysis: Analysis) -> bool:
        """Whether no phase of any round has a variance."""
        return not any(phase.n >= MIN_FOR_VARIANCE for phase in analysis.phases)

    def at_look(self, readings: Readings, groups: Sequence[Groups]) -> AtLook:
        """Return a single series if each round gave one reading."""
        unit = self.taken_for(readings.series)
        return (readings, groups) if unit is self else readings.as_one(unit, groups)

    def series_of(self, _piece: int, rounds: int) -> int:
        """Return the number of the round."""
        return rounds

    def is_usable(self, values: Floats) -> bool:
        """Whether its readings have a variance."""
        return values.size >= MIN_FOR_VARIANCE

    def take(self, values: Floats) -> int:
        """Return 1 for a usable round."""
        return int(self.is_usable(values))

    def taken_for(self, series: Sequence[Floats]) -> Unit:
        """Return single readings if each round gave one, which has no phases to cut."""
        return SINGLE if series and all(values.size == 1 for values in series) else self

    def latest(
        self, rounds: list[Floats], most: int, statistic: Statistic
    ) -> tuple[Floats, Statistic] | None:
        """Return the statistic of each of the last rounds; their mean is shown."""
        if self.taken_for(rounds) is not self:
            return super().latest(rounds, most, statistic)
        ends = (values[-most:] for values in rounds[-_ROUNDS_SHOWN:])
        return np.array([*map(statistic.value_of, ends)]), MEAN

    def evidence(self, _preset: str | None) -> MinEvidence:
        """Return that of rounds, of which six show a warm-up that they share."""
        return _RESTARTED

    def is_enough(self, analysis: Analysis, least: MinEvidence) -> bool:
        """Whether few rounds have 30 readings and are not all equal, or 20 are effective."""
        known = analysis.estimate
        is_many = known is not None and known.n >= MIN_FOR_AUTOCORRELATION
        has_readings = is_many or analysis.n_kept >= MIN_FOR_AUTOCORRELATION
        return has_readings and super().is_enough(analysis, least)

    def cut(self, readings: Readings) -> tuple[StablePhase, ...]:
        """Cut each as asked or by itself, or by their common cut."""
        search = replace(readings.search, goes_on=False)
        if readings.options.cut_shares is not None or readings.detector is not None:
            return _cut_each(readings)
        if len(readings.series) == 1:
            return (_choose(readings.series[0], readings, search),)
        return cut_rounds(readings.series, search)

    def estimate(self, readings: Readings) -> Analysis:
        """Cut, fit and combine the readings; each level is in its fit."""
        return replace(estimate(readings), levels=())

    def fitting(self, readings: Readings) -> Fitting:
        """Fit a level to each, which is never merged into subsessions.

        Several show their cool-down together; a single one may end in an unseen one.
        """
        fitting = readings.fitting(TRANSIENTS if len(readings.series) > 1 else COMPLETE)
        if fitting.method == SUBSESSIONS:
            transients = () if readings.statistic.q is None else fitting.transients
            return replace(fitting, method=LONG_RUN_VARIANCE, transients=transients)
        return fitting

    def needed(self, readings: Readings, analysis: Analysis, excess: float) -> float:
        """Predict the readings of as many rounds as make the interval narrow."""
        needed = needed_rounds(readings, analysis, excess)
        return needed * analysis.taken / self.inferred(analysis)

    def complete(self, readings: Readings, analysis: Analysis) -> Analysis:
        """Add median, floor, and the variance between rounds and within."""
        analysis = describe(readings, analysis)
        is_level = analysis.estimate is not None and readings.statistic.follows_pace
        if not is_level or len(analysis.fits) < 2:
            return analysis
        return replace(analysis, split=split_variance(analysis.fits))


def _cut_each(readings: Readings) -> tuple[StablePhase, ...]:
    """Cut each series by these shares, or by the detector."""
    shares = readings.options.cut_shares
    if shares is not None:
        return tuple(phase_by_shares(values, shares) for values in readings.series)
    return tuple(map(readings.search.phase_of, readings.series))


def _choose(
    series: Floats, readings: Readings, search: Search, points: ChangePoints | None = None
) -> StablePhase:
    """Choose the readings to measure; shares and subsessions have no average over time."""
    phase = measured_phase(series, search, points)
    if readings.options.method != LONG_RUN_VARIANCE or not readings.statistic.follows_pace:
        return phase
    return choose_at_one_pace(series, phase, search)


SUCCESSIVE, SINGLE, PIECES, INVOCATIONS = _Successive(), _Single(), _Pieces(), _Invocations()
_UNITS: dict[Kind, Unit] = {
    unit.kind: unit for unit in (SUCCESSIVE, SINGLE, PIECES, INVOCATIONS, ByWork())
}


def unit_of(analysis: Analysis) -> Unit:
    """Return what an analysis infers from."""
    return _UNITS[analysis.kind]


def unit_of_rounds(options: Options) -> Unit:
    """Return what a session with these options takes the many readings of its rounds for."""
    if options.rounds == "restarted":
        return INVOCATIONS
    return PIECES if options.pieces > 1 else SUCCESSIVE
