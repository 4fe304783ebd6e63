"""The round loop: ask, do, tell. Everything that a session does passes through here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchrigor.errors import BenchrigorError, ClockFailed, WorkloadFailed
from benchrigor.model import Code, Notice, Progress, Round, RoundPlan, Severity, StopReason
from benchrigor.protocols import Clock, Workload
from benchrigor.session.engine import Engine
from benchrigor.workloads import RoundRecorder

__all__ = ["Hooks", "drive"]


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


def drive(engine: Engine, workload: Workload, clock: Clock, hooks: Hooks) -> None:
    """Run rounds until the engine has enough, the workload has no more, or a hook fails.

    Raises
    ------
    WorkloadFailed, ClockFailed
        The engine holds the rounds finished before.
    """
    while (plan := engine.ask()) is not None:
        if not _called(engine, "before_round", hooks.before_round, plan):
            return
        finished = run_round(workload, plan, clock)
        if finished is None:
            engine.end(StopReason.EXHAUSTED)
            return
        engine.tell(finished)
        if not _called(engine, "after_round", hooks.after_round, finished):
            return
        if not _called(engine, "progress", hooks.progress, engine.progress):
            return


def run_round(workload: Workload, plan: RoundPlan, clock: Clock) -> Round | None:
    """Carry one plan out; None when the workload has no more to give."""
    recorder = RoundRecorder()
    start = clock.now_ns()
    try:
        workload.run(plan, recorder)
    except StopIteration:
        return None
    except BenchrigorError:
        raise
    except Exception as error:
        raise WorkloadFailed(
            f"round {plan.index}: the workload raised {type(error).__name__}: {error}"
        ) from error
    elapsed_ns = clock.now_ns() - start
    if elapsed_ns < 0:
        raise ClockFailed(f"the clock went backwards by {-elapsed_ns} ns in round {plan.index}")
    return recorder.finish(plan, elapsed_ns)


def _called(
    engine: Engine, name: str, hook: Callable[[Any], object] | None, argument: object
) -> bool:
    """Call a hook; when it fails, end the session with a Notice and return False."""
    if hook is None:
        return True
    try:
        hook(argument)
    except Exception as error:  # noqa: BLE001  # whatever a user's hook raises is reported, not lost
        sentence = f"The hook {name} raised {type(error).__name__}: {error}"
        notice = Notice(
            code=Code.HOOK_FAILED,
            severity=Severity.WARNING,
            sentence=sentence,
            evidence={"hook": name, "error": type(error).__name__},
        )
        engine.end(StopReason.HOOK_FAILED, notice)
        return False
    return True
