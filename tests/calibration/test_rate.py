"""Intervals of rates and of shares cover the true one."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.series import autoregressive, persistent

from benchrigor.stats import estimate_proportion, estimate_rate
from benchrigor.stats.series.interval import fit_level
from benchrigor.stats.shares_and_quantiles import fit_indicators

REPETITIONS = 300
LEAST, MOST = (int(scipy_stats.binom.ppf(p, REPETITIONS, 0.95)) for p in (1e-3, 0.9995))


def autoregressive_times(rng: np.random.Generator, phi: float) -> np.ndarray:
    return np.exp(0.5 * autoregressive(rng, 1000, phi))


@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_the_interval_covers_the_work_per_time(phi: float) -> None:
    truth = float(np.exp(-0.125))  # one over the mean of the times
    hits = {"work": 0, "durations": 0}
    for repetition in range(REPETITIONS):
        rng = np.random.default_rng([62, repetition])
        times = autoregressive_times(rng, phi)
        work = rng.integers(1, 20, 1000)
        durations = work * times
        for name, found in (
            ("work", estimate_rate(1.0 / times)),
            ("durations", estimate_rate(work / durations, weights=durations)),
        ):
            hits[name] += found.low <= truth <= found.high
    assert all(LEAST <= each <= MOST for each in hits.values()), hits


SERIES = 400
FEWEST_HELD, MOST_HELD = (int(scipy_stats.binom.ppf(p, SERIES, 0.95)) for p in (1e-3, 0.9995))


@pytest.mark.parametrize(("share", "stay"), [(0.5, 0.0), (0.1, 0.0), (0.5, 0.8), (0.1, 0.5)])
def test_the_interval_covers(share: float, stay: float) -> None:
    hits = 0
    for repetition in range(SERIES):
        outcomes = persistent(np.random.default_rng([52, repetition]), 1000, share, stay)
        found = estimate_proportion(outcomes)
        hits += found.low <= share <= found.high
    assert FEWEST_HELD <= hits <= MOST_HELD


def test_a_slow_change_behind_noisy_outcomes_is_minded() -> None:
    hits = {"here": 0, "single outcomes": 0}
    for repetition in range(SERIES):
        rng = np.random.default_rng([53, repetition])
        chance = np.where(persistent(rng, 1000, 0.5, 0.9), 0.1, 0.4)
        outcomes = (rng.random(1000) < chance).astype(float)
        for name, fit in (
            ("here", fit_indicators(outcomes)),
            ("single outcomes", fit_level(outcomes)),
        ):
            hits[name] += abs(fit.level - 0.25) <= 2.0 * fit.standard_error
    assert hits["here"] >= FEWEST_HELD
    assert hits["single outcomes"] < hits["here"] - 5
