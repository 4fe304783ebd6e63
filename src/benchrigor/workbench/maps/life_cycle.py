"""The life cycle of a server by commands, from its configuration to its clean-up."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import string
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from subprocess import STDOUT
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit, urlunsplit

from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, WorkloadFailed
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.model.one_line import OneLine
from benchrigor.safe_text import escaped, hide_secrets
from benchrigor.units import show_duration
from benchrigor.workbench.designs import Point, Space, fill_places, places_in
from benchrigor.workbench.loadgen.sending import A_URL, is_url
from benchrigor.workbench.settings import STEPS
from benchrigor.workloads.processes.command_line import CommandLine
from benchrigor.workloads.processes.running import Running, last_lines, shown, wrong_exit

COMMANDS = ("configure", "start", "ready_command", "warm_up", "ramp", "stop", "clean")
_LOOK_S = 0.05  # between two checks whether it is ready
_ANSWER_S = 5.0  # for one answer: a server that starts may take a connection and forget it
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeCycle(OneLine):
    """The steps around the load of a server; levels of factors have places as ``{threads}``.

    Parameters
    ----------
    configure
        Program and arguments. As with all commands, no shell reads them unless they are ``sh -c``.
    start
        The server. Prefer one that is not a daemon: its whole process group is then ended, with
        force if needed. A daemon's command ends with code 0, and ``stop`` must end the daemon.
    ready, port, ready_command
        The server is ready when it answers a request to this URL with a status below 500, accepts
        a connection at this port of this machine, or when this command exits with 0.
    warm_up, ramp
        Run when the server is ready, and again when only factors of the workload have changed.
    stop
        Asks the server to end; without it SIGTERM does.
    clean
        Always runs last, also after a failure.
    timeouts
        Seconds of the steps that differ from `STEPS`.

    Raises
    ------
    InvalidInput
        With all problems, such as a start without a check that the server is ready.
    """

    configure: Sequence[str] | None = None
    start: Sequence[str] | None = None
    ready: str | None = None
    port: int | str | None = None
    ready_command: Sequence[str] | None = None
    warm_up: Sequence[str] | None = None
    ramp: Sequence[str] | None = None
    stop: Sequence[str] | None = None
    clean: Sequence[str] | None = None
    timeouts: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_waits = sum(wait is not None for wait in (self.ready, self.port, self.ready_command))
        is_ready = self.ready is None or any(places_in(self.ready)) or is_url(self.ready)
        is_port = self.port is None or any(places_in(self.port)) or _is_port(self.port)
        checks = [
            ("ready", self.ready, is_ready, A_URL),
            ("port", self.port, is_port, "a number from 1 to 65535, or a place for one"),
        ]
        refuse(
            wrong_values(checks),
            [f"{n_waits} of ready, port and ready_command are given, expected one"]
            * (n_waits > 1 or (self.start is not None and not n_waits)),
        )

    def at(self, point: Point) -> LifeCycle:
        """Return the life cycle with the levels of a point in their places."""
        texts = {name: getattr(self, name) for name in (*COMMANDS, "ready", "port")}
        return replace(self, **fill_places(texts, point))

    def limit_s(self, step: str) -> float:
        """Return the time limit of a step in seconds."""
        return self.timeouts.get(step) or float(STEPS[step].default)


def _is_port(port: object) -> bool:
    return str(port).isdecimal() and 0 < int(str(port)) < 65536


def same_configuration(space: Space, one: Point, other: Point) -> bool:
    """Return whether points differ only in factors of the workload: the server may keep running."""
    names = [factor.name for factor in space.factors if not factor.workload]
    return all(one[name] == other[name] for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone(OneLine):
    """A step of a life cycle that was carried out.

    Parameters
    ----------
    name
        Of the command, or "ready".
    how
        How it ended; "" for code 0, or if it ended as it should.
    code
        Its exit code, or the negative number of the signal that killed it; None without a command.
    seconds
        Its duration; "start" lasts until the server has ended.
    end
        Last lines of its stdout and stderr, without secrets.
    """

    name: str
    how: str = ""
    code: int | None = None
    seconds: float = 0.0
    end: tuple[str, ...] = ()

    def __str__(self) -> str:
        done = " ".join(filter(None, (self.name, self.how)))
        return escaped(f"{done} after {show_duration(self.seconds)}")

    @property
    def went_wrong(self) -> bool:
        """Whether it did not end as it should; SIGTERM is a normal end of a server."""
        return bool(self.how) and (self.name, self.code) != ("start", -signal.SIGTERM)

    def to_error(self, argv: Sequence[str] = ()) -> WorkloadFailed:
        """Return the failure as an error that names the command."""
        said = f"{self.name} {shown(argv)}" if argv else self.name
        ends = "; its output ends:" if self.end else ""
        return WorkloadFailed(f"{said} {self.how}{ends}", *(f"  | {line}" for line in self.end))


class Server:
    """A server; ``with`` configures, starts and awaits it, and always stops and cleans up.

    A signal or an error inside the block is raised after the clean-up. Every step that ends is
    appended to ``steps``, including steps that fail while stopping.

    Raises
    ------
    WorkloadFailed
        When a step fails or takes too long, or something else answers at the server's address.
    """

    def __init__(
        self,
        life_cycle: LifeCycle,
        point: Point,
        *,
        cwd: str | os.PathLike[str] | None = None,
        steps: list[StepDone] | None = None,
    ) -> None:
        self.steps: list[StepDone] = [] if steps is None else steps
        self._whole, self._now = life_cycle, life_cycle.at(point)
        self._cwd, self._clock = cwd, WallClock()
        self._running: Running | None = None
        self._begun_ns = 0
        self._is_begun = False  # then it must be stopped, also if no process of ours runs

    def __enter__(self) -> Self:
        try:
            self._run("configure")
            self._start()
        except BaseException:
            with suppress(BenchrigorError):
                self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            self._close()
        except BenchrigorError:
            if error is None:
                raise

    def warm_up(self, point: Point) -> None:
        """Warm up and ramp for another point of the same configuration."""
        self._now = self._whole.at(point)
        self._run("warm_up")
        self._run("ramp")

    def restart(self) -> None:
        """Start the server again after a crash."""
        with suppress(WorkloadFailed):  # there may be nothing to stop
            self._stop()
        self._start()

    def _start(self) -> None:
        if self._now.start is not None:
            if self._now.ready_command is None and not self._unready(_ANSWER_S):
                raise WorkloadFailed(
                    f"start: {self._awaited} answers before the server is started, expected "
                    "nothing there: end what runs, or have configure do so"
                )
            self._begun_ns = self._clock.now_ns()
            self._running = self._start_process("start", self._now.start)
        self._is_begun = True
        if self._awaited:
            self._await_ready()
        self._run("warm_up")
        self._run("ramp")

    def _await_ready(self) -> None:
        begun_s, limit_s = time.monotonic(), self._now.limit_s("ready")
        why = "not asked"
        while why:
            left_s = limit_s + begun_s - time.monotonic()
            if left_s <= 0.0:
                how = f"took longer than {show_duration(limit_s)}: {self._awaited}: {why}"
                late = replace(self._server_done(None), name="ready", how=how, seconds=limit_s)
                self.steps.append(late)
                raise late.to_error()
            why = self._unready(min(left_s, _ANSWER_S))
            self._check_alive()  # also if it is ready: something else may have answered
            time.sleep(_LOOK_S if why else 0.0)
        self.steps.append(StepDone(name="ready", seconds=time.monotonic() - begun_s))

    def _check_alive(self) -> None:
        """Raise WorkloadFailed if the server has ended, unless it may go on as a daemon."""
        code = self._code()
        if code is not None and (code != 0 or self._now.stop is None):
            done = self._server_done(code)
            how = done.how or "ended at once; a daemon needs a command stop"
            raise replace(done, how=how).to_error(self._now.start or ())

    def _code(self) -> int | None:
        """Return the exit code of the command that started the server; None if it runs."""
        return None if self._running is None else self._running.process.poll()

    def _stop(self) -> None:
        """Ask the server to end, and kill its remaining processes."""
        is_begun, self._is_begun = self._is_begun, False
        grace_s = self._now.limit_s("stop")
        try:
            if is_begun and not self._code():  # else it has broken down
                self._run("stop")
                until_s = time.monotonic() + grace_s * (self._now.stop is not None)
                while self._running and self._code() is None and time.monotonic() < until_s:
                    time.sleep(_LOOK_S)
        finally:
            if self._running is not None:
                code = self._code()
                done = self._server_done(self._running.stop(grace_s=grace_s))
                if code is None and done.code == -signal.SIGKILL:
                    how = f"did not end within {show_duration(grace_s)} and was killed"
                    done = replace(done, how=how)
                self.steps.append(done)
                self._running.close()
                self._running = None

    def _close(self) -> None:
        try:
            self._stop()
        finally:
            self._run("clean")

    def _server_done(self, code: int | None) -> StepDone:
        how, said = "" if code is None else wrong_exit(code) or "", b""
        if self._running is not None:
            said = self._running.said()
        seconds = (self._clock.now_ns() - self._begun_ns) / 1e9
        end = tuple(last_lines(said, self._now.start or ()))
        return StepDone(name="start", how=how, code=code, seconds=seconds, end=end)

    @property
    def _awaited(self) -> str:
        now = self._now
        at_port = "" if now.port is None else f"port {now.port}"
        return hide_secrets(now.ready or "") or at_port or shown(now.ready_command or ())

    def _unready(self, limit_s: float) -> str:
        """Return why the server is not ready; empty if it is."""
        now = self._now
        if now.ready_command is not None:
            return self._run_command("ready", now.ready_command, limit_s).how
        try:
            if now.ready is not None:
                return _request(now.ready, limit_s)
            socket.create_connection(("localhost", int(str(now.port))), timeout=limit_s).close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _run(self, name: str) -> None:
        """Run the command of a step, if there is one; WorkloadFailed if it fails."""
        argv = getattr(self._now, name)
        if argv is not None:
            self.steps.append(self._run_command(name, argv, self._now.limit_s(name)))
            if self.steps[-1].how:
                raise self.steps[-1].to_error(argv)

    def _run_command(self, name: str, argv: Sequence[str], limit_s: float) -> StepDone:
        with self._start_process(name, argv, timeout_s=limit_s) as running:
            ended = running.wait()
        return StepDone(
            name=name,
            how=ended.failure or "",
            code=ended.code,
            seconds=ended.elapsed_ns / 1e9,
            end=tuple(last_lines(ended.said, argv)),
        )

    def _start_process(self, name: str, argv: Sequence[str], **limits: Any) -> Running:
        line = CommandLine(argv, cwd=self._cwd)
        try:
            return line.start(argv, name=f"{name} {shown(argv)}", stdout=STDOUT, **limits)
        except WorkloadFailed as error:
            self.steps.append(StepDone(name=name, how=str(error)))
            raise


def _request(url: str, limit_s: float) -> str:
    """Request a URL as the load does: without a proxy or redirects; return a server error."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    with closing(kind(parts.hostname or "", parts.port, timeout=limit_s)) as connection:
        asked = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        connection.request("GET", quote(asked, safe=string.punctuation))
        status = connection.getresponse().status
    return f"status {status}" if status >= _SERVER_ERROR else ""
