"""A round of a workload, without a session."""

from typing import Any

from benchrigor.model import Round, RoundPlan
from benchrigor.protocols import Workload
from benchrigor.workloads import RoundRecorder


def run(workload: Workload, readings: int = 1, index: int = 0, **given: Any) -> Round:
    plan, recorder = RoundPlan(index=index, readings=readings, **given), RoundRecorder()
    workload.run(plan, recorder)
    return recorder.finish(plan, elapsed_ns=0)
