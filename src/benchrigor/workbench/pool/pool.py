"""A pool of hosts: a job runs alone on its host, counts once, and is repeated after trouble."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, Self

from benchrigor.errors import WorkloadFailed
from benchrigor.workbench.pool.executors import Executor
from benchrigor.workbench.pool.leases import BEAT_S, HostBusy, LeaseTable, Token
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
        self._under_way: set[Future[Outcome]] = set()
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
    ) -> Future[Outcome]:
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
            Of the last `Outcome`, with the host and earlier attempts. It raises HostBusy if a host
            works for another owner, and WorkloadFailed if too few hosts are left.
        """
        acquire = partial(self.table.acquire, n_hosts, among=among, first=first)
        done = self._threads.submit(self._done, call, arguments, acquire)
        self._under_way.add(done)
        done.add_done_callback(self._under_way.discard)
        return done

    def _done(
        self, call: str, arguments: Mapping[str, Any], acquire: Callable[..., Token | None]
    ) -> Outcome:
        attempts: list[Outcome] = []
        while True:
            token = acquire(rather_not=[attempt.host for attempt in attempts])
            if token is None:
                said = ["no host is left, or too few", *map(str, attempts[-1:])]
                raise WorkloadFailed("; ".join(said))
            try:
                if self._closed.is_set():
                    return Outcome(
                        kind=LOST, failure="the pool is closed", earlier=(*map(str, attempts),)
                    )
                attempts.append(self._try(token, call, arguments))
            finally:
                self.table.release(token)
            outcome = attempts[-1]
            if outcome.kind == BUSY:
                raise HostBusy(outcome.failure)
            if outcome.kind == REFUSED:
                raise WorkloadFailed(outcome.failure)
            if outcome.kind == LATE:
                raise WorkloadFailed(f"{outcome.failure}: another process goes on with this run")
            is_again = outcome.kind == LOST or (outcome.kind == DONE and outcome.disturbed)
            if not is_again or len(attempts) > 1 or self._timed or self._closed.is_set():
                spent_s = sum(attempt.elapsed_s for attempt in attempts)
                return replace(outcome, earlier=(*map(str, attempts[:-1]),), spent_s=spent_s)

    def _try(self, token: Token, call: str, arguments: Mapping[str, Any]) -> Outcome:
        host = token.hosts[0]
        own = {"hosts": list(token.hosts), "lease": token.number}
        given = {name: own.get(name, value) for name, value in arguments.items()}
        self._began(host, given)
        begun_s = time.monotonic()
        self._held_s.update(dict.fromkeys(token.hosts, math.inf))
        missed = self._hold_others(token)
        outcome = missed or self._executor.submit(host, self._job(call, given, token)).result()
        end_s = time.monotonic()
        self._held_s.update(dict.fromkeys(token.hosts, end_s))
        if not self.table.is_current(token):
            outcome = Outcome(kind=LATE, failure="it came after its lease had ended")
        if missed is None:
            self._count_lost(host, is_lost=outcome.kind == LOST)
        failure = outcome.failure or ("" if outcome.kind == DONE else outcome.kind)
        return replace(outcome, host=host, elapsed_s=end_s - begun_s, failure=failure)

    def _hold_others(self, token: Token) -> Outcome | None:
        """Lock the other hosts of a lease; return the outcome of the first failure."""
        asked = {host: self._hold(token, host) for host in token.hosts[1:]}
        outcomes = {host: future.result() for host, future in asked.items()}
        for host, outcome in outcomes.items():
            self._count_lost(host, is_lost=outcome.kind == LOST)
        return next((one for one in outcomes.values() if one.kind != DONE), None)

    def _hold_idle(self) -> None:
        """Give signs of life on the hosts without a job."""
        while not self._closed.wait(BEAT_S):
            silent_s = time.monotonic() - BEAT_S
            for host in [name for name, held_s in [*self._held_s.items()] if held_s <= silent_s]:
                token = self.table.acquire(among=[host], timeout_s=0.0)
                if token is not None:
                    release = partial(self._release, token)
                    self._hold(token, host).add_done_callback(release)

    def _release(self, token: Token, _: Future[Outcome]) -> None:
        self.table.release(token)

    def _hold(self, token: Token, host: str) -> Future[Outcome]:
        job = replace(self._job(HOLD, {}, token), host=host, watched=False)
        return self._executor.submit(host, job)

    def _job(self, call: str, arguments: Mapping[str, Any], token: Token) -> Job:
        return Job(
            call=call,
            arguments=arguments,
            host=token.hosts[0],
            token=token,
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
            if (token := self.table.acquire(among=[host], timeout_s=_LOOK_S)) is not None:
                given = {"host": host, "owner": self._owner, "folder": self._lock_folder}
                job = replace(self._job(FREE, given, token), watched=False)
                freed.append(self._executor.submit(host, job))
        wait(freed, timeout=_FREED_S)
