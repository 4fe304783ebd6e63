"""Searches for the load up to which so many requests are good, with each request simulated."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import brentq

import benchrigor as br
from benchrigor.workbench import PeakSearch
from benchrigor.workbench.loadgen.judging import judge
from benchrigor.workbench.loadgen.sending import Sent

RATE, RESPONSE_S, FIRST_S = 500.0, 0.05, 0.045
JOINT = br.Limit(metric="response<50ms and first-byte<45ms", at_most=0.01)
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

    def offer(self, trial: br.LoadTrial) -> br.LoadResult:
        n = max(int(self._rng.poisson(trial.load * trial.duration_s)), 1)
        response_s, first_byte_s, failed = self.times(n, trial.load)
        gave_up = bool((response_s[~failed] > 20.0 * RESPONSE_S).any())
        found = Sent(
            at_s=np.linspace(0.0, trial.duration_s, n, endpoint=False),
            lag_s=np.zeros(n),
            response_s=response_s,
            first_byte_s=first_byte_s,
            chunk_gap_s=np.zeros(n),
            failed=failed,
            failures=Counter(),
            cpu_s=0.0,
            elapsed_s=trial.duration_s,
            gave_up=gave_up,
        )
        spent_s = {"run": trial.duration_s}
        return judge(found, duration_s=trial.duration_s, limits=[JOINT], spent_s=spent_s)


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


def searched(server: Queue, **options: object) -> br.PeakRate:
    search = PeakSearch(limits=[JOINT], **options)
    while (trial := search.ask()) is not None:
        search.tell(trial, server.offer(trial))
    return search.result()


def test_the_share_of_the_simulated_queue_is_known():
    response_s, first_s, _ = Queue(1).times(2_000_000, Queue.peak)
    is_bad = (response_s >= RESPONSE_S) | (first_s >= FIRST_S)
    assert is_bad.mean() == pytest.approx(0.01, rel=0.1)


@pytest.mark.slow
def test_a_peak_by_the_share_of_good_requests_is_found():
    found = searched(Queue(3), budget_s=600.0)
    assert found.load.low < Queue.peak < found.load.high
    assert found.load.value == pytest.approx(Queue.peak, rel=0.05)
    assert found.binding == JOINT.metric
    trial = found.trials[-1]
    told = trial.result.metrics
    assert set(told) == {JOINT.metric, JOINT.nearness, "response-p99", "first-byte-p99"}
    assert trial.ratio == told[JOINT.nearness]
    assert (trial.ratio >= 1.0) == (told[JOINT.metric] >= 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("server", [Queue, pytest.param(Shedding, marks=pytest.mark.minutes)])
def test_intervals_hold_whatever_makes_requests_bad(server: type[Queue]):
    """Of 12 searches with a budget of 4 minutes 10 or more, which are within 8%."""
    found = [searched(server(seed), budget_s=240.0).load for seed in range(100, 112)]
    known = [each for each in found if each is not None]
    assert len(known) == 12
    assert sum(each.low <= server.peak <= each.high for each in known) >= 10
    assert max(abs(each.value / server.peak - 1.0) for each in known) < 0.08


@pytest.mark.slow
def test_a_search_without_budget_ends_when_the_interval_is_narrow():
    found = searched(Queue(1))
    assert found.status is br.PeakStatus.FOUND
    assert found.cost_s < 900.0


def test_what_is_never_good_is_saturated_at_the_lowest_load():
    class Slow(Queue):
        def times(self, n: int, load: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return np.full(n, 0.06), np.full(n, 0.05), np.zeros(n, dtype=np.bool_)

    assert searched(Slow(1)).status is br.PeakStatus.SATURATED_AT_LOWEST
