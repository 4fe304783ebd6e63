"""measure_pair: two functions, or fresh processes, in turn until their ratio is known."""

from __future__ import annotations

import math
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, ClockFailed, InvalidInput, WorkloadFailed
from benchrigor.model import Code, Comparison, Delays, Notice, Progress, Round, RoundPlan, Turn
from benchrigor.model.checks import attempt
from benchrigor.model.run import AGAIN, BASELINE, CANDIDATE, PAIR
from benchrigor.protocols import Clock, DelayMeter, Store, Workload
from benchrigor.session.engine import Engine, Taken
from benchrigor.session.loop import Hooks, drive, ended_by_errors
from benchrigor.session.pairs.ratio import Ratio, values_of
from benchrigor.session.schedules import seed_of
from benchrigor.session.session import Session, meter_for
from benchrigor.stats.readings.analysis import warn_of_batches
from benchrigor.stats.series.undisturbed import STOPPED
from benchrigor.storage import Journal, as_store
from benchrigor.workloads import CallableWorkload, InterpreterWorkload
from benchrigor.workloads.callable import Call
from benchrigor.workloads.named_functions import wrong_function
from benchrigor.workloads.processes.own_signals import measuring, note_stops
from benchrigor.workloads.processes.time_limits import CallLimit, CallOverran
from benchrigor.workloads.processes.worker import FEW_CALLS, SEGMENT_NS
from benchrigor.workloads.recorder import stopped_inside
from benchrigor.workloads.timing import Stopwatch, collector_kept, in_seconds, misfits

Finish = Callable[[int], Taken]
Began = Callable[[Engine[Ratio]], object]
Perform = Callable[[RoundPlan], Callable[[int], Round] | None]


def measure_pair(
    baseline: Call | Workload,
    candidate: Call | Workload,
    *,
    margin: float | str = 0.01,
    target: float | str | None = None,
    confidence: float | str = 0.95,
    statistic: str = "mean",
    budget_s: float = 10.0,
    setup: Call | None = None,
    teardown: Call | None = None,
    progress: Callable[[Progress], object] | None = None,
    seed: int | None = None,
    batch: int | None = None,
    gc: str = "on",
    preset: str | None = None,
    disturbed: str = "leave-out",
    detector: str = "ranks",
    store: str | Path | Store | None = None,
    began: Began | None = None,
    clock: Clock | None = None,
) -> Comparison:
    """Time ``baseline()`` and ``candidate()`` in turn until the ratio of their times is known.

    Parameters
    ----------
    baseline, candidate
        Called without arguments; the same function twice shows the effect of chance. Or workloads
        with a fresh process per round, such as commands: processes are then run in turn.
    margin
        Relative change that does not matter; 0 for the classical test.
    target
        Half-width of the ratio; None for half the margin, or 0.005 without a margin. It grows in
        proportion to ratios above 2.
    confidence, statistic, budget_s, setup, teardown, progress, seed, batch, gc, clock
        See `measure`. They apply to both functions; ``progress`` shows the ratio, with pairs as
        readings; ``seed`` sets the order. Setup, teardown, batch and gc are for functions alone:
        workloads time themselves.
    preset
        Evidence needed, see `benchrigor.model.Options`: "quick", "normal", "strict".
    disturbed
        "leave-out" uses pairs of two undisturbed readings, if there are enough; "keep" uses all.
    detector
        What finds the stable pairs, see `benchrigor.model.Options`.
    store
        Store that keeps both functions as runs; their subjects name each other. `compare_runs` with
        ``paired=True`` compares the two runs again in pairs. None stores no run.
    began
        Called with the engine before the first pair; ``engine.request_stop()`` ends the measurement
        after the current round.

    Returns
    -------
    Comparison
        ``print(comparison)`` shows it in one line. Its ``reason`` says why the measuring ended;
        unless that is SATISFIED, it has the Notice "not-converged". If a few pairs carry the
        interval, a Notice says so, and ``median_ratio`` has an interval that they do not carry.
        Without a stable phase it has no estimate, its verdict is UNDECIDED, and a Notice says why.

    Raises
    ------
    InvalidInput
        For all unsuitable arguments at once.
    WorkloadFailed
        When a function raises, or a process fails, naming it; the error's ``record`` is the
        Comparison of the rounds finished before.
    ClockFailed
        When the clock goes backwards or stands still; the error has a ``record``, too.
    KeyboardInterrupt
        As it came, with the attribute ``record``.

    Notes
    -----
    Each function has its own number of calls per reading: enough for the clock, and for means
    enough that readings of both last about equally long. `session.pairs.ratio.Ratio` describes the
    order of the readings and the stop rule.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock
    >>> clock = FakeClock(resolution_ns=1)
    >>> old, new = (lambda: clock.advance(100_000)), (lambda: clock.advance(103_000))
    >>> found = measure_pair(old, new, clock=clock, seed=1)
    >>> round(found.ratio.value, 3), str(found.verdict), str(found.reason)
    (1.03, 'worse', 'satisfied')
    """
    sides: dict[str, Any] = {BASELINE: baseline, CANDIDATE: candidate}
    # A task that is called may have a method of this name as well.
    are_workloads = (isinstance(side, Workload) and not callable(side) for side in sides.values())
    by_round, problems = all(are_workloads), list[str]()
    timing: dict[str, Any] = {"setup": setup, "teardown": teardown, "inner": batch, "gc": gc}
    kind: Callable[..., _Functions | _Processes] = _Processes
    if not by_round:
        kind = partial(_Functions, of_means=statistic == "mean", **timing)
        for name, func in sides.items():
            problems += wrong_function(name, func, "a function without arguments")
    asked: dict[str, Any] = {"margin": margin, "target": target, "confidence": confidence}
    asked |= {"statistic": statistic, "budget_s": budget_s, "preset": preset, "seed": seed}
    asked |= {"detector": detector, "disturbed": disturbed}
    ratio = attempt(problems, lambda: Ratio(rounds="restarted" if by_round else "auto", **asked))
    problems += misfits(**timing, inner_name="batch")
    if by_round and (setup, teardown, batch, gc) != (None, None, None, "on"):
        problems.append("setup, teardown, batch, gc are for functions: workloads time themselves")
    if problems or ratio is None:
        raise InvalidInput(problems)
    clock, runs, engine = clock or WallClock(), _Runs(store), Engine(ratio)
    runner = kind(runs, sides, clock)
    if began is not None:
        began(engine)
    ratio.names = _names_of(runner.workloads)
    with ended_by_errors(engine, engine.result), note_stops(), ExitStack() as stack:
        if store is not None or by_round:
            stack.enter_context(runs.opened(engine, runner))
        deque(drive(engine, runner, clock, Hooks(progress=progress)), maxlen=0)
    return ratio.result(engine)


