"""The load generator: offers a rate to a server, independent of earlier requests.

`judge` makes the result of a trial of its responses: it excludes warm-up, and detects a growing
backlog.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchrigor.errors import NotEstimable, WorkloadFailed
from benchrigor.model import Estimate
from benchrigor.model.analysis import PhaseReason
from benchrigor.model.checks import is_number, refuse, wrong_settings
from benchrigor.model.series import Floats, short
from benchrigor.stats import (
    estimate_mean,
    estimate_proportion,
    estimate_quantile,
    find_stable_phase,
)
from benchrigor.workbench.data import FAILED, Limit, LoadResult, LoadTrial
from benchrigor.workbench.loadgen.senders import PartLost, ProcessSenders, Senders
from benchrigor.workbench.loadgen.sending import Requests, Send, Sent, send_requests
from benchrigor.workbench.settings import SENDING

_BLOCKS = 500  # of requests; phases are found in their means
_LATE = 1.01  # of the duration: requests after that were not sent in time
_GROWN = 2.0  # the last quarter's mean over the first's
_LOST = 5.0  # times the limit, which good requests do not approach gradually


def judge(
    sent: Sent, *, duration_s: float, limits: Sequence[Limit], spent_s: Mapping[str, float]
) -> LoadResult:
    """Return the result of a trial: mean, limited values, counts and lag.

    A limit of the share of good requests adds the quantiles of its times at that share.
    """
    in_time = sent.at_s + sent.lag_s <= duration_s * _LATE
    failed = int(sent.failed[in_time].sum())
    start, is_growing = _steady(sent.response_s)
    counted = sent.response_s[start:]
    quantiles = {limit.metric: limit.quantile for limit in limits if limit.quantile is not None}
    shares = {limit.metric: _GoodShare(sent, limit, start) for limit in limits if limit.conditions}
    metrics = {name: float(np.quantile(counted, q)) for name, q in quantiles.items()}
    for share in shares.values():
        metrics |= share.metrics
    slowest_s = max(
        (limit.at_most for limit in limits if limit.quantile is not None), default=np.inf
    )
    warm_up_s = float(sent.at_s[start] - sent.at_s[0])
    is_good = in_time & ~sent.failed & (sent.response_s <= slowest_s)
    for share in shares.values():
        is_good &= share.worst < 1.0
    cpu_share = sent.cpu_s / sent.elapsed_s if sent.elapsed_s > 0.0 else None
    return LoadResult(
        mean_response_s=float(counted.mean()),
        p95_response_s=float(np.quantile(counted, 0.95)),
        scheduled=sent.at_s.size,
        sent=int(in_time.sum()),
        failed=failed,
        lag_p99_s=float(np.quantile(sent.lag_s, 0.99)),
        growing=is_growing or sent.gave_up,
        metrics=metrics,
        response=_binding(counted, shares, limits),
        within_limits=int(is_good.sum()),
        cpu_share=cpu_share,
        failures=dict(sent.failures),
        spent_s={"warm-up": warm_up_s, **spent_s, "run": spent_s["run"] - warm_up_s},
    )


class _GoodShare:
    """The result of a trial for a limit on the share of good requests.

    A request is not good if the greatest ratio of its times to their limits is 1 or more. Requests
    are lost if they failed, or took five times as long. Let f be the share of lost requests, and a
    the allowed share of requests that are not good. The limit is kept if f < a, and the quantile at
    1 - (a - f) / (1 - f) of the others' ratios is below 1. The greater of f / a and that quantile
    shows the nearness to the limit, whether the server is slow or sheds load: the plain share of
    rare bad requests rests on few or none.
    """

    def __init__(self, sent: Sent, limit: Limit, start: int) -> None:
        times = [sent.times[of] / below_s for of, below_s in limit.conditions.items()]
        self.worst = np.where(sent.failed, np.inf, np.max(times, axis=0))
        counted, allowed = self.worst[start:], limit.at_most
        self._lost = counted >= _LOST
        self._others, share = counted[~self._lost], float(self._lost.mean())
        self._q = 1.0 - (allowed - share) / (1.0 - share) if share < allowed else 1.0
        quantile = float(np.quantile(self._others, self._q)) if self._others.size else 0.0
        self._is_slow = share < allowed and quantile >= share / allowed
        self.nearness = quantile if self._is_slow else share / allowed
        self.metrics = {
            limit.metric: float((counted >= 1.0).mean()),
            limit.nearness: self.nearness,
        }
        for name, of in zip(limit.times, limit.conditions, strict=True):
            self.metrics[name] = float(np.quantile(sent.times[of][start:], 1.0 - allowed))

    def estimate(self) -> Estimate:
        """Return the share or quantile of its nearness, with its interval in the trial."""
        if not self._is_slow:
            return estimate_proportion(self._lost)
        return _of_quantile(self._others, self._q)


def _binding(
    counted: Floats, shares: Mapping[str, _GoodShare], limits: Sequence[Limit]
) -> Estimate | None:
    """Return the mean, quantile or share nearest to its limit, with its interval."""
    if counted.size < 2:
        return None
    found = [
        (float(counted.mean() if q is None else np.quantile(counted, q)) / limit.at_most, q)
        for limit in limits
        if limit.is_of_time
        for q in [limit.quantile]
    ]
    ratio, q = max(found, key=lambda pair: pair[0], default=(0.0, None))
    share = max(shares.values(), key=lambda share: share.nearness, default=None)
    if share is not None and share.nearness >= ratio:
        return share.estimate()
    return estimate_mean(counted) if q is None else _of_quantile(counted, q)


def _of_quantile(readings: Floats, q: float) -> Estimate:
    try:
        return estimate_quantile(readings, q)
    except NotEstimable:  # too few are that slow: use the mean, which is known as well
        return estimate_mean(readings)


def _steady(response_s: Floats) -> tuple[int, bool]:
    """Return the index of the first response after the warm-up, and whether responses keep growing.

    The warm-up is limited to half. Slow periods, as of a queue near saturation, are neither.
    """
    size = max(response_s.size // _BLOCKS, 1)
    blocks = response_s[: response_s.size // size * size].reshape(-1, size).mean(axis=1)
    if blocks.size < 4:
        return 0, False
    phase = find_stable_phase(blocks)
    quarter = blocks.size // 4
    has_grown = blocks[-quarter:].mean() > _GROWN * blocks[:quarter].mean()
    if phase.reason in (PhaseReason.TREND, PhaseReason.STILL_MOVING) and has_grown:
        return 0, True
    start = (phase.start or 0) * size
    return start if start <= response_s.size // 2 else 0, False


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
                f"{limit.metric!r} is limited, which requests do not report: expected 'mean', "
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
        found = send_requests(self._requests, np.zeros(1), timeout_s=self._timeout_s)
        failure, response_s = next(iter(found.failures), None), float(found.response_s[0])
        limited = {of for limit in self._limits for of in limit.conditions}
        absent = [of for of in sorted(limited) if np.isnan(found.times[of][0])]
        if absent:
            raise WorkloadFailed(
                f"{' and '.join(absent)} is limited, and {short(self._requests)} reports none: "
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
