"""A fixed command that is run in turn with a measured one: it shows the pace of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchrigor.errors import WorkloadFailed
from benchrigor.model.pace import COMMAND, COMMAND_CPU, COMMAND_REST
from benchrigor.protocols import Clock, DelayMeter
from benchrigor.workloads.processes.process_group import Ended, ProcessGroup
from benchrigor.workloads.processes.worker import MOST_SHARE, repeats_after

VERSION = 1  # of the command: every change of it changes the times
_LEAST_S = 1e-6  # the unit in which the kernel counts


class ReferenceCommand:
    """Times bare starts of the interpreter, as commands are timed, at intervals.

    The first start, which reads files from a disk, does not count.

    Parameters
    ----------
    clock, meter
        As for the commands.

    Examples
    --------
    >>> from benchrigor.clocks import WallClock
    >>> found = ReferenceCommand(WallClock(), None).measure(lasting_ns=10**9)
    >>> found["command"] > found["command cpu"] > 0.0
    True
    """

    def __init__(self, clock: Clock, meter: DelayMeter | None) -> None:
        self._clock, self._meter = clock, meter
        # Not the link of a virtual environment, which first looks for the real interpreter.
        self._argv = [os.path.realpath(sys.executable), "-I", "-S", "-c", ""]
        self._cost_ns = 0
        for _ in range(2):
            ended = self._run()
            self._cost_ns = 0 if ended is None else ended.elapsed_ns
        self._due_ns = 0

    def measure(self, lasting_ns: int) -> dict[str, float]:
        """Return seconds by kind after a command of this duration; empty if not due.

        After a long command they are means of several runs.
        """
        if not self._cost_ns or self._clock.now_ns() < self._due_ns:
            return {}
        began_ns = self._clock.now_ns()
        runs = [self._run() for _ in range(repeats_after(lasting_ns, self._cost_ns))]
        stop_ns = self._clock.now_ns()
        self._due_ns = stop_ns + int((stop_ns - began_ns) / MOST_SHARE)
        ended = [run for run in runs if run is not None]
        if len(ended) < len(runs):
            return {}
        wall_s = sum(run.elapsed_ns for run in ended) / len(ended) / 1e9
        cpu_s = sum(run.cpu_s for run in ended) / len(ended)
        waited_s = sum(run.delay[0] for run in ended if run.delay) / len(ended) / 1e9
        rest_s = max(wall_s - cpu_s - waited_s, _LEAST_S)
        return {COMMAND: wall_s, COMMAND_CPU: max(cpu_s, _LEAST_S), COMMAND_REST: rest_s}

    def _run(self) -> Ended | None:
        """Run it once; None if it cannot be run."""
        try:
            group = ProcessGroup(
                self._argv,
                name="the reference",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=Path.cwd(),
                env=os.environ,
                clock=self._clock,
            )
        except WorkloadFailed:
            return None
        ended = group.wait(self._meter)
        return ended if ended.code == 0 else None
