"""What a trial's responses come to; and searches by the share of good requests, simulated."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from benchrigor import Limit, LoadResult, LoadTrial, PeakRate, PeakStatus
from benchrigor.workbench import PeakSearch
from benchrigor.workbench.loadgen.open_loop import judge
from benchrigor.workbench.loadgen.sending import Sent

LIMITS = [Limit(metric="mean", at_most=1.0), Limit(metric="p99", at_most=1.0)]


def judged(limits: list[Limit], response_s: np.ndarray, **given: Any) -> LoadResult:
    """Judge responses of a trial of 10 s, of which nothing else is known unless it is given."""
    n, failed = response_s.size, given.pop("failed", 0)
    failed = np.arange(n) < failed if isinstance(failed, int) else failed
    untold = np.full(n, np.nan)
    rest = {
        "lag_s": np.zeros(n),
        "first_byte_s": untold,
        "chunk_gap_s": untold,
        "failures": Counter({"status 500": int(failed.sum())}),
        "cpu_s": 1.0,
        "gave_up": False,
    }
    duration_s = given.pop("duration_s", 10.0)
    at_s = np.linspace(0.0, duration_s, n, endpoint=False)
    rest |= given
    sent = Sent(at_s=at_s, response_s=response_s, failed=failed, elapsed_s=duration_s, **rest)
    return judge(sent, duration_s=duration_s, limits=limits, spent_s={"run": duration_s})


def test_mean_and_quantiles_are_those_of_the_responses():
    response_s = np.random.default_rng(1).exponential(0.02, 5000)
    found = judged(LIMITS, response_s, failed=50)
    assert found.mean_response_s == pytest.approx(response_s.mean())
    assert found.p95_response_s == pytest.approx(np.quantile(response_s, 0.95))
    assert found.value("p99") == pytest.approx(np.quantile(response_s, 0.99))
    assert found.value("failed") == 0.01
    p99_s = -np.log(0.01) * 0.02  # of the exponential distribution; it is nearer to its limit
    assert found.response.low < p99_s < found.response.high
    assert (found.scheduled, found.sent, found.completed) == (5000, 5000, 4950)
    assert (found.cpu_share, found.growing) == (0.1, False)


def test_the_response_is_that_nearest_to_its_limit():
    """A quantile of few requests is known no better than the mean."""
    response_s = np.random.default_rng(1).exponential(0.02, 5000)
    loose = [Limit(metric="mean", at_most=0.03), Limit(metric="p95", at_most=0.5)]
    found = judged(loose, response_s)
    assert found.response.low < 0.02 < found.response.high
    assert judged(LIMITS[1:], response_s[:40]).response.standard_error > 0.0


def test_answers_within_the_limit_are_counted():
    response_s = np.repeat([0.1, 2.0], [900, 100])
    found = judged(LIMITS, response_s, failed=50)
    assert found.within_limits == 850


def test_a_backlog_that_grows_all_along_is_no_mean():
    rng = np.random.default_rng(1)
    between = rng.exponential(1 / 240.0, 4000) - rng.exponential(1 / 200.0, 4000)
    response_s = np.maximum(-np.cumsum(between), 0.0) + rng.exponential(1 / 240.0, 4000)
    assert response_s[-500:].mean() > 2.0 * response_s[:500].mean()
    assert judged(LIMITS, response_s).growing


@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_a_queue_that_is_slow_at_times_does_not_grow(load: float):
    """Of 40 queues with spare capacity at most one is taken for a backlog that grows."""
    growing = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        service = rng.exponential(1.0 / 200.0, 4000)
        steps = np.append(0.0, np.cumsum(service[:-1] - rng.exponential(1 / 200.0 / load, 3999)))
        response_s = steps - np.minimum.accumulate(steps) + service
        growing += judged(LIMITS, response_s, duration_s=20.0).growing
    assert growing <= 1


SHARE = Limit(metric="response<100ms and first-byte<50ms and chunk-gap<20ms", at_most=0.05)


def test_a_good_request_keeps_all_conditions():
    """Each tenth misses another one, and one of ten fails."""
    n = 1000
    kinds = np.arange(n) % 10
    found = judged(
        [SHARE],
        np.where(kinds == 9, 0.1, 0.06),  # 0.1 is not below 0.1
        first_byte_s=np.where(kinds == 8, 0.055, 0.03),
        chunk_gap_s=np.where(kinds == 7, 0.03, 0.01),
        failed=7,  # of which none is of these kinds
    )
    assert found.metrics[SHARE.metric] == pytest.approx(0.307)
    assert found.within_limits == 693
    assert found.metrics["chunk-gap-p95"] == 0.03
    assert found.metrics["first-byte-p95"] == 0.055
    assert SHARE.ratio_of(found) == pytest.approx(1.5)  # the worst gap over its limit


@pytest.mark.parametrize("slow", [0.03, 0.07])
@pytest.mark.parametrize("failed", [0, 10, 200, 400])
def test_the_limit_is_kept_where_the_share_is(slow: float, failed: int):
    """Whatever part of the requests that are not good failed."""
    rng = np.random.default_rng(5)
    n, n_slow = 5000, round(5000 * slow)
    response_s = rng.uniform(0.01, 0.09, n)
    response_s[failed:][rng.choice(n - failed, n_slow, replace=False)] = 0.15
    response_s[:failed] = 10.0
    rest = {"first_byte_s": np.full(n, 0.01), "chunk_gap_s": np.zeros(n)}
    found = judged([SHARE], response_s, failed=failed, **rest)
    share = found.metrics[SHARE.metric]
    ratio = SHARE.ratio_of(found)
    assert ratio is not None
    assert found.spent_s["warm-up"] == 0.0 or failed
    assert (share >= 0.05) == (ratio >= 1.0)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_the_interval_within_a_trial_respects_autocorrelation(correlation: float):
    """Of 80 trials at the limit 95% hold it: of lost requests, and of times that move slowly."""
    for is_lost in (False, True):
        holding = 0
        for seed in range(80):
            rng = np.random.default_rng([seed, 4])
            noise = rng.normal(0.0, 1.0, 4000)
            for index in range(1, noise.size):
                noise[index] *= np.sqrt(1.0 - correlation**2)
                noise[index] += correlation * noise[index - 1]
            worst = np.exp(0.5 * (noise - 1.6448536))  # below 1 in 95%
            if is_lost:
                worst = np.where(worst < 1.0, 0.1, 60.0)
            rest = {"first_byte_s": 0.05 * worst, "chunk_gap_s": 0.001 * worst}
            found = judged([SHARE], 0.04 * worst, **rest).response
            holding += found.low <= (0.05 if is_lost else 1.0) <= found.high
        assert holding >= 71


# --- searches for the load up to which so many requests are good

RATE, RESPONSE_S, FIRST_S = 500.0, 0.05, 0.045
JOINT = Limit(metric="response<50ms and first-byte<45ms", at_most=0.01)
TIMEOUT_S = 10.0


def bad_share(load: float) -> float:
    """Return which share of requests of M/M/1 keeps not both; the first byte ends the wait.

    P(W >= f or W + S >= t), with W the wait, of which 1 - rho is 0 and the rest exponential, and S
    the service, for f <= t.
    """
    rho, spare = load / RATE, RATE - load
    waited = rho * math.exp(-spare * FIRST_S)
    at_once = (1.0 - rho) * math.exp(-RATE * RESPONSE_S)
    later = rho * spare * math.exp(-RATE * RESPONSE_S) * math.expm1(load * FIRST_S) / load
    return waited + at_once + later


class Queue:
    """Serves one after the other; an answer begins when its service does."""

    peak = brentq(lambda load: bad_share(load) - 0.01, 1.0, RATE - 1.0)

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 38])

    def times(self, n: int, load: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        service = self._rng.exponential(1.0 / RATE, n)
        between = self._rng.exponential(1.0 / load, n - 1)
        steps = np.append(0.0, np.cumsum(service[:-1] - between))
        wait_s = steps - np.minimum.accumulate(steps)
        return wait_s + service, wait_s, np.zeros(n, dtype=np.bool_)

    def offer(self, trial: LoadTrial) -> LoadResult:
        n = max(int(self._rng.poisson(trial.load * trial.duration_s)), 1)
        response_s, first_byte_s, failed = self.times(n, trial.load)
        return judged(
            [JOINT],
            response_s,
            duration_s=trial.duration_s,
            first_byte_s=first_byte_s,
            chunk_gap_s=np.zeros(n),
            failed=failed,
            gave_up=bool((response_s[~failed] > 20.0 * RESPONSE_S).any()),
        )


class Shedding(Queue):
    """Refuses requests in bursts, of two on average, the more the greater the load."""

    peak = 500.0

    def times(self, n: int, load: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        share = min(0.01 * (load / self.peak) ** 8, 0.999)
        begins = self._rng.random(n) < 0.5 * share / (1.0 - share)
        goes_on = self._rng.random(n) < 0.5
        failed = np.zeros(n, dtype=np.bool_)
        failed[0] = self._rng.random() < share
        for index in range(1, n):
            failed[index] = goes_on[index] or begins[index] if failed[index - 1] else begins[index]
        response_s = np.where(failed, TIMEOUT_S, self._rng.uniform(0.005, 0.02, n))
        return response_s, np.where(failed, TIMEOUT_S, 0.004), failed


def searched(server: Queue, **options: object) -> PeakRate:
    search = PeakSearch(limits=[JOINT], **options)
    while (trial := search.ask()) is not None:
        search.tell(trial, server.offer(trial))
    return search.result()


def test_a_peak_by_the_share_of_good_requests_is_found():
    """A search without budget ends when the interval is narrow."""
    found = searched(Queue(3))
    assert found.status is PeakStatus.FOUND
    assert found.cost_s < 900.0
    assert found.load.low < Queue.peak < found.load.high
    assert found.load.value == pytest.approx(Queue.peak, rel=0.05)
    assert found.binding == JOINT.metric
    trial = found.trials[-1]
    told = trial.result.metrics
    assert set(told) == {JOINT.metric, JOINT.nearness, "response-p99", "first-byte-p99"}
    assert trial.ratio == told[JOINT.nearness]
    assert (trial.ratio >= 1.0) == (told[JOINT.metric] >= 0.01)


@pytest.mark.parametrize("server", [Queue, pytest.param(Shedding, marks=pytest.mark.minutes)])
def test_intervals_hold_whatever_makes_requests_bad(server: type[Queue]):
    """Of 12 searches with a budget of 4 minutes 10 or more, which are within 8%."""
    found = [searched(server(seed), budget_s=240.0).load for seed in range(100, 112)]
    known = [each for each in found if each is not None]
    assert len(known) == 12
    assert sum(each.low <= server.peak <= each.high for each in known) >= 10
    assert max(abs(each.value / server.peak - 1.0) for each in known) < 0.08
