"""What can be measured: functions, generators, commands; the recorder they write to."""

from benchrigor.workloads.callable import CallableWorkload as CallableWorkload
from benchrigor.workloads.command import CommandWorkload as CommandWorkload
from benchrigor.workloads.interpreter import InterpreterWorkload as InterpreterWorkload
from benchrigor.workloads.processes.picking import Pick as Pick
from benchrigor.workloads.recorder import RoundRecorder as RoundRecorder
from benchrigor.workloads.statement import StatementWorkload as StatementWorkload
from benchrigor.workloads.steps_and_amounts import AmountWorkload as AmountWorkload
from benchrigor.workloads.steps_and_amounts import StepwiseWorkload as StepwiseWorkload
