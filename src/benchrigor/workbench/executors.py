"""Runs jobs on hosts: in processes that start here or by a command such as ssh, or on Dask workers.

A job is LOST if its Dask worker has gone, or its process is silent. The pool then repeats it.
"""

from __future__ import annotations

import json
import math
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from subprocess import PIPE
from typing import IO, Any, Protocol

from benchrigor.errors import BenchrigorError, InvalidInput, MissingExtra
from benchrigor.model import codec
from benchrigor.model.series import short
from benchrigor.safe_text import escaped
from benchrigor.units import show_duration
from benchrigor.workbench.on_host import (
    BEGUN,
    FREE,
    HOLD,
    KINDS,
    LOST,
    STALE_S,
    Job,
    Outcome,
    call_function,
)
from benchrigor.workloads.processes.command_line import CommandLine
from benchrigor.workloads.processes.running import Running

MODULE = ("-m", "benchrigor.workbench.on_host")
_END = 500  # last characters of the output of a lost process
_LOOK_S = 1.0  # between two checks whether an outcome is still wanted
_MOST_READ = 65_536  # bytes at once
_GRACE_S = 10.0  # for an unwanted process to end
_ENDING_S = 1.0  # for one to end that has told its outcome, with all that it left running
RESOURCE = "host"  # a worker has one of it, and a job needs one
_ANSWER_S = 10.0  # for the scheduler
_GONE_S = 15.0  # for a worker to come back


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
        self._stopped = threading.Event()  # of the jobs that have begun so far

    def run(self, host: str, job: Job) -> Outcome:
        """Run a job in a process, and wait for its outcome."""
        prefix, stopped = [word.replace("{host}", host) for word in self._prefix], self._stopped
        argv = [*prefix, self._python, *MODULE]
        return run_job(argv, job, is_wanted=lambda: not stopped.is_set())

    def stop(self) -> None:
        """Let all running jobs be ended."""
        self._stopped, stopped = threading.Event(), self._stopped
        stopped.set()

    def close(self) -> None:
        """Release all resources."""
        self.stop()


def run_job(argv: Sequence[str], job: Job, *, is_wanted: Callable[[], bool]) -> Outcome:
    """Run a job in a process, and wait for its outcome; a silent job is lost.

    The process ends when its outcome is not wanted any more.
    """
    try:
        ours, its = os.pipe()
    except OSError as error:
        return Outcome(kind=LOST, failure=f"{job.host} cannot be asked: {error.strerror}")
    with open(ours, "rb", buffering=0) as said:  # noqa: PTH123  # it has no path
        try:
            running = CommandLine(argv).start(argv, name=argv[0], stdin=PIPE, stdout=its)
        except BenchrigorError as error:
            return Outcome(kind=LOST, failure=str(error))
        finally:
            os.close(its)
        stdin: Any = running.process.stdin
        with running, stdin:
            line, why = b"", ""
            try:
                line = _await_outcome(running, said, job, is_wanted)
            except TimeoutError as error:
                why = f" {error}"
            finally:
                # It may have closed its output, and go on.
                code = running.stop(grace_s=_ENDING_S if line else _GRACE_S)
            end = escaped(running.said().decode(errors="replace").strip()[-_END:])
    try:
        if line:
            return _outcome_of(line)
    except ValueError as error:
        why = f" sent no outcome: {error}"
    why = why or f": the process ended with {code}: {end or 'nothing was said'}"
    return Outcome(kind=LOST, failure=f"{job.host}{why}")


