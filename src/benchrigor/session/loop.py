"""The loop of sessions and comparisons: ask, do, tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchrigor.errors import BenchrigorError, ClockFailed, WorkloadFailed
from benchrigor.instrument.host_delays import HostDelay, HostDelays, attribute_delay
from benchrigor.model import Delays, Progress, Round, RoundPlan, StopReason
from benchrigor.protocols import Clock, Recorder, Workload
from benchrigor.session.controller import Controller, P, R
from benchrigor.session.engine import Engine
from benchrigor.session.outcomes import failed_hook
from benchrigor.session.red_rounds import segments_of
from benchrigor.workloads import RoundRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Plain callables around the rounds; one that raises ends the session."""

    before_round: Callable[[Any], object] | None = None
    """Called with the plan, outside the timed region."""
    after_round: Callable[[Any], object] | None = None
    """Called with the finished round."""
    progress: Callable[[Progress], object] | None = None
    """Called with the state of the session after each round."""


def drive(
    controller: Controller[P, R],
    perform: Callable[[P], Callable[[int], R] | None],
    clock: Clock,
    hooks: Hooks,
) -> None:
    """Ask, do, tell, until the controller stops, the workload is exhausted, or a hook fails.

    ``perform`` carries out a plan. It returns a function that makes the finished round from its
    wall time in nanoseconds, or None if the workload is exhausted.
    """
    since = clock.now_ns()
    while (plan := controller.ask()) is not None:
        if not _called(controller, "before_round", hooks.before_round, plan):
            return
        finish = perform(plan)
        if finish is None:
            controller.end(StopReason.EXHAUSTED)
            return
        # A budget is wall time, including that of hooks, analysis and journal.
        now = clock.now_ns()
        if now < since:
            raise ClockFailed(f"the clock went backwards by {since - now} ns in round {plan.index}")
        finished = finish(now - since)
        since = now
        controller.tell(finished)
        if not _called(controller, "after_round", hooks.after_round, finished):
            return
        if not _called(controller, "progress", hooks.progress, controller.progress):
            return


class RoundRunner:
    """Carries out the plans of a session with a workload."""

    def __init__(
        self, engine: Engine, workload: Workload, clock: Clock, host: HostDelays | None = None
    ) -> None:
        self._engine = engine
        self._workload = workload
        self._clock = clock
        self._host = host

    def __call__(self, plan: RoundPlan) -> Callable[[int], Round] | None:
        """Run a round; return None if the workload is exhausted."""
        recorder = RoundRecorder()
        if self._host is not None:
            self._host.read()  # delays between rounds count for no round
        began = self._clock.now_ns() if plan.work is not None else None
        if not run_round(self._workload, plan, recorder):
            return None
        ran_ns = None if began is None else self._clock.now_ns() - began

        def finish(elapsed_ns: int) -> Round:
            finished = recorder.finish(plan, elapsed_ns, ran_ns=ran_ns)
            if self._host is None:
                return finished
            return charged(finished, self._host.read(), self._engine.time_metric)

        return finish


def run_round(workload: Workload, plan: RoundPlan, recorder: Recorder) -> bool:
    """Carry out one plan; return False if the workload is exhausted."""
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
    controller: Controller[Any, Any],
    name: str,
    hook: Callable[[Any], object] | None,
    argument: object,
) -> bool:
    """Call a hook; if it raises, end the session with a Notice and return False."""
    if hook is None:
        return True
    try:
        hook(argument)
    except Exception as error:  # noqa: BLE001  # whatever a user's hook raises is reported, not lost
        controller.end(StopReason.HOOK_FAILED, failed_hook(name, error))
        return False
    return True


def charged(finished: Round, host: HostDelay, metric: str | None) -> Round:
    """Add to a round's delays what its host counted meanwhile.

    `instrument.host_delays.attribute_delay` says how much of it each segment has.
    """
    if finished.delays is None or not any(host.delay_ns.values()):
        return finished
    seconds = dict(finished.delays.seconds)
    waited_s = seconds["run queue"]
    took_s = segments_of(finished, metric).duration_s
    if took_s.size != waited_s.size:  # the metric has other readings than those measured
        return finished
    took_ns, waited_ns = (
        np.rint(each * 1e9).astype(np.int64).tolist() for each in (took_s, waited_s)
    )
    for source, part_ns in attribute_delay(host, took_ns, waited_ns).items():
        seconds[source] = np.array(part_ns) / 1e9
    if "throttled" in seconds:
        seconds["run queue"] = np.maximum(waited_s - seconds["throttled"], 0.0)
    return replace(finished, delays=Delays(stops=finished.delays.stops, seconds=seconds))
