"""The engine of a session: plans the next round and takes its readings. No I/O.

The half-width that a running session can still reach within its budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from benchrigor.errors import WorkTooShort
from benchrigor.model import (
    Analysis,
    Code,
    Decision,
    Metric,
    Notice,
    Options,
    Progress,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.model.notice import leading
from benchrigor.model.options import LATEST
from benchrigor.model.secret_values import hide_secrets
from benchrigor.protocols import Detector, StopRule
from benchrigor.session.conditions.pace_of_rounds import full_speed_of, levels_of, with_pace
from benchrigor.session.conditions.red_rounds import (
    check_light,
    is_red,
    measured_interference,
    report_stops,
    say_left_out,
    warn_of_loss,
    with_light,
    with_stops,
)
from benchrigor.session.controller import FIGURE_READINGS, Controller
from benchrigor.session.measured_metrics import MeasuredMetrics
from benchrigor.session.outcomes import (
    disagreement,
    failed_hook,
    no_readings,
    warn_not_converged,
    without_readings,
)
from benchrigor.session.schedule.pacing import Pace, next_readings
from benchrigor.session.schedule.work_schedule import NextWork, with_work
from benchrigor.session.stop_rules import (
    FEWEST_BLOCKS,
    LITTLE,
    SETTLED_S,
    default_rules,
)
from benchrigor.stats.changepoints.ruptures_adapter import Estimator
from benchrigor.stats.readings.evidence import asked_half_width, wanted_half_width
from benchrigor.stats.readings.inference_units import INVOCATIONS, unit_of
from benchrigor.stats.statistics.proportion import whole_of

# Before it the pace of the readings is known too badly; one reading alone may be a cold one.
SINCE_S, FIRST_S = 1.0, 2.5
# Chance that the noise is this much less than it looks; small, since a session looks often.
_CHANCE = 0.01


def out_of_reach(
    analysis: Analysis, options: Options, *, units: int, looked_at: int, elapsed_s: float
) -> float | None:
    """Return the relative half-width that the budget allows if the target cannot be reached.

    Half-widths shrink with the root of the time. The target is out of reach if even the least noise
    that the readings are compatible with leaves the interval too wide for the number of readings,
    or rounds, that the budget holds. It is infinite without an estimate, and None if the target can
    be reached, or if that is not known yet.

    Parameters
    ----------
    analysis
        The latest; of the first ``looked_at`` units.
    units
        Readings, or rounds in processes of their own, so far.
    elapsed_s
        The time that they took.
    """
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
    wanted = wanted_half_width(known, analysis.metric, options)
    freedom = known.degrees_of_freedom or known.n - 1.0
    least = (
        math.sqrt(freedom / scipy.special.chdtri(freedom, _CHANCE))
        if math.isfinite(freedom)
        else 1.0
    )
    if known.n_effective < known.n / 2.0:  # the long-run variance of few is often too large
        least *= max(1.0 - 2.0 / math.sqrt(known.n_effective), 0.2)
    at_end = known.half_width * math.sqrt(looked_at / (units * growth))
    if math.isinf(wanted) or least * at_end <= share * wanted:
        return None
    return at_end / whole_of(known)[0]


_ROUNDING = 1e-6  # of a piece: rounds that add up to it may fall short by that much
_LEAST = 0.01  # the least share of its time that a piece has if earlier ones took too long


class Engine(Controller[RoundPlan, Round]):
    """A session without I/O: `ask` plans the next round, `tell` takes its readings.

    It takes the parameters of `Session`, and these:

    Parameters
    ----------
    seed
        Source of every plan's own seed.
    recorded
        Whether the readings are a recording, so that none will follow.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> engine = Engine(Options(target=0.05), seed=1)
    >>> while (plan := engine.ask()) is not None:
    ...     values = rng.normal(1.0, 0.1, plan.readings)
    ...     decision = engine.tell(
    ...         Round(plan=plan, elapsed_ns=1000, unit_readings={"time": values})
    ...     )
    >>> decision.reason
    <StopReason.SATISFIED: 'satisfied'>
    """

    def __init__(
        self,
        options: Options | None = None,
        metrics: Sequence[Metric] | None = None,
        *,
        seed: int = 0,
        name: str = "session",
        subject: Mapping[str, Any] | None = None,
        detector: Detector | Estimator | None = None,
        rules: Sequence[StopRule] | None = None,
        next_work: NextWork | None = None,
        recorded: bool = False,
    ) -> None:
        fits = next_work is None or callable(next_work)
        refuse(wrong_values([("next_work", next_work, fits, "a function of a plan, or None")]))
        super().__init__(Options() if options is None else options)
        self.seed = seed
        self.name = hide_secrets(name)
        self.subject = dict(subject or {})
        self._rules = rules
        self._recorded = recorded
        self._next_work = next_work
        self._measured = MeasuredMetrics(
            self.options, metrics, detector, recorded=recorded, seed=seed
        )
        if self._measured.schedule is not None:
            self._measured.schedule.tries_further = next_work is None
        self.kept_levels: dict[str, list[tuple[float, float]]] = {}  # of the reference, before
        self._rounds: list[Round] = []
        self._piece = 0  # under way; their number when all are over
        self._red: dict[int, None] = {}

    def restart_rounds(self) -> None:
        """Take every round for a fresh process, unless the options say otherwise."""
        if self.options.rounds == "auto":
            self.options = self._measured.options = replace(self.options, rounds="restarted")

    def _next_plan(self) -> RoundPlan | None:
        index = len(self._rounds)
        left_s = (self.piece + 1) * self.options.piece_s - self._elapsed_ns / 1e9
        if self.options.pieces > 1:
            left_s = max(left_s, _LEAST * self.options.piece_s)
        plan = RoundPlan(
            index=index,
            work=self._scheduled_work(),
            readings=next_readings(self._pace(), self.options),
            seed=int(np.random.SeedSequence([self.seed, index]).generate_state(1)[0]),
            seconds=left_s if 0.0 < left_s < math.inf else None,  # rules may know no budget
            piece=self.piece,
        )
        if self._next_work is None:
            return plan
        try:
            return with_work(plan, self._next_work(plan))
        except Exception as error:  # noqa: BLE001  # any error of a user's hook is reported, not lost
            self.end(StopReason.HOOK_FAILED, failed_hook("next_work", error))
            return None

    def _scheduled_work(self) -> float | None:
        schedule = self._measured.schedule
        if schedule is None:
            return None if isinstance(self.options.work, tuple) else self.options.work
        try:
            return schedule.next(self.options.budget_s - self._elapsed_ns / 1e9)
        except WorkTooShort as error:
            refusal = Notice.refusal(Code.WORK_TOO_SHORT, str(error))
            self.end(StopReason.WORK_TOO_SHORT, refusal)
            raise

    def _pace(self) -> Pace:
        last = self._rounds[-1] if self._rounds else None
        many = [metric for metric in self._measured.by_name.values() if metric.unit.many]
        restarted = [metric for metric in many if metric.unit is INVOCATIONS]
        splits = [metric.analysis.split for metric in restarted if metric.analysis is not None]
        return Pace(
            readings=max((metric.n for metric in many), default=0),
            elapsed_s=self._elapsed_ns / 1e9,
            last_readings=last.n_readings if last else 0,
            last_s=last.elapsed_ns / 1e9 if last else 0.0,
            to_next_check=min((metric.to_next_check for metric in many), default=1),
            piece=self.piece,
            invocations=max((len(metric.chunks) for metric in restarted), default=0),
            busy_s=max((metric.busy_s for metric in restarted), default=0.0),
            split=next(filter(None, splits), None),
            may_be_short=all(
                metric.analysis is None or metric.analysis.estimate for metric in restarted
            ),
        )

    @property
    def piece(self) -> int:
        """The piece that the next round is of, counted from 0."""
        return min(self._piece, self.options.pieces - 1)

    def _piece_after(self, finished: Round) -> int:
        """Return the piece that the next round is of, their number when all are over.

        A piece is over when its time is, or when the next reading would end too late. No piece is
        skipped: if its time is gone, it still has one reading.
        """
        if self.options.pieces == 1:
            return 0
        each_s = self.options.piece_s
        elapsed_s = (self._elapsed_ns + finished.elapsed_ns) / 1e9
        piece = finished.plan.piece
        by_time = elapsed_s / each_s >= piece + 1.0 - _ROUNDING
        by_reading = (elapsed_s + self._reading_s) / each_s > piece + LATEST
        return piece + int(by_time or by_reading)

    @property
    def _reading_s(self) -> float:
        """Minimum time of the next call of a function."""
        if self._measured.schedule is not None:
            return self._measured.schedule.shortest_round_s
        last = self._rounds[-1] if self._rounds else None
        continuous = any(
            metric.unit.many and metric.unit is not INVOCATIONS
            for metric in self._measured.by_name.values()
        )
        counts = last is not None and last.n_readings and (continuous or last.cut)
        return self._pace().reading_s if counts else 0.0

    def end(self, reason: StopReason, notice: Notice | None = None) -> None:
        """End the session from outside; a workload that ended by itself may have cooled down."""
        if self._decision is None and reason is StopReason.EXHAUSTED:
            self._measured.end()
        super().end(reason, notice)

    def waiting(self, seconds: float) -> Progress:
        """Return the state of the session while it waits for its next piece."""
        return replace(self._progress or self._current(fresh=False), waiting_s=seconds)

    def tell(self, finished: Round) -> Decision:
        """Add a finished round and decide whether to go on.

        Raises
        ------
        PlanMismatch
            When `ask` did not return the round's plan, or its result was passed before.
        InvalidInput
            When its metrics are unknown or its readings impossible; the plan stays open.
        """
        self.check(finished)
        return self._take(finished)

    def check(self, finished: Round) -> None:
        """Raise what `tell` would raise for this round, without adding it."""
        self._check_plan(finished.plan)
        self._measured.check(finished)

    def replay(self, finished: Round) -> Decision:
        """Add a stored round of an interrupted session, regardless of its plan.

        Raises
        ------
        InvalidInput
            When its metrics are unknown or its readings impossible.
        """
        self._measured.check(finished)
        return self._take(finished)

    def _take(self, finished: Round) -> Decision:
        """Add a round that was checked."""
        restarted = self.options.rounds == "restarted"
        is_left_out = self.options.red_rounds == "repeat" and is_red(
            with_stops([*self._rounds, finished], restarted=restarted)[-1],
            self._rounds,
            compare_whole=restarted,
            varies=self._measured.schedule is not None,
        )
        self._rounds.append(finished)
        if is_left_out:
            self._red[finished.plan.index] = None
            self._measured.rejected += 1
        else:
            self._measured.take(finished)
        self._measured.spend(finished, (self._elapsed_ns + finished.elapsed_ns) / 1e9)
        self._piece = self._piece_after(finished)
        self._measured.end_pieces(self._piece)
        return self._decide(finished.elapsed_ns)

    @property
    def _is_due(self) -> bool:
        # Without rules only the end needs an analysis.
        return self._rules != () and self._measured.is_due

    @property
    def _is_early(self) -> bool:
        return self._measured.is_early

    def _look(self, *, fully: bool) -> None:
        self._measured.look(fully=fully)

    def _rough_figure(self) -> Analysis | None:
        return self._measured.rough_figure(FIGURE_READINGS)

    def _stop_rules(self) -> Sequence[StopRule]:
        if self._rules is not None:
            return self._rules
        return default_rules(self.options, no_narrower=self._is_headline_final)

    def _is_headline_final(self, progress: Progress) -> bool:
        """Whether more readings would narrow no headline by a tenth."""
        if progress.elapsed_s < SETTLED_S:
            return False
        required = [each for each in progress.analyses if each.metric.must_satisfy]
        paces = [each.pace for each in self._with_pace(required, self._counted_rounds())]
        return all(
            pace is not None and pace.blocks >= FEWEST_BLOCKS and pace.reducible <= LITTLE
            for pace in paces
        )

    def _current(self, *, fresh: bool) -> Progress:
        metrics = self._measured.by_name.values()
        analyses = tuple(metric.analysis for metric in metrics if metric.analysis is not None)
        readings = max((metric.n for metric in metrics), default=0)
        return self._progress_of(
            readings=readings,
            rounds=len(self._rounds) - len(self._red),
            rejected_rounds=self._measured.rejected,
            analyses=analyses,
            fresh=fresh,
            agreed=self._measured.agreed,
            reading_s=self._reading_s,
            kept=sum(metric.n for metric in metrics),
            reachable=self._reachable(),
            missing=self._measured.missing,
            name=self.name,
            piece=self._rounds[-1].plan.piece if self._rounds else 0,
        )

    def _reachable(self) -> float | None:
        """Return the widest half-width that is out of reach of the budget, see `out_of_reach`."""
        found = [
            out_of_reach(
                metric.analysis or metric.empty_analysis(),
                self.options,
                units=metric.units,
                looked_at=metric.looked_at,
                elapsed_s=self._elapsed_ns / 1e9,
            )
            for metric in self._measured.by_name.values()
            if metric.metric.must_satisfy and metric.unit.is_foreseen
        ]
        return max((pace_s for pace_s in found if pace_s is not None), default=None)

    def result(self) -> RunRecord:
        """Return the record of all rounds so far, also while the session runs."""
        reports = self._measured.reports()
        counted = self._counted_rounds()
        red = say_left_out(len(self._red), len(self._rounds))
        all_red = self._describe_red_rounds(red)
        analyses = all_red or tuple(
            self._flag(reports[metric.name])
            if metric.name in reports
            else without_readings(metric, self._rounds)
            for metric in self._measured.metrics
        )
        analyses = self._with_pace(analyses, counted)
        delayed = None if self._recorded else measured_interference(counted or self._rounds)
        interference = check_light(delayed, analyses)
        return RunRecord(
            name=self.name,
            options=self.options,
            metrics=self._measured.metrics or tuple(analysis.metric for analysis in analyses),
            seed=self.seed,
            rounds=tuple(self._rounds),
            analyses=analyses,
            decision=self._decision,
            session_notices=(
                *with_light(self._all_notices(), interference, self._rounds),
                *disagreement(counted, tuple(reports.values())),
                *(() if all_red else red),
                *report_stops(interference),
                *(
                    warn_of_loss(interference, analyses)
                    if len(self._red) < len(self._rounds)
                    else ()
                ),
            ),
            subject=self.subject,
            interference=interference,
            red_rounds=tuple(self._red),
        )

    def _counted_rounds(self) -> tuple[Round, ...]:
        """Return the rounds that count, with the stops of the machine during each."""
        counted = tuple(
            round_
            for round_ in self._rounds
            if round_.plan.index not in self._red and not (round_.cut and not round_.unit_readings)
        )
        return with_stops(counted, restarted=self.options.rounds == "restarted")

    def _with_pace(
        self, analyses: Sequence[Analysis], rounds: Sequence[Round]
    ) -> tuple[Analysis, ...]:
        full_s = full_speed_of(levels_of(rounds), self.kept_levels)
        return tuple(
            with_pace(analysis, rounds, full_s, self.options.statistic) for analysis in analyses
        )

    def _describe_red_rounds(self, red: tuple[Notice, ...]) -> tuple[Analysis, ...]:
        """Describe the readings of rounds that are all left out; empty if one counts."""
        if not self._rounds or len(self._red) < len(self._rounds):
            return ()
        anew = MeasuredMetrics(self.options, self._measured.metrics or None, None, seed=self.seed)
        return anew.describe_refusal(self._rounds, red[0])

    def _flag(self, analysis: Analysis) -> Analysis:
        """Warn of an estimate of one process only, or one that did not reach its target."""
        estimate, metric, notices = analysis.estimate, analysis.metric, analysis.notices
        if estimate is None:
            return analysis
        if unit_of(analysis) is INVOCATIONS:
            only = [notice for notice in self._notices if notice.code is Code.THIS_PROCESS_ONLY]
            others = [notice for notice in notices if not only or notice.code is not only[0].code]
            notices = tuple(others)
            estimate = replace(estimate, notices=(*only, *others))
        wanted = asked_half_width(estimate, metric, self.options)
        ended = self._decision is not None and not self._decision.satisfied
        if ended and metric.must_satisfy and math.isfinite(wanted):
            notice = warn_not_converged(estimate.half_width, wanted, *whole_of(estimate))
            estimate = replace(estimate, notices=leading(notice, estimate.notices))
            notices = leading(notice, notices)
        return replace(analysis, estimate=estimate, notices=notices)

    def _all_notices(self) -> tuple[Notice, ...]:
        """Return the Notices of the session, and of its rounds the last one per code."""
        of_rounds = {
            (notice.code, notice.evidence.get("metric")): notice
            for round_ in self._rounds
            for notice in round_.notices
        }
        no_data = []
        if self._decision is not None and not self._measured.metrics and not self._red:
            no_data.append(no_readings(self._rounds))
        return (*self._notices, *of_rounds.values(), *no_data)
