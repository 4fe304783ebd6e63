"""Measure two workloads in turn, in fresh processes, until their ratio is known."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchrigor.clocks import WallClock
from benchrigor.errors import WorkloadFailed
from benchrigor.model import Code, Comparison, Notice, Progress, Round, RoundPlan
from benchrigor.protocols import Clock, Store, Workload
from benchrigor.session.conditions.red_rounds import was_stopped
from benchrigor.session.loop import Hooks, drive, ended_by_errors
from benchrigor.session.metric_readings import calls_per_reading
from benchrigor.session.pairs.kept_sides import (
    STOPPED_PAIR,
    Performers,
    names_of,
    paces_of,
    series_of,
    sides_of,
    values_of,
)
from benchrigor.session.pairs.measuring_pair import naming
from benchrigor.session.pairs.pair_engine import PairEngine, PairPlan, PairRound
from benchrigor.session.session import Session
from benchrigor.session.stored_runs import BASELINE, CANDIDATE
from benchrigor.workloads import InterpreterWorkload


def measure_processes(
    baseline: Workload,
    candidate: Workload,
    *,
    subjects: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
    store: str | Path | Store | None = None,
    progress: Callable[[Progress], object] | None = None,
    began: Callable[[PairEngine], object] | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> Comparison:
    """Run two workloads in turn, in fresh processes, until the ratio of their times is known.

    Parameters
    ----------
    baseline, candidate
        Workloads with a fresh process per round: commands, or functions in fresh interpreters.
    subjects
        Subjects of both runs, for programs.
    store
        Store that keeps both sides as runs; their subjects name each other. None keeps none.
    progress
        As of `measure`: it shows the ratio, with pairs of processes as readings.
    began
        As of `measure_pair`.
    clock
        The source of time; None for the system's clock.
    **options
        Options of `PairEngine`.

    Returns
    -------
    Comparison
        Compares the invocations pair by pair; ``reason`` says why the measurement ended.

    Raises
    ------
    InvalidInput
        For unsuitable arguments.
    WorkloadFailed
        When a process fails, naming the workload; the error's ``record`` is the Comparison of the
        rounds finished before.
    KeyboardInterrupt
        As it came, with the attribute ``record``.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock, SyntheticWorkload
    >>> clock = FakeClock()
    >>> old, new = (
    ...     SyntheticWorkload(mean=mean, restarted=True, seed=seed, clock=clock)
    ...     for seed, mean in enumerate((1e-4, 1.1e-4))
    ... )
    >>> found = measure_processes(old, new, clock=clock, seed=1, budget_s=2)
    >>> str(found.verdict), found.unit
    ('worse', 'pair')
    """
    engine = PairEngine(by_round=True, **options)
    clock = clock or WallClock()
    workloads = {BASELINE: baseline, CANDIDATE: candidate}
    if began is not None:
        began(engine)
    sides = sides_of(engine, workloads, subjects, clock=clock, store=store, reference=True)
    engine.names = names_of(workloads)
    with ended_by_errors(engine, engine.result), sides as (sessions, perform):
        carry_out = _Processes(sessions, perform, workloads, clock)
        drive(engine, carry_out, clock, Hooks(progress=progress))
    return engine.result()


class _Processes:
    """Carries out the plans of a comparison: a round of either session in turn.

    The two fresh interpreters of a pair run at the same time and take turns of three milliseconds.
    So both sides meet the same pace of the machine.
    """

    def __init__(
        self,
        sessions: Mapping[str, Session],
        perform: Performers,
        workloads: Mapping[str, Workload],
        clock: Clock,
    ) -> None:
        self._sessions, self._perform, self._clock = sessions, perform, clock
        self._interpreters = {
            name: workload
            for name, workload in workloads.items()
            if isinstance(workload, InterpreterWorkload)
        }

    def __call__(self, plan: PairPlan) -> Callable[[int], PairRound]:
        """Run the processes of a block; a pair counts if both ran to their ends without a stop."""
        began_ns = self._clock.now_ns()
        rounds: dict[str, list[Round]] = {name: [] for name in self._sessions}
        notices: dict[tuple[str, Code], Notice] = {}
        busy_s, cut = 0.0, False
        started: dict[str, RoundPlan] = {}
        for place, name in enumerate(plan.order):
            now_ns = self._clock.now_ns()
            passed_s = (now_ns - began_ns) / 1e9
            if plan.seconds is not None and place % 2 == 0 and passed_s >= plan.seconds:
                cut = True
                break
            left_s = None if plan.seconds is None else max(plan.seconds - passed_s, 1e-3)
            size = partial(self._plan_round, plan, left_s=left_s)
            if place % 2 == 0:
                started, pair_ns = {}, now_ns
                if len(self._interpreters) == 2:
                    started = self._start_side_by_side(plan.order[place : place + 2], size)
            since_ns = pair_ns if started else now_ns
            with naming(name):
                finished = self._round(name, started.get(name) or size(name), since_ns)
            if finished.cut:
                cut = True
                break
            busy_s += float(values_of(finished).sum()) * calls_per_reading(finished)
            rounds[name].append(finished)
            notices |= {(name, notice.code): notice for notice in finished.notices}
        pairs = [*zip(*rounds.values(), strict=False)]
        counted = [pair for pair in pairs if not any(map(was_stopped, pair))]
        cut |= len(counted) < plan.pairs

        def finish(elapsed_ns: int) -> PairRound:
            return PairRound(
                plan=plan,
                elapsed_ns=elapsed_ns,
                baseline=[series_of(one) for one, _ in counted],
                candidate=[series_of(other) for _, other in counted],
                cut=cut,
                busy_s=busy_s,
                notices=(*notices.values(), *([STOPPED_PAIR] if len(counted) < len(pairs) else [])),
                paces=paces_of(counted),
                by_turns=bool(started),
            )

        return finish

    def _plan_round(self, plan: PairPlan, name: str, *, left_s: float | None) -> RoundPlan:
        """Return the next plan of a session, with the size and the time that both sides share."""
        planned = self._sessions[name].ask()
        if planned is None:
            raise WorkloadFailed("it has no more to give")
        readings = plan.readings or 1
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
        session, finish = self._sessions[name], self._perform[name](planned)
        asked = session.ask()
        if finish is None or asked is None:
            raise WorkloadFailed("it has no more to give")
        finished = replace(finish(self._clock.now_ns() - since_ns), plan=asked)
        session.tell(finished)
        return finished
