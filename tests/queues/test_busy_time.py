"""Items over busy time, phase by phase."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from benchrigor.model import Code
from benchrigor.queues import ServiceRateEstimator
from benchrigor.queues.data.service import RateReason
from benchrigor.testing import SyntheticStage


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "items", "longest"),
    [
        ({"utilisation": 0.5, "later": 0.5}, 60_000, 700),  # young phases
        ({"utilisation": 0.9, "service": "pareto"}, 60_000, 40),  # many of them
        ({"utilisation": 0.9, "rate": 30.0}, 300_000, 5_000),  # batches longer than a piece
        ({"utilisation": 0.1, "rate": 1.0}, 3_000, 5_000),  # hardly any items
    ],
)
def test_rates_are_the_same_to_the_last_bit_however_periods_are_told(
    stage: dict[str, Any], items: int, longest: int
) -> None:
    rng = np.random.default_rng(7)
    seen = SyntheticStage(**stage).watch(items, period_s=0.032, rng=rng)
    at_once, in_parts = ServiceRateEstimator(), ServiceRateEstimator()
    at_once.tell_many(seen.items, seen.period_s, seen.blocked_s)
    start = 0
    while start < len(seen.items):
        part = slice(start, start + int(rng.integers(1, longest)))
        in_parts.tell_many(seen.items[part], seen.period_s[part], seen.blocked_s[part])
        start = part.stop
    assert in_parts.rates == at_once.rates


@pytest.mark.alone
@pytest.mark.slow
def test_memory_does_not_grow_while_a_stage_has_nothing_to_do() -> None:
    est = ServiceRateEstimator()
    tracemalloc.start()
    for _ in range(40):
        est.tell_many(np.zeros(100_000), 0.005, 0.005)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 500_000
    (rate,) = est.rates
    assert (rate.reason, rate.periods) == (RateReason.NEVER_BUSY, 4_000_000)


def test_a_rate_that_goes_to_and_fro_says_so_until_it_stays() -> None:
    est = ServiceRateEstimator()
    rng = np.random.default_rng(8)
    for level in (40.0, 80.0, 40.0, 80.0, 40.0):
        est.tell_many(rng.poisson(level, 200), 0.04)
    assert not est.rates[-1].notices
    est.tell_many(rng.poisson(80.0, 200), 0.04)
    *ended, rate = est.rates
    assert len(ended) == 5
    (notice,) = rate.notices
    assert notice.code is Code.RESTLESS_RATE
    assert notice.evidence["phases"] == 5
    assert notice.evidence["lowest"] == pytest.approx(1000.0, rel=0.05)
    assert notice.evidence["highest"] == pytest.approx(2000.0, rel=0.05)
    assert not any(each.notices for each in ended)
    est.tell_many(rng.poisson(80.0, 900), 0.04)
    assert len(est.rates) == 6
    assert not est.rates[-1].notices


def test_a_stage_that_hangs_has_a_phase_without_items() -> None:
    rng = np.random.default_rng(9)
    items = np.concatenate([rng.poisson(40.0, 200), np.zeros(60), rng.poisson(40.0, 200)])
    est = ServiceRateEstimator()
    est.tell_many(items, 0.04)
    assert [each.reason for each in est.rates] == [None, RateReason.NO_ITEMS, None]
    for each in est.rates[::2]:
        assert each.estimate is not None
        assert each.estimate.value == pytest.approx(1000.0, rel=0.05)
