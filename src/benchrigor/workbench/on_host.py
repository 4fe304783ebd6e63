"""Runs one job on a host, alone, as ``python -m benchrigor.workbench.on_host``.

It prints a line when it has begun. Then it reads the job as a line of JSON from standard input, and
writes the outcome as a line to standard output. Until then it writes an empty line now and then as
a sign of life. If standard input ends before, the asking process has died, and the job ends, too.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import psutil  # type: ignore[import-untyped]

from benchrigor import __version__
from benchrigor.errors import (
    BenchrigorError,
    InvalidInput,
    MissingExtra,
    StoreFailed,
    WorkloadFailed,
)
from benchrigor.model import codec
from benchrigor.model.one_line import OneLine
from benchrigor.safe_text import escaped
from benchrigor.storage import data_folder
from benchrigor.units import show_duration

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

KINDS = ("done", "failed", "refused", "lost", "busy", "late")
DONE, FAILED, REFUSED, LOST, BUSY, LATE = KINDS
BEGUN = b"begun"  # the first line of output
FREE = "benchrigor.workbench.on_host:free"
HOLD = "benchrigor.workbench.on_host:hold"
_FOREIGN = 0.5  # processors that others may use during a job
_LOOK_S = 0.2  # the time to measure the load of others, before and after a job
_PATIENCE_S = 10.0  # for others to end before a job
_GRACE_S = 5.0  # for the children of a job after the death of its asker
BEAT_S = 10.0  # from one sign of life to the next
STALE_S = 60.0  # without a sign of life the owner has died
_MOST = 10_000  # characters of a lock
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token(OneLine):
    """The lease of hosts to one job: later jobs have greater numbers.

    Parameters
    ----------
    owner
        The run that asks for the hosts.
    number
        Greater than the numbers of all earlier leases of this owner, also of earlier processes.
    hosts
        Their names in the order of the table, after the requested first one.
    """

    owner: str
    number: int
    hosts: tuple[str, ...] = ()


class UnfitHost(WorkloadFailed):
    """A host is not fit for any job of this pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(OneLine):
    """A function to call on a host.

    Parameters
    ----------
    call
        "module:function", which takes and returns plain data.
    arguments
        By name. ``start_s`` among them is a time by the clock of the asker, and becomes one by that
        of the host.
    host, token
        The host, and the token of the lease.
    lock_folder
        Of the lock of the host; None for its data folder.
    alone
        Whether the host is a machine of its own.
    watched
        Whether the job waits for a quiet host, and the load of others is measured meanwhile.
    limit_s
        Seconds after which it is ended; None without a limit.
    asked_s
        When it was sent, by the monotonic clock of the asker.
    version
        The version of the asker; the host must have the same.
    """

    call: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    host: str
    token: Token
    lock_folder: str | None = None
    alone: bool = True
    watched: bool = True
    limit_s: float | None = None
    asked_s: float = 0.0
    version: str = __version__

    def arrived(self, now_s: float) -> Job:
        """Return the job with its start by the clock of the host, at which it has just arrived.

        Whatever clocks say, hosts start apart by as much as the ways of their jobs differ.
        """
        if "start_s" not in self.arguments:
            return self
        start_s = self.arguments["start_s"] + now_s - self.asked_s
        return replace(self, arguments={**self.arguments, "start_s": start_s})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(OneLine):
    """The outcome of a job.

    Parameters
    ----------
    kind
        "done"; "failed" by itself; "refused" by a host that is not fit for any job; "lost" with its
        host or connection; "busy" if the host works for another owner; "late" if a later job of the
        same owner was there.
    value
        The return value of the function.
    failure
        Why the value is missing.
    disturbed
        Other uses of the host meanwhile; empty without any.
    taken_over_from
        The owner of a stale lock of the host.
    host, elapsed_s
        The host, and the seconds until the outcome was known.
    earlier, spent_s
        What came of earlier attempts, which do not count; and the seconds of all attempts.
    """

    kind: str = DONE
    value: Any = None
    failure: str = ""
    disturbed: str = ""
    taken_over_from: str = ""
    host: str = ""
    elapsed_s: float = 0.0
    earlier: tuple[str, ...] = ()
    spent_s: float = 0.0

    def __str__(self) -> str:
        why = self.failure or self.disturbed
        kind = "disturbed" if self.kind == DONE and self.disturbed else self.kind
        taken = self.taken_over_from
        took_over = f", taken over from {taken}, which gave no sign of life" if taken else ""
        why = f": {why}" if why else ""
        return escaped(f"{self.host}: {kind} after {show_duration(self.elapsed_s)}{took_over}{why}")

    @property
    def remarks(self) -> tuple[str, ...]:
        """The attempts that went wrong: all but the last, and the last one if disturbed."""
        is_odd = self.disturbed or self.taken_over_from
        return (*self.earlier, str(self)) if is_odd else self.earlier


class HostBusy(WorkloadFailed):
    """A host works for somebody else."""


