"""The level of a series beside its transients, by merged readings, and at full speed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.linalg import toeplitz
from scipy.signal import lfilter
from simulated.series import autoregressive
from statsmodels.tsa.stattools import acf

from benchrigor.errors import NotEstimable
from benchrigor.stats import autocorrelation, estimate_mean, merge_subsessions
from benchrigor.stats.series.full_speed import fastest_level
from benchrigor.stats.series.interval import block_starts, fit_level
from benchrigor.stats.series.long_run_variance import long_run_variance, spectral_fit

TRANSIENTS = (1 / 30, 1 / 7)
COMPLETE = (*TRANSIENTS, -1 / 24)


@pytest.mark.parametrize("transients", [TRANSIENTS, COMPLETE])
def test_what_transients_take_up_is_given_back(transients: tuple[float, ...]) -> None:
    rng = np.random.default_rng([1_000, 150])
    every = [autoregressive(rng, 1_000) for _ in range(150)]
    plain = [fit_level(series).long_run_variance for series in every]
    beside = [fit_level(series, transients=transients).long_run_variance for series in every]
    # The ratio has a standard error of 2 %; without giving back it is 0.85 and less.
    assert np.mean(beside) / np.mean(plain) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("transients", [(), TRANSIENTS, COMPLETE])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_level_is_that_of_least_squares(transients: tuple[float, ...], scale: float) -> None:
    n = 400
    series = scale * (3.0 + autoregressive(np.random.default_rng([n, 1]), n, 0.5))
    centres = (np.arange(n) + 0.5) / n
    # Those below 0 grow towards the end, from which they are counted.
    basis = [np.exp(-(centres if each > 0.0 else centres[::-1]) / abs(each)) for each in transients]
    design = np.vstack([np.ones(n), *basis])
    weights, (square,), _, _ = np.linalg.lstsq(design.T, series)
    fit = fit_level(series, transients=transients)
    assert fit.level == pytest.approx(weights[0])
    assert fit.variance == pytest.approx(square / (n - 1 - len(transients)))
    factor = np.linalg.inv(design @ design.T)[0, 0]
    assert fit.standard_error == pytest.approx(np.sqrt(fit.long_run_variance * factor))


@pytest.mark.parametrize("n", [40, 500, 2_000])
def test_a_transient_without_any_noise_gives_its_level(n: int) -> None:
    values = 1.0 + 0.5 * np.exp(-(np.arange(n) + 0.5) / n / TRANSIENTS[0])
    found = fit_level(values, transients=TRANSIENTS)
    assert (found.level, found.standard_error) == pytest.approx((1.0, 0.0), abs=1e-6)


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("times", [0.1, 4.0])
def test_an_outlier_at_an_end_does_not_take_the_level_past_the_others(
    place: int, times: float
) -> None:
    """A transient that it alone would tell of moved the level against it, by 6 % of 60 readings."""
    rng = np.random.default_rng(77)
    for _ in range(20):
        series = rng.normal(12.5, 0.4, 60)
        series[place] *= times
        fit = fit_level(series, transients=COMPLETE)
        assert fit.level == pytest.approx(series.mean())
        assert not fit.transients


def test_a_cool_down_does_not_move_the_level() -> None:
    n = 1_200
    centres = (np.arange(n) + 0.5) / n
    series = 5.0 + np.exp((centres - 1.0) * 24.0)
    assert fit_level(series, transients=COMPLETE).level == pytest.approx(5.0, abs=1e-9)
    assert fit_level(series, transients=COMPLETE).transients == (40.0, n / 7, -50.0)
    assert fit_level(series, transients=TRANSIENTS).level > 5.01


@pytest.mark.parametrize("n", [50, 100, 1_000])
@pytest.mark.parametrize("times", [5.0, 20.0])
@pytest.mark.parametrize("last", [1, 3, 9])
def test_outliers_at_the_end_put_no_level_below_all_readings(
    n: int, last: int, times: float
) -> None:
    series = np.random.default_rng([20271127, n]).normal(1.0, 0.02, n)
    series[-last:] *= times
    fit = fit_level(series, transients=COMPLETE)
    assert fit.level > series.min() - 0.02
    assert fit.transients or fit.level == pytest.approx(series.mean())


def test_outliers_anywhere_leave_the_mean_of_levels_alone() -> None:
    rng, levels = np.random.default_rng(20271128), []
    for _ in range(400):
        series = np.where(rng.random(100) < 0.03, 5.0, 1.0) * rng.normal(1.0, 0.02, 100)
        levels.append(fit_level(series, transients=COMPLETE).level)
    assert np.mean(levels) == pytest.approx(1.12, abs=3.0 * np.std(levels) / 20.0)


def ar1(phi: float, n: int, seed: int) -> np.ndarray:
    return autoregressive(np.random.default_rng(seed), n, phi)


def test_degrees_of_freedom_weigh_each_order_by_its_criterion() -> None:
    n, series = 60, ar1(0.6, 60, seed=5)
    series -= series.mean()
    covariances = np.array([series[: n - lag] @ series[lag:] for lag in range(16)]) / n
    spreads, criteria = [2.0 / (n - 1)], [n * np.log(covariances[0]) + 2.0 * n / (n - 2)]
    for order in range(1, covariances.size):
        matrix, lagged = toeplitz(covariances[:order]), covariances[1 : order + 1]
        weights = np.linalg.solve(matrix, lagged)
        variance = covariances[0] - weights @ lagged
        criteria.append(n * np.log(variance) + 2.0 * n * (order + 1) / (n - order - 2))
        variance *= n / (n - order - 1)
        total = weights.sum() + (1.0 + 3.0 * max(weights.sum(), 0.0)) / n
        error = variance * np.linalg.inv(matrix).sum() / n
        spreads.append(2.0 / (n - 1) + 4.0 * error / (1.0 - total) ** 2)
    shares = np.exp(-np.subtract(criteria, min(criteria)) / 2.0)
    noise, _ = spectral_fit(series, 1)
    assert noise.order == np.argmin(criteria)
    assert noise.degrees_of_freedom == pytest.approx(2.0 * shares.sum() / (shares @ spreads))
    assert noise.freedom_of_order == pytest.approx(2.0 / spreads[noise.order])


def test_the_long_run_variance_of_ar1_is_nineteen_variances_on_average() -> None:
    every = [ar1(0.9, 4_000, seed) for seed in range(100)]
    found = [long_run_variance(series - series.mean()) for series in every]
    # The mean has a standard error of 2.5 %; midway leans upwards by 5 %, the largest by 11 %.
    assert 0.95 * 19.0 < np.mean([each.value for each in found]) < 1.13 * 19.0
    assert all(each.value <= each.largest for each in found)
    # About half of the effective readings, 4000 / 19.
    assert 70 < np.median([each.degrees_of_freedom for each in found]) < 160


def test_a_short_persistent_series_is_not_taken_for_a_calmer_one() -> None:
    every = [ar1(0.9, 200, seed) for seed in range(300)]
    found = np.median([long_run_variance(series - series.mean()).value for series in every])
    # An autoregression fitted to ten effective readings is a fifth too small unless corrected.
    assert 0.88 * 19.0 < found < 1.2 * 19.0


@given(
    st.lists(st.floats(1e-9, 1e9), min_size=2, max_size=200),
    st.integers(2, 20),
)
def test_no_block_is_empty_and_the_first_begins_at_the_start(
    values: list[float], blocks: int
) -> None:
    starts = block_starts(np.array(values), blocks=blocks)
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    assert starts[-1] < len(values)
    assert starts.size <= max(2, blocks)


def test_one_endless_reading_leaves_the_others_their_blocks() -> None:
    assert block_starts(np.r_[np.full(100, 1.0), 1e6]).tolist() == [0, 100]


FULL_S = 4e-6


def times(share, slower, n=2_000, jitter=0.02, seed=1):
    """Return references of a machine that spends a share of its time at full speed."""
    rng = np.random.default_rng(seed)
    slow = rng.random(n) >= share
    return FULL_S * np.where(slow, slower, 1.0) * np.exp(rng.normal(0.0, jitter, n))


def test_luck_is_no_level():
    """A few of the times are far faster, and the fastest tenth of one level is no other one."""
    seconds = times(1.0, 1.0)
    lucky = np.append(seconds, 0.8 * seconds[:100])
    assert fastest_level(lucky).seconds == pytest.approx(FULL_S, rel=0.005)
    assert fastest_level(lucky, real=0.03).seconds == pytest.approx(0.8 * FULL_S, rel=0.02)
    wide = times(1.0, 1.0, jitter=0.12)
    assert fastest_level(wide).seconds == pytest.approx(FULL_S, rel=0.03)


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
