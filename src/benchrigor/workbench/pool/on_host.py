"""Runs one job on a host, alone, as ``python -m benchrigor.workbench.pool.on_host``.

It prints a line when it has begun. Then it reads the job as a line of JSON from standard input, and
writes the outcome as a line to standard output. Until then it writes an empty line now and then as
a sign of life. If standard input ends before, the asking process has died, and the job ends, too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchrigor import __version__
from benchrigor.control_characters import escaped
from benchrigor.errors import BenchrigorError, MissingExtra, StoreFailed, WorkloadFailed
from benchrigor.model import codec
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import show_duration
from benchrigor.workbench.pool.leases import BEAT_S, HostBusy, HostLock, LateToken, Token

KINDS = ("done", "failed", "refused", "lost", "busy", "late")
DONE, FAILED, REFUSED, LOST, BUSY, LATE = KINDS
BEGUN = "begun\n"  # the first line of output
FREE = "benchrigor.workbench.pool.on_host:free"
HOLD = "benchrigor.workbench.pool.on_host:hold"
_FOREIGN = 0.5  # processors that others may use during a job
_LOOK_S = 0.2  # the time to measure the load of others, before and after a job
_PATIENCE_S = 10.0  # for others to end before a job
_GRACE_S = 5.0  # for the children of a job after the death of its asker


class Refused(WorkloadFailed):
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
        When it was sent, by the calendar clock of the asker.
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
        Why there is no value.
    disturbed
        Other uses of the host meanwhile; empty without any.
    before, after
        Processors that others used, before and after the job.
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
    before: float | None = None
    after: float | None = None
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


def main() -> None:
    """Do the job that standard input describes."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the output of the job is not its outcome
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background of a shell
    print(BEGUN, end="", file=out, flush=True)
    line, came_s = sys.stdin.readline(), time.time()
    asked = json.loads(line)
    try:
        outcome = _outcome_of(asked, came_s, lambda: print(file=out, flush=True))
    except KeyboardInterrupt:
        os.killpg(0, signal.SIGKILL)  # with what the job has started
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
    during, after = foreign(), _foreign_load(_LOOK_S)
    most = max(before, during, after)
    disturbed = f"others used {most:.1f} processors" if most > _FOREIGN else ""
    return replace(outcome, before=before, after=after, disturbed=disturbed)


def call_function(job: Job) -> Outcome:
    """Call the function of a job, here."""
    module, _, name = job.call.partition(":")
    try:
        value = getattr(import_module(module), name)(**job.arguments)
        json.dumps(value, allow_nan=False)
        return Outcome(value=value)
    except (Refused, StoreFailed, MissingExtra, OSError) as error:  # such as a full disk
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
    main()
