"""What can be measured: functions, generators, commands; and the recorder they write to."""

from __future__ import annotations

from benchrigor.workloads.amount import AmountWorkload
from benchrigor.workloads.callable import CallableWorkload
from benchrigor.workloads.command import CommandWorkload
from benchrigor.workloads.picking import Pick
from benchrigor.workloads.recorder import RoundRecorder
from benchrigor.workloads.stepwise import StepwiseWorkload

__all__ = [
    "AmountWorkload",
    "CallableWorkload",
    "CommandWorkload",
    "Pick",
    "RoundRecorder",
    "StepwiseWorkload",
]