def _await_outcome(
    running: Running, said: IO[bytes], job: Job, is_wanted: Callable[[], bool]
) -> bytes:
    """Send a job to a process that has begun, and return its next line but signs of life.

    If it has ended, that is the rest of what it said. It need not read its input.
    """
    limit_s = math.inf if job.limit_s is None else job.limit_s
    until_s, stale_s = time.monotonic() + limit_s, time.monotonic() + STALE_S
    stdin: Any = running.process.stdin
    os.set_blocking(stdin.fileno(), False)
    unsent, text = None, b""
    poll = select.poll()
    poll.register(said, select.POLLIN)
    while (now_s := time.monotonic()) < min(stale_s, until_s):
        if not is_wanted():
            raise TimeoutError("is not waited for any more")
        for file, _ in poll.poll(1e3 * min(_LOOK_S, until_s - now_s)):
            if unsent and file == stdin.fileno():
                unsent = _send(unsent, file, poll)
                continue
            if not (more := os.read(file, _MOST_READ)):
                return text
            *lines, text = (text + more).split(b"\n")
            for line in lines:
                stale_s = time.monotonic() + STALE_S
                if line == BEGUN and unsent is None:  # now the job arrives at once
                    asked = replace(job, asked_s=time.monotonic())
                    unsent, until_s = _line_of(asked), asked.asked_s + limit_s
                    poll.register(stdin, select.POLLOUT)
                elif line:
                    return line
    if stale_s < until_s:
        raise TimeoutError(f"gave no sign of life for {STALE_S:g} s")
    raise TimeoutError(f"did not end within {show_duration(limit_s)}")


def _line_of(job: Job) -> bytes:
    return f"{json.dumps(codec.encode(job))}\n".encode()


def _send(unsent: bytes, file: int, poll: select.poll) -> bytes:
    """Write what fits into a pipe, and return the rest; nothing if its reader has gone."""
    try:
        rest = unsent[os.write(file, unsent) :]
    except BrokenPipeError:
        rest = b""
    if not rest:
        poll.unregister(file)
    return rest


def _outcome_of(line: bytes) -> Outcome:
    outcome = codec.decode(Outcome, json.loads(line))
    if outcome.kind not in KINDS:
        raise ValueError(f"its kind is {short(outcome.kind)}")
    return outcome


