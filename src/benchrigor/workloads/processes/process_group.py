"""A command's process and all others of its group: started, waited for, ended."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchrigor.errors import WorkloadFailed
from benchrigor.model.secret_values import hide_secrets
from benchrigor.protocols import Clock, DelayMeter
from benchrigor.workloads.processes.own_signals import continued_ns

_LOOK_S = 0.01  # from one look to the next at whether a group is gone
_DYING_S = 1.0  # for the kernel to end what was killed
_LINGER_S = 0.1  # for what a command leaves behind to end by itself, as `> >(tee log)` in a shell


# What starts, watches and ends processes with their children.
_NEEDED = ((os, "killpg"), (os, "wait4"), (select, "poll"), (signal, "SIGKILL"))


def missing_for_processes() -> list[str]:
    """Say what this system lacks, if commands and fresh interpreters cannot be measured on it."""
    missing = [f"{module.__name__}.{name}" for module, name in _NEEDED if not hasattr(module, name)]
    return missing and [
        f"commands and fresh interpreters need {', '.join(missing)}, which this system lacks: "
        "measure functions in this process instead"
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the first process of a group ended."""

    code: int  # its exit code, or minus the signal that killed it
    elapsed_ns: int
    user_s: float
    system_s: float
    switches: int  # times that it gave a processor up by itself, its end included
    overran: bool  # and was killed
    cut: bool  # asked to end, since its time was up
    left_running: bool  # it left processes of its group running
    delay: tuple[int, int] | None  # as `DelayMeter.wait_for` tells it
    together_ns: int  # likewise
    stopped_s: float = 0.0  # for how long it was stopped, or we were while we waited

    @property
    def cpu_s(self) -> float:
        """Processor time, of the process and the children that it waited for."""
        return self.user_s + self.system_s


_LIKE_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\.(?!py$|sh$|exe$)[^\W\d]\w*")


def _advise(error: OSError, program: str) -> str:
    """Say how to write what was taken for the name of a program that does not exist."""
    if not isinstance(error, FileNotFoundError):
        return ""
    if " " in program.strip():
        quoted = shlex.quote(hide_secrets(program))
        return (
            f"; no shell reads it: write program and arguments as separate words, or sh -c {quoted}"
        )
    if _LIKE_FUNCTION.fullmatch(program):
        module, _, function = program.rpartition(".")
        return f"; a function is written with a colon: {module}:{function}"
    return ""


