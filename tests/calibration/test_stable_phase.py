"""How often a series is found stable, with and without a cause."""

from __future__ import annotations

import numpy as np
import pytest
from simulated.series import autoregressive

import benchrigor as br
from benchrigor.errors import NotEstimable
from benchrigor.stats import detect_changes, estimate_mean, find_stable_phase
from benchrigor.stats.phases.rounds_cut import common_phases
from benchrigor.stats.phases.stability_rules import (
    movement_p_value,
    steps_beyond_noise,
)
from benchrigor.stats.phases.stable_phase import Search


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


WINDOW_S, CALL_S = 10.0, 4e-3


def window(rng: np.random.Generator, factor: float, holding_s: float) -> tuple[object, float]:
    """Return the readings of a window with two levels, and their mean level."""
    time, slow, levels = 0.0, bool(rng.integers(2)), []
    while time < WINDOW_S:
        holds = float(rng.exponential(holding_s))
        level = CALL_S * (factor if slow else 1.0)
        levels.append(np.full(max(1, round(min(holds, WINDOW_S - time) / level)), level))
        time, slow = time + holds, not slow
    level_of_each = np.concatenate(levels)
    scatter = rng.gamma(100.0, 0.01, level_of_each.size)
    return level_of_each * scatter, float(level_of_each.mean())


@pytest.mark.parametrize("factor", [1.2, 2.0])
def test_intervals_hold_the_mean_level_of_their_window(factor: float) -> None:
    rng, held, given, windows = np.random.default_rng([20270218, int(10 * factor)]), 0, 0, 0
    for holding_s in (0.3, 1.0, 3.0):
        for _ in range(25):
            readings, truth = window(rng, factor, holding_s)
            windows += 1
            try:
                found = estimate_mean(readings, trim=True)
            except NotEstimable:
                continue
            given += 1
            held += found.low <= truth <= found.high
    assert windows - given <= 4  # at most 2 % are meant to be
    assert held >= 0.85 * given  # at a coverage of 0.92, that is 2.2 standard errors


N = 200
INDEX = np.arange(N)
STEP = 0.5 * (INDEX < 30)


def test_false_cuts_are_rare() -> None:
    rng = np.random.default_rng(10)
    noise = {
        "normal": lambda: rng.normal(1.0, 0.05, N),
        "skewed": lambda: rng.lognormal(0.0, 1.0, N),
        "a coarse clock": lambda: rng.integers(0, 2, N).astype(float),
    }
    for draw in noise.values():
        found = [common_phases([draw() for _ in range(5)], Search())[0] for _ in range(100)]
        # Of 100 at 5 % and 1 % more than 13 are false with probability 0.003.
        assert sum(phase.n < N for phase in found) <= 13


def test_steady_invocations_are_seldom_refused() -> None:
    rng = np.random.default_rng(15)
    refused = 0
    for _ in range(150):
        invocations = [rng.normal(level, 0.05, N) + STEP for level in rng.normal(1.0, 0.02, 10)]
        refused += common_phases(invocations, Search())[0].start is None
    # Of 150 at 1 % more than 6 are refused with probability 0.001.
    assert refused <= 6


def switching(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([n, seed])
    return 2.0 * (np.cumsum(rng.random(n) > 0.95) % 2) + rng.normal(size=n)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_steady_readings_seem_to_move_as_often_as_stated(phi: float) -> None:
    chances = [
        movement_p_value(autoregressive(np.random.default_rng([1_500, seed]), 1_500, phi))
        for seed in range(400)
    ]
    # Of 400 at 5.5 %, 38 or more have a chance below 0.1 %.
    assert sum(chance < 0.05 for chance in chances) <= 37


def test_most_modes_that_switch_are_no_steps() -> None:
    found = [
        (each, detect_changes(each).indices) for each in (switching(700, s) for s in range(60))
    ]
    found = [(series, places) for series, places in found if places]
    left = [steps_beyond_noise(series, places)[0] for series, places in found]
    # Measured 124 and 30 of 200 series; of 36 at 24 % more than 18 have a chance below 0.1 %.
    assert len(found) >= 25
    assert sum(map(bool, left)) <= len(found) / 2


def test_no_session_stops_within_a_slow_cycle_and_misses() -> None:
    # 1.6 times as long as the first look, and as large as the noise. In 180 sessions none missed;
    # without the rule about the share of the stable phase two of five do, so that one of ten does
    # with a chance of 0.994.
    for repetition in range(10):
        rng = np.random.default_rng([2029, repetition])
        start, taken = rng.uniform(0.0, 2.0 * np.pi), 0
        session = br.Session(br.Options(budget_readings=6_000, budget_s=float("inf")), seed=1)
        while (plan := session.ask()) is not None:
            index = np.arange(taken, taken + plan.readings)
            taken += plan.readings
            cycle = 1.0 + 0.1 * np.sin(2.0 * np.pi * index / 800.0 + start)
            values = {"time": rng.normal(cycle, 0.1)}
            session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings=values))
        estimate = session.result().estimate()
        assert estimate is None or estimate.low <= 1.0 <= estimate.high
