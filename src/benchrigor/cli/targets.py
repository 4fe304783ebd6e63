"""What ``run`` is pointed at: a command line, or a function given as module:function."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Metric, RunRecord
from benchrigor.protocols import Workload
from benchrigor.session import as_workload
from benchrigor.session.measuring import TIME
from benchrigor.workloads import CallableWorkload, CommandWorkload, Pick

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
    make a reading; None chooses how many.

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
    workload = as_workload(found, clock, fresh=fresh)
    if isinstance(workload, CallableWorkload):
        return CallableWorkload(found, clock=clock, inner=batch, gc=gc)
    return workload


def workload_of(record: RunRecord) -> Workload:
    """Rebuild the workload of a stored run.

    Raises
    ------
    InvalidInput
        When the run was not started from the command line.
    """
    subject = record.subject
    if subject.get("kind") == "command":
        return CommandWorkload.from_description(dict(subject), clock=WallClock())
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


def metrics_for(picks: Sequence[Pick]) -> tuple[Metric, ...]:
    """Return the metrics of a run: what is picked, with the wall time beside it."""
    if not picks:
        return (TIME,)
    picked = {pick.metric: Metric(name=pick.metric, unit=pick.unit) for pick in picks}
    beside = Metric(name=TIME.name, unit=TIME.unit, must_satisfy=False)
    return (*picked.values(), *(() if TIME.name in picked else (beside,)))
