"""Senders of the requests of a trial: processes of this machine, or hosts that send together."""

from __future__ import annotations

import base64
import os
import pickle
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import fields
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import codec
from benchrigor.model.series import Floats, short
from benchrigor.units import show_duration
from benchrigor.workbench.loadgen.sending import (
    ARRAYS,
    HttpRequest,
    HttpRequests,
    Requests,
    Send,
    Sent,
    merge,
    send_requests,
)
from benchrigor.workbench.on_host import LOST, Outcome
from benchrigor.workbench.pool import Pool
from benchrigor.workloads.processes.kinship import kill_when_closed

_LEAD_S = 0.1  # until the first time, once several processes are ready
_FILES_LEFT = 64  # descriptors for other files than connections
_MOST_WAITING = 20_000
_BUSY = 0.8  # of its processors: a generator that uses more takes further processes


class PartLost(WorkloadFailed):
    """A part of the requests was not sent: the trial did not measure the server."""


class ProcessSenders:
    """Sends from this process, or from several of this machine as soon as one is busy.

    Parameters
    ----------
    requests
        The requests to send.
    processes
        The minimum number; None begins with one.

    Raises
    ------
    InvalidInput
        For several processes if requests cannot be passed to them.
    """

    def __init__(self, requests: Requests | Send, processes: int | None = None) -> None:
        self.shares: Mapping[str, int] = {}
        self._processes = processes or 1
        alone = not _is_picklable(requests)  # then no further process can have them
        self._most_processes = 1 if alone else max(self._processes, os.cpu_count() or 1)
        if alone and self._processes > 1:
            raise InvalidInput(
                f"processes is {processes}, and {short(requests)} cannot be sent to others: "
                "expected a coroutine function of a module, or 1"
            )
        self._pool: ProcessPoolExecutor | None = None
        self._pooled = 0
        self._workers: set[BaseProcess] = set()

    def check(self, requests: Requests | Send) -> None:
        """Begin nothing: processes begin with the first trial that needs them."""

    def send(self, requests: Requests | Send, at_s: Floats, **limits: float) -> Sent:
        """Send requests at their times; if processes were busy, later from twice as many.

        PartLost when a process was killed; later trials begin new ones.
        ``limits`` are of `send_requests`: ``timeout_s`` and ``give_up_s``.
        """
        n = self._processes
        how: dict[str, Any] = {"most_waiting": max(most_connections() // n, 1), **limits}
        send: Callable[..., Sent] = partial(send_requests, requests, **how)
        found = send(at_s) if n == 1 else self._sent_by_several(requests, send, at_s)
        if found.cpu_s > _BUSY * n * found.elapsed_s:
            self._processes = min(2 * n, self._most_processes)
        return found

    def _sent_by_several(
        self, requests: Requests | Send, send: Callable[..., Sent], at_s: Floats
    ) -> Sent:
        n = self._processes
        try:  # a process may be killed at any moment, also before it is given anything
            if self._pool is None or self._pooled < n:
                self.close()
                self._pooled, before = n, set(active_children())
                self._pool = ProcessPoolExecutor(
                    n, mp_context=get_context("spawn"), initializer=_end_with_parent
                )
                try:
                    list(self._pool.map(partial(_ready, requests), range(n)))
                finally:
                    self._workers = set(active_children()) - before
            start_s = time.monotonic() + _LEAD_S
            parts = [self._pool.submit(send, at_s[i::n], start_s=start_s) for i in range(n)]
            return merge([part.result() for part in parts])
        except BaseException as error:  # their results are not wanted any more
            for worker in self._workers:
                worker.kill()
            self.close()
            if isinstance(error, BrokenExecutor):
                raise PartLost("a process of the load generator was killed") from error
            raise

    def close(self) -> None:
        """End the further processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _is_picklable(requests: object) -> bool:
    try:
        pickle.dumps(requests)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _end_with_parent() -> None:
    """Let this process end when its parent does, and by nothing that a terminal sends."""
    for name in ("SIGINT", "SIGHUP", "SIGQUIT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        kill_when_closed(parent.sentinel, os.getpid())


def _ready(requests: Requests | Send, _index: int) -> None:
    """Import and open the resources of requests, in a process that has just begun."""
    send_requests(requests, np.zeros(0), timeout_s=1.0)
    time.sleep(_LEAD_S)  # so that every process gets one


def most_connections() -> int:
    """Return the maximum number of open connections, after raising it to the allowed limit."""
    try:
        import resource  # noqa: PLC0415  # of POSIX
    except ImportError:
        return _MOST_WAITING
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_WAITING + _FILES_LEFT if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return min(max(soft - _FILES_LEFT, 1), _MOST_WAITING)


_FINITE_S = 1e9  # an infinite limit, in JSON
_SPARE_S, _TIMES = 0.3, 1.5  # lead of the start: the slowest host so far, times this, and a bit


class HostSenders:
    """Sends from n hosts of a pool; a host sends an n-th of one schedule, drawn at random.

    Before a trial all hosts receive its start, with a lead for the slowest. A lost host spoils the
    trial, and later trials continue without it. All hosts are held from the check until the end.

    Requests of independent users stay so when hosts do not start quite together, since parts drawn
    at random are independent, too. If hosts took turns, a start 50 ms too early or late would make
    arrivals more even, and peaks too high.

    Parameters
    ----------
    begin
        Makes the pool, with ``timed`` jobs; called when it is needed.
    is_kept
        Whether the pool stays open after `close`.
    """

    def __init__(self, begin: Callable[[], Pool], *, is_kept: bool = False) -> None:
        self._begin, self._is_kept = begin, is_kept
        self._pool: Pool | None = None
        self.shares: Mapping[str, int] = {}
        self._lead_s = 0.0

    def check(self, requests: Requests | Send) -> None:
        """Take all hosts, and open the resources of requests there.

        Raises
        ------
        InvalidInput
            When requests cannot be passed to another host.
        HostBusy
            When a host works for another owner.
        WorkloadFailed
            When a host cannot send.
        """
        if not isinstance(requests, HttpRequests):
            raise InvalidInput(f"requests is {short(requests)}, expected HttpRequests with hosts")
        if self._pool is not None:
            return
        self._pool = self._begin()
        given: dict[str, dict[str, Any]] = {host: {} for host in self._pool.hosts}
        for host, done in self._all_done("get_ready", given).items():
            if done.failure:
                raise WorkloadFailed(f"{host} cannot send: {done.failure}")
            self._lead_s = max(self._lead_s, _lead_for(done.elapsed_s))

    def send(self, requests: Requests | Send, at_s: Floats, **limits: float) -> Sent:
        """Send requests at their times, shared among hosts; PartLost if a host did not send.

        ``limits`` are as of `ProcessSenders`.
        """
        self.check(requests)
        assert isinstance(requests, HttpRequests)  # noqa: S101  # it was checked
        assert self._pool is not None  # noqa: S101  # it was made
        hosts = self._pool.hosts
        if not hosts:
            raise WorkloadFailed("no host is left that sends")
        finite = {name: min(limit, _FINITE_S) for name, limit in limits.items()}
        shared: dict[str, Any] = {"requests": codec.encode(requests), **finite}
        whose = np.random.default_rng(at_s.size).permutation(at_s.size) % len(hosts)
        parts = {host: at_s[whose == index] for index, host in enumerate(hosts)}
        self.shares = {host: part.size for host, part in parts.items()}
        shared["start_s"] = time.monotonic() + self._lead_s
        given = {host: shared | {"at_s": _pack(part)} for host, part in parts.items()}
        found = self._all_done("send_part", given)
        lost = [host for host, done in found.items() if done.kind == LOST]
        for host in lost:
            self._pool.drop(host)
        if lost:
            why = "; ".join(found[host].failure for host in lost)
            raise PartLost(
                f"{' and '.join(lost)} {'was' if len(lost) == 1 else 'were'} lost: {why}"
            )
        if failed := [f"{host}: {done.failure}" for host, done in found.items() if done.failure]:
            raise WorkloadFailed("; ".join(failed))
        return self._together({host: done.value for host, done in found.items()})

    def _together(self, values: Mapping[str, Mapping[str, Any]]) -> Sent:
        """Return the results of all hosts, and learn the lead that they need before a start."""
        spare_s = {host: value["spare_s"] for host, value in values.items()}
        host, least_s = min(spare_s.items(), key=lambda pair: pair[1])
        self._lead_s = _lead_for(self._lead_s - least_s)
        if least_s < 0.0:
            raise PartLost(f"{host} was ready {show_duration(-least_s)} after the start")
        return merge([_sent_of(**value) for value in values.values()])

    def _all_done(self, name: str, given: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
        """Have a function of this module called on hosts at the same time."""
        assert self._pool is not None  # noqa: S101  # the caller has begun it
        jobs: dict[str, Future[Outcome]] = {
            host: self._pool.submit(f"{__name__}:{name}", arguments, first=host)
            for host, arguments in given.items()
        }
        return {host: job.result() for host, job in jobs.items()}

    def close(self) -> None:
        """Release the hosts."""
        if self._pool is not None and not self._is_kept:
            self._pool.close()
        self._pool = None


Senders = ProcessSenders | HostSenders
"""Sends requests once, at times that were drawn beforehand, from any of its places."""


def _lead_for(needed_s: float) -> float:
    return _SPARE_S + _TIMES * max(needed_s, 0.0)


def get_ready() -> int:
    """Open the resources of requests; return the maximum number of connections of this host."""
    nothing = HttpRequests(kinds=[HttpRequest(url="http://127.0.0.1/")])
    send_requests(nothing, np.zeros(0), timeout_s=1.0)
    return most_connections()


def send_part(
    *, requests: Mapping[str, Any], at_s: str, start_s: float, **limits: float
) -> dict[str, Any]:
    """Send requests on this host, from ``start_s`` by its monotonic clock on.

    ``limits`` are of `send_requests`: ``timeout_s`` and ``give_up_s``.

    Returns
    -------
    dict
        The seconds between readiness and start, and the results of requests unless it was too late.
    """
    kinds = [HttpRequest(**kind) for kind in requests["kinds"]]
    most = get_ready()
    spare_s = start_s - time.monotonic()
    if spare_s < 0.0:
        return {"spare_s": spare_s}
    asked, how = HttpRequests(kinds=kinds, seed=requests["seed"]), {"start_s": start_s, **limits}
    found = send_requests(asked, _floats(at_s), most_waiting=most, **how)
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    columns = _pack([values.pop(name) for name in ARRAYS])
    return {"spare_s": spare_s, "sent": values, "columns": columns}


def _pack(numbers: npt.ArrayLike) -> str:
    """Return numbers as text: as lists 10^5 of them would take JSON ten times as long."""
    return base64.b64encode(np.asarray(numbers, dtype="<f8").tobytes()).decode()


def _floats(packed: str) -> Floats:
    return np.frombuffer(base64.b64decode(packed), dtype="<f8").astype(np.float64)


def _sent_of(*, sent: Mapping[str, Any], columns: str, **_: object) -> Sent:
    arrays: dict[str, Any] = dict(
        zip(ARRAYS, _floats(columns).reshape(len(ARRAYS), -1), strict=True)
    )
    arrays["failed"] = arrays["failed"] > 0.0
    return Sent(**{**sent, **arrays, "failures": Counter(sent["failures"])})
