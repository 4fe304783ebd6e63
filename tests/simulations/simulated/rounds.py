"""Rounds of workloads: without a session, and of a given size."""

from dataclasses import replace
from typing import Any

from benchrigor.model import Round, RoundPlan
from benchrigor.protocols import Recorder, Workload
from benchrigor.workloads import RoundRecorder


def run(workload: Workload, readings: int = 1, index: int = 0, **given: Any) -> Round:
    plan, recorder = RoundPlan(index=index, readings=readings, **given), RoundRecorder()
    workload.run(plan, recorder)
    return recorder.finish(plan, elapsed_ns=0)


class InRoundsOf:
    """Has a workload take so many readings a round, whatever is planned."""

    def __init__(self, readings: int, workload: Workload) -> None:
        self._readings, self._workload = readings, workload

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        self._workload.run(replace(plan, readings=self._readings), recorder)
