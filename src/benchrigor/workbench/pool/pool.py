"""A pool of hosts: a job runs alone on its host, counts once, and is repeated after trouble."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, Self

from benchrigor.control_characters import escaped
from benchrigor.errors import WorkloadFailed
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import show_duration
from benchrigor.workbench.pool.executors import Executor
from benchrigor.workbench.pool.leases import BEAT_S, HostBusy, Lease, LeaseTable
from benchrigor.workbench.pool.on_host import (
    BUSY,
    DONE,
    FREE,
    HOLD,
    LATE,
    LOST,
    REFUSED,
    Job,
    Outcome,
)

_LOOK_S = 1.0  # between two attempts to end jobs
_FREED_S = 30.0  # for the locks of all hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(OneLine):
    """One attempt to run a job.

    Parameters
    ----------
    host
        The host that ran it.
    outcome
        Its outcome.
    elapsed_s
        Seconds until the outcome was known.
    """

    host: str
    outcome: Outcome
    elapsed_s: float = 0.0

    def __str__(self) -> str:
        outcome = self.outcome
        why = outcome.failure or outcome.disturbed
        kind = "disturbed" if outcome.kind == DONE and outcome.disturbed else outcome.kind
        taken = outcome.taken_over_from
        took_over = f", taken over from {taken}, which gave no sign of life" if taken else ""
        why = f": {why}" if why else ""
        took = show_duration(self.elapsed_s)
        return escaped(f"{self.host}: {kind} after {took}{took_over}{why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDone(OneLine):
    """The final result of a job.

    Parameters
    ----------
    value
        The return value of its function; None after a ``failure``.
    failure
        Why there is no value; empty if there is one.
    host
        The host of the last attempt.
    attempts
        All attempts; the last one counts.
    """

    value: Any = None
    failure: str = ""
    host: str | None = None
    attempts: tuple[Attempt, ...] = ()

    def remarks(self) -> tuple[str, ...]:
        """List attempts that went wrong: all but the last, and the last one if disturbed."""
        return tuple(
            str(attempt)
            for attempt in self.attempts
            if attempt is not self.attempts[-1]
            or attempt.outcome.disturbed
            or attempt.outcome.taken_over_from
        )


class Pool:
    """Runs jobs on hosts, one per host at the same time; leaving ``with`` frees the hosts.

    A disturbed job is repeated once, and the second attempt counts. A lost job moves to another
    host, once; a host that loses two jobs in a row is dropped. A job that fails by itself is not
    repeated.

    Hosts that have had a job stay locked between jobs.

    Parameters
    ----------
    executor
        Runs the jobs.
    owner
        The run that the jobs belong to; it holds the hosts.
    within
        The number of the lease of a job that makes this pool on its own hosts: they are held from
        the beginning, and not freed at the end. None outside of a job.
    lock_folder
        Of the locks of hosts; None for their data folders.
    timed
        Whether jobs have a fixed start time: they are not repeated, and do not wait for quiet.
    limit_s
        Seconds after which an unfinished job counts as lost; None without a limit.
    began
        Called with the host and the arguments of an attempt when it begins.

    Examples
    --------
    >>> from benchrigor.workbench.fakes import FakeExecutor
    >>> with Pool(FakeExecutor(["elm", "oak"]), owner="a1b2") as pool:
    ...     jobs = [pool.submit("builtins:dict", {"number": number}) for number in range(3)]
    ...     [job.result().value for job in jobs]
    [{'number': 0}, {'number': 1}, {'number': 2}]
    """

    def __init__(
        self,
        executor: Executor,
        *,
        owner: str,
        within: int | None = None,
        lock_folder: str | None = None,
        timed: bool = False,
        limit_s: float | None = None,
        began: Callable[[str, Mapping[str, Any]], object] = lambda *_: None,
    ) -> None:
        self._executor, self._owner, self._lock_folder = executor, owner, lock_folder
        self._began, self._timed, self._limit_s = began, timed, limit_s
        self._is_within = within is not None
        self.table = LeaseTable(executor.hosts, owner=owner, within=within)
        self._lost_in_a_row = dict.fromkeys(executor.hosts, 0)
        self._held_s = dict.fromkeys(executor.hosts if self._is_within else (), -math.inf)  # since
        self._closed = Event()
        self._lock = Lock()  # of what is lost
        self._under_way: set[Future[JobDone]] = set()
        workers = max(len(executor.hosts), 1)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="pool")
        self._holder = Thread(target=self._hold_idle, daemon=True)
        self._holder.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(
        self,
        call: str,
        arguments: Mapping[str, Any],
        *,
        n_hosts: int = 1,
        among: Collection[str] | None = None,
        first: str | None = None,
    ) -> Future[JobDone]:
        """Have a function called as soon as its hosts are free.

        Parameters
        ----------
        call, arguments
            "module:function", and its arguments by name. ``hosts`` and ``lease``, if they are
            among these, become the hosts and the number of the lease.
        n_hosts
            The number of its hosts; it runs on the first of them. The others are locked when it
            begins; then the job keeps them by a pool ``within`` the lease.
        among, first
            The allowed hosts, and the required first one; None for any.

        Returns
        -------
        Future
            Of a `JobDone`. It raises HostBusy if a host works for another owner, and
            WorkloadFailed if too few hosts are left.
        """
        acquire = partial(self.table.acquire, n_hosts, among=among, first=first)
        done = self._threads.submit(self._done, call, arguments, acquire)
        self._under_way.add(done)
        done.add_done_callback(self._under_way.discard)
        return done

    def _done(
        self, call: str, arguments: Mapping[str, Any], acquire: Callable[..., Lease | None]
    ) -> JobDone:
        attempts: list[Attempt] = []
        while True:
            lease = acquire(rather_not=[attempt.host for attempt in attempts])
            if lease is None:
                raise WorkloadFailed(
                    "; ".join(["no host is left, or too few", *map(str, attempts[-1:])])
                )
            try:
                if self._closed.is_set():
                    return JobDone(failure="the pool is closed", attempts=tuple(attempts))
                attempts.append(self._try(lease, call, arguments))
            finally:
                self.table.release(lease)
            outcome = attempts[-1].outcome
            if outcome.kind == BUSY:
                raise HostBusy(outcome.failure)
            if outcome.kind == REFUSED:
                raise WorkloadFailed(outcome.failure)
            if outcome.kind == LATE:
                raise WorkloadFailed(f"{outcome.failure}: another process goes on with this run")
            is_again = outcome.kind == LOST or (outcome.kind == DONE and outcome.disturbed)
            if not is_again or len(attempts) > 1 or self._timed or self._closed.is_set():
                return JobDone(
                    value=outcome.value,
                    failure="" if outcome.kind == DONE else outcome.failure or outcome.kind,
                    host=attempts[-1].host,
                    attempts=tuple(attempts),
                )

    def _try(self, lease: Lease, call: str, arguments: Mapping[str, Any]) -> Attempt:
        host = lease.hosts[0]
        own = {"hosts": list(lease.hosts), "lease": lease.token.number}
        given = {name: own.get(name, value) for name, value in arguments.items()}
        self._began(host, given)
        begun_s = time.monotonic()
        self._held_s.update(dict.fromkeys(lease.hosts, math.inf))
        missed = self._hold_others(lease)
        outcome = missed or self._executor.submit(host, self._job(call, given, lease)).result()
        end_s = time.monotonic()
        self._held_s.update(dict.fromkeys(lease.hosts, end_s))
        if not self.table.is_current(lease.token):
            outcome = Outcome(kind=LATE, failure="it came after its lease had ended")
        if missed is None:
            self._count_lost(host, is_lost=outcome.kind == LOST)
        return Attempt(host=host, outcome=outcome, elapsed_s=end_s - begun_s)

    def _hold_others(self, lease: Lease) -> Outcome | None:
        """Lock the other hosts of a lease; return the outcome of the first failure."""
        asked = {host: self._hold(lease, host) for host in lease.hosts[1:]}
        for host, future in asked.items():
            self._count_lost(host, is_lost=future.result().kind == LOST)
        outcomes = [future.result() for future in asked.values()]
        return next((outcome for outcome in outcomes if outcome.kind != DONE), None)

    def _hold_idle(self) -> None:
        """Give signs of life on the hosts without a job."""
        while not self._closed.wait(BEAT_S):
            silent_s = time.monotonic() - BEAT_S
            for host in [name for name, held_s in [*self._held_s.items()] if held_s <= silent_s]:
                lease = self.table.acquire(among=[host], timeout_s=0.0)
                if lease is not None:

                    def release(_: Future[Outcome], lease: Lease = lease) -> None:
                        self.table.release(lease)

                    self._hold(lease, host).add_done_callback(release)

    def _hold(self, lease: Lease, host: str) -> Future[Outcome]:
        job = replace(self._job(HOLD, {}, lease), host=host, watched=False)
        return self._executor.submit(host, job)

    def _job(self, call: str, arguments: Mapping[str, Any], lease: Lease) -> Job:
        return Job(
            call=call,
            arguments=arguments,
            host=lease.hosts[0],
            token=lease.token,
            lock_folder=self._lock_folder,
            alone=self._executor.alone and not self._is_within,
            watched=self._executor.alone and not self._timed,
            limit_s=self._limit_s,
        )

    def _count_lost(self, host: str, *, is_lost: bool) -> None:
        with self._lock:
            self._lost_in_a_row[host] = self._lost_in_a_row[host] + 1 if is_lost else 0
            is_gone = self._lost_in_a_row[host] > 1
        if is_gone:
            self.table.drop(host)

    def close(self) -> None:
        """End running jobs, and free the hosts."""
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        while True:  # one may be about to begin
            self._executor.stop()
            if not wait([*self._under_way], timeout=_LOOK_S).not_done:
                break
        self._threads.shutdown(wait=True)
        self._holder.join()
        if not self._is_within:
            self._free()
        self._executor.close()

    def _free(self) -> None:
        """Free the hosts, whose jobs have ended."""
        freed = []
        for host in self._held_s:
            if (lease := self.table.acquire(among=[host], timeout_s=_LOOK_S)) is not None:
                given = {"host": host, "owner": self._owner, "folder": self._lock_folder}
                job = replace(self._job(FREE, given, lease), watched=False)
                freed.append(self._executor.submit(host, job))
        wait(freed, timeout=_FREED_S)
