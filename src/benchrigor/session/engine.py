"""The engine of a session: it is asked for the next round and told what came of it. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchrigor.errors import DetectorFailed, PlanMismatch, WorkTooShort
from benchrigor.model import (
    Analysis,
    Code,
    Decision,
    Interference,
    Kind,
    Metric,
    Notice,
    Options,
    Progress,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.model.text import percent
from benchrigor.protocols import Detector, StopRule
from benchrigor.session.analysis_chain import CHECK, LINE_REPORT, REPORT, Material, analyse
from benchrigor.session.outcomes import failed_hook, no_data, nothing_of, too_short
from benchrigor.session.red_rounds import (
    disturbed,
    interference_of,
    is_red,
    measured_only,
    passed_over,
)
from benchrigor.session.round_size import Pace, next_readings
from benchrigor.session.stop_rules import default_rules, wanted_half_width
from benchrigor.session.traces import Intake
from benchrigor.session.work_checks import NextWork, as_next_work, disagreement, with_work
from benchrigor.stats.changepoints.ruptures_adapter import Estimator

__all__ = ["Engine"]


class Engine:
    """Decides what to measure next, and when it is known well enough; does nothing itself.

    Parameters
    ----------
    options
        What to reach and what may be spent.
    metrics
        None: the names in the first round that gives any define them (lower is better, all must
        be satisfied; "time" is in seconds).
    seed
        From which every plan's own seed is derived.
    name, subject
        What is measured, for people and for programs.
    detector
        Finds change points: a `protocols.Detector`, or a ruptures estimator, which is given the
        default penalty of `stats.RupturesDetector`; None for the built-in one.
    rules
        Stop rules, the first answer wins; None for `default_rules`.
    next_work
        Called with each plan before it is asked for; returns another work amount for it, or None
        to leave it as it is.
    complete
        Whether the readings were recorded before and have come to their end: a cool-down may be
        under way there, and is fitted as well.

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
        complete: bool = False,
    ) -> None:
        self.options = Options() if options is None else options
        self.seed = seed
        self.name = name
        self.subject = dict(subject or {})
        self._rules = rules
        self._next_work = as_next_work(next_work)
        self._intake = Intake(self.options, metrics, detector, complete=complete, seed=seed)
        self._rounds: list[Round] = []
        self._notices: list[Notice] = []
        self._red: dict[int, None] = {}
        self._pending: RoundPlan | None = None
        self._elapsed_ns = 0
        self._stop_requested = False
        self._decision: Decision | None = None
        self._progress: Progress | None = None

    @property
    def decision(self) -> Decision | None:
        """How the session ended; None while it runs."""
        return self._decision

    @property
    def progress(self) -> Progress | None:
        """How the session stands since the last round; None before it."""
        return self._progress

    @property
    def time_metric(self) -> str | None:
        """Name of the metric that says how long readings took; None where amounts vary."""
        return None if self._intake.schedule is not None else self._intake.time_metric

    def request_stop(self) -> None:
        """Let the round under way be told, then end with what there is."""
        self._stop_requested = True

    def ask(self) -> RoundPlan | None:
        """Return the next plan, the same one until it is told; None when finished.

        Raises
        ------
        WorkTooShort
            When even the largest work amount makes rounds too short; the session has ended.
        """
        if self._stop_requested and self._pending is None:
            self.end(StopReason.STOP_REQUESTED)
        if self._decision is not None:
            return None
        if self._pending is None:
            index = len(self._rounds)
            plan = RoundPlan(
                index=index,
                work=self._scheduled_work(),
                readings=next_readings(self._pace(), self.options),
                seed=int(np.random.SeedSequence([self.seed, index]).generate_state(1)[0]),
            )
            self._pending = self._overridden(plan)
        return self._pending

    def _scheduled_work(self) -> float | None:
        schedule = self._intake.schedule
        if schedule is None:
            return None if isinstance(self.options.work, tuple) else self.options.work
        try:
            return schedule.next(self.options.budget_s - self._elapsed_ns / 1e9)
        except WorkTooShort as error:
            self.end(StopReason.WORK_TOO_SHORT, too_short(error))
            raise

    def _overridden(self, plan: RoundPlan) -> RoundPlan | None:
        """Let the hook choose another work amount; None, and the end, where it fails."""
        if self._next_work is None:
            return plan
        try:
            return with_work(plan, self._next_work(plan))
        except Exception as error:  # noqa: BLE001  # whatever a user's hook raises is reported, not lost
            self.end(StopReason.HOOK_FAILED, failed_hook("next_work", error))
            return None

    def tell(self, finished: Round) -> Decision:
        """Take in a finished round and decide whether to go on.

        Raises
        ------
        PlanMismatch
            When the round's plan was never asked for, or has been told already.
        InvalidInput
            When its metrics are unknown or its readings impossible; the plan stays open.
        """
        self.check(finished)
        return self._take(finished)

    def check(self, finished: Round) -> None:
        """Raise what `tell` would raise for this round, and change nothing."""
        if self._pending is None or finished.plan != self._pending:
            told = finished.plan.index < len(self._rounds)
            raise PlanMismatch(
                f"plan {finished.plan.index} "
                + ("has been told already" if told else "was never asked for")
                + "; tell the plan that ask() returned, once"
            )
        self._intake.check(finished)

    def replay(self, finished: Round) -> Decision:
        """Take in a stored round of an interrupted session, whatever plan it was made by.

        Raises
        ------
        InvalidInput
            When its metrics are unknown or its readings impossible.
        """
        self._intake.check(finished)
        return self._take(finished)

    def _take(self, finished: Round) -> Decision:
        """Take in a round that was checked."""
        self._pending = None
        self._rounds.append(finished)
        self._elapsed_ns += finished.elapsed_ns
        if self._is_left_out(finished):
            self._red[finished.plan.index] = None
            self._intake.rejected += 1
        else:
            self._intake.take(finished)
        progress = self._judged(look=self._intake.is_due)
        if progress.decision is not None and not progress.fresh:
            # Before it ends, a session looks once more at all that it was given.
            progress = self._judged(look=True)
        self._progress = progress
        self._decision = progress.decision
        return self._decision or Decision(stop=False)

    def _is_left_out(self, finished: Round) -> bool:
        """Whether a round lost too much to others, where such rounds are not kept."""
        if self.options.red_rounds == "keep":
            return False
        alike = self.options.rounds == "restarted"
        return is_red(finished, self._rounds[:-1], self.time_metric, alike=alike)

    @property
    def _counted(self) -> tuple[Round, ...]:
        return tuple(each for each in self._rounds if each.plan.index not in self._red)

    def end(self, reason: StopReason, notice: Notice | None = None) -> None:
        """End the session from outside with what there is; nothing once it has ended."""
        if self._decision is not None:
            return
        if notice is not None:
            self._notices.append(notice)
        self._pending = None
        self._decision = Decision(stop=True, reason=reason)

    def note(self, notice: Notice) -> None:
        """Add a Notice that concerns the run as a whole."""
        self._notices.append(notice)

    def result(self) -> RunRecord:
        """Return everything found so far, also while the session runs; changes nothing."""
        traces = self._intake.traces
        found = {name: _analysed(self._intake.material(trace)) for name, trace in traces.items()}
        differing = disagreement(self._counted, tuple(found.values()))
        analyses = tuple(
            self._flagged(found[metric.name]) if metric.name in found else nothing_of(metric)
            for metric in self._intake.metrics
        )
        lost = self._interference(analyses)
        red = passed_over(len(self._red), len(self._rounds), self.options.red_rounds)
        return RunRecord(
            name=self.name,
            options=self.options,
            metrics=self._intake.metrics,
            seed=self.seed,
            rounds=tuple(self._rounds),
            analyses=analyses,
            decision=self._decision,
            session_notices=(*self._all_notices(), *differing, *red, *disturbed(lost)),
            subject=self.subject,
            interference=lost,
            red_rounds=tuple(self._red),
        )

    def _interference(self, analyses: Sequence[Analysis]) -> Interference | None:
        """Return what the first metric that can tell says was lost to others."""
        if len(self._red) == len(self._rounds):
            return measured_only(self._rounds, self.time_metric, "No round counts")
        told = (interference_of(each, self._counted) for each in analyses)
        return next((each for each in told if each is not None), None)

    def _pace(self) -> Pace:
        last = self._rounds[-1] if self._rounds else None
        single = (Kind.READINGS, Kind.WORK)
        units = [each for each in self._intake.traces.values() if each.kind not in single]
        return Pace(
            readings=max((each.n for each in units), default=0),
            elapsed_s=self._elapsed_ns / 1e9,
            last_readings=last.n_readings if last else 0,
            last_s=last.elapsed_ns / 1e9 if last else 0.0,
            to_next_check=min((each.next_check - each.n for each in units), default=1),
        )

    def _judged(self, *, look: bool) -> Progress:
        """Look at the readings, or not yet, and ask the stop rules: the first to stop wins."""
        if look:
            self._intake.look(CHECK)
        else:
            self._intake.glance()
        progress = self._standing(fresh=look)
        rules = self._rules
        if rules is None:
            rules = default_rules(self.options, self._intake.metrics)
        answers = (rule(progress) for rule in rules)
        stops = (answer for answer in answers if answer is not None and answer.stop)
        return replace(progress, decision=next(stops, None))

    def _standing(self, *, fresh: bool) -> Progress:
        traces = self._intake.traces.values()
        analyses = tuple(each.analysis for each in traces if each.analysis is not None)
        readings = max((each.n for each in traces), default=0)
        repeated = len(self._red) if self.options.red_rounds == "repeat" else 0
        elapsed_s = self._elapsed_ns / 1e9
        needed = _still_needed(analyses, readings)
        left = self.options.budget_s - elapsed_s
        if needed is not None and readings:
            left = min(left, needed * elapsed_s / readings)
        return Progress(
            rounds=len(self._rounds) - repeated,
            readings=readings,
            rejected_rounds=self._intake.rejected,
            elapsed_s=elapsed_s,
            seconds_left=max(left, 0.0) if math.isfinite(left) else None,
            readings_needed=needed,
            stop_requested=self._stop_requested,
            analyses=analyses,
            fresh=fresh,
            missing=self._intake.missing,
        )

    def _flagged(self, analysis: Analysis) -> Analysis:
        """Mark what must never look like a result: one process only, or short of the target."""
        analysis = self._of_one_process(analysis)
        ended = self._decision is not None and self._decision.reason is not StopReason.SATISFIED
        found = analysis.estimate
        if not ended or found is None or not analysis.metric.must_satisfy:
            return analysis
        wanted = wanted_half_width(found, analysis.metric, self.options)
        notice = Notice.warning(
            Code.NOT_CONVERGED,
            _not_converged(found.half_width, wanted, found.value),
            half_width=found.half_width,
            wanted=wanted if math.isfinite(wanted) else None,
        )
        flagged = replace(found, notices=(notice, *found.notices))
        return replace(analysis, estimate=flagged, notices=(notice, *analysis.notices))

    def _of_one_process(self, analysis: Analysis) -> Analysis:
        """Let an estimate over rounds that nothing restarted say so wherever it goes."""
        said = tuple(each for each in self._notices if each.code is Code.THIS_PROCESS_ONLY)
        found = analysis.estimate
        if not said or found is None or analysis.kind is not Kind.INVOCATIONS:
            return analysis
        return replace(analysis, estimate=replace(found, notices=(*said, *found.notices)))

    def _all_notices(self) -> tuple[Notice, ...]:
        """Notices of the session and of its workload; of the workload's, the last of each code."""
        said = {
            (notice.code, notice.evidence.get("metric")): notice
            for each in self._rounds
            for notice in each.notices
        }
        nothing = self._decision is not None and not self._intake.metrics
        why = "All rounds were red." if self._red else "No round gave any reading."
        refusal = (no_data(why),) if nothing else ()
        return (*self._notices, *said.values(), *refusal)


def _still_needed(analyses: Sequence[Analysis], readings: int) -> int | None:
    """Return the further readings that the slowest required metric needs, if all are known."""
    required = [each.required for each in analyses if each.metric.must_satisfy]
    known = [each for each in required if each is not None]
    if not known or len(known) < len(required):
        return None
    return max(0, max(known) - readings)


def _not_converged(half_width: float, wanted: float, value: float) -> str:
    if value == 0.0 or half_width <= wanted:
        return "Ended before the evidence asked for was there."
    return (
        f"Ended with a half-width of {percent(half_width / abs(value))} of the value, "
        f"wanted {percent(wanted / abs(value))}."
    )


def _analysed(material: Material) -> Analysis:
    """Analyse for the record, which a failing detector must not keep back."""
    try:
        return analyse(material, LINE_REPORT if material.kind is Kind.WORK else REPORT)
    except DetectorFailed as error:
        notice = Notice.refusal(Code.DETECTOR_FAILED, f"No phases: {error}.")
        n = sum(series.size for series in material.series)
        return Analysis(metric=material.metric, kind=material.kind, n=n, notices=(notice,))
