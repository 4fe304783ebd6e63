"""No peak lies below the least load or above the greatest, whatever the server and the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Code
from benchrigor.workbench import PeakSearch

LIMIT_S = 0.04


class Server:
    """Keeps its limit up to a peak, as M/M/1; with a peak of 0 all loads have one response."""

    def __init__(self, peak: float, *, ratio: float = 1.0, noise: float, seed: int) -> None:
        self._peak, self._ratio, self._noise = peak, ratio, noise
        self._rng = np.random.default_rng([seed, 33])

    def offer(self, trial: br.LoadTrial) -> br.LoadResult:
        spare = 1.0 - trial.load / (1.25 * self._peak) if self._peak else 0.2
        mean_s = min(0.2 / spare, 20.0) if spare > 0.0 else 20.0
        sd = self._noise * math.sqrt(60.0 / trial.duration_s)
        mean_s *= LIMIT_S * self._ratio * math.exp(self._rng.normal(0.0, sd))
        n = int(self._rng.poisson(trial.load * trial.duration_s))
        return br.LoadResult(
            mean_response_s=mean_s, p95_response_s=mean_s, scheduled=n, sent=n, failed=0
        )


def searched(server: Server, **options: object) -> tuple[br.PeakRate, PeakSearch]:
    search = PeakSearch(**{"threshold_s": LIMIT_S, **options})
    while (trial := search.ask()) is not None:
        search.tell(trial, server.offer(trial))
    return search.result(), search


def is_within(found: br.PeakRate, search: PeakSearch) -> bool:
    low, high = search.goal.min_load, search.goal.max_load or math.inf
    ends = [] if found.load is None else [found.load.low, found.load.value, found.load.high]
    ends += [each for each in (found.at_least, found.at_most) if each is not None]
    return all(low <= each <= high for each in ends)


@pytest.mark.parametrize("limit", ["threshold_s", "p95_threshold_s"])
def test_what_is_always_too_slow_is_saturated_at_the_lowest_load(limit: str):
    """From 15% above the limit on, by a few trials, although noise lets some of them pass."""
    for seed in range(100):
        rng = np.random.default_rng([seed, 1])
        least = float(rng.choice([0.1, 1.0, 10.0]))
        server = Server(0.0, ratio=rng.uniform(1.15, 3.0), noise=rng.uniform(0.03, 0.1), seed=seed)
        given = {"threshold_s": None, limit: LIMIT_S, "min_load": least}
        found, _ = searched(server, **given, budget_s=rng.choice([None, 600.0]))
        assert (found.status, found.load) == ("saturated-at-lowest", None)
        assert (found.at_least, found.at_most) == (None, least)
        assert len(found.trials) <= 12


def test_what_is_never_too_slow_is_not_saturated_and_near_the_limit_no_peak_is_told():
    """At 5% above the limit noise decides about trials; so it did in two of twelve."""
    for seed in range(60):
        rng = np.random.default_rng([seed, 2])
        most = math.exp(rng.uniform(3.0, 8.0))
        server = Server(0.0, ratio=rng.uniform(0.2, 0.87), noise=rng.uniform(0.03, 0.1), seed=seed)
        found, _ = searched(server, max_load=most)
        assert (found.status, found.load) == ("not-saturated", None)
        assert (found.at_least, found.at_most) == (most, None)
        assert len(found.trials) <= 16
    found = [
        searched(Server(0.0, ratio=1.05, noise=0.06, seed=seed), max_load=5000.0)[0]
        for seed in range(40)
    ]
    assert sum(each.status != br.PeakStatus.SATURATED_AT_LOWEST for each in found) <= 1
    assert all(each.load is None for each in found)


@pytest.mark.parametrize(
    "policy", ["adaptive", "strawman", "linear", "binsearch", "model", "quadratic"]
)
def test_no_end_of_a_search_is_out_of_bounds(policy: str):
    """Whether the peak is above, below or between them."""
    for seed in range(12):
        rng = np.random.default_rng([seed, 3])
        least = math.exp(rng.uniform(0.0, 4.0))
        most = least * math.exp(rng.uniform(0.1, 4.0))
        peak = least * math.exp(rng.uniform(-2.0, 5.0))
        found, search = searched(
            Server(peak, noise=rng.uniform(0.02, 0.2), seed=seed),
            min_load=least,
            max_load=most,
            seed_load=math.exp(rng.uniform(0.0, 6.0)),
            accuracy=0.05 if policy == "adaptive" else 0.2,
            policy=policy,
        )
        assert is_within(found, search)
        if policy == "adaptive" and peak > 1.2 * most:
            assert found.status is br.PeakStatus.NOT_SATURATED
        if policy == "adaptive" and 1.2 * peak < least:
            assert found.status is br.PeakStatus.SATURATED_AT_LOWEST


@pytest.mark.parametrize("peak", [49.0, 51.0])
def test_the_least_load_may_be_the_greatest(peak: float):
    bounds = {"min_load": 50.0, "max_load": 50.0}
    found, search = searched(Server(peak, noise=0.1, seed=1), **bounds)
    assert found.status is not None
    assert is_within(found, search)


def test_a_response_that_cannot_be_told_from_its_limit_is_said_to_be_so():
    found, _ = searched(Server(0.0, ratio=1.0, noise=0.05, seed=3), max_load=5000.0)
    assert found.load is None
    assert {each.code for each in found.notices} <= {Code.NOT_CONVERGED}


def test_the_share_of_failures_at_the_least_load_needs_requests():
    """Of 17 requests at a load of 1, none fails in seven trials of ten; two of a hundred do."""
    rng, limits = np.random.default_rng(5), [br.Limit(metric="failed", at_most=0.01)]
    search = PeakSearch(limits=limits, budget_s=2400.0)
    while (trial := search.ask()) is not None:
        n = int(rng.poisson(trial.load * trial.duration_s))
        failed = int(rng.binomial(n, 0.02))
        search.tell(trial, br.LoadResult(scheduled=n, sent=n, failed=failed))
    assert search.result().load is None
