import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.signal import lfilter
from statsmodels.tsa.stattools import acf

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code
from benchrigor.stats import autocorrelation, estimate_level, estimate_mean, merge_subsessions
from benchrigor.stats.series.subsessions import fit_merged

series_of_ints = st.lists(st.integers(-1000, 1000), min_size=3, max_size=60)


@pytest.mark.parametrize("lag", [0, 1, 5])
def test_autocorrelation_agrees_with_statsmodels(lag: int) -> None:
    values = np.random.default_rng(2).normal(size=200).cumsum()
    assert autocorrelation(values, lag) == pytest.approx(acf(values, nlags=5, fft=False)[lag])


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7e9])
def test_autocorrelation_of_constant_values_is_zero(value: float) -> None:
    assert autocorrelation([value] * 50) == 0.0


@pytest.mark.parametrize("lag", [-1, 3, 1.5, True])
def test_autocorrelation_refuses_a_lag_out_of_range(lag: object) -> None:
    with pytest.raises(InvalidInput, match="lag is"):
        autocorrelation([1.0, 2.0, 3.0], lag)  # type: ignore[arg-type]


@given(series_of_ints, st.floats(0.01, 100.0), st.floats(-100.0, 100.0))
def test_autocorrelation_does_not_depend_on_unit_or_origin(
    values: list[int], scale: float, shift: float
) -> None:
    moved = [scale * value + shift for value in values]
    assert autocorrelation(moved) == pytest.approx(autocorrelation(values), abs=1e-6)


def test_white_noise_is_not_merged() -> None:
    merged = merge_subsessions(np.random.default_rng(3).normal(size=2000))
    assert merged.size == 1
    assert merged.means.size == 2000


def test_the_least_size_within_the_limit_is_taken() -> None:
    noise = np.random.default_rng(4).normal(size=5000)
    values = lfilter([1.0], [1.0, -0.8], noise)
    merged = merge_subsessions(values, limit=0.1)
    assert merged.size is not None
    assert 8 <= merged.size <= 60
    assert abs(merged.autocorrelation) <= 0.1
    assert merged.dropped == 5000 - merged.size * merged.means.size
    smaller = values[: 5000 // 4 * 4].reshape(-1, 4).mean(axis=1)
    assert autocorrelation(smaller) > 0.1


def test_there_is_no_size_when_too_few_readings_are_left_to_merge() -> None:
    merged = merge_subsessions([1.0, 2.0, 3.0, 4.0, 5.0], limit=0.1)
    assert merged.size is None
    assert merged.means.size == 0


def test_a_constant_series_is_merged_by_one() -> None:
    assert merge_subsessions([2.5] * 9).size == 1


@given(series_of_ints)
def test_means_are_means_of_adjacent_readings(values: list[int]) -> None:
    merged = merge_subsessions(values, limit=0.9)
    if merged.size is not None:
        for index, mean in enumerate(merged.means):
            part = values[index * merged.size : (index + 1) * merged.size]
            assert mean == pytest.approx(np.mean(part), abs=1e-9)


def test_harmonic_means_are_for_rates() -> None:
    merged = merge_subsessions([2.0, 6.0, 2.0, 6.0, 2.0, 6.0, 2.0, 6.0], mean="harmonic", limit=0.5)
    assert merged.size == 2
    assert merged.means.tolist() == pytest.approx([3.0] * 4)


def test_a_harmonic_mean_names_the_value_that_is_not_positive() -> None:
    with pytest.raises(InvalidInput, match=r"values\[1\] is 0\.0"):
        merge_subsessions([1.0, 0.0, 2.0], mean="harmonic")


@pytest.mark.parametrize("limit", [0.0, 1.5, float("nan"), "0.1"])
def test_a_limit_out_of_range_is_named(limit: object) -> None:
    with pytest.raises(InvalidInput, match="limit is"):
        merge_subsessions([1.0, 2.0, 3.0], limit=limit)  # type: ignore[arg-type]


def correlated(n: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng([n, seed]).normal(size=n + 100)
    return lfilter([1.0], [1.0, -0.7], noise)[100:]


@pytest.mark.parametrize("n", [900, 910])
def test_the_interval_is_students_t_of_the_merged_readings(n: int) -> None:
    values = 10.0 + correlated(n, seed=1)
    fit = fit_merged(values)
    assert fit.batch > 1
    count = n // fit.batch
    merged = values[: count * fit.batch].reshape(count, fit.batch).mean(axis=1)
    # About the mean of all readings, of which the merged ones leave out up to eight.
    error = np.sqrt(np.sum((merged - values.mean()) ** 2) / (count - 1) / count)
    low, high = scipy_stats.t.interval(0.9, count - 1, values.mean(), error)
    found = estimate_level(fit, 0.9)
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high))
    assert (found.standard_error, found.degrees_of_freedom) == pytest.approx((error, count - 1))
    assert fit.variance == pytest.approx(values.var(ddof=1))


def test_a_tighter_limit_merges_more() -> None:
    values = correlated(2_000, seed=2)
    assert fit_merged(values, limit=0.05).batch > fit_merged(values, limit=0.4).batch > 1


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7e9])
def test_merged_constant_readings_have_no_width(value: float) -> None:
    found = estimate_mean([value] * 50, method="subsessions")
    assert (found.low, found.value, found.high) == (value, value, value)
    assert Code.CONSTANT in [notice.code for notice in found.notices]


def test_fewer_than_three_readings_are_not_merged() -> None:
    with pytest.raises(NotEstimable) as caught:
        estimate_mean([1.0, 2.0], method="subsessions")
    assert caught.value.notice.code is Code.TOO_FEW_READINGS
    assert caught.value.notice.sentence == "2 readings, expected at least 3."


def test_readings_that_no_size_decorrelates_are_refused() -> None:
    walk = np.random.default_rng(5).normal(size=30).cumsum()
    with pytest.raises(NotEstimable) as caught:
        estimate_mean(walk, method="subsessions")
    notice = caught.value.notice
    assert notice.code is Code.STILL_CORRELATED
    assert notice.sentence.startswith("No subsession size that leaves 5 different means")
    assert notice.evidence["n"] == 30


def test_merged_readings_that_happen_to_be_equal_are_refused() -> None:
    values = [0.0, 2.0, 1.0, 1.0, 2.0, 0.0] * 4  # by twos their means are all 1
    assert merge_subsessions(values, limit=0.1).size == 2
    with pytest.raises(NotEstimable):
        estimate_mean(values, method="subsessions")


def test_an_estimate_by_merging_says_so_and_trims() -> None:
    values = 10.0 + correlated(1_000, seed=3)
    values[:200] += 9.0
    found = estimate_mean(values, method="subsessions", trim=True)
    assert found.method == "subsessions"
    whole = estimate_mean(values, method="subsessions")
    assert whole.value == pytest.approx(values.mean())
    assert whole.half_width > 5.0 * found.half_width  # the step in it
    assert found.n == pytest.approx(700, abs=30)
    assert found.low < 10.0 < found.high < 11.0 < values.mean()
    kept = values[-found.n :]
    assert found == estimate_level(fit_merged(kept), 0.95, positive=True)


@pytest.mark.parametrize("method", ["subsession", "", None, "long-run variance"])
def test_an_unknown_method_is_named_beside_those_there_are(method: object) -> None:
    expected = f"method is {method!r}, expected 'long-run-variance' or 'subsessions'"
    with pytest.raises(InvalidInput, match=expected):
        estimate_mean([1.0, 2.0, 3.0], method=method)  # type: ignore[arg-type]