class LateToken(WorkloadFailed):
    """A job comes after a later one of the same owner, which no longer waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The contents of a lock: last numbers by the owner's names of the machine, a sign of life."""

    owner: str
    numbers: Mapping[str, int]
    at_s: float
    boot: str


class HostLock:
    """Holds a machine for the owner of a token, under one of its names.

    The file keeps the token after a job, so that other owners cannot come between two jobs of a
    pool: until `free`, or for a minute by the machine's own monotonic clock. Locks from before a
    restart of the machine are void. The file belongs to the machine, not to one of its names: hosts
    may share the folder.

    Parameters
    ----------
    host
        The owner's name of the machine.
    token
        The token of the job.
    alone
        Whether the owner uses only this name for the machine.
    folder
        The folder of the file; None for the data folder of the user.
    machine
        The machine's own name; None to ask the system.
    now_s
        The clock.
    boot
        An id of the last start of the host; None to ask the system.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = HostLock("elm", Token(owner="a1b2", number=1), folder=folder)
    ...     lock.take()
    ...     try:
    ...         HostLock("elm", Token(owner="c3d4", number=1), folder=folder).take()
    ...     except HostBusy as error:
    ...         print(str(error).split(":")[0])
    elm works for a1b2
    """

    def __init__(
        self,
        host: str,
        token: Token,
        *,
        alone: bool = True,
        folder: str | Path | None = None,
        machine: str | None = None,
        now_s: Callable[[], float] = time.monotonic,
        boot: str | None = None,
    ) -> None:
        folder = folder or data_folder() / "hosts"
        self._path = Path(folder) / f"{quote(machine or platform.node(), safe='')}.lock"
        self._host, self._token, self._alone, self._now_s = host, token, alone, now_s
        self._boot = boot or (_BOOT.read_text().strip() if _BOOT.exists() else "")
        self.taken_over_from = ""  # the owner of a stale lock

    def take(self) -> None:
        """Hold the host.

        Raises
        ------
        HostBusy
            While it works for another owner.
        LateToken
            When it has worked for a later job of the same owner.
        WorkloadFailed
            When the file cannot be written, or the machine has another name for the same owner.
        """
        with self._file() as file:
            held = _read(file)
            if held is not None and held.owner != self._token.owner:
                self._refuse_or_take_over(held)
            numbers = self._numbers(file)
            if numbers.get(self._host, 0) > self._token.number:
                owner = self._token.owner
                raise LateToken(f"{self._host} has worked for a later job of {owner}")
            if self._alone and (others := sorted({*numbers} - {self._host})):
                raise WorkloadFailed(
                    f"{self._host} and {escaped(others[0])} are one machine, expected each once"
                )
            self._write(file, numbers | {self._host: self._token.number})

    def _refuse_or_take_over(self, held: _Held) -> None:
        silent_s = self._now_s() - held.at_s
        if held.boot == self._boot and 0.0 <= silent_s < STALE_S:
            raise HostBusy(
                f"{self._host} works for {escaped(held.owner)}: a sign of life "
                f"{show_duration(silent_s)} ago, expected none for "
                f"{show_duration(STALE_S)}: wait for it, or take another host"
            )
        self.taken_over_from = held.owner

    def beat(self) -> bool:
        """Give a sign of life; return whether the host is still held."""
        with self._file() as file:
            numbers = self._numbers(file)
            is_ours = numbers.get(self._host) == self._token.number
            if is_ours:
                self._write(file, numbers)
            return is_ours

    def free(self) -> None:
        """Free the host if it is held for this owner, and not for a later job of it."""
        with self._file() as file:
            numbers = self._numbers(file)
            if self._host in numbers and numbers[self._host] <= self._token.number:
                del numbers[self._host]
                self._write(file, numbers)

    def _numbers(self, file: IO[str]) -> dict[str, int]:
        """Return the last token by the owner's names of the machine."""
        held = _read(file)
        return dict(held.numbers) if held and held.owner == self._token.owner else {}

    def _write(self, file: IO[str], numbers: Mapping[str, int]) -> None:
        file.truncate(0)
        if numbers:
            own: dict[str, Any] = {"owner": self._token.owner, "boot": self._boot}
            held = _Held(**own, numbers=numbers, at_s=self._now_s())
            file.write(json.dumps(codec.encode(held)))

    @contextmanager
    def _file(self) -> Iterator[IO[str]]:
        """Open the file, and keep other processes from changing it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a+", encoding="utf-8") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX)
                yield file
        except OSError as error:
            raise WorkloadFailed(
                f"the lock of {self._host} cannot be written: {error}; expected a writable folder "
                f"with space left: {self._path.parent}"
            ) from error


def _read(file: IO[str]) -> _Held | None:
    """Return the contents of a lock; None if it is free, or the file is incomplete."""
    file.seek(0)
    try:
        return codec.decode(_Held, json.loads(file.read(_MOST)))
    except (ValueError, InvalidInput):
        return None


def main() -> None:
    """Do the job that standard input describes."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the output of the job is not its outcome
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background of a shell
    print(BEGUN.decode(), file=out, flush=True)
    first, came_s = sys.stdin.read(1), time.monotonic()  # the rest of a long job takes a while
    asked = json.loads(first + sys.stdin.readline())
    try:
        outcome = _outcome_of(asked, came_s, lambda: print(file=out, flush=True))
    except KeyboardInterrupt:
        os.killpg(0, signal.SIGKILL)  # with all that the job has started
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over
    print(json.dumps(codec.encode(outcome)), file=out, flush=True)
    os._exit(0)  # also if threads of the job still run


