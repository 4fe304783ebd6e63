"""The estimator as its users meet it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.model import Code, ServiceRate
from benchrigor.queues import ServiceRateEstimator
from benchrigor.queues.data.service import RateReason
from benchrigor.queues.fakes import StagePeriods
from benchrigor.testing import SyntheticStage

METHODS = ("busy-time", "quantile")


def told(seen: StagePeriods, **given: Any) -> ServiceRateEstimator:
    est = ServiceRateEstimator(**given)
    est.tell_many(seen.items, seen.period_s, seen.blocked_s, seen.blocked_s > 0.0)
    return est


def watched(seed: int = 1, items: int = 20_000, **stage: Any) -> StagePeriods:
    rng = np.random.default_rng(seed)
    return SyntheticStage(**stage).watch(items, period_s=0.032, rng=rng)


def only(est: ServiceRateEstimator) -> ServiceRate:
    (rate,) = est.rates
    return rate


def value(rate: ServiceRate) -> float:
    assert rate.estimate is not None
    return rate.estimate.value


def figures(rates: list[ServiceRate]) -> list[tuple[Any, ...]]:
    return [
        (
            each.converged,
            each.reason,
            each.periods,
            each.unblocked,
            each.used,
            each.items,
            pytest.approx(each.start_s, abs=1e-9),
            pytest.approx(each.stop_s),
            None if each.estimate is None else pytest.approx(each.estimate.value),
            None if each.estimate is None else pytest.approx(each.estimate.half_width, rel=1e-6),
        )
        for each in rates
    ]


@pytest.mark.parametrize("utilisation", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("service", ["exponential", "deterministic"])
def test_busy_time_tells_the_rate_at_any_load(utilisation: float, service: str) -> None:
    rate = only(told(watched(utilisation=utilisation, service=service)))
    assert rate.converged
    assert rate.reason is None
    assert value(rate) == pytest.approx(1000.0, rel=0.03)


def test_the_window_and_the_share_of_unblocked_periods_are_those_of_the_data() -> None:
    seen = watched(utilisation=0.8)
    rate = only(told(seen))
    assert (rate.start_s, rate.stop_s) == (0.0, pytest.approx(seen.period_s.sum()))
    assert rate.periods == rate.used == len(seen.items)
    assert rate.unblocked == np.count_nonzero(seen.blocked_s == 0.0)
    assert rate.unblocked_share == rate.unblocked / rate.periods
    assert rate.items == seen.items.sum()
    assert rate.period_s == pytest.approx(0.032)


def test_a_phase_change_gives_two_rates_with_windows_that_meet_at_it() -> None:
    seen = watched(items=60_000, utilisation=0.7, later=0.5)
    first, second = told(seen).rates
    assert value(first) == pytest.approx(1000.0, rel=0.05)
    assert value(second) == pytest.approx(500.0, rel=0.05)
    assert seen.changed is not None
    changed_s = seen.period_s[: seen.changed].sum()
    assert first.stop_s <= second.start_s
    assert second.start_s - first.stop_s < 0.02 * seen.period_s.sum()
    assert first.stop_s == pytest.approx(changed_s, rel=0.05)


def test_the_quantile_method_answers_at_high_load_and_refuses_at_low() -> None:
    high = told(watched(items=100_000, utilisation=0.95), method="quantile").rates
    assert all(each.converged for each in high)
    assert all(value(each) == pytest.approx(1000.0, rel=0.10) for each in high)
    low = told(watched(utilisation=0.2), method="quantile").rates
    assert [each.converged for each in low] == [False]
    assert low[0].reason is RateReason.NO_NONBLOCKING


def test_only_periods_of_the_wanted_width_count_for_the_quantile() -> None:
    est = ServiceRateEstimator("quantile", period_s=0.1)
    for number in range(200):
        est.tell(300 if number % 10 == 0 else 100, 0.3 if number % 10 == 0 else 0.1)
    assert value(est.rates[0]) == pytest.approx(1000.0)
    assert est.rates[0].used < est.rates[0].periods


def test_too_few_items_in_a_given_period_are_refused_with_the_best_so_far() -> None:
    est = ServiceRateEstimator("quantile", period_s=0.1)
    est.tell_many(np.full(300, 15.0), 0.1)
    rate = only(est)
    assert (rate.converged, rate.reason) == (False, RateReason.FEW_ITEMS)
    assert value(rate) == pytest.approx(150.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("utilisation", [0.5, 0.95])
def test_telling_one_by_one_in_parts_and_at_once_is_the_same(
    method: str, utilisation: float
) -> None:
    seen = watched(items=50_000, utilisation=utilisation, later=0.5)
    at_once = figures(told(seen, method=method).rates)
    by_one, in_parts = ServiceRateEstimator(method), ServiceRateEstimator(method)
    columns = (seen.items, seen.period_s, seen.blocked_s)
    for items, period_s, blocked_s in zip(*columns, strict=True):
        by_one.tell(float(items), float(period_s), float(blocked_s), bool(blocked_s > 0.0))
    rng = np.random.default_rng(5)
    start = 0
    while start < len(seen.items):
        stop = start + int(rng.integers(1, 700))
        part = [each[start:stop] for each in columns]
        in_parts.tell_many(*part, part[2] > 0.0)
        assert in_parts.rates  # looking changes nothing
        start = stop
    assert figures(by_one.rates) == at_once
    assert figures(in_parts.rates) == at_once


@pytest.mark.slow
@settings(max_examples=10)
@given(st.floats(1e-3, 1e3), st.sampled_from(METHODS))
def test_the_rate_scales_with_the_unit_of_time(unit: float, method: str) -> None:
    seen = watched(items=5_000, utilisation=0.95)
    usual = ServiceRateEstimator(method)
    scaled = ServiceRateEstimator(method)
    usual.tell_many(seen.items, seen.period_s, seen.blocked_s)
    scaled.tell_many(seen.items, unit * seen.period_s, unit * seen.blocked_s)
    assert [value(each) * unit for each in scaled.rates] == pytest.approx(
        [value(each) for each in usual.rates], rel=1e-6
    )


def test_several_servers_serve_as_much_as_all_of_them() -> None:
    est = ServiceRateEstimator(servers=4)
    for number in range(100):
        est.tell(100 + number % 2, 1.0, blocked_s=2.0)
    assert value(only(est)) == pytest.approx(201.0)


@pytest.mark.alone
@pytest.mark.slow
def test_memory_does_not_grow_with_the_stream() -> None:
    sizes = []
    for method in METHODS:
        est = ServiceRateEstimator(method)
        rng = np.random.default_rng(3)
        for _ in range(2):
            tracemalloc.start()
            for _ in range(40):
                est.tell_many(rng.poisson(40.0, 1000), 0.04, rng.random(1000) * 0.01)
            sizes.append(tracemalloc.get_traced_memory()[0])
            tracemalloc.stop()
    assert all(size < 2_000_000 for size in sizes), sizes


def test_periods_with_waiting_of_unknown_length_do_not_count_and_that_is_said() -> None:
    est = ServiceRateEstimator()
    for number in range(100):
        est.tell(7 if number % 2 else 50 + number % 3, 0.1, blocked=bool(number % 2))
    rate = only(est)
    assert (rate.periods, rate.used) == (100, 50)
    assert value(rate) == pytest.approx(510.0, rel=0.01)
    assert [each.code for each in rate.notices] == [Code.DROPPED_PERIODS]


def test_a_few_periods_give_the_best_so_far() -> None:
    est = ServiceRateEstimator()
    for items in (40, 60, 50):
        est.tell(items, 0.1)
    rate = only(est)
    assert (rate.converged, rate.reason) == (False, RateReason.NOT_CONVERGED)
    assert value(rate) == pytest.approx(500.0)


def test_processor_time_and_delay_stand_beside_the_rate() -> None:
    est = ServiceRateEstimator()
    for number in range(100):
        est.tell(50 + number % 2, 0.1, cpu_s=0.05, delay_s=0.02)
    rate = only(est)
    assert rate.cpu_rate is not None
    assert rate.cpu_rate.value == pytest.approx(1010.0)
    assert rate.delay_share == pytest.approx(0.2)
    assert [each.code for each in rate.notices] == [Code.DISTURBED_RATE]
    est = ServiceRateEstimator()
    for number in range(100):
        est.tell(50 + number % 2, 0.1)
    assert (only(est).cpu_rate, only(est).delay_share, only(est).notices) == (None, None, ())


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


@pytest.mark.parametrize("unknown", ["cpu_s", "delay_s"])
def test_one_reading_that_is_missing_costs_no_more_than_itself(unknown: str) -> None:
    rng = np.random.default_rng(8)
    items = rng.poisson(50.0, 3000).astype(float)
    times = {"cpu_s": 0.001 * items, "delay_s": np.full(3000, 0.02)}
    whole, gapped = ServiceRateEstimator(), ServiceRateEstimator()
    whole.tell_many(items, 0.1, **times)
    times[unknown] = np.where(np.arange(3000) == 1234, np.nan, times[unknown])
    gapped.tell_many(items, 0.1, **times)
    for rate in (only(whole), only(gapped)):
        assert rate.cpu_rate is not None
        assert rate.cpu_rate.value == pytest.approx(1000.0)
        assert rate.delay_share == pytest.approx(0.2)
    first, second = only(whole).cpu_rate, only(gapped).cpu_rate
    assert first is not None
    assert second is not None
    assert second.n == first.n


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