class ProcessGroup:
    """A command that runs in a session and process group of its own.

    ``env`` is its whole environment, ``pass_fds`` are file descriptors that it has. After
    ``timeout_s`` the group is killed. After ``seconds`` it is asked to end, and killed ``grace_s``
    later. WorkloadFailed when it cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        name: str,
        stdout: IO[bytes] | int | None,
        stderr: IO[bytes] | int,
        cwd: Path,
        env: Mapping[str, str],
        clock: Clock,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        pass_fds: Sequence[int] = (),
        timeout_s: float | None = None,
        seconds: float | None = None,
        grace_s: float = 0.0,
    ) -> None:
        self._clock, self._grace_s = clock, grace_s
        self._asked_s: float | None = None  # when it was asked to end
        self._cut = self._overran = False
        self._over, self._started = threading.Event(), threading.Event()
        # Popen.wait with a timeout polls, up to 50 ms apart, which would round the durations up.
        # To start a thread takes a twentieth of the shortest command: it starts before the clock.
        watched = (timeout_s, seconds)
        self._watchdog = threading.Thread(target=self._watch, args=watched, daemon=True)
        if watched != (None, None):
            self._watchdog.start()
        self._start_ns = clock.now_ns()
        try:
            self.process = subprocess.Popen(  # noqa: S603  # the caller's own command, without a shell
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                env=env,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except OSError as error:
            why = f"{error.strerror}: {str(error.filename)!r}{_advise(error, argv[0])}"
            # The frames are of the standard library.
            raise WorkloadFailed(f"{name} cannot be started: {why}") from None
        finally:
            if not hasattr(self, "process"):
                self._over.set()
            self._started.set()

    def wait(self, meter: DelayMeter | None) -> Ended:
        """Wait until the process has ended by itself, or is made to, and then end its group.

        When an exception ends the waiting, the group is killed at once.
        """
        pid = self.process.pid
        try:
            ended_ns = delay = None
            together_ns, stopped_s = 0, 0.0
            if meter is not None:
                delay_of = meter.wait_for(pid)
                ended_ns = self._clock.now_ns()
                delay = delay_of()
                together_ns = getattr(delay_of, "together_ns", 0)
                stopped_s = getattr(delay_of, "stopped_s", 0.0)
            _, status, usage = os.wait4(pid, 0)
            ended_ns = ended_ns or self._clock.now_ns()
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self._over.set()
            if self._watchdog.ident is not None:
                self._watchdog.join()
            ended_by_us = self._cut or self._overran
            left_running = not ended_by_us and not self._gone_within(_LINGER_S)
            if ended_by_us or left_running:
                self.end(grace_s=0.0 if self._overran else self._grace_s)
        except BaseException:
            self._over.set()
            self.end(grace_s=0.0)
            raise
        if any(moment_ns > self._start_ns for moment_ns in continued_ns):
            stopped_s = (ended_ns - self._start_ns) / 1e9  # at most
        return Ended(
            code=self.process.returncode,
            elapsed_ns=ended_ns - self._start_ns,
            user_s=usage.ru_utime,
            system_s=usage.ru_stime,
            switches=usage.ru_nvcsw,
            overran=self._overran,
            cut=self._cut,
            left_running=left_running,
            delay=delay,
            together_ns=together_ns,
            stopped_s=stopped_s,
        )

    def _watch(self, timeout_s: float | None, seconds: float | None) -> None:
        """Make the group end when its time is up, unless the waiting is over before."""
        times = [each for each in (timeout_s, seconds) if each is not None]
        if self._over.wait(min(*times, threading.TIMEOUT_MAX)):
            return
        self._started.wait()
        if self._over.is_set():
            return
        self._cut = timeout_s is None or min(times) < timeout_s
        self._overran = not self._cut
        if self._cut:
            self.ask_to_end()
            if self._over.wait(self._grace_s):
                return
        self._signal(signal.SIGKILL)

    def ask_to_end(self) -> None:
        """Send SIGTERM to the group, once."""
        if self._asked_s is None:
            self._asked_s = time.monotonic()
            self._signal(signal.SIGTERM)

    def end(self, *, grace_s: float) -> None:
        """Return when no process of the group is left: asked to end, killed after the grace."""
        try:
            if grace_s > 0.0:
                self.ask_to_end()
                self._gone_within((self._asked_s or 0.0) + grace_s - time.monotonic())
        finally:
            self._signal(signal.SIGKILL)
            self.process.wait()
            self._gone_within(_DYING_S)

    def _gone_within(self, seconds: float) -> bool:
        """Wait until no process of the group is running, at most so long."""
        deadline = time.monotonic() + seconds
        while self._is_running():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def _is_running(self) -> bool:
        if self.process.poll() is None:
            return True
        try:
            os.killpg(self.process.pid, 0)
        except OSError:  # there is none, or none that is ours
            return False
        # The dead are in the group until their parent, often that of all, has noticed.
        stats = list(Path("/proc").glob("[0-9]*/stat"))
        return not stats or any(_is_alive_in(self.process.pid, each) for each in stats)

    def _signal(self, number: int) -> None:
        with suppress(OSError):
            os.killpg(self.process.pid, number)


def _is_alive_in(group: int, stat: Path) -> bool:
    """Whether a process, by its file in ``/proc``, is of a group and not dead."""
    try:
        state, _, its_group, _ = stat.read_text(errors="replace").rpartition(")")[2].split(None, 3)
    except (OSError, ValueError):  # it has ended meanwhile
        return False
    return int(its_group) == group and state not in "ZX"
