"""Coverage is tested by seeded simulation; a bound is left by chance about once in a thousand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from benchrigor.model import Code
from benchrigor.stats import estimate_mean, estimate_rate

RNG = np.random.default_rng(60)
RATES = RNG.lognormal(3.0, 0.4, 400)
DURATIONS = RNG.uniform(0.5, 2.0, 400)


def test_equal_work_is_the_harmonic_mean_with_the_interval_of_the_times_turned_over() -> None:
    found = estimate_rate(RATES)
    times = estimate_mean(1.0 / RATES)
    assert found.value == pytest.approx(scipy_stats.hmean(RATES))
    assert (found.low, found.high) == pytest.approx((1.0 / times.high, 1.0 / times.low))
    assert found.method.endswith(", harmonic")
    assert (found.n, found.n_effective) == (400, times.n_effective)


def test_durations_give_total_work_over_total_time() -> None:
    found = estimate_rate(RATES, weights=DURATIONS)
    assert found.value == pytest.approx((RATES * DURATIONS).sum() / DURATIONS.sum())
    assert found.method.endswith(", by duration")
    assert found.low < found.value < found.high


def test_the_error_of_a_ratio_is_that_of_the_delta_method() -> None:
    rng = np.random.default_rng(61)
    durations = rng.uniform(0.5, 2.0, 20)  # below 30 readings no autocorrelation is looked for
    rates = rng.lognormal(0.0, 0.3, 20)
    found = estimate_rate(rates, weights=durations)
    work = rates * durations
    ratio = work.sum() / durations.sum()
    (vv, vd), (_, dd) = np.cov(work, durations)
    variance = (vv - 2.0 * ratio * vd + ratio**2 * dd) / 20 / durations.mean() ** 2
    assert found.standard_error == pytest.approx(np.sqrt(variance))


def test_the_durations_of_equal_work_give_the_harmonic_mean() -> None:
    found = estimate_rate(RATES, weights=100.0 / RATES)
    harmonic = estimate_rate(RATES)
    assert found.value == pytest.approx(harmonic.value)
    assert found.standard_error == pytest.approx(harmonic.standard_error)
    assert (found.low, found.high) == pytest.approx((harmonic.low, harmonic.high), rel=0.01)


@given(st.floats(1e-9, 1e9), st.sampled_from(["work", "time", "durations"]))
def test_scaling_the_rates_scales_the_estimate(factor: float, kind: str) -> None:
    weights = DURATIONS if kind == "durations" else kind
    found = estimate_rate(RATES, weights=weights)
    scaled = estimate_rate(RATES * factor, weights=weights)
    ends = (found.value * factor, found.low * factor, found.high * factor)
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx(ends, rel=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.7, 49.0, 1.0 / 3.0, 1e15 + 0.3, 1e9 / 3.0])
@pytest.mark.parametrize("weights", ["work", "time", "durations"])
def test_equal_rates_are_told_as_they_were_given(rate: float, weights: str) -> None:
    """Also where 1 / (1 / rate) is another number, as for 49."""
    durations = RNG.uniform(0.1, 3.0, 12)
    found = estimate_rate([rate] * 12, weights=durations if weights == "durations" else weights)
    assert (found.low, found.value, found.high) == (rate, rate, rate)
    assert found.method.endswith(
        {"work": ", harmonic", "durations": ", by duration"}.get(weights, "e")
    )
    (constant,) = (each for each in found.notices if each.code is Code.CONSTANT)
    assert constant.evidence["value"] == rate


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_tiny_and_huge_rates_stay_in_range(size: float) -> None:
    found = estimate_rate(RATES * size)
    assert found.value == pytest.approx(scipy_stats.hmean(RATES) * size)
    assert 0.0 < found.low < found.high


@pytest.mark.parametrize("weights", ["work", "time", [1.0, 9.0, 90.0]])
def test_the_interval_of_rates_that_are_far_apart_is_above_0(weights: object) -> None:
    found = estimate_rate([1.0, 1000.0, 10.0], weights=weights)
    assert 0.0 < found.low < found.value < found.high


def test_a_rate_of_0_is_fine_where_the_time_was_equal() -> None:
    assert estimate_rate([0.0, 2.0, 1.0], weights="time").value == 1.0
    assert estimate_rate([0.0, 2.0, 1.0], weights=[2.0, 1.0, 1.0]).value == 0.75
