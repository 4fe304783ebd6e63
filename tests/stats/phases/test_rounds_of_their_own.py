"""Restarted rounds whose warm-ups and cool-downs differ from round to round."""

import numpy as np
import pytest

from benchrigor.model import Code
from benchrigor.stats import estimate_invocations

COUNT, INDEX = 25, np.arange(300)


def noisy(rng: np.random.Generator, levels: np.ndarray) -> np.ndarray:
    return levels * rng.normal(1.0, 0.01) * rng.normal(1.0, 0.03, INDEX.size)


def stepping(seed: int, cool_downs: float) -> list[np.ndarray]:
    """Draw rounds with a warm-up of a length of its own, and so many with a cool-down."""
    rng, drawn = np.random.default_rng([36, seed]), []
    for _ in range(COUNT):
        warm_up, cool_down = rng.integers(5, 100), rng.integers(1, 60)
        series = 1.0 + 0.5 * (warm_up > INDEX)
        if rng.random() < cool_downs:
            series[300 - cool_down :] += 0.3
        drawn.append(noisy(rng, series))
    return drawn


@pytest.mark.slow
@pytest.mark.parametrize("cool_downs", [0.0, 0.5, 1.0])
def test_a_cool_down_of_some_rounds_does_not_bias_the_mean(cool_downs: float) -> None:
    values = [
        estimate_invocations(stepping(seed, cool_downs), trim=True).value for seed in range(3)
    ]
    assert np.mean(values) == pytest.approx(1.0, abs=0.004)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 23])
def test_cool_downs_of_a_height_of_their_own_are_cut_where_warm_ups_fade(seed: int) -> None:
    rng, drawn = np.random.default_rng([37, seed]), []
    for _ in range(COUNT):
        series = 1.0 + 0.5 * np.exp(-3.0 * INDEX / rng.integers(5, 100))
        if rng.random() < 0.3:
            series[300 - rng.integers(1, 60) :] += rng.uniform(0.15, 0.8)
        drawn.append(noisy(rng, series))
    mean = estimate_invocations(drawn, trim=True)
    assert mean.value == pytest.approx(1.0, abs=0.005)
    assert mean.half_width < 0.01


def at_two_paces(seed: int) -> list[np.ndarray]:
    """Draw rounds on a machine that is slower by 30% for a quarter of the time, in turns."""
    rng, drawn = np.random.default_rng([37, seed]), []
    for _ in range(COUNT):
        slow, stretches = rng.random() < 0.25, list[np.ndarray]()
        while sum(stretch.size for stretch in stretches) < 300:
            length = 1 + rng.geometric(1 / 30 if slow else 1 / 90)
            stretches.append(np.full(length, 1.3 if slow else 1.0))
            slow = not slow
        drawn.append(np.concatenate(stretches)[:300] * rng.normal(1.0, 0.03, 300))
    return drawn


@pytest.mark.slow
def test_rounds_in_which_the_machine_changes_its_pace_are_not_cut_to_one_pace() -> None:
    values = []
    for seed in range(2):
        found = estimate_invocations(at_two_paces(seed), trim=True)
        assert Code.CUT_ONE_BY_ONE not in {notice.code for notice in found.notices}
        values.append(found.value)
    assert np.mean(values) == pytest.approx(1.075, rel=0.015)
