"""A pool: each job alone on its host, none counted twice, what was disturbed or lost again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Self

from benchrigor.control_characters import escaped
from benchrigor.errors import WorkloadFailed
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import show_duration
from benchrigor.workbench.pool.executors import Executor
from benchrigor.workbench.pool.host_lock import STALE_S, HostBusy
from benchrigor.workbench.pool.leases import Lease, LeaseTable, Token
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

_LOOK_S = 1.0  # from one time that jobs are ended to the next
_FREED_S = 30.0  # for the locks of all hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(OneLine):
    """One time that a job was tried.

    Parameters
    ----------
    host
        Where.
    outcome
        What became of it.
    elapsed_s
        Seconds until that was known.
    offset_s, offset_error_s
        By how much the clock of the host is ahead of this one, and by how much that may be wrong
        (the midpoint of the round trip, Mills 1991).
    """

    host: str
    outcome: Outcome
    elapsed_s: float = 0.0
    offset_s: float | None = None
    offset_error_s: float | None = None

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
    """What a job found in the end.

    Parameters
    ----------
    value
        What its function returned; None where there is a ``failure``.
    failure
        Why there is no value; empty if there is one.
    host
        Where it was found.
    attempts
        All of them, the last of which counts.
    """

    value: Any = None
    failure: str = ""
    host: str | None = None
    attempts: tuple[Attempt, ...] = ()

    def remarks(self) -> tuple[str, ...]:
        """Say what did not go as it should: attempts but the last, and that if it was disturbed."""
        return tuple(
            str(attempt)
            for attempt in self.attempts
            if attempt is not self.attempts[-1]
            or attempt.outcome.disturbed
            or attempt.outcome.taken_over_from
        )


class Pool:
    """Has jobs done on hosts, as many at the same time as there are hosts; ``with`` frees them.

    A job that others disturbed is done again, once, and the second time counts. One that was lost
    goes to another host, once; a host that lost two in a row is left out. A job that fails by
    itself is not done again.

    Parameters
    ----------
    executor
        What runs jobs.
    owner
        The run that they are of, which holds the hosts.
    lock_folder
        Of the locks of hosts; None for their data folders.
    timed
        Whether jobs are for a certain time: none is repeated, nor waits until others are quiet.
    budget_host_s
        Seconds of hosts, all together, after which no attempt begins; None for no limit.
    deadline_s
        Seconds from now on after which none does; None for no limit.
    began
        Called with the host and the arguments of each attempt that begins.

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
        lock_folder: str | None = None,
        timed: bool = False,
        budget_host_s: float | None = None,
        deadline_s: float | None = None,
        began: Callable[[str, Mapping[str, Any]], object] = lambda *_: None,
    ) -> None:
        self._executor, self._owner, self._lock_folder = executor, owner, lock_folder
        self._began, self._timed = began, timed
        self._left_host_s = math.inf if budget_host_s is None else budget_host_s
        self._until_s = time.monotonic() + (math.inf if deadline_s is None else deadline_s)
        self.table = LeaseTable(executor.hosts, owner=owner)
        self._lost_in_a_row = dict.fromkeys(executor.hosts, 0)
        self._used: set[str] = set()
        self._is_closed = False
        self._lock = Lock()  # of what is left, and of what is lost
        self._under_way: set[Future[JobDone]] = set()
        workers = max(len(executor.hosts), 1)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="pool")

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
    ) -> Future[JobDone]:
        """Have a function called as soon as its hosts are free.

        Parameters
        ----------
        call, arguments
            "module:function", and what it takes, by name. ``arguments["hosts"]`` becomes the hosts
            of its lease, if it is there.
        n_hosts
            How many hosts it holds; it runs on the first of them.
        among
            Which they may be; None for any.

        Returns
        -------
        Future
            Of a `JobDone`. It raises HostBusy where a host works for somebody else, and
            WorkloadFailed where not enough hosts are left.
        """
        done = self._threads.submit(self._done, call, arguments, n_hosts, among)
        self._under_way.add(done)
        done.add_done_callback(self._under_way.discard)
        return done

    def _done(
        self, call: str, arguments: Mapping[str, Any], n_hosts: int, among: Collection[str] | None
    ) -> JobDone:
        attempts: list[Attempt] = []
        while True:
            lease = self._lease(n_hosts, among, [attempt.host for attempt in attempts])
            if lease is None:
                raise WorkloadFailed(_no_host(attempts))
            try:
                if over := self._over():
                    return JobDone(failure=over, attempts=tuple(attempts))
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
            if not is_again or len(attempts) > 1 or self._timed or self._is_closed:
                failure = "" if outcome.kind == DONE else outcome.failure or outcome.kind
                host = attempts[-1].host
                told = tuple(attempts)
                return JobDone(value=outcome.value, failure=failure, host=host, attempts=told)

    def _over(self) -> str:
        """Return why no attempt begins any more; empty while they do."""
        if self._is_closed:
            return "the pool is closed"
        if time.monotonic() >= self._until_s:
            return "the deadline is over, and no attempt begins after it"
        return "" if self._left_host_s > 0.0 else "the budget of host seconds is spent"

    def _lease(
        self, n_hosts: int, among: Collection[str] | None, before: Collection[str]
    ) -> Lease | None:
        """Wait for hosts, others than those of before where there are any."""
        wanted = [name for name in self.table.hosts if among is None or name in among]
        others = [name for name in wanted if name not in before]
        if before and len(others) >= n_hosts:
            return self.table.acquire(n_hosts, among=others)
        return self.table.acquire(n_hosts, among=None if among is None else wanted)

    def _try(self, lease: Lease, call: str, arguments: Mapping[str, Any]) -> Attempt:
        host = lease.hosts[0]
        given = dict(arguments) | ({"hosts": list(lease.hosts)} if "hosts" in arguments else {})
        self._began(host, given)
        self._used.update(lease.hosts)
        job = self._job(call, given, host, lease.token)
        begun_s, sent_s = time.monotonic(), time.time()
        held = self._held(lease, job)
        outcome = held or self._outcome(lease, job)
        got_s, elapsed_s = time.time(), time.monotonic() - begun_s
        with self._lock:
            self._left_host_s -= elapsed_s * len(lease.hosts)
        if not self.table.is_current(lease.token):
            outcome = Outcome(kind=LATE, failure="it came after its lease had ended")
        if held is None:
            self._count_lost(host, is_lost=outcome.kind == LOST)
        attempt = Attempt(host=host, outcome=outcome, elapsed_s=elapsed_s)
        if not outcome.received_s:
            return attempt
        there = outcome.received_s - sent_s, outcome.sent_s - got_s
        round_trip_s = (got_s - sent_s) - (outcome.sent_s - outcome.received_s)
        return replace(attempt, offset_s=sum(there) / 2, offset_error_s=round_trip_s / 2)

    def _outcome(self, lease: Lease, job: Job) -> Outcome:
        """Wait for a job, and hold the other hosts of its gang meanwhile."""
        future = self._executor.submit(job.host, job)
        while wait([future], timeout=STALE_S / 3).not_done:
            self._held(lease, job)
        return future.result()

    def _held(self, lease: Lease, job: Job) -> Outcome | None:
        """Lock the other hosts of a gang; return what became of the first that is not held."""
        holds = [replace(job, call=HOLD, arguments={}, host=name) for name in lease.hosts[1:]]
        asked = [self._executor.submit(hold.host, replace(hold, alone=False)) for hold in holds]
        outcomes = [future.result() for future in asked]
        for hold, outcome in zip(holds, outcomes, strict=True):
            self._count_lost(hold.host, is_lost=outcome.kind == LOST)
        return next((outcome for outcome in outcomes if outcome.kind != DONE), None)

    def _job(self, call: str, arguments: Mapping[str, Any], host: str, token: Token) -> Job:
        return Job(
            call=call,
            arguments=arguments,
            host=host,
            token=token,
            lock_folder=self._lock_folder,
            alone=self._executor.alone and not self._timed,
        )

    def _count_lost(self, host: str, *, is_lost: bool) -> None:
        with self._lock:
            self._lost_in_a_row[host] = self._lost_in_a_row[host] + 1 if is_lost else 0
            is_gone = self._lost_in_a_row[host] > 1
        if is_gone:
            self.table.drop(host)

    def close(self) -> None:
        """End what is under way, and let go of the hosts."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        while True:  # one may be about to begin
            self._executor.stop()
            if not wait([*self._under_way], timeout=_LOOK_S).not_done:
                break
        self._threads.shutdown(wait=True)
        self._free()
        self._executor.close()

    def _free(self) -> None:
        """Let go of the hosts, on which nothing runs any more."""
        freed = []
        for host in self.table.free():
            if host in self._used:
                given = {"host": host, "owner": self._owner, "folder": self._lock_folder}
                token = Token(owner=self._owner, number=time.time_ns() // 1_000)
                job = self._job(FREE, given, host, token)
                freed.append(self._executor.submit(host, replace(job, alone=False)))
        wait(freed, timeout=_FREED_S)


def _no_host(attempts: Collection[Attempt]) -> str:
    last = [str(attempt) for attempt in attempts][-1:]
    return "; ".join(["no host is left", *last])
