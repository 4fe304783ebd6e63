"""Watches from a process of its own, which reads the counters and nothing else of the program."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchrigor.queues.watching.monitor_report import MonitorReport
from benchrigor.queues.watching.orders import Order
from benchrigor.queues.watching.sampling import Watching
from benchrigor.queues.watching.stage import Stage
from benchrigor.queues.watching.watcher import beside, published

__all__ = ["ProcessWatch"]

_PATIENCE_S = 5.0
_LOADING_S, _GLANCE_S = 10.0, 0.005
_COMMAND = (sys.executable, "-P", "-m", "benchrigor.queues.watching.watcher")


class ProcessWatch:
    """Starts a watching process, and reads what it tells.

    Parameters
    ----------
    stages, watching
        What is watched, and how.
    record
        Path of the recording; None for none.
    """

    def __init__(self, stages: Sequence[Stage], watching: Watching, record: Path | None) -> None:
        page = next(end.page for stage in stages for end in (*stage.reads, *stage.writes))
        self._state = page.path.with_suffix(f".{secrets.token_hex(4)}.rates")
        self._order = Order.of(
            stages,
            watching,
            state=str(self._state),
            record=None if record is None else str(record.absolute()),
            launcher=os.getpid(),
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._last = MonitorReport(period_s=watching.period_s)
        self._own_failure: str | None = None

    @property
    def failure(self) -> str | None:
        """Why it has ended although nobody told it to."""
        return self.report().failure

    def start(self) -> None:
        """Begin, and wait until the first sample has been taken, or for ten seconds at most.

        The process has to load what it needs; what passes meanwhile would not be seen.
        """
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=_environment(),
                start_new_session=True,  # what interrupts the program is not meant for it
            )
            self._send(f"{self._order.to_json()}\n".encode())
        except OSError as error:
            self._own_failure = f"no process can be started: {error}"
            return
        give_up_s = time.monotonic() + _LOADING_S
        while self._process.poll() is None and time.monotonic() < give_up_s:
            if self._state.exists():
                return
            time.sleep(_GLANCE_S)

    def stop(self) -> None:
        """End, and read what there was to tell."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(OSError):  # it may have ended
            self._send(b"\n")
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._last = self.report()
        self._process = None
        for pipe in (process.stdin, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        for each in (self._state, beside(self._state)):
            each.unlink(missing_ok=True)

    def report(self) -> MonitorReport:
        """Return what the process has told so far."""
        if self._process is not None:
            ended = self._process.poll()
            self._last = published(self._state) or self._last
            if ended and self._own_failure is None:
                self._own_failure = _words(self._process, ended)
        return replace(self._last, failure=self._own_failure or self._last.failure)

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        if self._process is not None:
            self._process.send_signal(number)

    def _send(self, line: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(line)
            self._process.stdin.flush()


def _words(process: subprocess.Popen[bytes], ended: int) -> str:
    """Say how a process ended, with the last thing that it said."""
    how = f"was killed by signal {-ended}" if ended < 0 else f"ended with code {ended}"
    said = process.stderr.read().decode(errors="replace").split("\n") if process.stderr else []
    last = next((f": {line}" for line in reversed(said) if line), "")
    return f"the watching process {process.pid} {how}{last}"


def _environment() -> dict[str, str]:
    """Return the environment, in which the same modules are found; and no more threads."""
    path = os.pathsep.join(each for each in sys.path if each)
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": path}
