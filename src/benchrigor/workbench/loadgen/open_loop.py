"""The load generator: offers a rate to a server, whatever becomes of earlier requests."""

from __future__ import annotations

import math
import os
import pickle
import signal
import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess

import numpy as np

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model.checks import is_number, refuse, wrong_choice, wrong_number, wrong_whole
from benchrigor.model.series import short
from benchrigor.workbench.data import FAILED, Limit, LoadResult, LoadTrial
from benchrigor.workbench.loadgen.arrivals import ARRIVALS, arrival_times
from benchrigor.workbench.loadgen.judging import judged
from benchrigor.workbench.loadgen.sending import Requests, Send, Sent, merged, sent
from benchrigor.workloads.processes.kinship import kill_when_closed

_LEAD_S = 0.1  # until the first time, once several processes are ready
_FILES_LEFT = 64  # descriptors for what is no connection
_MOST_WAITING = 20_000
_MOST_REQUESTS = 2e7  # of a trial
_TIMEOUT_S, _LIMITS = 10.0, 3.0  # of requests: seconds, or times the greatest limit
_HOPELESS = 20.0  # times the limit: a trial whose requests wait so long need not go on
_BUSY = 0.8  # of its processors: a generator that uses more takes further processes
_RECOVERY_S, _LOOK_S = 30.0, 0.2  # until a server answers again, and from look to look


class OpenLoop:
    """Offers requests at a rate, as users do who know nothing of each other.

    Their times are drawn beforehand; response times count from there. Where one process is not
    enough further ones join in, as many as there are processors.

    Parameters
    ----------
    requests
        What is sent: `HttpRequests`, or a coroutine function without arguments that sends one
        request and raises where it fails; it may return an `Answer`. Several processes need one of
        a module.
    limits
        What the server must keep: they tell which quantiles are needed, and of how many requests.
    arrivals
        "poisson" or "constant".
    timeout_s
        Seconds after which a request has failed, more than each limit; None for 10, or three times
        the greatest limit.
    processes
        How many at least; None begins with one.
    seed
        Of the times.

    Raises
    ------
    InvalidInput
        When one of these is out of range.
    """

    def __init__(
        self,
        requests: Requests | Send,
        limits: Sequence[Limit] = (),
        *,
        arrivals: str = "poisson",
        timeout_s: float | None = None,
        processes: int | None = None,
        seed: int = 1,
    ) -> None:
        seconds = [most for each in limits for most in each.times.values()]
        if timeout_s is None:
            timeout_s = max(_TIMEOUT_S, *(_LIMITS * each for each in seconds), 0.0)
        refuse(
            wrong_choice("arrivals", arrivals, ARRIVALS),
            wrong_number("timeout_s", timeout_s),
            (
                f"timeout_s is {timeout_s!r}, expected more than the limit of {each!r}: requests "
                "that fail count as that long"
                for each in seconds
                if is_number(timeout_s) and timeout_s <= each
            ),
            [] if processes is None else wrong_whole("processes", processes),
            (
                f"{each.metric!r} is limited, which requests do not tell: expected 'mean', "
                "'failed', quantiles such as 'p99', or conditions such as 'response<200ms'"
                for each in limits
                if not each.times and each.metric != FAILED
            ),
        )
        self._requests, self._limits = requests, tuple(limits)
        self._arrivals, self._timeout_s, self._seed = arrivals, timeout_s, seed
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
        self._idle_s = math.inf  # the fastest single request so far
        self._slowest_s = max(seconds, default=math.inf)

    def check(self) -> None:
        """Send one request; WorkloadFailed when it fails, with the reason."""
        _, failure = self._probe()
        if failure is not None:
            raise WorkloadFailed(f"a single request failed: {failure}")

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Offer the load of a trial.

        Then wait until the server has recovered: until a single request is answered within the
        limit, or for half a minute. A server that refuses that has broken down. WorkloadFailed for
        more requests than fit into memory.
        """
        duration_s, requests = trial.duration_s, trial.load * trial.duration_s
        if requests > _MOST_REQUESTS:
            raise WorkloadFailed(
                f"a load of {trial.load:g} for {duration_s:g} s is {requests:.3g} requests, "
                f"expected at most {_MOST_REQUESTS:.0e}: start from less, or set a greatest load"
            )
        rng = np.random.default_rng([self._seed, trial.id])
        at_s = arrival_times(trial.load, duration_s, arrivals=self._arrivals, rng=rng)
        found = self._sent(at_s)
        begun_s = time.monotonic()
        crashed = not self._recovered()
        spent_s = {"run": found.elapsed_s, "teardown": time.monotonic() - begun_s}
        if found.cpu_s > _BUSY * self._processes * found.elapsed_s:
            self._processes = min(2 * self._processes, self._most_processes)
        if crashed:
            return LoadResult(crashed=True, spent_s=spent_s, failures=dict(found.failures))
        return judged(found, duration_s=duration_s, limits=self._limits, spent_s=spent_s)

    def close(self) -> None:
        """End the further processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _sent(self, at_s: np.ndarray) -> Sent:
        n = self._processes
        send = partial(
            sent,
            self._requests,
            timeout_s=self._timeout_s,
            most_waiting=max(_most_files() // n, 1),
            give_up_s=_HOPELESS * self._slowest_s,
        )
        if n == 1:
            return send(at_s)
        try:  # a process may be killed at any moment, also before it is given anything
            if self._pool is None or self._pooled < n:
                self.close()
                self._pooled, before = n, set(active_children())
                self._pool = ProcessPoolExecutor(
                    n, mp_context=get_context("spawn"), initializer=_end_with_parent
                )
                try:
                    list(self._pool.map(partial(_ready, self._requests), range(n)))
                finally:
                    self._workers = set(active_children()) - before
            start_s = time.monotonic() + _LEAD_S
            parts = [self._pool.submit(send, at_s[i::n], start_s=start_s) for i in range(n)]
            return merged([each.result() for each in parts])
        except BaseException as error:  # nothing waits for what they are sending
            for each in self._workers:
                each.kill()
            self.close()
            if isinstance(error, BrokenExecutor):
                raise WorkloadFailed("a process of the load generator was killed") from error
            raise

    def _probe(self) -> tuple[float, str | None]:
        """Send one request; return its response time, and what it failed of, or None."""
        found = sent(
            self._requests,
            np.zeros(1),
            timeout_s=self._timeout_s,
            most_waiting=1,
        )
        failure, response_s = next(iter(found.failures), None), float(found.response_s[0])
        limited = {of for each in self._limits for of in each.conditions}
        untold = [of for of in sorted(limited) if np.isnan(found.times[of][0])]
        if untold:
            raise WorkloadFailed(
                f"{' and '.join(untold)} is limited, and {short(self._requests)} does not tell it: "
                "expected requests that return a benchrigor.workbench.loadgen.Answer"
            )
        if failure is None:
            self._idle_s = min(self._idle_s, response_s)
        return response_s, failure

    def _recovered(self) -> bool:
        """Wait until a request is answered within the limit; return whether any is answered."""
        until_s = time.monotonic() + _RECOVERY_S
        while True:
            response_s, failure = self._probe()
            is_well = failure is None and response_s <= max(self._slowest_s, 2.0 * self._idle_s)
            if is_well or time.monotonic() > until_s:
                return failure is None
            time.sleep(_LOOK_S)


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
    """Import and open what requests need, in a process that has just begun."""
    sent(requests, np.zeros(0), timeout_s=1.0, most_waiting=1)
    time.sleep(_LEAD_S)  # so that each process gets one


def _most_files() -> int:
    """Return how many connections may be open, after asking for as many as are allowed."""
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