def _end_with_asker() -> None:
    """Interrupt the job when standard input ends, and kill it if that does not help."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(_GRACE_S)
    os.killpg(0, signal.SIGKILL)


def _outcome_of(asked: Mapping[str, Any], came_s: float, alive: Any) -> Outcome:
    """Do a job of this version; jobs of other versions may have other fields."""
    if asked.get("version") != __version__:
        host, version = (escaped(str(asked.get(name))) for name in ("host", "version"))
        said = f"{host} has benchrigor {__version__}, expected {version} as here"
        return Outcome(kind=REFUSED, failure=said)
    job = codec.decode(Job, asked).arrived(came_s)
    threading.Thread(target=_end_with_asker, daemon=True).start()
    return carry_out_job(job, alive)


def carry_out_job(job: Job, alive: Any) -> Outcome:
    """Do a job while its host is held; ``alive`` is called now and then meanwhile."""
    lock = HostLock(job.host, job.token, alone=job.alone, folder=job.lock_folder)
    try:
        lock.take()
    except WorkloadFailed as error:
        kind = {HostBusy: BUSY, LateToken: LATE}.get(type(error), REFUSED)
        return Outcome(kind=kind, failure=str(error))
    over, outcome = threading.Event(), None
    beats = threading.Thread(target=_beat, args=(lock, over, alive), daemon=True)
    beats.start()
    try:
        outcome = _watch(job)
    finally:
        over.set()
        beats.join()
        with suppress(WorkloadFailed):
            if outcome is not None:
                lock.beat()
            else:  # the asker has died or ends the job, and will not free the host later
                lock.free()
    return replace(outcome, taken_over_from=lock.taken_over_from)


def _beat(lock: HostLock, over: threading.Event, alive: Any) -> None:
    """Give signs of life until a job is over, and end it if its host works for another owner."""
    while not over.wait(BEAT_S):
        with suppress(OSError, WorkloadFailed):
            alive()
            if not lock.beat():
                os.kill(os.getpid(), signal.SIGINT)


def _watch(job: Job) -> Outcome:
    """Do a job, and measure the load of others on the host."""
    if not job.watched:
        return call_function(job)
    until_s = time.monotonic() + _PATIENCE_S
    while (before := _foreign_load(_LOOK_S)) > _FOREIGN and time.monotonic() < until_s:
        pass
    foreign = _count_foreign()
    outcome = call_function(job)
    most = max(before, foreign(), _foreign_load(_LOOK_S))
    disturbed = f"others used {most:.1f} processors" if most > _FOREIGN else ""
    return replace(outcome, disturbed=disturbed)


def call_function(job: Job) -> Outcome:
    """Call the function of a job, here."""
    module, _, name = job.call.partition(":")
    try:
        value = getattr(import_module(module), name)(**job.arguments)
        json.dumps(value, allow_nan=False)
        return Outcome(value=value)
    except (UnfitHost, StoreFailed, MissingExtra, OSError) as error:  # such as a full disk
        return Outcome(kind=REFUSED, failure=f"{job.host}: {error}")
    except Exception as error:  # noqa: BLE001  # it is reported
        name = "" if isinstance(error, BenchrigorError) else f"{type(error).__name__}: "
        return Outcome(kind=FAILED, failure=f"{name}{error}")


def _foreign_load(seconds: float) -> float:
    foreign = _count_foreign()
    time.sleep(seconds)
    return foreign()


def _count_foreign() -> Callable[[], float]:
    """Return a function that measures the mean number of processors of others from now on."""
    begun_s, others_s = time.monotonic(), _busy_s() - _own_s()
    return lambda: max(_busy_s() - _own_s() - others_s, 0.0) / max(time.monotonic() - begun_s, 1e-3)


def _busy_s() -> float:
    """Return the busy and stolen seconds of all processors."""
    times = psutil.cpu_times()
    return float(sum(times[:3]) + getattr(times, "steal", 0.0))


def _own_s() -> float:
    """Return the processor seconds of this process and its children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def free(*, host: str, owner: str, folder: str | None) -> None:
    """Free a host, unless another owner holds it."""
    HostLock(host, Token(owner=owner, number=sys.maxsize), folder=folder).free()


def hold() -> None:
    """Do nothing: the purpose of this job is the lock that it leaves on the host."""


if __name__ == "__main__":
    # The names of the module itself, which jobs import: its exceptions must be the same.
    import_module("benchrigor.workbench.on_host").main()