class DaskExecutor:
    """Runs jobs on workers of Dask, which have the names of the hosts.

    A worker has one resource ``host``, which a job takes whole; Dask neither repeats a job nor
    moves it to another worker. The worker starts a process for the job, so that the measured code
    does not share a process with Dask.

    Parameters
    ----------
    scheduler
        Its address, such as "tcp://10.0.0.1:8786".
    hosts
        Names of workers; None for all.

    Raises
    ------
    MissingExtra
        Without the package ``distributed``.
    InvalidInput
        When no scheduler answers, a host has no worker, or a worker has no resource ``host``.
    """

    def __init__(self, scheduler: str, hosts: Sequence[str] | None = None) -> None:
        try:
            import distributed  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise MissingExtra(
                "A pool of workers", package="distributed", extra="cluster"
            ) from error
        self._distributed, self._scheduler = distributed, scheduler
        self._client = self._connect()
        workers = self._workers()
        self.hosts = tuple(hosts or sorted(workers))
        problems, known = [], ", ".join(sorted(workers)) or "none"
        for name in self.hosts:
            if name not in workers:
                problems.append(f"{name} has no worker, expected one of {known}")
            elif workers[name].get("resources", {}).get(RESOURCE) != 1:
                said = f"expected: dask worker --name {name} --resources {RESOURCE}=1"
                problems.append(f"the worker {name} has no resource {RESOURCE}, {said}")
        if not self.hosts:
            problems = [f"{scheduler} has no worker, expected one for each host"]
        if problems:
            self._client.close()
            raise InvalidInput(problems)
        machines = {str(workers[name].get("host")) for name in self.hosts}
        self.alone = len(machines) == len(self.hosts)  # each host is a machine of its own
        self._futures: set[Any] = set()

    def _connect(self) -> Any:
        try:
            client: Any = self._distributed.Client
            return client(self._scheduler, timeout=_ANSWER_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InvalidInput(
                f"no scheduler of Dask answers at {self._scheduler}: {error}"
            ) from error

    def _workers(self) -> dict[str, Any]:
        """Return the scheduler's information on workers, by name, with their addresses.

        ``scheduler_info`` cannot be used: every 2 s its data are replaced by data without workers.
        """
        known = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        return {str(info["name"]): {**info, "address": address} for address, info in known.items()}

    def run(self, host: str, job: Job) -> Outcome:
        """Run a job on the worker of a host, and wait for its outcome."""
        address = self._address(host)
        if address is None:
            return Outcome(kind=LOST, failure=f"{host} has no worker of Dask")
        try:
            own = {"workers": [address], "allow_other_workers": False, "resources": {RESOURCE: 1}}
            sent = replace(job, asked_s=time.monotonic())
            future = self._client.submit(_on_worker, sent, **own, retries=0, pure=False)
            self._futures.add(future)
            try:
                return self._await_outcome(host, address, future)
            finally:
                self._futures.discard(future)
        except Exception as error:  # noqa: BLE001  # Dask has many; all mean that it was lost
            return Outcome(kind=LOST, failure=f"{host}: {type(error).__name__}: {error}")

    def _await_outcome(self, host: str, address: str, future: Any) -> Outcome:
        """Wait for a task while its worker is there: Dask itself would wait forever."""
        seen_s = time.monotonic()
        while True:
            try:
                return codec.decode(Outcome, future.result(timeout=_LOOK_S))
            except (TimeoutError, self._distributed.TimeoutError):
                try:
                    worker = self._workers().get(host)
                except (OSError, RuntimeError):  # the scheduler is away, or busy
                    if time.monotonic() > seen_s + _GONE_S:
                        raise
                    continue
                seen_s = time.monotonic()
                if worker is None or worker["address"] != address:
                    future.cancel()
                    return Outcome(kind=LOST, failure=f"the worker of {host} has gone")

    def _address(self, host: str) -> str | None:
        """Wait for a worker, and return its address; None without one."""
        until_s = time.monotonic() + _GONE_S
        while time.monotonic() < until_s:
            try:
                if self._client.status != "running":
                    self._client = self._connect()
                if (worker := self._workers().get(host)) is not None:
                    return str(worker["address"])
            except (OSError, InvalidInput, RuntimeError):  # the scheduler is away
                pass
            time.sleep(_LOOK_S)
        return None

    def stop(self) -> None:
        """End all running jobs."""
        self._client.cancel([*self._futures])

    def close(self) -> None:
        """Release all resources."""
        self._client.close(timeout=_ANSWER_S)


def _on_worker(job: Job) -> Any:
    """Run a job on a worker, until it is cancelled, or its client has gone."""
    from distributed import get_worker  # noqa: PLC0415  # an extra

    job = job.arrived(time.monotonic())
    worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state == "executing"

    return codec.encode(run_job([sys.executable, *MODULE], job, is_wanted=is_wanted))


class FakeExecutor:
    """Runs jobs in this process as fake hosts; an `Executor`.

    Parameters
    ----------
    hosts
        Their names.
    instead
        Called with a job; its outcome replaces a call of the function. The function is called if
        this is None or returns None.

    Attributes
    ----------
    log
        Host, job, beginning and end of all jobs, in seconds of a monotonic clock.

    Examples
    --------
    >>> from benchrigor.workbench.on_host import Token
    >>> executor = FakeExecutor(["elm"])
    >>> job = Job(call="math:sqrt", arguments={}, host="elm", token=Token(owner="a", number=1))
    >>> executor.run("elm", job).failure
    'TypeError: math.sqrt() takes exactly one argument (0 given)'
    """

    alone = True

    def __init__(
        self, hosts: Sequence[str], *, instead: Callable[[Job], Outcome | None] | None = None
    ) -> None:
        self.hosts = tuple(hosts)
        self.log: list[tuple[str, Job, float, float]] = []
        self._instead = instead or (lambda _: None)

    def run(self, host: str, job: Job) -> Outcome:
        """Call the function of a job, in this thread."""
        if job.call in {FREE, HOLD}:
            return Outcome()
        begun_s = time.monotonic()
        outcome = self._instead(job) or call_function(job)
        self.log.append((host, job, begun_s, time.monotonic()))
        return outcome

    def stop(self) -> None:
        """Do nothing: running jobs end by themselves."""

    def close(self) -> None:
        """Do nothing: it has no resources."""
