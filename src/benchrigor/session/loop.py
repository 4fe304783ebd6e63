"""The round loop: ask, do, tell. Everything that a session does passes through here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchrigor.errors import BenchrigorError, ClockFailed, WorkloadFailed
from benchrigor.instrument.host_delays import HostDelays, Rises, charge
from benchrigor.model import Delays, Progress, Round, RoundPlan, StopReason
from benchrigor.protocols import Clock, Recorder, Workload
from benchrigor.session.engine import Engine
from benchrigor.session.outcomes import failed_hook
from benchrigor.session.red_rounds import segments_of
from benchrigor.workloads import RoundRecorder

__all__ = ["Hooks", "charged", "drive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Plain callables around the rounds; a failing one ends the session cleanly.

    Parameters
    ----------
    before_round
        Called with the plan before each round, outside the timed region.
    after_round
        Called with the finished round, after it was told.
    progress
        Called with the session's standing after each round.
    """

    before_round: Callable[[RoundPlan], object] | None = None
    after_round: Callable[[Round], object] | None = None
    progress: Callable[[Progress], object] | None = None


def drive(
    engine: Engine,
    workload: Workload,
    clock: Clock,
    hooks: Hooks,
    host: HostDelays | None = None,
) -> None:
    """Run rounds until the engine has enough, the workload has no more, or a hook fails.

    Raises
    ------
    WorkloadFailed, ClockFailed
        The engine holds the rounds finished before.
    """
    since = clock.now_ns()
    while (plan := engine.ask()) is not None:
        if not _called(engine, "before_round", hooks.before_round, plan):
            return
        recorder = RoundRecorder()
        if host is not None:
            host.rises()  # what was lost between rounds befell none
        began = clock.now_ns() if plan.work is not None else None
        if not run_round(workload, plan, recorder):
            engine.end(StopReason.EXHAUSTED)
            return
        ran_ns = None if began is None else clock.now_ns() - began
        # A budget is wall time: what hooks, analysis and journal took counts as well.
        now = clock.now_ns()
        if now < since:
            raise ClockFailed(f"the clock went backwards by {since - now} ns in round {plan.index}")
        finished = recorder.finish(plan, now - since, ran_ns=ran_ns)
        if host is not None:
            finished = charged(finished, host.rises(), engine.time_metric)
        since = now
        engine.tell(finished)
        if not _called(engine, "after_round", hooks.after_round, finished):
            return
        if not _called(engine, "progress", hooks.progress, engine.progress):
            return


def run_round(workload: Workload, plan: RoundPlan, recorder: Recorder) -> bool:
    """Carry one plan out; False when the workload has no more to give."""
    try:
        workload.run(plan, recorder)
    except StopIteration:
        return False
    except BenchrigorError:
        raise
    except Exception as error:
        raise WorkloadFailed(
            f"round {plan.index}: the workload raised {type(error).__name__}: {error}"
        ) from error
    return True


def _called(
    engine: Engine, name: str, hook: Callable[[Any], object] | None, argument: object
) -> bool:
    """Call a hook; when it fails, end the session with a Notice and return False."""
    if hook is None:
        return True
    try:
        hook(argument)
    except Exception as error:  # noqa: BLE001  # whatever a user's hook raises is reported, not lost
        engine.end(StopReason.HOOK_FAILED, failed_hook(name, error))
        return False
    return True


def charged(finished: Round, rises: Rises, metric: str | None) -> Round:
    """Add to a round's delays what its host counted meanwhile.

    `instrument.host_delays.charge` says what of it is a stretch's.

    Parameters
    ----------
    finished
        The round; one without delays comes back as it is.
    rises
        What the host lost since the round began.
    metric
        The metric that says how long its readings took.
    """
    if finished.delays is None or not any(rises.lost_ns.values()):
        return finished
    seconds = dict(finished.delays.seconds)
    waited_s = seconds["run queue"]
    took_s = segments_of(finished, metric).duration_s
    if took_s.size != waited_s.size:  # the metric has other readings than those measured
        return finished
    took_ns, waited_ns = (
        np.rint(each * 1e9).astype(np.int64).tolist() for each in (took_s, waited_s)
    )
    for source, part_ns in charge(rises, took_ns, waited_ns).items():
        seconds[source] = np.array(part_ns) / 1e9
    if "throttled" in seconds:
        seconds["run queue"] = np.maximum(waited_s - seconds["throttled"], 0.0)
    return replace(finished, delays=Delays(stops=finished.delays.stops, seconds=seconds))
