"""The unit of inference of varied work: a round gives one point of a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import (
    Analysis,
    Code,
    Disturbed,
    Estimate,
    Metric,
    Notice,
    Pace,
    Round,
    WpsFit,
)
from benchrigor.model.analysis import Kind
from benchrigor.model.readings import Reason, Selection
from benchrigor.model.series import Floats
from benchrigor.settings import FEWEST_ROUNDS
from benchrigor.stats.figures_at_full_speed import AT_FULL_SPEED, at_full_speed
from benchrigor.stats.least_squares import diagnose_further
from benchrigor.stats.readings.analysis import (
    needed_units,
    notice_of,
)
from benchrigor.stats.readings.asked_readings import (
    AtLook,
    Readings,
    Unit,
    few_rounds,
)
from benchrigor.stats.series.interval import scale
from benchrigor.stats.series.subsessions import MERGED, merge_subsessions
from benchrigor.stats.series.undisturbed import (
    LEAST_SHARE,
    Groups,
    groups_of,
    hardly_any,
)
from benchrigor.stats.statistic import Statistic, reciprocal
from benchrigor.stats.work_line import check_fit, fit_wps
from benchrigor.stats.work_schedule import WorkSchedule


def needed_rounds(readings: Readings, analysis: Analysis, excess: float) -> float:
    """Predict the rounds that make an interval narrow."""
    assert analysis.estimate is not None  # noqa: S101  # for the type checker
    return needed_units(readings, analysis, excess * few_rounds(analysis.estimate))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByWork(Unit):
    """One pair of work amount and duration per round: the speed is the slope of a line.

    Parameters
    ----------
    schedule
        Chooses the amounts, and the rounds that count; None of amounts that were chosen before.
    reasons
        Why rounds count or do not, shape (n,) of `Reason`; None if all do.
    beyond
        Indices of the rounds that test the line at larger amounts.
    """

    schedule: WorkSchedule | None = None
    reasons: Any = None
    beyond: tuple[int, ...] = ()
    kind: Kind = Kind.WORK
    is_line: bool = True
    many: bool = False
    is_foreseen: bool = False

    def take(self, values: Floats) -> int:
        """Pass amount and duration of a round to the schedule, which knows whether it counts."""
        self._scheduled.tell(*values)
        return 1

    def units_of(self, _readings: int, _usable: int, _pieces: int) -> int:
        """Return the rounds after the pilots that count."""
        return self._scheduled.sample

    def at_look(self, readings: Readings, groups: Sequence[Groups]) -> AtLook:
        """Return amounts and durations, and which rounds count."""
        schedule, (pairs,) = self._scheduled, readings.series
        unit = replace(self, reasons=schedule.reasons, beyond=schedule.beyond)
        columns = tuple(pairs.reshape(-1, 2).T)
        return replace(readings, unit=unit, series=columns, notices=schedule.notices), groups

    def latest(self, _rounds: list[Floats], _most: int, _statistic: Statistic) -> None:
        """Return nothing: a line through few rounds is fitted after every round."""

    @property
    def _scheduled(self) -> WorkSchedule:
        assert self.schedule is not None  # noqa: S101  # for the type checker: of a session
        return self.schedule

    def groups_of(self, finished: Round, values: Floats, _metric: Metric) -> Groups:
        """Return the round as one group."""
        return groups_of(finished.delays, self.seconds_of(finished, values))

    def seconds_of(self, finished: Round, _values: Floats) -> Floats:
        """Return the duration of the round."""
        return np.array([finished.duration_s])

    @property
    def left_out(self) -> tuple[int, ...]:
        """Indices of the rounds that do not count."""
        return () if self.reasons is None else tuple(np.flatnonzero(self.reasons).tolist())

    def leave_out(self, readings: Readings, by_series: Sequence[Groups]) -> Readings:
        """Leave disturbed rounds out if enough others remain for a line; a group is a round."""
        (rounds,) = by_series
        counts = np.ones(rounds.sizes.size, dtype=bool)
        counts[list(self.left_out)] = False
        hit = rounds.are_hit & counts
        left = np.flatnonzero(counts & ~hit)
        if not hit.any():
            return readings
        if left.size < max(FEWEST_ROUNDS, LEAST_SHARE * counts.sum()):
            notice = hardly_any(left.size, int(counts.sum()), rounds.lost, "round")
            return replace(readings, notices=(*readings.notices, notice))
        reasons = np.where(counts, 0, self.reasons if self.left_out else 0)
        reasons[hit] = Reason.DISTURBED
        beyond = tuple(index for index in self.beyond if not rounds.are_hit[index])
        disturbed = Disturbed(
            n=counts.size,
            left_out=int(hit.sum()),
            lost=rounds.lost,
            stopped=rounds.stopped,
            starts=left,
            stops=left + 1,
        )
        unit = replace(self, reasons=reasons, beyond=beyond)
        return replace(readings, unit=unit, disturbed=disturbed, whole=readings)

    def estimate(self, readings: Readings) -> Analysis:
        """Fit the line through work amount and duration of the rounds that count."""
        (work, duration_s), options = self._count(readings), readings.options
        n, left_out = readings.series[0].size, self.left_out
        reasons = np.zeros(n, dtype=np.int8) if self.reasons is None else self.reasons
        analysis = Analysis(
            metric=readings.metric,
            kind=self.kind,
            n=n,
            notices=readings.notices,
            disturbed=readings.disturbed,
            n_kept=work.size,
            left_out=left_out,
            selection=Selection.of(reasons, (reasons == Reason.KEPT).astype(np.int64)),
        )
        if work.size == 0:
            none = Notice.of(Code.TOO_FEW_READINGS, "no round", n=0)
            return replace(analysis, notices=(none, *analysis.notices))
        try:
            fit = fit_wps(
                work,
                duration_s,
                confidence=options.confidence,
                method=options.method,
                autocorrelation_limit=options.autocorrelation_limit,
                checks=False,
            )
        except NotEstimable as error:
            return replace(analysis, notices=(*analysis.notices, notice_of(error)))
        return self._with_fit(fit, readings, analysis)

    def needed(self, readings: Readings, analysis: Analysis, excess: float) -> float:
        """Predict the rounds that make the interval narrow; those left out are not repeated."""
        rounds = needed_rounds(readings, analysis, excess)
        return rounds + analysis.n - self.inferred(analysis)

    def complete(self, readings: Readings, analysis: Analysis) -> Analysis:
        """Check whether duration is linear in work, which takes more time than the fit."""
        if analysis.wps is None:
            return analysis
        (work, duration_s), options = self._count(readings), readings.options
        fit = check_fit(analysis.wps, work, duration_s)
        merged = duration_s - fit.overhead.value - fit.slope.value * work
        if options.method == MERGED:
            merged = duration_s / work
        subsessions = merge_subsessions(merged, limit=options.autocorrelation_limit)
        return replace(self._with_fit(fit, readings, analysis), subsessions=subsessions)

    def shown(self, readings: Readings) -> Floats:
        """Return the speeds of the rounds."""
        work, duration_s = (values[readings.series[1] > 0.0] for values in readings.series)
        speeds: Floats = work / duration_s
        return speeds

    def is_paced(self, _metric: Metric) -> bool:
        """Return True: a speed is of the durations of rounds."""
        return True

    def paced(self, finished: Round, analysis: Analysis) -> Floats:
        """Return the duration of a round relative to the line."""
        assert analysis.wps is not None  # noqa: S101  # for the type checker
        overhead, slope = analysis.wps.overhead.value, analysis.wps.slope.value
        expected = overhead + slope * (finished.plan.work or 0.0)
        return np.array([finished.duration_s / expected if expected > 0.0 else 0.0])

    def known_levels(self, pace: Pace, _analysis: Analysis) -> Pace:
        """Return a pace that gives a factor alone: durations are relative to the line."""
        return replace(pace, level=None, by_piece=())

    def at_full_speed(self, estimate: Estimate, pace: Pace, *, is_mean: bool) -> Estimate:
        """Return the reciprocal of the time per work at full speed."""
        speed = reciprocal(at_full_speed(reciprocal(estimate), pace, is_mean=is_mean))
        return replace(speed, method=AT_FULL_SPEED)

    def not_beyond(self, figure: Estimate, measured: Sequence[float]) -> Estimate:
        """Return a speed whose interval is not wholly below the measured one."""
        slowest = max(measured) / figure.high
        return scale(figure, slowest) if slowest > 1.0 else figure

    def _count(self, readings: Readings) -> tuple[Floats, Floats]:
        work, duration_s = (np.delete(values, list(self.left_out)) for values in readings.series)
        return work, duration_s

    def _with_fit(self, fit: WpsFit, readings: Readings, analysis: Analysis) -> Analysis:
        beyond = (values[list(self.beyond)] for values in readings.series)
        notices = (*fit.notices, *diagnose_further(fit, *beyond), *readings.notices)
        speed = fit.speed and replace(fit.speed, notices=notices)
        return replace(analysis, wps=fit, estimate=speed, notices=notices)
