"""A pool of hosts: a job runs alone on its host, counts once, and is repeated after trouble.

A `HostTable` has the hosts that a file names, and the way to reach them.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from threading import Condition, Event, Thread
from typing import Any, Self

from benchrigor.errors import WorkloadFailed
from benchrigor.model.checks import refuse
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
from benchrigor.model.toml_tables import TomlTables, list_of, words_of
from benchrigor.workbench import on_host
from benchrigor.workbench.executors import DaskExecutor, Executor, LocalExecutor
from benchrigor.workbench.on_host import DONE, LOST, HostBusy, Job, Outcome, Token
from benchrigor.workbench.settings import HOSTS, wrong_hosts

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
    >>> from benchrigor.workbench.executors import FakeExecutor
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
        self._began, self._timed = began, timed
        self._is_within, self._number = within is not None, within or 0
        alone = executor.alone and not self._is_within
        self._job = partial(Job, lock_folder=lock_folder, alone=alone, limit_s=limit_s)
        self._hosts = list(executor.hosts)
        self._used: dict[str, Token] = {}
        self._lost_in_a_row = Counter[str]()
        self._waiting: dict[object, Collection[str]] = {}  # the hosts they may need, in order
        self._changed = Condition()  # hosts in use or lost
        self._held_s = dict.fromkeys(executor.hosts if self._is_within else (), -math.inf)  # since
        self._closed = Event()
        self._under_way: set[Future[Outcome]] = set()
        workers = max(len(executor.hosts), 1)
        # As many may wait for a certain host, and hold up no others.
        self._threads = ThreadPoolExecutor(2 * workers, thread_name_prefix="pool")
        self._locks = ThreadPoolExecutor(workers, thread_name_prefix="lock")
        self._holder = Thread(target=self._hold_idle, daemon=True)
        self._holder.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that are not lost."""
        return tuple(self._hosts)

    def submit(
        self,
        call: str,
        arguments: Mapping[str, Any],
        *,
        n_hosts: int = 1,
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
        first
            The required first host; None for any.

        Returns
        -------
        Future
            Of the last `Outcome`, with the host and earlier attempts. It raises HostBusy if a host
            works for another owner, and WorkloadFailed if too few hosts are left; a job that needs
            the ``first`` is lost with it.
        """
        done = self._threads.submit(self._done, call, arguments, n_hosts, first)
        self._under_way.add(done)
        done.add_done_callback(self._under_way.discard)
        return done

    def _done(
        self, call: str, arguments: Mapping[str, Any], n_hosts: int, first: str | None
    ) -> Outcome:
        attempts: list[Outcome] = []
        while True:
            before = [attempt.host for attempt in attempts]
            token = self._acquire(n_hosts, first=first, rather_not=before)
            if token is None:
                said = "; ".join(["no host is left, or too few", *map(str, attempts[-1:])])
                if first is None:
                    raise WorkloadFailed(said)
                return _together([*attempts, Outcome(kind=LOST, failure=said, host=first)])
            try:
                if self._closed.is_set():
                    closed = Outcome(kind=LOST, failure="the pool is closed")
                    return _together([*attempts, closed])
                attempts.append(self._try(token, call, arguments))
            finally:
                self._release(token)
            outcome = attempts[-1]
            if outcome.kind == on_host.BUSY:
                raise HostBusy(outcome.failure)
            if outcome.kind == on_host.REFUSED:
                raise WorkloadFailed(outcome.failure)
            if outcome.kind == on_host.LATE:
                raise WorkloadFailed(f"{outcome.failure}: another process goes on with this run")
            is_again = outcome.kind == LOST or (outcome.kind == DONE and outcome.disturbed)
            if not is_again or len(attempts) > 1 or self._timed or self._closed.is_set():
                return _together(attempts)

    def _acquire(
        self,
        n: int = 1,
        *,
        first: str | None = None,
        rather_not: Collection[str] = (),
        timeout_s: float | None = None,
    ) -> Token | None:
        """Wait for all hosts of a job at once: so two jobs never wait for each other.

        The longest waiting job is served first: later ones do not take hosts that it may need,
        except those that do not wait. Return None after the time limit, or if too few hosts are
        left. Hosts of ``rather_not``, apart from ``first``, are avoided if there are enough others.
        """
        me = object()

        def lease() -> tuple[Token | None, ...]:
            others = [name for name in self._hosts if name == first or name not in rather_not]
            wanted = others if len(others) >= n else self._hosts
            if len(wanted) < n or first not in {None, *wanted}:
                return (None,)
            before_me = [*takewhile(lambda waiting: waiting is not me, self._waiting)]
            kept = () if timeout_s == 0.0 else [self._waiting[waiting] for waiting in before_me]
            free = [name for name in wanted if name not in {*self._used}.union(*kept)]
            free.sort(key=lambda name: name != first)
            is_enough = len(free) >= n and first in {None, free[0]}
            return (self._lease(tuple(free[:n])),) if is_enough else ()

        with self._changed:
            is_one = first is not None and n == 1
            self._waiting[me] = [str(first)] if is_one else self._executor.hosts
            try:
                return next(iter(self._changed.wait_for(lease, timeout_s)), None)
            finally:
                del self._waiting[me]
                self._changed.notify_all()

    def _lease(self, names: tuple[str, ...]) -> Token:
        """Lease hosts; numbers within an outer lease are smaller than of later outer ones."""
        now = 0 if self._is_within else time.time_ns() // 1_000  # greater than all earlier numbers
        self._number = max(self._number + 1, now)
        token = Token(owner=self._owner, number=self._number, hosts=names)
        self._used |= dict.fromkeys(names, token)
        return token

    def _release(self, token: Token) -> None:
        with self._changed:
            self._used = {name: used for name, used in self._used.items() if used != token}
            self._changed.notify_all()

    def drop(self, host: str) -> None:
        """Leave out a host that was lost."""
        with self._changed:
            self._hosts = [name for name in self._hosts if name != host]
            self._changed.notify_all()

    def _try(self, token: Token, call: str, arguments: Mapping[str, Any]) -> Outcome:
        host = token.hosts[0]
        own = {"hosts": list(token.hosts), "lease": token.number}
        given = {name: own.get(name, value) for name, value in arguments.items()}
        self._began(host, given)
        begun_s = time.monotonic()
        self._held_s.update(dict.fromkeys(token.hosts, math.inf))
        outcome = self._hold_others(token)
        if outcome is None:
            watched = self._executor.alone and not self._timed
            job = self._job(call=call, arguments=given, host=host, token=token, watched=watched)
            outcome = self._executor.run(host, job)
            self._count_lost(host, outcome)
        end_s = time.monotonic()
        self._held_s.update(dict.fromkeys(token.hosts, end_s))
        failure = outcome.failure or ("" if outcome.kind == DONE else outcome.kind)
        at = outcome.host or host
        return replace(outcome, host=at, elapsed_s=end_s - begun_s, failure=failure)

    def _hold_others(self, token: Token) -> Outcome | None:
        """Lock the other hosts of a lease; return the outcome of the first failure."""
        asked = {host: self._hold(token, host) for host in token.hosts[1:]}
        outcomes = {host: future.result() for host, future in asked.items()}
        for host, outcome in outcomes.items():
            self._count_lost(host, outcome)
        failed = (replace(one, host=host) for host, one in outcomes.items() if one.kind != DONE)
        return next(failed, None)

    def _hold_idle(self) -> None:
        """Give signs of life on the hosts without a job."""
        while not self._closed.wait(on_host.BEAT_S):
            silent_s = time.monotonic() - on_host.BEAT_S
            for host in [name for name, held_s in [*self._held_s.items()] if held_s <= silent_s]:
                token = self._acquire(first=host, timeout_s=0.0)
                if token is not None:
                    held = self._hold(token, host)
                    held.add_done_callback(partial(lambda token, _: self._release(token), token))

    def _hold(self, token: Token, host: str) -> Future[Outcome]:
        return self._lock(on_host.HOLD, {}, token, host)

    def _lock(
        self, call: str, arguments: Mapping[str, Any], token: Token, host: str
    ) -> Future[Outcome]:
        """Begin a job that is only about the lock of a host."""
        job = self._job(call=call, arguments=arguments, host=host, token=token, watched=False)
        return self._locks.submit(self._executor.run, host, job)

    def _count_lost(self, host: str, outcome: Outcome) -> None:
        with self._changed:
            self._lost_in_a_row[host] = (self._lost_in_a_row[host] + 1) * (outcome.kind == LOST)
        if self._lost_in_a_row[host] > 1:
            self.drop(host)

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
        self._executor.stop()  # also what holds idle hosts
        if not self._is_within:
            self._free()
        self._executor.stop()
        self._locks.shutdown(wait=True, cancel_futures=True)  # else it might lock them again
        self._executor.close()

    def _free(self) -> None:
        """Free the hosts after their jobs."""
        freed = []
        for host in self._held_s:
            if (token := self._acquire(first=host, timeout_s=_FREED_S)) is not None:
                given = {"host": host, "owner": self._owner, "folder": self._lock_folder}
                freed.append(self._lock(on_host.FREE, given, token, host))
        wait(freed, timeout=_FREED_S)


def _together(attempts: Sequence[Outcome]) -> Outcome:
    """Return the last outcome, with the earlier attempts and the seconds of all."""
    spent_s = sum(attempt.elapsed_s for attempt in attempts)
    return replace(attempts[-1], earlier=(*map(str, attempts[:-1]),), spent_s=spent_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTable(OneLine):
    """The hosts of a map; a host measures one sample at a time.

    Parameters
    ----------
    names
        Of the hosts; with a scheduler, of its workers, and all of them by default.
    prefix
        Words that run a command on a host, with a place for its name: ``ssh {host}``. Without it,
        and without a scheduler, all hosts are this machine.
    scheduler
        Address of a Dask scheduler.
    python
        The interpreter on the hosts; None for the path of this one.
    cwd
        The folder on the hosts; None for the path of this one.
    interchangeable
        Whether hosts are similar enough to exchange samples freely.
    generators
        The number of further hosts of a sample, which send its requests.
    deadline_s
        Seconds after which no sample begins; None without a limit.
    limit_s
        Seconds after which an unfinished sample counts as lost; None for the budget, or a day.
    """

    names: Sequence[str] = ()
    prefix: Sequence[str] = ()
    scheduler: str | None = None
    python: str | None = None
    cwd: str | None = None
    interchangeable: bool = False
    generators: int = 0
    deadline_s: float | None = None
    limit_s: float | None = None

    @property
    def are_alike(self) -> bool:
        """Whether hosts have no effects of their own: by option, or as all are this machine."""
        return self.interchangeable or self.is_here

    @property
    def is_here(self) -> bool:
        """Whether all hosts are this machine, and write their results into its store."""
        return not self.prefix and self.scheduler is None

    @property
    def at_once(self) -> int:
        """The number of samples at the same time, by the number of names."""
        return max(1, len(self.names) // (1 + self.generators))


prefix_of = partial(words_of, instead="put it into a script")
"""Reads the words that run a command on a host."""


def read_hosts(tables: TomlTables) -> HostTable | None:
    """Read the table ``hosts`` of a file, and note its problems; None without a table."""
    if not isinstance(tables.at("hosts"), Mapping):
        return None
    given = tables.settings(("hosts",), HOSTS, {"names": list_of, "prefix": prefix_of})
    return tables.attempt(("hosts",), hosts_of, given)


def hosts_of(given: Mapping[str, Any]) -> HostTable:
    """Make the table of hosts that are given; InvalidInput with all problems."""
    refuse(wrong_hosts("names", given.get("names", ())), _wrong_ways(given))
    return HostTable(**given)


def _wrong_ways(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of the ways to hosts."""
    n_hosts = len(given.get("names", ()))
    if not n_hosts and "scheduler" not in given:
        yield "neither names of hosts nor a scheduler is given, expected one of them"
    if n_hosts in range(1, 1 + given.get("generators", 0)):
        yield f"generators is {given['generators']}, expected fewer than hosts: {n_hosts}"
    if "scheduler" in given and {*given} & {"prefix", "python"}:
        yield "scheduler goes with neither prefix nor python: its workers run already"
    if "prefix" in given and not any("{host}" in word for word in given["prefix"]):
        yield f"prefix is {short(given['prefix'])}, expected a place for the name: {{host}}"


def executor_for(hosts: HostTable) -> Executor:
    """Return the executor of jobs on the hosts."""
    if hosts.scheduler is not None:
        return DaskExecutor(hosts.scheduler, hosts=hosts.names or None)
    return LocalExecutor(hosts.names, prefix=hosts.prefix, python=hosts.python)
