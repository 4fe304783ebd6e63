import numpy as np
import pytest
from scipy.linalg import solve_toeplitz
from scipy.signal import lfilter

from benchrigor.stats import autoregression
from benchrigor.stats.autoregression import batch_means, long_run_variance


def ar1(phi: float, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    burn_in = 500
    noise = rng.normal(size=n + burn_in)
    return lfilter([1.0], [1.0, -phi], noise)[burn_in:] * np.sqrt(1.0 - phi**2)


def test_coefficients_solve_the_yule_walker_equations() -> None:
    series = ar1(0.7, 2000, seed=3)
    covariances = autoregression._autocovariances(series, 4)
    order, coefficients, innovation = autoregression._levinson_durbin(covariances, series.size)
    expected = solve_toeplitz(covariances[:order], covariances[1 : order + 1])
    assert order >= 1
    assert coefficients == pytest.approx(expected, rel=1e-9)
    assert innovation == pytest.approx(covariances[0] - expected @ covariances[1 : order + 1])


def test_sum_of_inverse_agrees_with_a_dense_solve() -> None:
    covariances = np.array([2.0, 1.1, 0.4])
    dense = np.array([[2.0, 1.1, 0.4], [1.1, 2.0, 1.1], [0.4, 1.1, 2.0]])
    found = autoregression._sum_of_inverse(covariances, 3)
    assert found == pytest.approx(np.linalg.inv(dense).sum())


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
def test_long_run_variance_finds_that_of_an_ar1_process(phi: float) -> None:
    truth = (1.0 + phi) / (1.0 - phi)
    found = [
        long_run_variance(series - series.mean()).value
        for series in (ar1(phi, 4000, seed) for seed in range(30))
    ]
    # Its relative standard error at n = 4000 is below 0.12; keeping the largest leans upwards.
    assert 0.9 * truth < np.median(found) < 1.25 * truth


def test_degrees_of_freedom_of_white_noise_are_those_of_a_plain_variance() -> None:
    found = []
    for seed in range(21):
        series = np.random.default_rng(seed).normal(size=400)
        found.append(long_run_variance(series - series.mean()))
    assert np.median([each.order for each in found]) == 0
    assert np.median([each.degrees_of_freedom for each in found]) == 399.0


def test_degrees_of_freedom_shrink_with_persistence() -> None:
    series = ar1(0.9, 1000, seed=1)
    found = long_run_variance(series - series.mean())
    assert found.degrees_of_freedom < 200.0


def test_slow_noise_under_fast_noise_is_seen() -> None:
    rng = np.random.default_rng(11)
    slow = ar1(0.995, 20_000, seed=12)
    series = 0.3 * slow + rng.normal(size=slow.size)
    truth = 0.3**2 * 1.995 / 0.005 + 1.0
    found = long_run_variance(series - series.mean()).value
    assert 0.4 * truth < found < 2.5 * truth


def test_batch_means_drop_what_is_left_over() -> None:
    assert batch_means(np.arange(7.0), 3).tolist() == pytest.approx([1.0, 4.0])
