"""Watches from a process of its own, which reads only the counters of the program.

The process reads its orders from its standard input, a line of text that holds the arguments of
`publish`. It watches in a thread until the input is closed, or until all processes that counted are
gone. It publishes its report once a second, or less often if that takes long, and at the end.
Published reports survive the death of either process.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchrigor.errors import InvalidInput
from benchrigor.files import remove_whole, write_whole
from benchrigor.model.codec import decode, encode
from benchrigor.queues.arithmetic.service_rate import Asked
from benchrigor.queues.counting.writers import Owners
from benchrigor.queues.stages.monitor_report import MonitorReport
from benchrigor.queues.stages.stage import Stage
from benchrigor.queues.watching.threads import PATIENCE_S, ThreadWatch, Wait

LOADING_S, _GLANCE_S = 10.0, 0.005
COMMAND = (sys.executable, "-P", "-c", f"from {__name__} import main; main()")
_EACH_S = 1.0
_LEAST_BETWEEN = 50  # publishing takes up to a 50th of the time
_NICE = 5


class ProcessWatch:
    """Starts a watching process, and reads its reports."""

    def __init__(self, stages: Sequence[Stage], asked: Asked, record: Path | None) -> None:
        page = next(end.page for stage in stages for end in (*stage.reads, *stage.writes))
        self._state = page.path.with_suffix(f".{secrets.token_hex(4)}.rates")
        record = None if record is None else record.absolute()
        watched = {"stages": stages, "asked": asked, "record": record}
        self._orders = {**watched, "state": self._state, "launcher": os.getpid()}
        self._process: subprocess.Popen[bytes] | None = None
        self._last = MonitorReport(period_s=asked.period_s)
        self._own_failure: str | None = None

    def start(self) -> None:
        """Begin, and wait until the first sample has been taken, or for up to ten seconds.

        The process has to import its modules, and would miss the items that pass meanwhile.
        """
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=_environment(),
                start_new_session=True,  # interrupts are for the program alone
            )
        except OSError as error:
            self._own_failure = f"no process can be started: {error}"
            return
        _send(self._process, pickle.dumps(self._orders).hex().encode() + b"\n")
        give_up_s = time.monotonic() + LOADING_S
        while self._process.poll() is None and time.monotonic() < give_up_s:
            if self._state.exists():
                return
            time.sleep(_GLANCE_S)

    def stop(self) -> None:
        """End, and read the last report."""
        process = self._process
        if process is None:
            return
        _send(process, b"\n")
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._last = self.report()
        self._process = None
        with contextlib.suppress(OSError), process:  # closes its pipes
            pass
        remove_whole(self._state)

    def report(self) -> MonitorReport:
        """Return the last report that the process has published."""
        if self._process is not None:
            ended = self._process.poll()
            with contextlib.suppress(OSError, ValueError, RecursionError, InvalidInput):
                published = json.loads(self._state.read_bytes())
                self._last = decode(MonitorReport, published, where=str(self._state))
            if ended and self._own_failure is None:
                self._own_failure = _ending(self._process, ended)
        return replace(self._last, failure=self._own_failure or self._last.failure)


def _send(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Send a line to a process, which may have ended."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.write(line)
            process.stdin.flush()


def _ending(process: subprocess.Popen[bytes], ended: int) -> str:
    """Say how a process ended, with the last line that it printed."""
    how = f"was killed by signal {-ended}" if ended < 0 else f"ended with code {ended}"
    lines = process.stderr.read().decode(errors="replace").split("\n") if process.stderr else []
    last = next((f": {line}" for line in reversed(lines) if line), "")
    return f"the watching process {process.pid} {how}{last}"


def _environment() -> dict[str, str]:
    """Return the environment, in which the same modules are found; and no more threads."""
    path = os.pathsep.join(folder for folder in sys.path if folder)
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": path}


def main() -> None:
    """Watch as the standard input orders, until it is closed or holds anything more."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    # The first rate loads it: after such a slow publication the next would come in 10 s.
    import scipy.special  # noqa: F401, PLC0415

    stopped = threading.Event()
    # Without a buffer: the waiting thread would hold its lock when the process ends.
    with open(0, "rb", buffering=0, closefd=False) as source:
        orders = pickle.loads(bytes.fromhex(source.readline().decode()))  # noqa: S301  # our own

        def listen() -> None:
            source.read(1)
            stopped.set()

        threading.Thread(target=listen, daemon=True).start()
        publish(stopped.wait, **orders)


def publish(
    wait: Wait,
    *,
    stages: Sequence[Stage],
    asked: Asked,
    record: Path | None,
    state: Path,
    launcher: int,
) -> None:
    """Watch until ``wait`` returns True, or no process can count any more; publish now and then.

    ``state`` is the file that is published, ``launcher`` the process that has given the orders.
    """
    for end in (end for stage in stages for end in (*stage.reads, *stage.writes)):
        if end.page.failure is not None:
            raise InvalidInput(end.page.failure)
    watch, owners, pause_s = ThreadWatch(stages, asked, record), Owners(), 0.0
    watch.start()
    while not (watch.sampler.began or watch.is_over):
        time.sleep(_GLANCE_S)
    while True:
        nobody_left = watch.sampler.nobody_left and launcher in owners.gone([launcher])
        is_over = watch.is_over or nobody_left or wait(pause_s)
        if is_over:
            watch.stop()
        began_s = time.thread_time()
        report = watch.report(cost_s=time.process_time())
        write_whole(state, json.dumps(encode(report)))
        if is_over:
            return
        pause_s = max(_EACH_S, _LEAST_BETWEEN * (time.thread_time() - began_s))
