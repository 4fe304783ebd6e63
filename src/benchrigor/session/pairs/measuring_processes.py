"""Two workloads whose rounds are fresh processes, measured in turn until their ratio is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchrigor.clocks import WallClock
from benchrigor.errors import WorkloadFailed
from benchrigor.model import Comparison, Floats, Options, Progress, Round, RoundPlan
from benchrigor.protocols import Clock, Store, Workload
from benchrigor.session.loop import Hooks, drive, ended_by_errors
from benchrigor.session.pairs.measuring_pair import naming
from benchrigor.session.pairs.pair_engine import PairEngine, PairPlan, PairRound
from benchrigor.session.pairs.pairs_so_far import BASELINE, CANDIDATE
from benchrigor.session.session import Session
from benchrigor.session.traces import calls_per_reading
from benchrigor.session.turns.measuring_many import seed_of
from benchrigor.stats.series.undisturbed import groups_of, undisturbed

_TIME = "time"


def measure_processes(
    baseline: Workload,
    candidate: Workload,
    *,
    subjects: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
    store: str | Path | Store | None = None,
    progress: Callable[[Progress], object] | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> Comparison:
    """Run two workloads in turn, a process each, until the ratio of their times is known.

    Parameters
    ----------
    baseline, candidate
        Workloads whose rounds are fresh processes: commands, or functions in fresh interpreters.
    subjects
        What each measures, for programs.
    store
        Where each is kept as a run, whose subject names the other; None keeps nothing.
    progress
        As of `measure`: it shows the ratio, whose readings are pairs of processes.
    clock
        The source of time; None for that of the system.
    **options
        Those of `PairEngine`.

    Returns
    -------
    Comparison
        Of the invocations, pair by pair; ``reason`` says why the measuring ended.

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
    names = [str(getattr(each, "name", role)) for role, each in workloads.items()]
    sessions = {
        role: Session(
            _options_of(engine.options),
            name=names[index],
            subject={**subjects[index], "in turn with": names[1 - index], "as": role},
            seed=seed_of(engine.seed, index),
            rules=(),
            clock=clock,
            store=store,
        )
        for index, role in enumerate(workloads)
    }

    def result() -> Comparison:
        return replace(engine.result(), readings_in="s")

    with ended_by_errors(engine, result), ExitStack() as stack:
        perform = {
            role: stack.enter_context(sessions[role].performing(workload))
            for role, workload in workloads.items()
        }
        drive(engine, _Processes(sessions, perform, clock), clock, Hooks(progress=progress))
    for each in sessions.values():
        if engine.decision is not None and engine.decision.reason is not None:
            each.end(engine.decision.reason)
        each.result()
    return result()


def _options_of(options: Options) -> Options:
    """Return the options of either side: whoever compares decides when it ends."""
    return replace(options, target=None, rounds="restarted")


class _Processes:
    """Carries out the plans of a comparison: a round of either session in turn."""

    def __init__(
        self,
        sessions: Mapping[str, Session],
        perform: Mapping[str, Callable[[RoundPlan], Callable[[int], Round] | None]],
        clock: Clock,
    ) -> None:
        self._sessions, self._perform, self._clock = sessions, perform, clock

    def __call__(self, plan: PairPlan) -> Callable[[int], PairRound]:
        """Run the processes of a block; those of a pair that is not whole do not count."""
        began_ns = self._clock.now_ns()
        series: dict[str, list[Floats]] = {name: [] for name in self._sessions}
        busy_s, cut = 0.0, False
        for place, name in enumerate(plan.order):
            passed_s = (self._clock.now_ns() - began_ns) / 1e9
            if plan.seconds is not None and place % 2 == 0 and passed_s >= plan.seconds:
                cut = True
                break
            left_s = None if plan.seconds is None else max(plan.seconds - passed_s, 1e-3)
            with naming(name):
                finished = self._round(name, left_s)
            if finished.cut:
                cut = True
                break
            values = _values(finished)
            busy_s += float(values.sum()) * calls_per_reading(finished)
            series[name].append(_selected(finished, values))
        pairs = min(map(len, series.values()))

        def finish(elapsed_ns: int) -> PairRound:
            return PairRound(
                plan=plan,
                elapsed_ns=elapsed_ns,
                baseline=series[BASELINE][:pairs],
                candidate=series[CANDIDATE][:pairs],
                cut=cut,
                busy_s=busy_s,
            )

        return finish

    def _round(self, name: str, left_s: float | None) -> Round:
        """Carry out the next round of a session, in the time that is left for both."""
        session, began_ns = self._sessions[name], self._clock.now_ns()
        planned = session.ask()
        finish = None
        if planned is not None:
            finish = self._perform[name](replace(planned, seconds=left_s))
        if planned is None or finish is None:
            raise WorkloadFailed("it has no more to give")
        finished = replace(finish(self._clock.now_ns() - began_ns), plan=planned)
        session.tell(finished)
        return finished


def _values(finished: Round) -> Floats:
    """Return the times of a round: of units of work, or the one of the whole."""
    units: Floats | None = finished.unit_readings.get(_TIME)
    if units is not None:
        return units
    if _TIME not in finished.readings:
        raise WorkloadFailed(f"it gave no readings of {_TIME!r}, expected some to compare")
    return np.array([finished.readings[_TIME]])


def _selected(finished: Round, values: Floats) -> Floats:
    """Leave out readings during which delay was measured, where enough others are left."""
    if values.size == 1:
        return values
    chosen, _ = undisturbed(groups_of(finished.delays, values))
    if chosen is None:
        return values
    kept: Floats = values[chosen.indices]
    return kept
