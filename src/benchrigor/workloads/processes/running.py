"""A command under way: its processes, its limits, its output, and how it ended."""

from __future__ import annotations

import atexit
import os
import re
import select
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, BinaryIO, Self

from benchrigor.clocks import WallClock
from benchrigor.errors import StoreFailed, WorkloadFailed
from benchrigor.model import Code, Notice
from benchrigor.protocols import Clock, DelayMeter
from benchrigor.safe_text import hide_secrets, hide_values
from benchrigor.units import first_few, show_duration, show_value
from benchrigor.workloads.processes import kinship
from benchrigor.workloads.processes.own_signals import continued_ns, hold_interrupts

_LOOK_S = 0.01  # from one look to the next at whether a group is gone
_DYING_S = 1.0  # for the kernel to end killed processes
_LINGER_S = 0.1  # for left processes to end by themselves, as `> >(tee log)` in a shell
_AWAKE_MS = 100
_MOST_NAMED = 3  # processes
_GLANCE_S = 0.02  # from one look to the next at how much was printed
_LONGEST_NAME = 120

MOST_PRINTED = 128 * 2**20
STDERR_KEPT = 2048  # bytes, for error messages
FLOODED = (
    f"printed more than {show_value(float(MOST_PRINTED), 'B')} and was killed: have it print less, "
    "or pipe its readings into `benchrigor analyze -`"
)

# Needed to start, watch and end processes with their children.
_NEEDED = ((os, "killpg"), (os, "wait4"), (select, "poll"), (signal, "SIGKILL"))


def missing_for_processes() -> list[str]:
    """Say what this system lacks, if commands and fresh interpreters cannot be measured on it."""
    missing = [f"{module.__name__}.{name}" for module, name in _NEEDED if not hasattr(module, name)]
    return missing and [
        f"commands and fresh interpreters need {', '.join(missing)}, which this system lacks: "
        "measure functions in this process instead"
    ]