def _names_of(workloads: Mapping[str, Workload]) -> tuple[str, ...]:
    """Return the names of both sides for people; none if both are nameless, as lambdas are."""
    names = {role: str(getattr(workload, "name", "<")) for role, workload in workloads.items()}
    own = {role: name.rpartition("<locals>.")[2] for role, name in names.items()}
    if all("<" in name for name in own.values()):
        return ()
    return tuple(f"the {role}" if "<" in name else name for role, name in own.items())


class _Runs:
    """Both sides as runs of their own, in one store; none unless they are opened.

    Attributes
    ----------
    sessions
        The session of either side.
    perform
        What carries out the plans of either side.
    """

    def __init__(self, store: str | Path | Store | None) -> None:
        self.sessions, self.perform = dict[str, Session](), dict[str, Perform]()
        self._store = None if store is None else as_store(store)

    @contextmanager
    def opened(self, engine: Engine[Ratio], runner: _Functions | _Processes) -> Iterator[None]:
        """Begin a session for either side; both end when the engine does.

        The subject of either run names the other side.
        """
        ratio, workloads, pair = engine.goal, runner.workloads, uuid4().hex
        names = [str(getattr(workload, "name", role)) for role, workload in workloads.items()]
        options = replace(ratio.options, target=None, reference=runner.has_reference)
        for index, role in enumerate(workloads):
            told = {"name": names[index], **runner.describe(role), "in turn with": names[1 - index]}
            self.sessions[role] = Session(
                options,
                name=names[index],
                subject={**told, "as": role, PAIR: pair, AGAIN: ratio.command_line},
                seed=seed_of(ratio.seed, index),
                rules=(),
                clock=runner.clock,
                store=self._store,
            )
        try:
            with ExitStack() as stack:
                for role, workload in workloads.items():
                    performing = self.sessions[role].performing(workload)
                    self.perform[role] = stack.enter_context(performing)
                yield
        except (BenchrigorError, KeyboardInterrupt) as error:
            error.records = {role: one.result() for role, one in self.sessions.items()}  # type: ignore[union-attr]
            raise
        for session in self.sessions.values():
            if engine.decision is not None and engine.decision.reason is not None:
                session.engine.end(engine.decision.reason)
        ratio.runs = tuple(session.result().run_id or "" for session in self.sessions.values())

    def ask(self, name: str) -> RoundPlan:
        """Return the next plan of a side."""
        plan = self.sessions[name].ask()
        if plan is None:
            raise WorkloadFailed("it has no more to give")
        return plan

    def tell(self, rounds: Mapping[str, Round]) -> None:
        """Add the rounds of a turn; a journal keeps all of them, or none."""
        told = dict[str, Round]()
        for name, session in self.sessions.items():
            if name in rounds:
                with naming(name):
                    told[name] = replace(rounds[name], plan=self.ask(name))
                    session.subject.check(told[name])
        with ExitStack() as stack:
            if isinstance(self._store, Journal):
                for session in self.sessions.values():
                    stack.enter_context(session.undoing())
                stack.enter_context(self._store.together())
            for name, finished in told.items():
                self.sessions[name].keep(finished)
        for name, finished in told.items():
            self.sessions[name].tell(finished)


