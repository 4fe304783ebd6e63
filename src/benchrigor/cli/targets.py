"""What ``run`` is pointed at: a command line, or a function given as module:function."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import import_module
from typing import Any

from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Metric, RunRecord
from benchrigor.protocols import Workload
from benchrigor.session import as_workload, meter_for
from benchrigor.session.measuring import TIME
from benchrigor.workloads import AmountWorkload, CallableWorkload, CommandWorkload, Pick

__all__ = ["function_target", "metrics_for", "names_function", "workload_of"]

_FUNCTION = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def names_function(word: str) -> bool:
    """Tell ``module:function`` from the name of a program."""
    return _FUNCTION.fullmatch(word) is not None


def function_target(
    target: str, *, gc: str, batch: int | None, folder: str, fresh: bool
) -> Workload:
    """Import ``module:function``, as ``python -m`` would in ``folder``, and make it a workload.

    With ``fresh``, a generator function starts anew in each round. ``batch`` calls of a function
    make a reading; None chooses how many. One with an argument is given work amounts.

    Raises
    ------
    InvalidInput
        When there is no such module or function.
    WorkloadFailed
        When importing the module raises.
    """
    module_name, _, path = target.partition(":")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"no module {error.name!r} to be found from {folder}") from error
    except (Exception, SystemExit) as error:
        raise WorkloadFailed(
            f"importing {module_name} raised {type(error).__name__}: {error}"
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise InvalidInput(f"module {module_name!r} has no {path!r}")
        found = getattr(found, name)
    clock = WallClock()
    meter = meter_for(clock)
    workload = as_workload(found, clock, fresh=fresh, meter=meter)
    if isinstance(workload, CallableWorkload):
        return CallableWorkload(found, clock=clock, inner=batch, gc=gc, meter=meter)
    if isinstance(workload, AmountWorkload):
        return AmountWorkload(found, clock=clock, gc=gc, meter=meter)
    return workload


def workload_of(record: RunRecord) -> Workload:
    """Rebuild the workload of a stored run.

    Raises
    ------
    InvalidInput
        When the run was not started from the command line.
    """
    subject, clock = record.subject, WallClock()
    if subject.get("kind") == "command":
        return CommandWorkload.from_description(dict(subject), clock=clock, meter=meter_for(clock))
    if subject.get("kind") == "target":
        return function_target(
            subject["target"],
            gc=subject["gc"],
            batch=subject.get("batch"),
            folder=subject["cwd"],
            fresh=record.options.rounds == "restarted",
        )
    raise InvalidInput(
        f"this run measured {subject.get('name', 'something')!r} from within a program: "
        "take it up there, with Session.resume"
    )


def metrics_for(picks: Sequence[Pick], speed: Metric | None = None) -> tuple[Metric, ...]:
    """Return the metrics of a run: what is picked, with the wall time beside it.

    Parameters
    ----------
    picks
        Of a command.
    speed
        What rounds of various work tell; None where they are alike. It comes first, or beside
        the readings of units of work, which tell more. What else is picked stands beside. The
        time is the duration of a round then, and no metric.

    Raises
    ------
    InvalidInput
        When a pick has the name of the speed, or that of the duration without being it.
    """
    picked = {pick.metric: Metric(name=pick.metric, unit=pick.unit) for pick in picks}
    if speed is None:
        beside = replace(TIME, must_satisfy=not picked)
        return (*picked.values(), *(() if TIME.name in picked else (beside,)))
    if problems := [*filter(None, (_misnamed(pick, speed) for pick in picks))]:
        raise InvalidInput(problems)
    units = tuple(picked.pop(pick.metric) for pick in picks if pick.unit_readings)
    picked.pop(TIME.name, None)
    first = (*units, replace(speed, must_satisfy=not units))
    return (*first, *(replace(metric, must_satisfy=False) for metric in picked.values()))


def _misnamed(pick: Pick, speed: Metric) -> str:
    """Say what is wrong with the name of a pick where work varies; empty when nothing is."""
    if pick.metric == speed.name:
        return f"{str(pick)!r}: {speed.name!r} is what work and duration tell; give another name"
    if pick.metric == TIME.name and (pick.unit_readings or pick.unit not in ("", TIME.unit)):
        return (
            f"{str(pick)!r}: {TIME.name!r} is how long a round took, expected one reading in "
            f"{TIME.unit}; give another name"
        )
    return ""
