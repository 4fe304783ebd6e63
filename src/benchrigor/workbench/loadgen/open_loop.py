"""The load generator: offers a rate to a server, independent of earlier requests."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchrigor.errors import WorkloadFailed
from benchrigor.model.checks import is_number, refuse, wrong_settings
from benchrigor.model.series import Floats, short
from benchrigor.workbench.data import FAILED, Limit, LoadResult, LoadTrial
from benchrigor.workbench.loadgen.judging import judge
from benchrigor.workbench.loadgen.senders import PartLost, ProcessSenders, Senders
from benchrigor.workbench.loadgen.sending import Requests, Send, send_requests
from benchrigor.workbench.settings import SENDING

_MOST_REQUESTS = 2e7  # of a trial
_TIMEOUT_S, _LIMITS = 10.0, 3.0  # of requests: seconds, or times the greatest limit
_HOPELESS = 20.0  # times the limit: a trial with such waiting times ends early
_RECOVERY_S, _LOOK_S = 30.0, 0.2  # until a server answers again, and between two checks
_BACKLOGS = 2.0  # times the time that its backlog takes, if that is longer


class OpenLoop:
    """Offers requests at a rate, like independent users.

    Their times are drawn beforehand; response times count from there. If one process is not enough
    further ones join in, up to the number of processors.

    Parameters
    ----------
    requests
        `HttpRequests`, or a coroutine function without arguments that sends one request and raises
        if it fails; it may return an `Answer`. For several processes it must belong to a module.
    limits
        The limits of the server; they determine the quantiles to measure.
    arrivals
        "poisson" or "constant".
    timeout_s
        Seconds after which a request has failed, more than all limits; None for 10, or three times
        the greatest limit.
    processes
        The minimum number; None begins with one.
    seed
        Of the times.
    senders
        Senders in place of ``processes`` of this machine: see `HostSenders`.

    Raises
    ------
    InvalidInput
        When an argument is out of range.
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
        senders: Senders | None = None,
    ) -> None:
        wrong = wrong_settings(SENDING, locals())
        seconds = [most for limit in limits for most in limit.times.values()]
        if timeout_s is None:
            timeout_s = max(_TIMEOUT_S, *(_LIMITS * most for most in seconds), 0.0)
        refuse(
            wrong,
            (
                f"timeout_s is {timeout_s!r}, expected more than the limit of {most!r}: requests "
                "that fail count as that long"
                for most in seconds
                if is_number(timeout_s) and timeout_s <= most
            ),
            (
                f"{limit.metric!r} is limited, which requests do not tell: expected 'mean', "
                "'failed', quantiles such as 'p99', or conditions such as 'response<200ms'"
                for limit in limits
                if not limit.times and limit.metric != FAILED
            ),
        )
        self._requests, self._limits = requests, tuple(limits)
        self._arrivals, self._timeout_s, self._seed = arrivals, timeout_s, seed
        self._senders = senders or ProcessSenders(requests, processes)
        self._idle_s = math.inf  # the fastest single request so far
        self._slowest_s = max(seconds, default=math.inf)

    def check(self) -> None:
        """Send one request; WorkloadFailed when it fails, with the reason."""
        _, failure = self._probe()
        if failure is not None:
            raise WorkloadFailed(f"a single request failed: {failure}")
        self._senders.check(self._requests)

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Offer the load of a trial.

        Then wait until the server has recovered: until a single request is answered within the
        limit, or for half a minute, or twice as long as its backlog takes. A server without an
        answer by then has broken down.
        WorkloadFailed for more requests than fit into memory.
        """
        duration_s, requests = trial.duration_s, trial.load * trial.duration_s
        if requests > _MOST_REQUESTS:
            raise WorkloadFailed(
                f"a load of {trial.load:g} for {duration_s:g} s is {requests:.3g} requests, "
                f"expected at most {_MOST_REQUESTS:.0e}: start from less, or set a greatest load"
            )
        rng = np.random.default_rng([self._seed, trial.id])
        at_s = arrival_times(trial.load, duration_s, arrivals=self._arrivals, rng=rng)
        asked_s, lost, found = time.monotonic(), "", None
        try:
            found = self._senders.send(
                self._requests,
                at_s,
                timeout_s=self._timeout_s,
                give_up_s=_HOPELESS * self._slowest_s,
            )
        except PartLost as error:
            lost = str(error)
        begun_s = time.monotonic()
        crashed = not self._await_recovery(0.0 if found is None else found.backlog_s)
        run_s = begun_s - asked_s if found is None else found.elapsed_s
        spent_s = {"run": run_s, "teardown": time.monotonic() - begun_s}
        if found is None:
            result = LoadResult(invalid=lost, spent_s=spent_s)
        elif crashed:
            result = LoadResult(crashed=True, spent_s=spent_s, failures=dict(found.failures))
        else:
            result = judge(found, duration_s=duration_s, limits=self._limits, spent_s=spent_s)
        return replace(result, shares=self._senders.shares)

    def close(self) -> None:
        """Release the senders."""
        self._senders.close()

    def _probe(self) -> tuple[float, str | None]:
        """Send one request; return its response time, and its failure or None."""
        found = send_requests(
            self._requests,
            np.zeros(1),
            timeout_s=self._timeout_s,
            most_waiting=1,
        )
        failure, response_s = next(iter(found.failures), None), float(found.response_s[0])
        limited = {of for limit in self._limits for of in limit.conditions}
        absent = [of for of in sorted(limited) if np.isnan(found.times[of][0])]
        if absent:
            raise WorkloadFailed(
                f"{' and '.join(absent)} is limited, and {short(self._requests)} does not tell it: "
                "expected requests that return a benchrigor.workbench.loadgen.Answer"
            )
        if failure is None:
            self._idle_s = min(self._idle_s, response_s)
        return response_s, failure

    def _await_recovery(self, backlog_s: float) -> bool:
        """Wait for an answer within the limit; return whether there was any answer."""
        until_s = time.monotonic() + max(_RECOVERY_S, _BACKLOGS * backlog_s)
        while True:
            response_s, failure = self._probe()
            is_well = failure is None and response_s <= max(self._slowest_s, 2.0 * self._idle_s)
            if is_well or time.monotonic() > until_s:
                return failure is None
            time.sleep(_LOOK_S)


def arrival_times(
    rate: float, duration_s: float, *, arrivals: str = "poisson", rng: np.random.Generator
) -> Floats:
    """Return the times of requests within ``duration_s``, in seconds, ascending, shape (n,).

    "poisson": as from many independent users; given their number, which has Poisson's distribution,
    such times are uniform and independent. "constant": evenly.

    Examples
    --------
    >>> arrival_times(2.0, 2.0, arrivals="constant", rng=np.random.default_rng(1))
    array([0. , 0.5, 1. , 1.5])
    """
    if arrivals == "constant":
        return np.arange(max(round(rate * duration_s), 1)) / rate
    n = max(int(rng.poisson(rate * duration_s)), 1)
    return np.sort(rng.uniform(0.0, duration_s, n))
