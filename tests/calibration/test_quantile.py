"""Intervals of quantiles, of trimmed readings and of modes cover the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.mixtures import Draw, Rng, counts_found, spike_beside_a_plain
from simulated.series import autoregressive

from benchrigor.errors import NotEstimable
from benchrigor.stats import estimate_mean, estimate_quantile, find_stable_phase
from benchrigor.stats.phases.stable_phase import Search, measured_phase
from benchrigor.stats.readings.analysis import estimate, estimated
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.readings.inference_units import SUCCESSIVE
from benchrigor.stats.statistic import statistic_for

NORMAL = {q: float(scipy_stats.norm.ppf(q)) for q in (0.1, 0.9)}


def test_a_tenth_of_persistent_readings_is_seldom_refused_and_then_covered() -> None:
    hits = refused = 0
    for repetition in range(200):
        values = autoregressive(np.random.default_rng([46, repetition]), 1000)
        try:
            found = estimate_quantile(values, 0.1)
        except NotEstimable:
            refused += 1
            continue
        hits += found.low <= NORMAL[0.1] <= found.high
    assert refused <= 12  # chance at a share of 0.025: 0.002
    assert hits >= 0.9 * (200 - refused)


def test_trimming_withstands_a_warm_up() -> None:
    answered, hits, widths = 0, 0, []
    for repetition in range(60):
        rng = np.random.default_rng([45, repetition])
        values = 1.0 + 0.15 * rng.normal(size=1000)
        warming = values + np.exp(-np.arange(1000.0) / 25.0)
        try:
            found = estimate_quantile(warming, 0.9, trim=True)
        except NotEstimable:
            continue
        answered += 1
        hits += found.low <= 1.0 + 0.15 * NORMAL[0.9] <= found.high
        widths.append(found.half_width / estimate_quantile(values, 0.9).half_width)
    assert answered >= 57
    assert hits >= answered - 9  # chance at a coverage of 0.95: 0.001
    assert 1.1 < np.median(widths) < 1.6


DRAWN = {
    "skewed": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "with spikes": lambda rng, n: rng.normal(1.0, 0.05, n) * np.where(rng.random(n) < 0.03, 10, 1),
    "with memory": lambda rng, n: np.exp(0.2 * autoregressive(rng, n)),
}


@pytest.mark.parametrize("share", [0.1, 0.25])
@pytest.mark.parametrize("kind", DRAWN)
def test_a_trimmed_mean_is_covered(kind: str, share: float) -> None:
    draw, asked = DRAWN[kind], statistic_for(f"trimmed {100 * share:g}%")
    truth = scipy_stats.trim_mean(draw(np.random.default_rng(54), 2_000_000), share)
    hits = 0
    for repetition in range(400):
        values = draw(np.random.default_rng([54, repetition]), 200)
        readings = Readings(series=(values,), unit=SUCCESSIVE, statistic=asked, searched=False)
        found = estimated(estimate(readings))
        hits += found.low <= truth <= found.high
    assert 0.92 * 400 <= hits <= 0.98 * 400


def test_change_points_that_slow_noise_explains_are_not_cut() -> None:
    cut = whole = 0
    rng = np.random.default_rng([500, 60])
    for _ in range(60):
        series = 10.0 + autoregressive(rng, 500, 0.97)
        claimed = find_stable_phase(series)
        if len(claimed.phases) == 1:
            continue
        found = measured_phase(series, Search())
        cut += 1
        whole += len(found.phases) == 1
        # Slow noise lowers the effective sample size of the phase, at most to 20.
        fast, slow = claimed.change_points.inflation, found.change_points.inflation
        assert fast <= slow <= max(fast, 500 / 20)
    # Measured 63 of 100 and, of those, 58; of 38 at 92 % fewer than 29 have a chance below 0.1 %.
    assert cut >= 25
    assert whole >= 0.75 * cut


def test_a_cool_down_too_small_to_be_seen_is_covered() -> None:
    covered, away = 0, []
    rng = np.random.default_rng([1_000, 100])
    for _ in range(100):
        series = 10.0 + autoregressive(rng, 1_000, 0.9)
        series[-80:] -= 2.0
        try:
            found = estimate_mean(series, trim=True)
        except NotEstimable:
            continue
        covered += found.low < 10.0 < found.high
        away.append((found.value - 10.0) / found.standard_error)
    # Of 100 at 95 % fewer than 89 have a chance below 0.5 %; refusals count as missed.
    assert covered >= 89
    # Measured -0.2 standard errors, -1.0 without a transient at the end; their own error is 0.1.
    assert abs(np.mean(away)) <= 0.55


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
