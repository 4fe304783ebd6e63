from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_toeplitz, toeplitz
from scipy.signal import lfilter

from benchrigor.stats.series import long_run_variance as module
from benchrigor.stats.series.long_run_variance import (
    autoregression,
    long_run_variance,
    spectral_fit,
)


def ar1(phi: float, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    burn_in = 500
    noise = rng.normal(size=n + burn_in)
    return lfilter([1.0], [1.0, -phi], noise)[burn_in:] * np.sqrt(1.0 - phi**2)


def test_coefficients_solve_the_yule_walker_equations() -> None:
    coefficients, innovation, covariances = autoregression(ar1(0.7, 2000, seed=3))
    order = coefficients.size
    expected = solve_toeplitz(covariances[:order], covariances[1 : order + 1])
    assert order >= 1
    assert coefficients == pytest.approx(expected, rel=1e-9)
    assert innovation == pytest.approx(covariances[0] - expected @ covariances[1 : order + 1])


def test_degrees_of_freedom_weigh_each_order_by_its_criterion() -> None:
    n, series = 60, ar1(0.6, 60, seed=5)
    series -= series.mean()
    covariances = autoregression(series)[2]
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


def scripted(monkeypatch: pytest.MonkeyPatch, fits: dict[int, tuple[float, float, float]]) -> Any:
    """Estimate of 400 readings, of which so many batches give a value, freedom and tau."""

    white = long_run_variance(np.random.default_rng(1).normal(size=40))

    def fit(points: np.ndarray, fitted: int) -> tuple[Any, float]:
        value, freedom, tau = fits.pop(points.size)
        known = {"value": value, "largest": value, "order": points.size}
        freedoms = {"degrees_of_freedom": freedom, "freedom_of_order": freedom / 2.0}
        return replace(white, batch=1, **known, **freedoms), tau

    monkeypatch.setattr(module, "spectral_fit", fit)
    return long_run_variance(np.zeros(400))


def test_the_value_lies_midway_between_the_mean_and_the_largest_of_the_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # In units of the readings: 6, 2 x 5 and 4 x 0.5, their mean is 6.
    fits = {400: (6.0, 30.0, 8.0), 200: (5.0, 20.0, 7.0), 100: (0.5, 50.0, 2.0)}
    found = scripted(monkeypatch, fits)
    assert not fits
    assert (found.value, found.largest) == (8.0, 10.0)
    assert (found.order, found.batch) == (200, 2)
    # Those of the best-known fit, whichever is the largest.
    assert (found.degrees_of_freedom, found.freedom_of_order) == (50.0, 25.0)


@pytest.mark.parametrize(
    "fits",
    [
        {400: (6.0, 30.0, 2.0)},  # no longer persistent
        {400: (6.0, 30.0, 33.0)},  # batches of 9 are fewer than 50
        {400: (6.0, 30.0, 32.0), 50: (0.75, 30.0, 9.0)},
    ],
)
def test_batches_are_made_while_readings_are_persistent_and_many(
    monkeypatch: pytest.MonkeyPatch, fits: dict[int, tuple[float, float, float]]
) -> None:
    found = scripted(monkeypatch, fits)
    assert not fits
    assert (found.value, found.largest, found.degrees_of_freedom) == (6.0, 6.0, 30.0)


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
