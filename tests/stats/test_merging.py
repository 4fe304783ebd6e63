import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter
from statsmodels.tsa.stattools import acf

from benchrigor.errors import InvalidInput
from benchrigor.stats import autocorrelation, merge_subsessions

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
