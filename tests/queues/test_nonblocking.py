"""The published method as it is written down, one period after the other, against the estimator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from benchrigor.queues import ServiceRateEstimator

PERIOD_S = 0.05
KERNEL = [math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi) for x in range(-2, 3)]


@dataclass(frozen=True)
class Found:
    """A rate as it is found one by one."""

    stop: int
    periods: int
    used: int
    items: float
    quantile: float


def quantile(window: list[float], kernel: list[float]) -> float:
    """Equations 2 and 3."""
    kept = [sum(w * window[at + k] for k, w in enumerate(kernel)) for at in range(12)]
    mean = sum(kept) / 12.0
    return mean + 1.64485 * math.sqrt(sum((x - mean) ** 2 for x in kept) / 11.0)


def one_by_one(items: Any, free: np.ndarray, *, guards: bool) -> list[Found]:
    """Compute the quantile after each period, and begin again after each convergence."""
    kernel = [each / sum(KERNEL) for each in KERNEL] if guards else KERNEL
    found: list[Found] = []
    counts: list[float] = []
    quantiles: list[float] = []
    errors: list[float] = []
    begun = steady = 0
    for place, (count, counted) in enumerate(zip(items.tolist(), free.tolist(), strict=True)):
        if not counted:
            continue
        counts.append(count)
        if len(counts) < 16:
            continue
        quantiles.append(quantile(counts[-16:], kernel))
        n, seen = len(quantiles), np.array(quantiles)
        mean = float(seen.mean())
        second = float(((seen - mean) ** 2).sum())
        errors.append(math.sqrt(second / max(n - 1, 1) / n))
        if n < 3:
            continue
        bend = abs(1.49577 * (errors[-1] - 2.0 * errors[-2] + errors[-3]))
        steady = steady + 1 if bend <= (1e-5 * mean if guards else 5e-7) else 0
        if steady < 16:
            continue
        steady = 0
        periods = place + 1 - begun
        few = len(counts) < 0.05 * periods or sum(counts) < 16.0 * len(counts)
        if guards and (few or mean > 1.25 * sum(counts) / len(counts)):
            continue
        found.append(Found(place + 1, periods, len(counts), sum(counts), mean))
        begun, counts, quantiles, errors = place + 1, [], [], []
    return found


def drawn(seed: int, mean: float) -> Any:
    return np.random.default_rng(seed).poisson(mean, N).astype(float)


N = 4_500
SERIES = {
    "regular": np.full(N, 100.0),
    "alternating": 45.0 + np.arange(N) % 2,
    "in steps": np.repeat(drawn(1, 40.0)[: N // 50], 50),
    "nearly regular": np.random.default_rng(2).normal(100.0, 1e-3, N),
    "at random": drawn(3, 30.0),
    "small": drawn(4, 14.0),
}


@pytest.mark.parametrize("guards", [False, True])
@pytest.mark.parametrize("waiting", [0.0, 0.4])
@pytest.mark.parametrize("series", SERIES)
def test_all_at_once_is_what_going_through_them_one_by_one_comes_to(
    series: str, waiting: float, guards: bool
) -> None:
    items = SERIES[series]
    free = np.random.default_rng(5).random(items.size) >= waiting
    est = ServiceRateEstimator("quantile", period_s=PERIOD_S, guards=guards)
    est.tell_many(items, PERIOD_S, 0.0, ~free)
    expected = one_by_one(items, free, guards=guards)
    if not guards and not waiting:
        assert len(expected) >= (10 if series not in {"at random", "small"} else 0)
    rates = [each for each in est.rates if each.converged]
    assert [(each.periods, each.used, each.items) for each in rates] == [
        (each.periods, each.used, int(each.items)) for each in expected
    ]
    assert [each.stop_s for each in rates] == pytest.approx([PERIOD_S * e.stop for e in expected])
    for rate, each in zip(rates, expected, strict=True):
        assert rate.estimate is not None
        mean = each.items / each.used
        wanted = (mean + each.quantile) / 2.0 if guards else each.quantile
        assert rate.estimate.value == pytest.approx(wanted / PERIOD_S, rel=1e-9)
        assert rate.unblocked == each.used


def test_of_many_convergences_in_one_call_the_newest_are_kept_with_their_windows() -> None:
    est = ServiceRateEstimator("quantile", guards=False)
    est.tell_many(np.full(33 * 3000 + 5, 100.0), PERIOD_S)
    rates = est.rates
    assert len(rates) == 1000
    for number, rate in enumerate(rates, start=2000):
        assert (rate.periods, rate.used, rate.items) == (33, 33, 3300)
        assert rate.start_s == pytest.approx(number * 33 * PERIOD_S)
        assert rate.moments is not None
        assert rate.moments.mean_s == pytest.approx(PERIOD_S / 100.0)
    assert est.rates[-1] is rates[-1]  # what has been found is put into words once


@pytest.mark.parametrize("guards", [False, True])
def test_no_rate_is_below_0_nor_minus_0(guards: bool) -> None:
    counts = (np.random.default_rng(6).random(4000) < 0.02) * 0.1
    est = ServiceRateEstimator("quantile", guards=guards)
    est.tell_many(np.where(counts > 0.0, counts, -0.0), PERIOD_S)
    assert est.rates
    for rate in est.rates:
        assert rate.estimate is not None
        found = rate.estimate.value, rate.estimate.low, rate.estimate.high
        assert all(math.copysign(1.0, each) > 0.0 for each in found)
        assert "-0" not in str(rate)


def test_how_many_periods_to_join_is_decided_anew_in_new_windows_also_without_a_doubt() -> None:
    rng = np.random.default_rng(1)
    waits = (rng.random(12_000) < 0.3) & (np.arange(12_000) < 6_000)
    est = ServiceRateEstimator("quantile")
    est.tell_many(rng.poisson(40.0, 12_000), 0.01, 0.0, waits)
    assert max(each.period_s for each in est.rates[:10]) <= 0.03
    assert est.rates[-1].period_s == pytest.approx(0.16)


def test_where_no_number_of_periods_will_do_it_is_decided_again_after_2048_of_them() -> None:
    est = ServiceRateEstimator("quantile")
    est.tell_many(drawn(1, 40.0), 0.01, 0.0, np.arange(N) < 2_300)
    rate = est.rates[-1]
    assert (rate.start_s, rate.period_s) == (pytest.approx(20.48), pytest.approx(0.64))