class OutputFile:
    """A file without a name that a command prints to, and that is read when it has ended.

    Unlike a pipe, a file needs no reader while the command runs. So nothing disturbs the command,
    and it never waits. Instead the size is checked now and then.

    Parameters
    ----------
    keeps_end
        Whether the end of the output is enough, so that the beginning may be dropped. Otherwise
        all of it is needed, and a command that prints too much must be ended.
    """

    def __init__(self, *, keeps_end: bool = False) -> None:
        self._keeps_end = keeps_end
        self._dropped_end = b""
        try:
            self.file: BinaryIO = TemporaryFile()  # noqa: SIM115  # closed with this
        except OSError as error:
            raise StoreFailed(f"no temporary file for what commands print: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def fileno(self) -> int:
        """Return the descriptor, which the command writes to."""
        return self.file.fileno()

    def is_flooded(self) -> bool:
        """Look at the size while the command runs; return whether the command must be ended."""
        size = os.fstat(self.fileno()).st_size
        if size <= MOST_PRINTED:
            return False
        if not self._keeps_end:
            return True
        self._dropped_end = os.pread(self.fileno(), STDERR_KEPT, size - STDERR_KEPT)
        os.ftruncate(self.fileno(), 0)
        os.lseek(self.fileno(), 0, os.SEEK_SET)  # the command's place in it is the same
        return False

    def end(self) -> bytes:
        """Return the last bytes of the output, some more than are shown."""
        most = STDERR_KEPT + 1
        begin = max(os.fstat(self.fileno()).st_size - most, 0)
        return (self._dropped_end + os.pread(self.fileno(), most, begin))[-most:]

    def check_room(self) -> None:
        """Raise StoreFailed if the folder of temporary files is full: something may be missing."""
        room = os.fstatvfs(self.fileno())
        if room.f_bavail == 0 and room.f_blocks:
            raise StoreFailed(
                f"no room in {gettempdir()} for output of a command: make some, or set TMPDIR to "
                "another folder"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the first process of a command ended, and its last output."""

    code: int  # its exit code, or minus the signal that killed it
    elapsed_ns: int
    user_s: float
    system_s: float
    switches: int  # times that it gave a processor up by itself, its end included
    limit_s: float | None = None  # the time limit that it overran, and was killed
    cut: bool = False  # asked to end because its time was up
    flooded: bool = False  # killed because it printed too much
    left_running: bool = False  # it left processes of its session running, which were ended
    escaped: Sequence[str] = ()  # processes that it left in sessions of their own
    delay: tuple[int, int] | None = None  # as of `DelayMeter.wait_for`
    together_ns: int = 0  # the same
    stopped_s: float = 0.0  # time for which it was stopped, or we were while waiting
    name: str = ""
    argv: Sequence[str] = ()
    accept_exit: Collection[int] = (0,)
    said: bytes = b""

    @property
    def failure(self) -> str | None:
        """Why it failed, unless its time was up."""
        if self.flooded:
            return FLOODED
        if self.limit_s:
            return f"ran longer than {show_duration(self.limit_s)} and was killed"
        return None if self.cut else wrong_exit(self.code, self.accept_exit)

    def error(self, failure: str | None = None, *, name: str | None = None) -> WorkloadFailed:
        """Return the failure, or another one, as an error with the last lines of the output."""
        message = f"{name or self.name} {failure or self.failure}"
        lines = [f"  | {line}" for line in last_lines(self.said, self.argv)]
        return WorkloadFailed(*([f"{message}; its output ends:", *lines] if lines else [message]))

    @property
    def cpu_s(self) -> float:
        """Processor time, of the process and the children that it waited for."""
        return self.user_s + self.system_s

    def left_behind(self, name: str) -> list[Notice]:
        """Name the processes that the command left running, if any."""
        ended = Notice.of(Code.LEFT_RUNNING, name_=name)
        if not self.escaped:
            return [ended] if self.left_running else []
        also = f"{ended.sentence} " if self.left_running else ""
        which = first_few(self.escaped, _MOST_NAMED)
        return [Notice.of(Code.LEFT_RUNNING, "escaped", also_=also, name_=name, which_=which)]


def wrong_exit(code: int, accepted: Collection[int] = (0,)) -> str | None:
    """Return the problem with an exit code, or None."""
    if code in accepted:
        return None
    if code < 0:
        known = {number.value: number.name for number in signal.Signals}
        return f"was killed by {known.get(-code, f'signal {-code}')}"
    expected = " or ".join(str(code) for code in sorted(accepted))
    return f"exited with code {code}, expected {expected}"


def shown(argv: Sequence[str]) -> str:
    """Return arguments as a shell would read them, shortened and without secrets."""
    text = shlex.join(hide_secrets(list(argv)))
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def last_lines(output: bytes, argv: Sequence[str] = ()) -> list[str]:
    """Return the last lines of a command's output.

    Secrets are hidden: programs repeat their arguments, ``argv``, when they complain of them.
    """
    text = output[-STDERR_KEPT:].decode(errors="replace")
    if len(output) > STDERR_KEPT:
        text = text.partition("\n")[2] or text
    text = text.replace("\r\n", "\n").strip()
    return [hide_values(line, argv) for line in text.split("\n")] if text else []


_LIKE_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\.(?!py$|sh$|exe$)[^\W\d]\w*")


def _advise(error: OSError, program: str) -> str:
    """Advise how to write a command or function that was taken for a missing program."""
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


class Running:
    """A command that runs in a session and process group of its own, until the context is left.

    However it is left, no process of the session goes on then. After ``timeout_s`` the session is
    killed. After ``seconds`` it is asked to end, and killed ``grace_s`` later. It is also killed
    when it prints too much, and when this process ends, however that is. WorkloadFailed when it
    cannot be started.

    Parameters
    ----------
    argv, name
        Program and arguments, and what errors call them.
    stdin
        What it reads. With PIPE it ends with its input, which is closed where others are asked to
        end, and so by the end of this process.
    stdout, stderr
        Where it prints to. PIPE has it kept: all of stdout, the end of stderr. STDOUT has stdout
        kept with stderr.
    env
        Its whole environment.
    pass_fds
        File descriptors that it has.
    accept_exit
        Exit codes that are no failure.
    """

    _asked_s: float | None  # when it was asked to end
    _overran_s: float | None  # the time limit that it overran

    def __init__(
        self,
        argv: Sequence[str],
        *,
        name: str,
        cwd: Path,
        env: Mapping[str, str],
        stdin: IO[bytes] | int = DEVNULL,
        stdout: IO[bytes] | int | None = DEVNULL,
        stderr: int = PIPE,
        clock: Clock | None = None,
        pass_fds: Sequence[int] = (),
        timeout_s: float | None = None,
        seconds: float | None = None,
        grace_s: float = 0.0,
        accept_exit: Collection[int] = (0,),
    ) -> None:
        self._described: dict[str, Any] = {"name": name, "argv": argv, "accept_exit": accept_exit}
        printed = self._open_outputs(stdout, stderr)
        self._clock, self._grace_s = clock or WallClock(), grace_s
        self._cut = self._flooded = False
        self._asked_s = self._overran_s = None
        self._over, self._started = threading.Event(), threading.Event()
        # Popen.wait with a timeout polls, up to 50 ms apart, which would round the durations up.
        # To start a thread takes a twentieth of the shortest command: it starts before the clock.
        watched = (timeout_s, seconds)
        self._watchdog = threading.Thread(target=self._watch, args=watched, daemon=True)
        self._lifeline = self._pipe()
        self._children = {*kinship.children(os.getpid())}
        if self._outputs or watched != (None, None):
            self._watchdog.start()
        _running.add(self)
        self._start_ns = self._clock.now_ns()
        try:
            with hold_interrupts():
                self._start(
                    argv,
                    **printed,
                    stdin=stdin,
                    cwd=cwd,
                    env={**env, kinship.MARK: str(os.getpid())},
                    pass_fds=(*pass_fds, self._lifeline[0]),
                )
        except BaseException as error:
            self._end(grace_s=0.0)
            self._close_outputs()
            if isinstance(error, OSError):
                raise _unstartable(name, argv, error) from None  # frames of the standard library
            raise
        finally:
            os.close(self._lifeline[0])
            self._started.set()

    def _open_outputs(self, stdout: IO[bytes] | int | None, stderr: int) -> dict[str, Any]:
        """Open the files of the kept output; return where either stream goes."""
        kept = {"stdout": stdout == PIPE, "stderr": stderr == PIPE}
        self._outputs = {
            stream: OutputFile(keeps_end=stream == "stderr") for stream in kept if kept[stream]
        }
        printed: dict[str, Any] = {"stdout": stdout, "stderr": stderr, **self._outputs}
        if stdout == STDOUT:
            printed["stdout"] = printed["stderr"]
        return printed

    def _start(self, argv: Sequence[str], **given: Any) -> None:
        """Start the command, which the kernel kills if this process ends without doing so."""
        # The caller's own command, without a shell.
        self.process = subprocess.Popen(argv, start_new_session=True, **given)  # noqa: S603
        if self.process.stdin is None:
            kinship.kill_when_closed(self._lifeline[0], -self.process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let no process of the session go on, and no kept output stay."""
        self._end(grace_s=0.0)
        self._end_watch()
        self._close_outputs()

    def wait(self, meter: DelayMeter | None = None) -> Ended:
        """Wait until the process has ended by itself, or is made to, and then end its session."""
        pid = self.process.pid
        ended_ns = delay = None
        together_ns, stopped_s = 0, 0.0
        if meter is not None:
            delay_of = meter.wait_for(pid)
            ended_ns = self._clock.now_ns()
            delay = delay_of()
            together_ns = getattr(delay_of, "together_ns", 0)
            stopped_s = getattr(delay_of, "stopped_s", 0.0)
        else:
            self._await_end()
        _, status, usage = os.wait4(pid, 0)
        ended_ns = ended_ns or self._clock.now_ns()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self._end_watch()
        self._flooded |= self._has_flooded()
        ended_by_us = self._cut or self._overran_s or self._flooded
        left_running = not ended_by_us and not self._gone_within(_LINGER_S)
        escaped = kinship.escapees(pid, sessions=_sessions()) if self._let_go() else []
        self._end(grace_s=self._grace_s if self._cut or left_running else 0.0)
        if any(moment_ns > self._start_ns for moment_ns in continued_ns):
            stopped_s = (ended_ns - self._start_ns) / 1e9  # an upper limit
        ended = Ended(
            code=self.process.returncode,
            elapsed_ns=ended_ns - self._start_ns,
            user_s=usage.ru_utime,
            system_s=usage.ru_stime,
            switches=usage.ru_nvcsw,
            limit_s=self._overran_s,
            cut=self._cut,
            flooded=self._flooded,
            left_running=left_running,
            escaped=escaped,
            delay=delay,
            together_ns=together_ns,
            stopped_s=stopped_s,
            said=self.said(),
            **self._described,
        )
        if ended.failure or "stdout" in self._outputs:
            for output in self._outputs.values():
                output.check_room()
        return ended

    @property
    def printed(self) -> BinaryIO:
        """The kept output, at its beginning."""
        file = self._outputs["stdout"].file
        file.seek(0)
        return file

    def said(self) -> bytes:
        """Return the last bytes that are kept of stderr, or else of stdout."""
        ends = (self._outputs[name].end() for name in sorted(self._outputs, reverse=True))
        return next(filter(None, ends), b"")

    def _close_outputs(self) -> None:
        for output in self._outputs.values():
            output.file.close()

    def _pipe(self) -> tuple[int, int]:
        try:
            return os.pipe()
        except OSError as error:
            self._close_outputs()
            why = f"cannot be started: {error.strerror}"
            raise WorkloadFailed(f"{self._described['name']} {why}") from None

    def _await_end(self) -> None:
        """Wait for the end, awake now and then: a signal just before the wait would not end it."""
        with suppress(AttributeError, OSError):  # another system, or an old kernel
            end = os.pidfd_open(self.process.pid)
            try:
                poll = select.poll()
                poll.register(end, select.POLLIN)
                while not poll.poll(_AWAKE_MS):
                    pass
            finally:
                os.close(end)

    def _watch(self, timeout_s: float | None, seconds: float | None) -> None:
        """Make the session end when its time is up or it prints too much."""
        times = [limit_s for limit_s in (timeout_s, seconds) if limit_s is not None]
        until_s = time.monotonic() + min([*times, threading.TIMEOUT_MAX])
        while (left_s := until_s - time.monotonic()) > 0.0 and not self._flooded:
            if self._over.wait(min(left_s, _GLANCE_S if self._outputs else left_s)):
                return
            self._flooded = self._has_flooded()
        self._started.wait()
        if self._over.is_set():
            self._flooded = False
            return
        self._cut = not self._flooded and (timeout_s is None or min(times) < timeout_s)
        if not (self._flooded or self._cut):
            self._overran_s = timeout_s
        if self._cut:
            self.ask_to_end()
            if self._over.wait(self._grace_s):
                return
        self._signal(signal.SIGKILL)

    def _has_flooded(self) -> bool:
        """Whether any output is too large; all of them are looked at, and kept small."""
        return True in [output.is_flooded() for output in self._outputs.values()]

    def ask_to_end(self) -> None:
        """Send SIGTERM to the session, or close its input, once."""
        if self._asked_s is None:
            self._asked_s = time.monotonic()
            if self.process.stdin is not None:
                self.process.stdin.close()
            else:
                self._signal(signal.SIGTERM)

    def _end(self, *, grace_s: float) -> None:
        """Return when no process of the session is left: asked to end, killed after the grace."""
        self._over.set()
        if self not in _running:
            return
        try:
            if grace_s > 0.0 and self._is_running():
                self.ask_to_end()
                self._gone_within((self._asked_s or 0.0) + grace_s - time.monotonic())
        finally:
            if self._is_running():
                self._signal(signal.SIGKILL)
                self.process.wait()
                self._gone_within(_DYING_S, signal.SIGKILL)
            self._let_go()
            _running.discard(self)
            os.close(self._lifeline[1])

    def stop(self, *, grace_s: float = 0.0) -> int:
        """End the session of a process that may not be waited for; return its exit code."""
        self._end_watch()
        self._end(grace_s=grace_s)
        return int(self.process.returncode)

    def _end_watch(self) -> None:
        self._over.set()
        if self._watchdog.ident is not None:
            self._watchdog.join()

    def _gone_within(self, seconds: float, number: int | None = None) -> bool:
        """Wait up to ``seconds`` until no process of the session is running.

        Processes that start meanwhile get the signal, too.
        """
        deadline = time.monotonic() + seconds
        while self._is_running():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)
            if number is not None:
                self._signal(number)
        return True

    def _is_running(self) -> bool:
        if not hasattr(self, "process"):
            return False
        if self.process.poll() is None:
            return True
        if not (self._is_held() or self._has_group()):
            return False
        # Dead processes stay in the group until their parent, often init, has noticed.
        every = kinship.running()
        return self.process.pid in every.values() if every else True

    def _is_held(self) -> bool:
        """Whether any process still has the pipe of the command: the cheapest check."""
        poll = select.poll()
        poll.register(self._lifeline[1], 0)
        return not poll.poll(0)  # otherwise an error: without a reader

    def _has_group(self) -> bool:
        try:
            os.killpg(self.process.pid, 0)
        except OSError:  # it does not exist, or is not ours
            return False
        return True

    def _let_go(self) -> bool:
        """Let children that were adopted go their way; return whether any process escaped."""
        adopted = {*kinship.children(os.getpid())} - self._children - {*_sessions()}
        if len(_running) == 1:  # otherwise they may belong to another
            kinship.let_go(adopted, sessions=_sessions())
        return bool(adopted) or self._is_held()

    def _signal(self, number: int) -> None:
        """Send a signal to the group, and to other groups of the session, as `timeout` makes."""
        with suppress(OSError):
            os.killpg(self.process.pid, number)
        every = kinship.running()
        kinship.kill([pid for pid in every if every[pid] == self.process.pid], number)


_running: set[Running] = set()


def _sessions() -> list[int]:
    # A copy: other threads start commands meanwhile.
    return [group.process.pid for group in [*_running] if hasattr(group, "process")]


@atexit.register
def end_all() -> None:
    """Kill the running commands that do not end with their input, if nobody waits for them."""
    for group in [*_running]:
        if hasattr(group, "process") and group.process.stdin is None:
            group._end(grace_s=0.0)  # noqa: SLF001


def _unstartable(name: str, argv: Sequence[str], error: OSError) -> WorkloadFailed:
    why = f"{error.strerror}"
    if error.filename is not None:  # none is at fault if this process has no descriptor left
        why += f": {hide_secrets(str(error.filename))!r}{_advise(error, argv[0])}"
    return WorkloadFailed(f"{name} cannot be started: {why}")