class _Functions:
    """Carries out the plans of a comparison: times both functions by one clock."""

    has_reference = False  # between the readings of a pair it would disturb them

    def __init__(
        self,
        runs: _Runs,
        sides: Mapping[str, Any],
        clock: Clock,
        *,
        of_means: bool,
        **timing: Any,
    ) -> None:
        self.workloads = {
            name: CallableWorkload(func, clock=clock, **timing) for name, func in sides.items()
        }
        self.clock, self._runs, self._of_means = clock, runs, of_means
        self._gc, self._batch = timing["gc"], timing["inner"]
        self._taken = 0
        self._stopwatch = Stopwatch(clock)
        self._meter = meter_for(clock)
        self._patience, self._under_way = CallLimit(), BASELINE  # the function being called

    def describe(self, _name: str) -> dict[str, Any]:
        """Return the subject of the run of a side."""
        return {"kind": "function", "gc": self._gc, "batch": self._batch}

    @property
    def _are_chosen(self) -> bool:
        return all(workload.inner for workload in self.workloads.values())

    def _choose_calls(self, turn: Turn) -> None:
        """Choose the calls per reading: means of both functions should last about as long.

        Readings stay short enough that thirty fit into the time. If a first call is slow, the round
        is a single pair, and the next round chooses.
        """
        is_free = not any(workload.inner for workload in self.workloads.values())
        for name in turn.order[:2]:
            self._under_way = name
            with naming(name):
                self.workloads[name].settle(turn.plan.seconds)
        if not (is_free and self._of_means):
            return
        lasting_ns = {}
        with collector_kept(self._gc):
            for name, workload in self.workloads.items():
                with naming(name):
                    lasting_ns[name] = workload.lasting_ns()
        shorter, longer = sorted(lasting_ns, key=lasting_ns.__getitem__)
        wanted_ns = lasting_ns[longer]
        if turn.plan.seconds is not None:
            wanted_ns = min(wanted_ns, int(turn.plan.seconds * 1e9 / FEW_CALLS))
        workload = self.workloads[shorter]
        workload.put_together(workload.inner * wanted_ns // max(lasting_ns[shorter], 1))

    def __call__(self, turn: Turn) -> Finish:
        """Take the readings of a turn, in seconds per call."""
        delays = None if self._meter is None else _PairDelays(self._meter, self.clock)
        elapsed_ns, left = self._taken_of(turn, delays)
        pairs = len(elapsed_ns[BASELINE])
        readings = {}
        for name, taken in elapsed_ns.items():
            with naming(name):
                inner = self.workloads[name].inner or 1
                spans_s = in_seconds(taken, done=self._taken, inner=inner)
                readings[name] = self._stopwatch.without_cost(spans_s, inner)
        notices = tuple(
            warning.about(name.capitalize())
            for name, taken in elapsed_ns.items()
            for warning in self._stopwatch.new_warnings(taken)
        )
        calls = max(workload.inner for workload in self.workloads.values())
        if self._taken == 0 and not self._of_means and calls > 1:
            notices = (warn_of_batches(calls), *notices)
        notices += left
        self._taken += pairs

        def finish(elapsed_ns: int) -> Taken:
            measured = None if delays is None else delays.of_pairs(pairs)
            rounds = {
                name: Round(
                    plan=turn.plan,
                    elapsed_ns=elapsed_ns,
                    unit_readings={"time": values},
                    facts={"inner_loop": self.workloads[name].inner},
                    delays=measured,
                )
                for name, values in readings.items()
            }
            self._runs.tell(rounds)
            pair = (rounds[BASELINE], rounds[CANDIDATE])
            return Taken(plan=turn.plan, rounds=[pair], elapsed_ns=elapsed_ns, notices=notices)

        return finish

    def _taken_of(
        self, turn: Turn, delays: _PairDelays | None
    ) -> tuple[dict[str, list[int]], tuple[Notice, ...]]:
        """Return the readings of either function, and a Notice if a hanging call was left."""
        began_ns, seconds = self.clock.now_ns(), turn.plan.seconds
        until_ns = math.inf if seconds is None else began_ns + seconds * 1e9
        elapsed_ns: dict[str, list[int]] = {name: [] for name in self.workloads}
        patience = self._patience
        is_real = isinstance(self.clock, WallClock)
        limited = patience.kept(seconds if is_real else None)
        with measuring(), limited, ExitStack() as stack:
            for workload in self.workloads.values():
                stack.enter_context(workload.awaiting())
            if not (self._taken and self._are_chosen):
                self._choose_calls(turn)
            stack.enter_context(collector_kept(self._gc))
            if delays is not None:
                delays.begin()
            patience.taken = elapsed_ns[BASELINE]
            self._time(elapsed_ns, turn.order, began_ns, until_ns, delays)
        if not patience.is_over:
            return elapsed_ns, ()
        pairs = min(map(len, elapsed_ns.values()))
        notice = patience.notice(self.workloads[self._under_way].name)
        if not pairs:
            raise WorkloadFailed(f"{self._under_way}: {notice.sentence}")
        return {name: taken[:pairs] for name, taken in elapsed_ns.items()}, (notice,)

    def _time(
        self,
        elapsed_ns: Mapping[str, list[int]],
        order: Sequence[str],
        since_ns: int,
        until_ns: float,
        delays: _PairDelays | None,
    ) -> None:
        """Add readings of either function; no pair begins if its last call would be late."""
        time_once = {name: workload.time_once for name, workload in self.workloads.items()}
        name, now_ns, is_single = BASELINE, self.clock.now_ns, not self._are_chosen
        try:
            for place, name in enumerate(order):
                taken = elapsed_ns[name]
                taken.append(time_once[name](self._taken + len(taken)))
                if place % 2:
                    before_ns, since_ns = since_ns, now_ns()
                    if delays is not None and since_ns >= delays.due_ns:
                        delays.close(len(taken))
                    late = since_ns + (since_ns - before_ns) / 2 >= until_ns
                    if late or is_single:
                        break
        except WorkloadFailed:
            with naming(name):
                raise
        except CallOverran:
            self._under_way = name
            raise


class _PairDelays:
    """The delay of the pairs of a round, in groups of about two milliseconds."""

    def __init__(self, meter: DelayMeter, clock: Clock) -> None:
        self._meter = meter
        self._clock = clock
        self._stops: list[int] = []
        self.begin()

    def begin(self) -> None:
        """Count from here on."""
        self._delays_ns = [self._meter.delay_ns()]
        self._busy_ns = [time.thread_time_ns()]
        self._times_ns = [self._clock.now_ns()]

    @property
    def due_ns(self) -> int:
        """When the group under way is long enough."""
        return self._times_ns[-1] + SEGMENT_NS

    def close(self, pairs: int) -> None:
        """End a group after that many pairs of the round."""
        self._stops.append(pairs)
        self._delays_ns.append(self._meter.delay_ns())
        self._busy_ns.append(time.thread_time_ns())
        self._times_ns.append(self._clock.now_ns())

    def of_pairs(self, pairs: int) -> Delays:
        """Return the delays of that many pairs, which is the whole round."""
        if pairs > (self._stops[-1] if self._stops else 0):
            self.close(pairs)
        delay_s, busy_s, duration_s = (
            np.diff(column) / 1e9 for column in (self._delays_ns, self._busy_ns, self._times_ns)
        )
        stopped_s = stopped_inside(self._times_ns[:-1], duration_s - busy_s - delay_s)
        seconds = {"run queue": delay_s} | ({STOPPED: stopped_s} if stopped_s.any() else {})
        return Delays(stops=self._stops, seconds=seconds, duration_s=duration_s, busy=busy_s)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Name the function in errors."""
    try:
        yield
    except (WorkloadFailed, ClockFailed) as error:
        first, *others = error.args
        raise type(error)(f"{name}: {first}", *others) from error.__cause__


class _Processes:
    """Carries out the plans of a comparison: a round of either session in turn.

    The two fresh interpreters of a pair run at the same time and take turns of three milliseconds.
    So both sides meet the same pace of the machine.
    """

    has_reference = True

    def __init__(self, runs: _Runs, workloads: Mapping[str, Workload], clock: Clock) -> None:
        self.workloads, self.clock, self._runs = workloads, clock, runs
        self._interpreters = {
            name: workload
            for name, workload in workloads.items()
            if isinstance(workload, InterpreterWorkload)
        }

    def describe(self, name: str) -> dict[str, Any]:
        """Return the subject of the run of a side."""
        described: dict[str, Any] = getattr(self.workloads[name], "describe", dict)()
        return described

    def __call__(self, turn: Turn) -> Finish:
        """Run the processes of a block; a pair counts if both ran to their ends."""
        began_ns, order, plan = self.clock.now_ns(), turn.order, turn.plan
        rounds: dict[str, list[Round]] = {name: [] for name in self.workloads}
        notices: dict[tuple[str, Code], Notice] = {}
        started, finished = dict[str, RoundPlan](), dict[str, Round]()
        for place, name in enumerate(order):
            now_ns = self.clock.now_ns()
            passed_s = (now_ns - began_ns) / 1e9
            if plan.seconds is not None and place % 2 == 0 and passed_s >= plan.seconds:
                break
            left_s = None if plan.seconds is None else max(plan.seconds - passed_s, 1e-3)
            size = partial(self._plan_round, plan, left_s=left_s)
            if place % 2 == 0:
                started, finished, pair_ns = {}, {}, now_ns
                if len(self._interpreters) == 2:
                    started = self._start_side_by_side(order[place : place + 2], size)
            since_ns = pair_ns if started else now_ns
            with naming(name):
                one = self._round(name, started.get(name) or size(name), since_ns)
                if not one.cut:
                    values_of(one)  # before others run, if it has none
            finished[name] = one
            if place % 2 or one.cut:
                self._runs.tell(finished)
            if one.cut:
                break
            rounds[name].append(one)
            notices |= {(name, notice.code): notice for notice in one.notices}
        pairs = [*zip(rounds[BASELINE], rounds[CANDIDATE], strict=False)]

        def finish(elapsed_ns: int) -> Taken:
            told = tuple(notices.values())
            return Taken(plan=plan, rounds=pairs, elapsed_ns=elapsed_ns, notices=told)

        return finish

    def _plan_round(self, plan: RoundPlan, name: str, *, left_s: float | None) -> RoundPlan:
        """Return the next plan of a session, with the size and the time that both sides share."""
        planned, readings = self._runs.ask(name), plan.readings
        if plan.index == 0:  # only the session knows yet how long its readings take
            readings = min(readings, planned.readings)
        return replace(planned, readings=readings, seconds=left_s)

    def _start_side_by_side(
        self, order: Sequence[str], size: Callable[[str], RoundPlan]
    ) -> dict[str, RoundPlan]:
        """Start the interpreters of a pair, which measure by turns; return the plans of both."""
        plans = {name: size(name) for name in order}
        one, two = socket.socketpair()
        with one, two:
            for name, turns in zip(order, (one, two), strict=True):
                with naming(name):
                    self._interpreters[name].start(plans[name], turns, is_first=turns is one)
        return plans

    def _round(self, name: str, planned: RoundPlan, since_ns: int) -> Round:
        """Carry out a plan of a session."""
        finish = self._runs.perform[name](planned)
        if finish is None:
            raise WorkloadFailed("it has no more to give")
        return finish(self.clock.now_ns() - since_ns)
