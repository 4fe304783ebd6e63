"""Rates, shares and quantiles, and their intervals."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.series import persistent
from statsmodels.stats.proportion import proportion_confint

from benchrigor.errors import NotEstimable
from benchrigor.model import Code
from benchrigor.stats import estimate_mean, estimate_proportion, estimate_quantile, estimate_rate
from benchrigor.stats.shares_and_quantiles import distribution_of

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


@given(
    st.floats(1e-9, 1e9) | st.sampled_from([1e-140, 1e140]),
    st.sampled_from(["work", "time", "durations"]),
)
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


@pytest.mark.parametrize("weights", ["work", "time", [1.0, 9.0, 90.0]])
def test_the_interval_of_rates_that_are_far_apart_is_above_0(weights: object) -> None:
    found = estimate_rate([1.0, 1000.0, 10.0], weights=weights)
    assert 0.0 < found.low < found.value < found.high


def test_a_rate_of_0_is_fine_where_the_time_was_equal() -> None:
    assert estimate_rate([0.0, 2.0, 1.0], weights="time").value == 1.0
    assert estimate_rate([0.0, 2.0, 1.0], weights=[2.0, 1.0, 1.0]).value == 0.75


# --- Coverage is tested by seeded simulation; a bound is left by chance about once in a thousand.


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(
    ("successes", "n"), [(0, 1), (1, 1), (0, 20), (7, 20), (20, 20), (3, 5000)]
)
def test_counts_give_the_interval_of_wilson(successes: int, n: int, confidence: float) -> None:
    found = estimate_proportion(successes, n, confidence=confidence)
    low, high = proportion_confint(successes, n, alpha=1.0 - confidence, method="wilson")
    assert found.value == successes / n
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert (found.n, found.n_effective, found.method) == (n, n, "Wilson")
    assert found.notices == ()


@given(st.integers(1, 10**6), st.floats(0.0, 1.0), st.floats(0.01, 0.999))
def test_failures_mirror_successes_within_0_and_1(n: int, share: float, confidence: float) -> None:
    successes = round(share * n)
    found = estimate_proportion(successes, n, confidence=confidence)
    mirrored = estimate_proportion(n - successes, n, confidence=confidence)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.low < found.high
    assert (mirrored.low, mirrored.high) == pytest.approx((1.0 - found.high, 1.0 - found.low))


def test_a_short_series_has_students_t_in_wilsons_interval() -> None:
    found = estimate_proportion([1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0])
    t = scipy_stats.t.ppf(0.975, 11)
    low, high = proportion_confint(7, 12, alpha=2.0 * scipy_stats.norm.sf(t), method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high))
    assert Code.FEW_READINGS in [notice.code for notice in found.notices]


def test_persistent_outcomes_count_for_fewer() -> None:
    # Long-run over marginal variance of the chain: (1 + 0.9) / (1 - 0.9) = 19.
    outcomes = persistent(np.random.default_rng(51), 20_000, 0.3, 0.9)
    found = estimate_proportion(outcomes)
    assert 20_000 / found.n_effective == pytest.approx(19.0, rel=0.35)


DRAWN = np.random.default_rng(40)
SKEWED = DRAWN.lognormal(0.0, 1.0, 400)
BOTH = pytest.mark.parametrize("trim", [False, True])


@pytest.mark.parametrize("q", [0.1, 0.25, 0.3, 0.5, 0.9, 0.123])
def test_a_quantile_is_numpys_averaged_inverted_distribution_function(q: float) -> None:
    for n in (397, 400):
        expected = np.quantile(SKEWED[:n], q, method="averaged_inverted_cdf")
        assert estimate_quantile(SKEWED[:n], q).value == expected


@pytest.mark.parametrize(("n", "q"), [(12, 0.5), (20, 0.5), (29, 0.5), (25, 0.3), (29, 0.8)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_below_thirty_readings_the_interval_is_the_binomial_one(
    n: int, q: float, confidence: float
) -> None:
    values = SKEWED[:n]
    found = estimate_quantile(values, q, confidence=confidence)
    expected = scipy_stats.quantile_test(values, q=0.0, p=q).confidence_interval(confidence)
    assert (found.low, found.high) == tuple(expected)
    assert [notice.code for notice in found.notices] == [Code.FEW_READINGS]


@BOTH
@given(
    st.lists(st.integers(0, 4), min_size=40, max_size=80).filter(lambda each: len(set(each)) > 1),
    st.floats(0.3, 0.7),
    st.floats(0.5, 0.9),
)
def test_the_ends_are_readings_in_order_and_nested_however_many_are_tied(
    trim: bool, values: list[int], q: float, confidence: float
) -> None:
    series = np.array(values, dtype=np.float64)
    try:
        wide = estimate_quantile(series, q, trim=trim)
        narrow = estimate_quantile(series, q, confidence=confidence, trim=trim)
    except NotEstimable:  # the outcome of a series that is too persistent
        assume(False)
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high
    assert {wide.low, wide.high} <= set(series)


@pytest.mark.parametrize("digits", [0, 1, 8])
@pytest.mark.parametrize("n", [400, 10_000])  # of many readings not all are sorted
def test_weighted_shares_are_those_of_the_definition(n: int, digits: int) -> None:
    rng = np.random.default_rng(46)
    values = np.round(rng.lognormal(0.0, 1.0, n), digits)
    weights = rng.normal(1.0, 0.5, n)
    weights /= weights.sum()
    distinct, places = np.unique(values, return_inverse=True)
    upto = np.cumsum(np.bincount(places, weights))
    below = upto - np.bincount(places, weights)
    distribution = distribution_of(values, weights)
    for share in np.linspace(0.02, 0.98, 49):
        low, high = distribution.between(share, share)
        assert low == distinct[upto >= share].min()
        assert high == distinct[below <= share].max()
