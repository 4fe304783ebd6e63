"""Senders of the requests of a trial: processes of this machine, or others in their place."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Protocol

import numpy as np

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model.series import Floats, short
from benchrigor.workbench.loadgen.sending import Requests, Send, Sent, merge, send_requests
from benchrigor.workloads.processes.kinship import kill_when_closed

_LEAD_S = 0.1  # until the first time, once several processes are ready
_FILES_LEFT = 64  # descriptors for other files than connections
_MOST_WAITING = 20_000
_BUSY = 0.8  # of its processors: a generator that uses more takes further processes


class PartLost(WorkloadFailed):
    """A part of the requests was not sent: the trial did not measure the server."""


class Senders(Protocol):
    """Sends requests once, at times that were drawn beforehand, from any of its places."""

    @property
    def shares(self) -> Mapping[str, int]:
        """The numbers of requests of the last trial that other hosts were given."""

    def check(self, requests: Requests | Send) -> None:
        """Start the senders; WorkloadFailed if they cannot send."""

    def send(
        self, requests: Requests | Send, at_s: Floats, *, timeout_s: float, give_up_s: float
    ) -> Sent:
        """Send requests at their times, ascending, and wait for their results.

        PartLost if some were not sent for reasons other than the server; see also `send_requests`.
        """

    def close(self) -> None:
        """Release the senders."""


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

    def send(
        self, requests: Requests | Send, at_s: Floats, *, timeout_s: float, give_up_s: float
    ) -> Sent:
        """Send requests at their times; if processes were busy, later from twice as many."""
        n = self._processes
        send = partial(
            send_requests,
            requests,
            timeout_s=timeout_s,
            most_waiting=max(most_connections() // n, 1),
            give_up_s=give_up_s,
        )
        found = send(at_s) if n == 1 else self._sent_by_several(requests, send, at_s)
        if found.cpu_s > _BUSY * n * found.elapsed_s:
            self._processes = min(2 * n, self._most_processes)
        return found

    def _sent_by_several(
        self, requests: Requests | Send, send: partial[Sent], at_s: Floats
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
        except BaseException as error:  # their results are no longer wanted
            for worker in self._workers:
                worker.kill()
            self.close()
            if isinstance(error, BrokenExecutor):
                raise WorkloadFailed("a process of the load generator was killed") from error
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
    send_requests(requests, np.zeros(0), timeout_s=1.0, most_waiting=1)
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
