"""One mode is seldom split."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.mixtures import Draw, Rng, counts_found, spike_beside_a_plain
from simulated.series import autoregressive


def lottery(n: int, rng: Rng, stay: float) -> np.ndarray:
    """Draw a level from one normal distribution, keep it for a while, then draw again."""
    drawn = np.cumsum(rng.random(n) > stay)
    return rng.normal(size=n + 1)[drawn] + rng.normal(0.0, 0.05, n)


def off_the_grid(n: int, rng: Rng) -> np.ndarray:
    grid = np.round(rng.normal(20.0, 1.5, n)) * 100.0
    return grid + np.where(rng.random(n) < 0.01, rng.integers(1, 99, n), 0)


ONE_MODE: dict[str, Draw] = {
    "normal": lambda n, rng: rng.normal(size=n),
    "uniform": lambda n, rng: rng.random(n),
    "exponential": lambda n, rng: rng.exponential(size=n),
    "lognormal 1": lambda n, rng: rng.lognormal(0.0, 1.0, n),
    "lognormal 2": lambda n, rng: rng.lognormal(0.0, 2.0, n),
    "Pareto": lambda n, rng: rng.pareto(2.5, n),
    "Student t2": lambda n, rng: rng.standard_t(2.0, n),
    "gamma": lambda n, rng: rng.gamma(0.5, size=n),
    "spike beside a plain": spike_beside_a_plain,
    "AR 0.5": lambda n, rng: autoregressive(rng, n, 0.5),
    "AR 0.9": lambda n, rng: autoregressive(rng, n, 0.9),
    "AR 0.99": lambda n, rng: autoregressive(rng, n, 0.99),
    "exponential of AR 0.9": lambda n, rng: np.exp(autoregressive(rng, n, 0.9)),
    "lottery 0.9": lambda n, rng: lottery(n, rng, 0.9),
    "ticks, coarse": lambda n, rng: np.round(rng.normal(100.0, 0.5, n)) * 1e-9,
    "ticks, middling": lambda n, rng: np.round(rng.normal(100.0, 3.0, n)) * 1e-9,
    "ticks, fine": lambda n, rng: np.round(rng.normal(900.0, 50.0, n)) * 1e-9,
    "ticks, skewed": lambda n, rng: np.round(50.0 * rng.lognormal(0.0, 0.5, n)),
    "ticks, and readings off the grid": off_the_grid,
    "fading": lambda n, rng: np.exp(-10.0 * np.arange(n) / n) + rng.normal(0.0, 0.05, n),
    "a step": lambda n, rng: (np.arange(n) < n // 2) + rng.normal(0.0, 0.05, n),
    "a walk": lambda n, rng: rng.normal(size=n).cumsum(),
}


@pytest.mark.parametrize("n", [100, 300, 1_000])
@pytest.mark.parametrize("name", ONE_MODE)
def test_one_mode_is_split_no_more_often_than_the_level_says(name: str, n: int) -> None:
    split = np.count_nonzero(counts_found(ONE_MODE[name], n, times=40) > 1)
    assert split <= scipy_stats.binom.ppf(0.9999, 40, 0.01)
