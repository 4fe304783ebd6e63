"""How often a series is found stable, with and without a cause."""

from __future__ import annotations

import numpy as np
import pytest

from benchrigor.stats import find_stable_phase


@pytest.mark.parametrize("amplitude", [0.5, 2.0])
@pytest.mark.parametrize("n", [500, 5_000])
def test_an_exponential_warm_up_is_cut_so_that_little_bias_is_left(
    n: int, amplitude: float
) -> None:
    warm_up = amplitude * np.exp(-np.arange(n) / (0.05 * n))
    bias = []
    for seed in range(20):
        noise = 1.0 + 0.1 * np.random.default_rng([n, seed]).normal(size=n)
        found = find_stable_phase(noise + warm_up, materiality=0.0025)
        if found.start is None:
            assert found.reason == "not stable inside"
            continue
        assert found.n <= 0.95 * n
        bias.append(warm_up[found.start : found.stop].mean())
    # Of series that were cut 1 % or so move by chance, or by what is left of the warm-up.
    assert len(bias) >= 19
    # The whole warm-up is worth 6 to 70 standard errors of the mean; a cut alone leaves few.
    assert np.mean(bias) <= 2.5 * 0.1 / np.sqrt(n)


@pytest.mark.parametrize("n", [500, 1_000, 5_000])
def test_a_random_walk_has_hardly_ever_a_stable_phase(n: int) -> None:
    reasons = [
        find_stable_phase(100.0 + np.random.default_rng([n, seed]).normal(size=n).cumsum()).reason
        for seed in range(50)
    ]
    # Measured 0 to 4 %; of 50 at 5 % more than 7 have a chance below 0.5 %.
    assert reasons.count("stable") <= 7
    # Measured 51 to 69 %; of 50 at 51 % fewer than 16 have a chance below 0.5 %.
    assert reasons.count("random walk") >= 16


@pytest.mark.parametrize(("phi", "n"), [(0.9, 1_000), (0.95, 5_000)])
def test_strong_autocorrelation_is_not_taken_for_a_random_walk(phi: float, n: int) -> None:
    stable = 0
    for seed in range(60):
        noise = np.random.default_rng([n, seed]).normal(size=n)
        for i in range(1, n):
            noise[i] = phi * noise[i - 1] + np.sqrt(1.0 - phi**2) * noise[i]
        stable += find_stable_phase(100.0 + noise).reason == "stable"
    # Measured 99 % or more; of 60 at 97 % fewer than 54 have a chance below 0.5 %.
    assert stable >= 54


@pytest.mark.parametrize("n", [20, 60, 200, 1_000])
def test_effective_sample_size_without_change_are_stable(n: int) -> None:
    stable = sum(
        find_stable_phase(np.random.default_rng([n, seed]).lognormal(size=n)).reason == "stable"
        for seed in range(100)
    )
    # Measured 99 % or more; of 100 at 98.5 % fewer than 95 have a chance below 0.5 %.
    assert stable >= 95
