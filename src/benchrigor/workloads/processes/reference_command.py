"""A fixed command that is run in turn with a measured one: it tells the pace of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchrigor.errors import WorkloadFailed
from benchrigor.protocols import Clock, DelayMeter
from benchrigor.workloads.processes.process_group import ProcessGroup
from benchrigor.workloads.reference import MOST_SHARE, repeats_after

VERSION = 1  # of the command: any change of it makes other times


class ReferenceCommand:
    """Times a bare start of the interpreter, as commands are timed, when so much time has passed.

    The first start, which reads files from a disk, does not count.

    Parameters
    ----------
    clock, meter
        Those of the commands.

    Examples
    --------
    >>> from benchrigor.clocks import WallClock
    >>> ReferenceCommand(WallClock(), None).measure(lasting_ns=10**9) > 0.0
    True
    """

    def __init__(self, clock: Clock, meter: DelayMeter | None) -> None:
        self._clock, self._meter = clock, meter
        # Not that of a virtual environment: it first looks for the one that this is a link to.
        self._argv = [os.path.realpath(sys.executable), "-I", "-S", "-c", ""]
        self._cost_ns = self._run_ns() and self._run_ns()
        self._due_ns = 0 if self._cost_ns else None

    def measure(self, lasting_ns: int) -> float:
        """Return the seconds that it takes after a command that took so long; 0 if it is not due.

        The mean of several runs where that was long.
        """
        if self._due_ns is None or self._clock.now_ns() < self._due_ns:
            return 0.0
        times = [self._run_ns() for _ in range(repeats_after(lasting_ns, self._cost_ns))]
        took_ns = sum(times)
        self._due_ns = self._clock.now_ns() + int(took_ns / MOST_SHARE)
        return took_ns / len(times) / 1e9 if all(times) else 0.0

    def _run_ns(self) -> int:
        """Run it once; 0 where it cannot be run."""
        try:
            group = ProcessGroup(
                self._argv,
                name="the reference",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=Path.cwd(),
                env={},
                clock=self._clock,
            )
        except WorkloadFailed:
            return 0
        ended = group.wait(self._meter)
        return ended.elapsed_ns if ended.code == 0 else 0
