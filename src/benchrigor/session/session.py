"""The session: an engine of one subject with a clock, a loop, hooks and a store."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchrigor import machine
from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, InvalidInput, StoreFailed, WorkTooShort
from benchrigor.machine.delays import HostDelays, RunDelay
from benchrigor.machine.host import environment, load_average, slowed_by
from benchrigor.model import (
    Code,
    Decision,
    Headway,
    Metric,
    Notice,
    Options,
    Progress,
    Round,
    RoundPlan,
    RunRecord,
)
from benchrigor.model.checks import is_number, refuse, wrong_values
from benchrigor.model.run import Provenance
from benchrigor.protocols import (
    Clock,
    DelayMeter,
    Detector,
    LastingWorkload,
    PacedWorkload,
    StopRule,
    Store,
    Workload,
)
from benchrigor.safe_text import escaped
from benchrigor.session.engine import Engine
from benchrigor.session.loop import (
    NAP_NS,
    Hooks,
    call_hook,
    drive,
    ended_by_errors,
    least_span_s,
    performer,
    watch_for,
)
from benchrigor.session.outcomes import earlier_numbers, say_begin, say_decision
from benchrigor.session.pace_of_rounds import levels_of
from benchrigor.session.schedules import check_seed
from benchrigor.session.stored_runs import conditions_of_speed, with_history
from benchrigor.session.subject import Subject
from benchrigor.stats.changepoints.ruptures_adapter import Estimator
from benchrigor.stats.work_schedule import NextWork
from benchrigor.storage import Journal, as_store
from benchrigor.storage.user_settings import keep_levels, kept_levels
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    CommandWorkload,
    StepwiseWorkload,
    command,
)
from benchrigor.workloads.named_functions import takes_amount
from benchrigor.workloads.processes.own_signals import note_stops
from benchrigor.workloads.processes.worker import VERSION
from benchrigor.workloads.timing import TimedWorkload

# One line per decision, written only if the program that measures adds a handler.
_LOG = logging.getLogger("benchrigor.session")
_LOG.addHandler(logging.NullHandler())


class Session:
    """One measurement: runs rounds until the interval is as narrow as wanted.

    Use `run` to measure a workload. To measure by other means, call `ask` for a plan and pass its
    result to `tell`. The logger "benchrigor.session" gets decisions at INFO, the rest at DEBUG.

    Parameters
    ----------
    options
        Target and budgets, statistic and method.
    metrics
        None takes the names from the first round with readings: lower is better, all must be
        satisfied, and "time" is in seconds.
    name, subject
        Descriptions of the measured thing, for people and for programs.
    seed
        Source of the seeds of all plans, kept in the record; None draws one.
    store
        A path or a `protocols.Store` that keeps a round as soon as it is finished; None for no
        store.
    detector
        Finds change points: a `protocols.Detector`, or a ruptures estimator, which gets the
        default penalty of `stats.RupturesDetector`; None for the detector in the options.
    rules
        Stop rules: the first to stop wins. None for `default_rules`.
    clock
        Times the rounds; None for the wall clock.
    meter
        Measures delay by other processes; None for the kernel's scheduler statistics with the
        wall clock, and no meter with another clock.
    next_work
        Called with a plan; returns another work amount for it, or None to keep its own.
    before_round, after_round, progress
        Called with the plan before a round, with the finished round, and with the session's
        `Progress` after it. A hook that raises ends the session.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock, SyntheticWorkload
    >>> clock = FakeClock()
    >>> session = Session(Options(target=0.02), seed=1, clock=clock)
    >>> record = session.run(SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock))
    >>> record.decision.reason
    <StopReason.SATISFIED: 'satisfied'>
    """

    def __init__(
        self,
        options: Options | None = None,
        metrics: Sequence[Metric] | None = None,
        *,
        name: str = "session",
        subject: Mapping[str, Any] | None = None,
        seed: int | None = None,
        store: str | Path | Store | None = None,
        detector: Detector | Estimator | None = None,
        rules: Sequence[StopRule] | None = None,
        clock: Clock | None = None,
        meter: DelayMeter | None = None,
        next_work: NextWork | None = None,
        before_round: Callable[[RoundPlan], object] | None = None,
        after_round: Callable[[Round], object] | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        self.subject = Subject(
            options,
            metrics,
            seed=check_seed(seed),
            name=name,
            facts=subject,
            detector=detector,
            rules=rules,
            next_work=next_work,
        )
        self.engine = Engine(self.subject)
        self._clock = clock or WallClock()
        self._meter = meter or meter_for(clock)
        self._hooks = Hooks(before_round=before_round, after_round=after_round, progress=progress)
        self._store = None if store is None else as_store(store)
        self._ready: Callable[[], int] = lambda: 0
        self._is_paced = False  # whether a reference is measured in turn
        self._run_id: str | None = None
        self._kept: Round | None = None  # the last round in the store
        self._finished = False
        self._final: RunRecord | None = None  # until there is more to say
        self._provenance: Provenance | None = None
        self._earlier: tuple[Notice, ...] = ()  # numbers from before it was resumed

    @property
    def options(self) -> Options:
        """Target and budgets, statistic and method."""
        return self.subject.options

    @property
    def decision(self) -> Decision | None:
        """Why the session ended; None while it runs."""
        return self.engine.decision

    @property
    def progress(self) -> Progress | None:
        """State of the session after the last round; None before the first."""
        return self.engine.progress

    @property
    def headway(self) -> Headway:
        """How far the session has come, for a `protocols.Schedule` of several."""
        return self.subject.headway(self.engine)

    def request_stop(self) -> None:
        """End the session after the round under way."""
        self.engine.request_stop()

    def tell(self, finished: Round) -> Decision:
        """Add a finished round, keep it in the store, and decide whether to go on.

        Raises
        ------
        PlanMismatch
            When `ask` did not return the round's plan, or its result was passed before.
        InvalidInput
            When its metrics are unknown or its readings impossible; the plan stays open.
        StoreFailed
            When the store cannot keep the round, and the plan stays open; or cannot keep the
            result, and ``error.record`` holds it.
        """
        decision = self.engine.tell(finished, self.keep)
        if self.progress is not None and _LOG.isEnabledFor(logging.INFO):
            _LOG.info("%s", escaped(say_decision(finished, self.progress, self.options)))
        if decision.stop:
            self._finish()
        return decision

    def ask(self) -> RoundPlan | None:
        """Return the next plan, the same one until its result is passed; None when finished.

        Raises
        ------
        WorkTooShort
            When rounds of the largest work amount are too short; with ``error.record``.
        """
        try:
            turn = self.engine.ask()
        except WorkTooShort as error:
            error.record = self._record()
            raise
        plan = None if turn is None else turn.plan
        _LOG.debug("next: %s", plan)
        return plan

    def result(self) -> RunRecord:
        """Return the record of all rounds so far, also while the session runs.

        Raises
        ------
        StoreFailed
            When the session has ended and the store cannot keep its result, with ``error.record``.
        """
        ended_in_ask = self.decision is not None and not self._finished
        return self._finish() if ended_in_ask else self._record()

    def note(self, notice: Notice) -> None:
        """Add a Notice about the whole session."""
        self.engine.note(notice)
        self._final = None

    def _record(self) -> RunRecord:
        record: RunRecord = self._final or self.engine.result()
        known = {a.metric.name for a in record.analyses if a.estimate is not None}
        lost = [notice for notice in self._earlier if notice.evidence["metric"] not in known]
        added = [notice for notice in lost if notice not in record.session_notices]
        return replace(
            record,
            session_notices=(*record.session_notices, *added),
            provenance=self._provenance,
            run_id=self._run_id,
        )

    def run(
        self, workload: Workload | Callable[..., object], *, over_s: float | None = None
    ) -> RunRecord:
        """Measure a workload until the session stops, and return the record.

        Parameters
        ----------
        workload
            A `protocols.Workload`; a plain function, which is timed; or a generator function,
            whose steps are timed. A function with one argument gets the work amount of the
            round.
        over_s
            Time in seconds, not less than the budget, over which pauses spread the pieces of the
            options evenly. None for no pauses.

        Raises
        ------
        WorkloadFailed, WorkTooShort, ClockFailed, InvalidInput, StoreFailed
            With ``error.record``, the record of the rounds finished before.
        KeyboardInterrupt
            As it came, with the attribute ``record``.
        """
        for _ in self.pieces(workload, over_s=over_s):
            pass
        return self.result()

    def pieces(
        self,
        workload: Workload | Callable[..., object],
        *,
        over_s: float | None = None,
        by_round: bool = False,
    ) -> Generator[Progress, None, None]:
        """Measure a workload piece by piece; the caller may do other things between pieces.

        Parameters and errors are as of `run`; with ``by_round`` each round is taken for a piece.
        The time between pieces belongs to no round. An error thrown in by the caller ends the
        session as one of its own does.

        Yields
        ------
        Progress
            After the last round of a piece.

        Examples
        --------
        >>> from benchrigor.testing import FakeClock, SyntheticWorkload
        >>> clock = FakeClock()
        >>> session = Session(Options(pieces=4, budget_s=2, target=None), seed=1, clock=clock)
        >>> for progress in session.pieces(SyntheticWorkload(mean=0.01, seed=1, clock=clock)):
        ...     clock.sleep_ns(60 * 10**9)
        >>> record = session.result()
        >>> record.estimate().n, round(record.elapsed_s)
        (4, 2)
        """
        step_ns = _step_ns(self.options, over_s)
        subject, away_ns = self.subject, 0

        def ready() -> int:
            nonlocal away_ns
            lost_ns, away_ns = self._ready() + away_ns, 0
            return lost_ns

        with self.performing(workload) as perform:
            first = piece = subject.piece
            began = self._clock.now_ns() if step_ns else 0
            turns = drive(
                self.engine,
                perform,
                self._clock,
                self._hooks,
                ask=self.ask,
                tell=self.tell,
                ready=ready,
            )
            for _ in turns:
                is_over = by_round or subject.piece > piece
                if self.decision is None and self.progress is not None and is_over:
                    piece, left_ns = subject.piece, self._clock.now_ns()
                    yield self.progress
                    if step_ns:
                        self._wait_until(began + (piece - first) * step_ns)
                    away_ns = self._clock.now_ns() - left_ns

    @contextmanager
    def performing(
        self, workload: Workload | Callable[..., object]
    ) -> Iterator[Callable[[RoundPlan], Callable[[int], Round] | None]]:
        """Prepare to measure a workload, and give the function that carries out plans, for `drive`.

        An error raised inside ends the session, as in `run`, which lists the errors.
        """
        if getattr(workload, "fresh_process", False):
            self.subject.restart_rounds()
        fresh = self.subject.given.unit.restarted
        adapted = as_workload(workload, self._clock, fresh=fresh, meter=self._meter)
        _check_amounts(adapted, self.options)
        is_real = isinstance(self._clock, WallClock)  # simulated time shows no pace of a machine
        if isinstance(adapted, PacedWorkload) and is_real and self.options.reference:
            self._is_paced = True
            adapted.take_turns()
        if fresh and isinstance(adapted, CallableWorkload):
            self.note(Notice.of(Code.THIS_PROCESS_ONLY, "function", name=adapted.name))
        self._describe(adapted)
        if isinstance(self._store, Journal):  # fail before time is spent
            self._store.check()
        host = HostDelays() if isinstance(self._meter, RunDelay) else None
        _LOG.info(
            "%s", escaped(say_begin(self.subject.name, self.options, len(self.subject.rounds)))
        )
        with (
            ended_by_errors(self.engine, self._rescue),
            _set_up(adapted),
            closing(host) if host else nullcontext(),
            note_stops(),
        ):
            if host is not None:
                host.start()
            if self._is_paced and not slowed_by():
                self.subject.kept_levels = kept_levels(self._machine)
            watch = watch_for(self.options, self._clock)
            if watch is None:
                yield performer(adapted, self._clock, host)
                return
            self._ready = watch.before
            yield performer(adapted, self._clock, host, watch.after)

    def _wait_until(self, due_ns: int) -> None:
        """Sleep until a piece is due, unless the session is asked to stop; say for how long."""
        engine = self.engine
        while not engine.is_asked_to_stop and (left_ns := due_ns - self._clock.now_ns()) > 0:
            so_far = engine.progress or engine.state(fresh=False)
            waiting = replace(so_far, waiting_s=left_ns / 1e9)
            if not call_hook(engine, "progress", self._hooks.progress, waiting):
                return
            self._clock.sleep_ns(min(left_ns, NAP_NS))

    @classmethod
    def resume(cls, store: str | Path | Store, run_id: str, **kwargs: Any) -> Session:
        """Continue an interrupted run from its finished rounds.

        Parameters
        ----------
        store
            The store of the run.
        run_id
            Its id, or the beginning of it.
        **kwargs
            Detector, rules, clock, hooks as for `Session`; ``options`` replace the run's options.

        Raises
        ------
        StoreFailed
            When the store cannot be read or has no such run.
        InvalidInput
            When the run is finished.
        """
        opened = as_store(store)
        before = opened.load(run_id)
        if before.decision is not None and before.decision.satisfied:
            raise InvalidInput(f"run {before.run_id} is finished: {before.decision.reason}")
        options = kwargs.pop("options", None) or before.options
        session = cls(
            options,
            before.metrics or None,
            name=before.name,
            subject=before.subject,
            seed=before.seed,
            store=opened,
            **kwargs,
        )
        session._run_id = before.run_id  # a private member of this class
        session.engine.min_seconds = least_span_s(session._clock, options)
        session._earlier = earlier_numbers(before)
        for finished in before.rounds:
            session.engine.tell(finished, asked=False)
        session.engine.min_seconds = 0.0  # until `run`
        began = before.provenance
        session.note(
            Notice.of(
                Code.RESUMED,
                rounds_before=len(before.rounds),
                host_before=None if began is None else began.host,
                started_before=None if began is None else began.started_at,
            )
        )
        return session

    def _describe(self, workload: Workload | None = None) -> Provenance:
        if self._provenance is None:
            known = machine.provenance(
                sources=getattr(workload, "source_files", ()), folder=self.subject.facts.get("cwd")
            )
            self._provenance = replace(known, function=getattr(workload, "function_hash", None))
        return self._provenance

    def keep(self, finished: Round) -> None:
        """Keep a finished round in the store, before `tell` counts it; `tell` does so itself."""
        if self._store is None or finished is self._kept:
            return
        if self._run_id is None:
            self._describe()
            self._run_id = self._store.begin(replace(self._record(), rounds=(), analyses=()))
        self._store.append(self._run_id, finished)
        self._kept = finished

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """Forget all that was kept inside if an error ends it, as transactions of the store do."""
        before = self._run_id, self._kept
        try:
            yield
        except BaseException:
            self._run_id, self._kept = before
            raise

    def _finish(self) -> RunRecord:
        """Return the record of an ended session, and keep it in the store."""
        self._finished = True
        if self._provenance is not None:
            self._provenance = replace(
                self._provenance, load_after=load_average(), environment=environment()
            )
        self._keep_pace()
        record = self._record()
        self._final = record = with_history(record, self._store) if self._store else record
        _LOG.info("%s", record)
        if self._store is not None and self._run_id is not None:
            try:
                self._store.finish(self._run_id, record)
            except BenchrigorError as error:
                error.record = record
                raise
        return record

    @property
    def _machine(self) -> str:
        """The conditions that a full speed holds for."""
        versions = f"reference {VERSION}, command {command.VERSION}"
        return ", ".join([*conditions_of_speed(self._describe()).values(), versions])

    def _keep_pace(self) -> None:
        """Keep the fastest levels of this run for later ones; note if they are not kept."""
        if not self._is_paced or not levels_of(self.subject.rounds):
            return
        own, why = levels_of(self.subject.rounds, to_keep=True), slowed_by()
        try:
            if own and not why:
                keep_levels(self._machine, own)
        except StoreFailed as error:
            why = str(error)
        if why:
            self.note(Notice.of(Code.FULL_PACE_NOT_KEPT, why_=why))
        elif own and not self.subject.kept_levels:
            self.note(Notice.of(Code.FULL_PACE_NEW))

    def _rescue(self) -> RunRecord:
        """Return the record after an error, even if the store fails too."""
        try:
            return self.result()
        except StoreFailed:
            return self._record()


@contextmanager
def _set_up(workload: Workload) -> Iterator[None]:
    """Set a workload up before the clock of its first round starts, and close it at the end."""
    with closing(workload) if isinstance(workload, LastingWorkload) else nullcontext():
        if isinstance(workload, CommandWorkload):
            workload.set_up()
        yield


def as_workload(
    workload: Workload | Callable[..., object],
    clock: Clock,
    *,
    fresh: bool = False,
    meter: DelayMeter | None = None,
) -> Workload:
    """Adapt a plain function or generator function; return a Workload unchanged.

    A function with one required argument takes work amounts. With ``fresh``, each round starts a
    new generator.

    Raises
    ------
    InvalidInput
        For anything else.
    """
    if isinstance(workload, Workload) and not isinstance(workload, type):
        return workload
    if inspect.isgeneratorfunction(workload):
        return StepwiseWorkload(workload, clock=clock, fresh=fresh, meter=meter)
    if not callable(workload):
        raise InvalidInput(f"workload is {workload!r}, expected a function or an object with run()")
    adapted = AmountWorkload if takes_amount(workload) else CallableWorkload
    return adapted(workload, clock=clock, meter=meter)


def meter_for(clock: Clock | None) -> DelayMeter | None:
    """Return the kernel's meter of delay for the wall clock, and none for another clock."""
    if clock is not None and not isinstance(clock, WallClock):
        return None
    meter = RunDelay()
    return meter if meter.available else None


