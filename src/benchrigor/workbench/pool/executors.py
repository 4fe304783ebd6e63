"""Runs jobs on hosts, in processes that are started here or by a command such as ssh."""

from __future__ import annotations

import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import IO, Protocol
from weakref import WeakSet

from benchrigor.control_characters import escaped
from benchrigor.model import codec
from benchrigor.model.series import short
from benchrigor.model.text import show_duration
from benchrigor.workbench.pool.on_host import BEGUN, KINDS, LOST, STALE_S, Job, Outcome

MODULE = ("-m", "benchrigor.workbench.pool.on_host")
_END = 500  # last characters of the output of a lost process
_LOOK_S = 1.0  # between two checks whether an outcome is still wanted
_GRACE_S = 10.0  # for an unwanted process to end


class Executor(Protocol):
    """Runs jobs on hosts, from any thread.

    A failure is the outcome of a job, never an error; jobs do not hang.
    """

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts."""

    @property
    def alone(self) -> bool:
        """Whether hosts are different machines."""

    def run(self, host: str, job: Job) -> Outcome:
        """Run a job, and wait for its outcome."""

    def stop(self) -> None:
        """End all running jobs."""

    def close(self) -> None:
        """Release all resources."""


class LocalExecutor:
    """Runs jobs in processes of their own, which a command may start on other hosts.

    Parameters
    ----------
    hosts
        Their names.
    prefix
        Words before the command, with the place ``{host}``; without them all hosts are this
        machine.
    python
        The interpreter there; None for the path of this one.
    """

    def __init__(
        self, hosts: Sequence[str], *, prefix: Sequence[str] = (), python: str | None = None
    ) -> None:
        self.hosts, self._prefix = tuple(hosts), tuple(prefix)
        self.alone = bool(prefix) or len(hosts) == 1
        self._python = python or sys.executable
        self._running: WeakSet[subprocess.Popen[str]] = WeakSet()

    def run(self, host: str, job: Job) -> Outcome:
        """Run a job in a process, and wait for its outcome."""
        prefix = [word.replace("{host}", host) for word in self._prefix]
        return run_job([*prefix, self._python, *MODULE], job, began=self._running.add)

    def stop(self) -> None:
        """End all running jobs."""
        for process in [*self._running]:
            end(process)

    def close(self) -> None:
        """Release all resources."""
        self.stop()


def run_job(
    argv: Sequence[str],
    job: Job,
    *,
    began: Callable[[subprocess.Popen[str]], object] = lambda _: None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Outcome:
    """Run a job in a process, and wait for its outcome; a silent job is lost.

    ``began`` is called with the process; it ends when its outcome is no longer wanted.
    """
    try:
        process = subprocess.Popen(  # noqa: S603  # the command is the user's own
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return Outcome(kind=LOST, failure=f"{argv[0]} cannot be started: {error}")
    began(process)
    lines: queue.Queue[str] = queue.Queue()
    ends: deque[str] = deque(maxlen=20)
    readers = [
        threading.Thread(target=_read_lines, args=to, daemon=True)
        for to in ((process.stdout, lines.put), (process.stderr, ends.append))
    ]
    for reader in readers:
        reader.start()
    try:
        line = _await_words(lines, is_wanted, job.limit_s)
        if line == BEGUN:  # now the job arrives at once
            _send(process.stdin, job)
            line = _await_words(lines, is_wanted, job.limit_s)
        if line:
            return _outcome_of(line)
        code = process.wait()
        readers[1].join(_GRACE_S)
        said = escaped("".join(ends).strip()[-_END:]) or "nothing was said"
        return Outcome(kind=LOST, failure=f"{job.host}: the process ended with {code}: {said}")
    except TimeoutError as error:
        return Outcome(kind=LOST, failure=f"{job.host} {error}")
    except ValueError as error:
        return Outcome(kind=LOST, failure=f"{job.host} sent no outcome: {error}")
    finally:
        end(process)
        for reader in readers:  # they close the pipes
            reader.join(_LOOK_S)


def _send(stdin: IO[str] | None, job: Job) -> None:
    assert stdin is not None  # noqa: S101  # it is a pipe
    with suppress(OSError):  # the process has ended already
        stdin.write(f"{json.dumps(codec.encode(replace(job, asked_s=time.time())))}\n")
        stdin.flush()


def _outcome_of(line: str) -> Outcome:
    outcome = codec.decode(Outcome, json.loads(line))
    if outcome.kind not in KINDS:
        raise ValueError(f"its kind is {short(outcome.kind)}")
    return outcome


def _await_words(
    lines: queue.Queue[str], is_wanted: Callable[[], bool], limit_s: float | None
) -> str:
    """Wait for a line other than a sign of life; return "" if the process has ended."""
    until_s = math.inf if limit_s is None else time.monotonic() + limit_s
    stale_s = time.monotonic() + STALE_S
    while (now_s := time.monotonic()) < min(stale_s, until_s):
        if not is_wanted():
            raise TimeoutError("is not waited for any more")
        with suppress(queue.Empty):
            line = lines.get(timeout=min(_LOOK_S, until_s - now_s))
            if line != "\n":
                return line
            stale_s = time.monotonic() + STALE_S
    if stale_s < until_s:
        raise TimeoutError(f"gave no sign of life for {STALE_S:g} s")
    raise TimeoutError(f"did not end within {show_duration(limit_s or 0.0)}")


def _read_lines(said: IO[str], take: Callable[[str], object]) -> None:
    with suppress(OSError), said:
        for line in said:
            take(line)
    take("")


def end(process: subprocess.Popen[str]) -> None:
    """End a process: closing its input first makes it end its own children."""
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            os.killpg(process.pid, 9)
        process.wait()
