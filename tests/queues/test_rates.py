"""The estimator as its users meet it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, ServiceRate
from benchrigor.queues import ServiceRateEstimator
from benchrigor.testing import SyntheticStage

METHODS = ("busy-time", "quantile")


def told(seen: Any, **given: Any) -> ServiceRateEstimator:
    est = ServiceRateEstimator(**given)
    est.tell_many(seen.items, seen.period_s, seen.blocked_s, seen.blocked_s > 0.0)
    return est


def watched(seed: int = 1, items: int = 20_000, **stage: Any) -> Any:
    rng = np.random.default_rng(seed)
    return SyntheticStage(**stage).watch(items, period_s=0.032, rng=rng)


def only(est: ServiceRateEstimator) -> ServiceRate:
    (rate,) = est.rates
    return rate


def value(rate: ServiceRate) -> float:
    assert rate.estimate is not None
    return rate.estimate.value


def figures(rate: ServiceRate) -> tuple[Any, ...]:
    found = (rate.converged, rate.reason, rate.periods, rate.unblocked, rate.used, rate.items)
    window = (pytest.approx(rate.start_s, abs=1e-9), pytest.approx(rate.stop_s))
    return *found, *window, rate.estimate and pytest.approx(rate.estimate.half_width, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("stage", "items", "longest"),
    [
        ({"utilisation": 0.5, "later": 0.5}, 50_000, 700),  # young phases
        ({"utilisation": 0.95, "later": 0.5}, 50_000, 700),
        ({"utilisation": 0.9, "service": "pareto"}, 60_000, 40),  # many of them
        ({"utilisation": 0.9, "rate": 30.0}, 300_000, 5_000),  # batches longer than a piece
        ({"utilisation": 0.1, "rate": 1.0}, 3_000, 5_000),  # hardly any items
    ],
)
def test_rates_are_the_same_however_periods_are_told(
    method: str, stage: dict[str, Any], items: int, longest: int
) -> None:
    seen = watched(items=items, **stage)
    at_once = told(seen, method=method).rates
    by_one, in_parts = ServiceRateEstimator(method), ServiceRateEstimator(method)
    columns = (seen.items, seen.period_s, seen.blocked_s, seen.blocked_s > 0.0)
    if "later" in stage:
        for period in zip(*(each.tolist() for each in columns), strict=True):
            by_one.tell(*period)
    rng = np.random.default_rng(5)
    start = 0
    while start < len(seen.items):
        stop = start + int(rng.integers(1, longest))
        in_parts.tell_many(*(each[start:stop] for each in columns))
        if rng.random() < 0.1:
            assert in_parts.rates  # looking changes nothing
        start = stop
    for found in [in_parts.rates, *([by_one.rates] if "later" in stage else [])]:
        assert list(map(figures, found)) == list(map(figures, at_once))
        assert method == "quantile" or found == at_once  # to the last bit


def test_observations_of_rare_items_are_as_long_as_their_moments_need() -> None:
    rng = np.random.default_rng(1)
    est = ServiceRateEstimator()
    est.tell_many(rng.poisson(0.05, 300_000), 0.01, rng.random(300_000) * 0.005)
    moments = only(est).moments
    assert moments is not None
    assert (moments.n, moments.process) == (147, "exponential")  # of 2,048 periods each


@pytest.mark.alone
@pytest.mark.parametrize("method", METHODS)
def test_memory_does_not_grow_with_the_stream(method: str) -> None:
    rng = np.random.default_rng(3)
    busy = rng.poisson(40.0, 40_000), 0.04, rng.random(40_000) * 0.01
    for periods, times, most in (
        (busy, 2, 2_000_000),
        ((np.zeros(100_000), 0.005, 0.005), 40, 500_000),
    ):
        est = ServiceRateEstimator(method)
        tracemalloc.start()
        for _ in range(times):
            est.tell_many(*periods)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert held < most
    (rate,) = est.rates
    assert (rate.reason == "never-busy") is (method == "busy-time")
    assert rate.periods == 4_000_000


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


@pytest.mark.parametrize("method", METHODS)
def test_times_that_are_known_now_and_then_speak_of_the_periods_in_which_they_are(
    method: str,
) -> None:
    number = np.arange(1000)
    items = np.where(number % 3 == 0, 60.0, 40.0)
    blocked_s = np.where((number % 3 == 0) | (method == "quantile"), 0.0, 0.05)
    # The processor time of two periods in three is not known, nor the delay of the others.
    cpu_s = np.where(number % 3 == 0, 0.04, np.nan)
    delay_s = np.where(number % 3 == 0, np.nan, 0.01)
    est = ServiceRateEstimator(method)
    est.tell_many(items, 0.1, blocked_s, cpu_s=cpu_s, delay_s=delay_s)
    rate = est.rates[-1]
    busy_s = 0.1 if method == "quantile" else 0.05
    assert rate.delay_share == pytest.approx(0.01 / busy_s)
    if method == "busy-time":
        assert rate.cpu_rate is not None
        assert rate.cpu_rate.value == pytest.approx(60.0 / 0.04)


def test_unknown_times_may_be_told_in_any_way() -> None:
    known = [0.05, 0.04, float("nan"), 0.03] * 30
    columns: list[Any] = [known, tuple(known), np.array(known), iter(known), np.float32(known)]
    shares = []
    for column in columns:
        est = ServiceRateEstimator()
        est.tell_many([50, 51] * 60, 0.1, cpu_s=column, delay_s=float("nan"))
        assert only(est).delay_share is None
        shares.append(only(est).cpu_rate)
    est = ServiceRateEstimator()
    for number, cpu_s in enumerate(known):
        missing = None if number % 8 else np.float64("nan")
        est.tell(50 + number % 2, 0.1, cpu_s=missing if np.isnan(cpu_s) else cpu_s)
    assert only(est).cpu_rate is not None
    assert [each.value for each in shares if each] == pytest.approx(
        [only(est).cpu_rate.value] * len(columns)  # type: ignore[union-attr]
    )


def test_times_of_other_kinds_are_numbers_in_every_column_or_in_none() -> None:
    seconds = np.array([1, 2] * 60, dtype="m8[s]")
    cpu_rates = []
    for column in (seconds, [1, 2] * 60):
        est = ServiceRateEstimator()
        est.tell_many([50, 51] * 60, np.full(120, 4.0), cpu_s=column)
        cpu_rates.append(only(est).cpu_rate)
    assert cpu_rates[0] == cpu_rates[1] is not None
    for wrong in (
        np.array([1, "NaT"], dtype="m8[s]"),
        [1 + 0j, 1.0],
        [None, 1.0],
        [[1.0], [1.0, 2.0]],
    ):
        with pytest.raises(InvalidInput, match="cpu_s"):
            ServiceRateEstimator().tell_many([1, 1], [0.1, 0.1], cpu_s=wrong)


def test_no_more_delay_counts_than_has_room_in_the_busy_time() -> None:
    est = ServiceRateEstimator()
    for number in range(100):
        est.tell(50 + number % 2, 0.1, blocked_s=0.09, cpu_s=0.008, delay_s=0.05)
    assert only(est).delay_share == pytest.approx(0.2)


def test_differences_of_clocks_may_be_rounded() -> None:
    est = ServiceRateEstimator("quantile")
    for _ in range(150):
        est.tell(100, 0.1, blocked_s=-1e-17)
        est.tell(100, 0.1, blocked_s=1e-17)
    assert est.rates[-1].unblocked_share == 1.0
    ServiceRateEstimator().tell(0, 0.1, blocked_s=0.1 + 1e-9)
