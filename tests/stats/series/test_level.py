"""The level of a series beside its transients, and its standard error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import toeplitz
from simulated.series import autoregressive

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
