import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.signal import lfilter
from statsmodels.tsa.stattools import acf

from benchrigor.errors import NotEstimable
from benchrigor.stats import autocorrelation, estimate_mean, merge_subsessions

series_of_ints = st.lists(st.integers(-1000, 1000), min_size=3, max_size=60)


@pytest.mark.parametrize("lag", [0, 1, 5])
def test_autocorrelation_agrees_with_statsmodels(lag: int) -> None:
    values = np.random.default_rng(2).normal(size=200).cumsum()
    assert autocorrelation(values, lag) == pytest.approx(acf(values, nlags=5, fft=False)[lag])


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7e9])
def test_autocorrelation_of_constant_values_is_zero(value: float) -> None:
    assert autocorrelation([value] * 50) == 0.0


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


def correlated(n: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng([n, seed]).normal(size=n + 100)
    return lfilter([1.0], [1.0, -0.7], noise)[100:]


@pytest.mark.parametrize("n", [900, 910])
def test_the_interval_is_students_t_of_the_merged_readings(n: int) -> None:
    values = correlated(n, seed=1)
    size = merge_subsessions(values).size
    assert size is not None
    assert size > 1
    count = n // size
    merged = values[: count * size].reshape(count, size).mean(axis=1)
    # About the mean of all readings, of which the merged ones leave out up to eight.
    error = np.sqrt(np.sum((merged - values.mean()) ** 2) / (count - 1) / count)
    low, high = scipy_stats.t.interval(0.9, count - 1, values.mean(), error)
    found = estimate_mean(values, method="subsessions", confidence=0.9)
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high))
    assert (found.standard_error, found.degrees_of_freedom) == pytest.approx((error, count - 1))


def test_merged_readings_that_happen_to_be_equal_are_refused() -> None:
    values = [0.0, 2.0, 1.0, 1.0, 2.0, 0.0] * 4  # by twos their means are all 1
    assert merge_subsessions(values, limit=0.1).size == 2
    with pytest.raises(NotEstimable):
        estimate_mean(values, method="subsessions")
