"""Coverage is tested by seeded simulation; a bound is left by chance about once in a thousand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.estimates import estimated

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code
from benchrigor.stats import estimate_mean
from benchrigor.stats.estimators.rate import estimate_rate, reciprocal

RNG = np.random.default_rng(60)
RATES = RNG.lognormal(3.0, 0.4, 400)
DURATIONS = RNG.uniform(0.5, 2.0, 400)


def test_equal_work_is_the_harmonic_mean_with_the_interval_of_the_times_turned_over() -> None:
    found = estimate_rate(RATES)
    times = estimate_mean(1.0 / RATES)
    assert found.value == pytest.approx(scipy_stats.hmean(RATES))
    assert (found.low, found.high) == pytest.approx((1.0 / times.high, 1.0 / times.low))
    assert found.method == "long-run-variance, harmonic"
    assert (found.n, found.n_effective) == (400, times.n_effective)


def test_equal_time_is_the_plain_mean() -> None:
    assert estimate_rate(RATES, weights="time") == estimate_mean(RATES)


def test_durations_give_total_work_over_total_time() -> None:
    found = estimate_rate(RATES, weights=DURATIONS)
    assert found.value == pytest.approx((RATES * DURATIONS).sum() / DURATIONS.sum())
    assert found.method == "long-run-variance, by duration"
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


def test_equal_durations_are_equal_time() -> None:
    found = estimate_rate(RATES, weights=np.full(400, 0.37))
    plain = estimate_rate(RATES, weights="time")
    assert (found.value, found.low, found.high) == pytest.approx(
        (plain.value, plain.low, plain.high)
    )


def test_the_durations_of_equal_work_give_the_harmonic_mean() -> None:
    found = estimate_rate(RATES, weights=100.0 / RATES)
    harmonic = estimate_rate(RATES)
    assert found.value == pytest.approx(harmonic.value)
    assert found.standard_error == pytest.approx(harmonic.standard_error)
    assert (found.low, found.high) == pytest.approx((harmonic.low, harmonic.high), rel=0.01)


def test_the_harmonic_mean_is_the_least_of_them() -> None:
    assert estimate_rate(RATES).value < estimate_rate(RATES, weights="time").value


@given(st.floats(1e-9, 1e9), st.sampled_from(["work", "time", "durations"]))
def test_scaling_the_rates_scales_the_estimate(factor: float, kind: str) -> None:
    weights = DURATIONS if kind == "durations" else kind
    found = estimate_rate(RATES, weights=weights)
    scaled = estimate_rate(RATES * factor, weights=weights)
    ends = (found.value * factor, found.low * factor, found.high * factor)
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx(ends, rel=1e-6)


@given(st.floats(1e-9, 1e9))
def test_the_unit_of_the_durations_does_not_matter(factor: float) -> None:
    found = estimate_rate(RATES, weights=DURATIONS)
    scaled = estimate_rate(RATES, weights=DURATIONS * factor)
    assert (scaled.low, scaled.high) == pytest.approx((found.low, found.high), rel=1e-6)


def test_turning_over_twice_gives_the_first_estimate_back() -> None:
    once = estimate_mean(RATES)
    twice = reciprocal(reciprocal(once))
    assert (twice.value, twice.low, twice.high, twice.standard_error) == pytest.approx(
        (once.value, once.low, once.high, once.standard_error)
    )


def test_an_estimate_without_a_standard_error_is_turned_over_too() -> None:
    bare = estimated(2.0, 1.0, 4.0, confidence=0.9, n=9, n_effective=9.0, method="any")
    turned = reciprocal(bare)
    assert (turned.value, turned.low, turned.high) == (0.5, 0.25, 1.0)
    assert (turned.standard_error, turned.confidence) == (None, 0.9)


def test_constant_rates_have_an_interval_without_width() -> None:
    for weights in ("work", "time", [1.0, 2.0, 3.0] * 20):
        found = estimate_rate([4.0] * 60, weights=weights)
        assert (found.low, found.value, found.high) == (4.0, 4.0, 4.0)
        assert [notice.code for notice in found.notices] == [Code.CONSTANT]


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (0.1, "0.1"),
        (0.3, "0.3"),
        (0.7, "0.7"),
        (49.0, "49"),  # 1 / (1 / 49) is less
        (1.0 / 3.0, "0.333333"),
        (1e15 + 0.3, "1e+15"),
        (123456789.123, "123456789.123"),
        (1e9 / 3.0, "3.33333e+08"),
    ],
)
@pytest.mark.parametrize("weights", ["work", "time", "durations"])
def test_equal_rates_are_shown_as_they_were_given(rate: float, shown: str, weights: str) -> None:
    durations = RNG.uniform(0.1, 3.0, 12)
    found = estimate_rate([rate] * 12, weights=durations if weights == "durations" else weights)
    assert (found.low, found.value, found.high) == (rate, rate, rate)
    assert found.method.endswith(
        {"work": ", harmonic", "durations": ", by duration"}.get(weights, "e")
    )
    (constant,) = (each for each in found.notices if each.code is Code.CONSTANT)
    assert constant.sentence == f"All 12 readings are {shown}: the interval has no width."
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


def test_a_single_rate_is_refused() -> None:
    with pytest.raises(NotEstimable, match="1 reading, expected at least 2"):
        estimate_rate([1.0])


@pytest.mark.parametrize("wrong", [0.0, -2.0, 1e-200])
def test_a_rate_not_above_0_is_named(wrong: float) -> None:
    with pytest.raises(InvalidInput, match=r"values\[2\] is .*expected a rate"):
        estimate_rate([1.0, 2.0, wrong, wrong])
    with pytest.raises(InvalidInput, match=r"values\[0\]"):
        estimate_rate([wrong])


def test_a_rate_of_0_is_fine_where_the_time_was_equal() -> None:
    assert estimate_rate([0.0, 2.0, 1.0], weights="time").value == 1.0
    assert estimate_rate([0.0, 2.0, 1.0], weights=[2.0, 1.0, 1.0]).value == 0.75


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("harmonic", "weights is 'harmonic', expected 'work', 'time' or durations"),
        ([1.0, 2.0], "weights holds 2 durations for 3 values"),
        ([1.0, 0.0, 1.0], r"weights\[1\] is 0.0, expected a duration above 0"),
        ([1.0, 2.0, float("nan")], r"weights\[2\] is nan"),
        ([[1.0, 2.0, 3.0]], "two dimensions"),
        (None, "weights is None"),
    ],
)
def test_durations_that_are_none_are_named(weights: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        estimate_rate([1.0, 2.0, 3.0], weights=weights)  # type: ignore[arg-type]


def test_what_is_no_rate_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"values\[1\] is inf"):
        estimate_rate([1.0, float("inf")])
    with pytest.raises(InvalidInput, match="confidence is 2"):
        estimate_rate(RATES, confidence=2)