def _step_ns(options: Options, over_s: float | None) -> int:
    """Return the time from one start of a piece to the next, spread over ``over_s``; 0 for none."""
    if over_s is None:
        return 0
    finite = is_number(over_s) and options.budget_s <= over_s < math.inf
    refuse(
        wrong_values(
            [
                ("over_s", over_s, finite, f"{options.budget_s:g} s at least, the budget"),
                ("pieces", options.pieces, options.pieces > 1, "2 at least, to be spread"),
            ]
        )
    )
    return round((over_s - options.piece_s) / (options.pieces - 1) * 1e9)


def _check_amounts(workload: Workload, options: Options) -> None:
    """Refuse a function with an argument that does not fit the work amounts of the session."""
    if not isinstance(workload, TimedWorkload):
        return  # other workloads read the plan
    if workload.takes_amount and options.work is None and options.work_range is None:
        raise InvalidInput(
            f"{workload.name} takes a work amount, and this session has none: choose "
            f"Options(work=(low, high)), or analysis='wps'. To time calls with one argument, give "
            f"it in a function of its own, such as lambda: {workload.name}(...)"
        )
    if options.work_range is not None and not workload.takes_amount:
        raise InvalidInput(
            f"{workload.name} takes no work amount, and amounts in this session vary: give "
            "a function with one required argument (wrap a built-in one in a lambda)"
        )
