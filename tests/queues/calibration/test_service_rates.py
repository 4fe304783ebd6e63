"""Simulated stages of known rate: do intervals hold it, are phases found?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats as reference

from benchrigor.model import ServiceRate
from benchrigor.queues import ServiceRateEstimator
from benchrigor.testing import SyntheticStage

RUNS = 50
SEED = 20261208
RARE = 1e-4


def rates(
    stage: SyntheticStage, items: int, method: str = "busy-time"
) -> Iterator[list[ServiceRate]]:
    for run in range(RUNS):
        rng = np.random.default_rng([SEED, round(100 * stage.utilisation), items, run])
        seen = stage.watch(items, period_s=0.032, rng=rng)
        est = ServiceRateEstimator(method)
        est.tell_many(seen.items, seen.period_s, seen.blocked_s)
        yield est.rates


@pytest.mark.parametrize("utilisation", [0.2, 0.6, 0.95])
def test_intervals_of_busy_time_hold_the_rate_as_often_as_they_say(utilisation: float) -> None:
    stage = SyntheticStage(utilisation=utilisation)
    found = [each[-1].estimate for each in rates(stage, 6_000)]
    held = sum(each is not None and each.low <= 1000.0 <= each.high for each in found)
    assert reference.binom.cdf(held, RUNS, 0.92) > RARE
    assert reference.binom.sf(held - 1, RUNS, 0.985) > RARE


def test_stages_with_stalls_have_no_phases_but_those_that_there_are() -> None:
    stage = SyntheticStage(utilisation=0.7, service="deterministic", stalled=0.001)
    false = sum(len(each) > 1 for each in rates(stage, 10_000))
    assert reference.binom.sf(false - 1, RUNS, 0.05) > RARE


@pytest.mark.parametrize(
    ("service", "shape", "correlation", "share"),
    [("lognormal", 0.5, 0.97, 0.05), ("lognormal", 0.5, 0.99, 0.1), ("lognormal", 2.0, 0.0, 0.3)],
)
def test_noise_that_wanders_and_long_items_hardly_make_phases(
    service: str, shape: float, correlation: float, share: float
) -> None:
    stage = SyntheticStage(utilisation=0.9, service=service, shape=shape, correlation=correlation)
    false = sum(len(each) > 1 for each in rates(stage, 30_000))
    assert reference.binom.sf(false - 1, RUNS, share) > RARE


def test_both_phases_are_found_where_the_rate_halves() -> None:
    stage = SyntheticStage(utilisation=0.7, later=0.5, stalled=0.001)
    found = 0
    for each in rates(stage, 10_000):
        first, last = each[0].estimate, each[-1].estimate
        assert first is not None
        assert last is not None
        truths = stage.true_rate, stage.true_rate / 2.0
        found += all(
            abs(one.value / truth - 1.0) < 0.15
            for one, truth in zip((first, last), truths, strict=True)
        )
    assert reference.binom.cdf(found, RUNS, 0.95) > RARE


def test_what_the_quantile_method_claims_is_never_off_by_a_fifth() -> None:
    for utilisation in (0.3, 0.6, 0.9):
        stage = SyntheticStage(utilisation=utilisation, stalled=0.001)
        for each in rates(stage, 10_000, "quantile"):
            for rate in each:
                assert (
                    rate.estimate is None
                    or not rate.converged
                    or (abs(rate.estimate.value / stage.true_rate - 1.0) < 0.2)
                )
