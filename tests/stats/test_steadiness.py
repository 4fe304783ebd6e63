"""How steady a stretch of readings is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchrigor.stats.steadiness import chance_of_movement, independent_readings


def autoregressive(phi: float, n: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng([n, seed]).normal(size=n)
    for i in range(1, n):
        noise[i] = phi * noise[i - 1] + math.sqrt(1.0 - phi**2) * noise[i]
    return noise


@pytest.mark.parametrize("series", [np.arange(29.0), np.ones(500)])
def test_nothing_is_said_of_few_and_of_constant_readings(series: np.ndarray) -> None:
    assert independent_readings(series) == math.inf
    assert chance_of_movement(series) == 1.0


def test_autocorrelation_leaves_as_few_independent_readings_as_theory_says() -> None:
    found = [independent_readings(autoregressive(0.9, 2_000, seed)) for seed in range(40)]
    # 2000 (1 - phi) / (1 + phi) = 105, a little more for ranks.
    assert 75 <= np.median(found) <= 125


def test_a_random_walk_leaves_no_more_the_longer_it_is() -> None:
    for n in (500, 50_000):
        walks = [np.random.default_rng([n, seed]).normal(size=n).cumsum() for seed in range(40)]
        assert np.median([independent_readings(walk) for walk in walks]) <= 5


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_steady_readings_seem_to_move_as_often_as_stated(phi: float) -> None:
    chances = [chance_of_movement(autoregressive(phi, 1_500, seed)) for seed in range(400)]
    # Of 400 at 5.5 %, 38 or more have a chance below 0.1 %.
    assert sum(chance < 0.05 for chance in chances) <= 37


def test_a_fading_transient_is_no_movement_but_a_bend_is() -> None:
    noise = np.random.default_rng(1).normal(size=1_000)
    time = np.linspace(0.0, 1.0, 1_000)
    assert chance_of_movement(noise + 2.0 * np.exp(-time * 10.0)) > 0.01
    assert chance_of_movement(noise + 0.7 * np.sin(np.pi * time)) < 1e-4
    assert chance_of_movement(noise + 2.0 * time) < 1e-4


def test_units_do_not_matter() -> None:
    series = autoregressive(0.5, 500, 1)
    assert chance_of_movement(1e-9 * series) == chance_of_movement(series)
    assert independent_readings(1e9 * series) == independent_readings(series)
