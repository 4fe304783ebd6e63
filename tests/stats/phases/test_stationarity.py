"""How steady a stretch of readings is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchrigor.stats import detect_changes
from benchrigor.stats.phases.stability_rules import find_trend, steps_beyond_noise


@pytest.mark.parametrize("seed", range(10))
def test_of_the_steps_in_white_noise_the_true_one_is_kept(seed: int) -> None:
    series = np.random.default_rng(seed).normal(size=500)
    series[200:] += 1.0
    assert steps_beyond_noise(series, (100, 200, 400))[0] == (200,)
    found = detect_changes(series).indices
    assert found
    assert steps_beyond_noise(series, found)[0] == found


def test_all_steps_are_left_of_few_readings_and_within_batches() -> None:
    noise = np.random.default_rng(1).normal(size=5_000)
    assert steps_beyond_noise(noise[:29], (10, 20)) == ((10, 20), 1.0)
    assert steps_beyond_noise(noise[:30], (10, 20))[0] == ()
    # Batches of four readings cannot part what lies one reading apart.
    assert steps_beyond_noise(noise, (1_000, 1_001))[0] == (1_000, 1_001)
    assert steps_beyond_noise(noise, (1_000, 2_000))[0] == ()


RNG = np.random.default_rng(20270213)
SHARE = np.arange(2_000) / 2_000
STEPS = np.repeat([1.0, 1.4, 1.0, 1.3, 1.0], 400)
DRIFTS = {
    "leak": 1.0 + 0.5 * SHARE,
    "falling": 2.0 - SHARE,
    "slowing": 1.0 + np.sqrt(SHARE),
    "filling": 1.0 + 2.0 * np.exp(-SHARE / 0.3),
}


def noisy(levels: np.ndarray) -> np.ndarray:
    return levels * RNG.gamma(400.0, 1.0 / 400.0, levels.size)


@pytest.mark.parametrize("places", [(), range(250, 2_000, 250)], ids=["whole", "staircase"])
@pytest.mark.parametrize("name", DRIFTS)
def test_what_goes_one_way_to_the_end_is_a_trend(name: str, places: Sequence[int]) -> None:
    levels = DRIFTS[name]
    found = find_trend(noisy(levels), places)
    assert found is not None
    assert found.first == pytest.approx(np.median(levels[:200]), rel=0.05)
    assert found.last == pytest.approx(np.median(levels[-200:]), rel=0.05)


@pytest.mark.parametrize(
    "levels",
    [
        np.ones(2_000),
        np.repeat([1.0, 1.5], 1_000),
        np.repeat([1.0, 1.2, 1.5], [700, 600, 700]),
        STEPS,
        1.0 + 0.3 * np.sin(2.0 * np.pi * SHARE),
        1.0 + 2.0 * np.exp(-SHARE / 0.02),
        1.0 + 0.3 * np.abs(SHARE - 0.35),  # a valley, the second half of which rises
        1.0 + 0.02 * SHARE,  # immaterial
    ],
)
def test_what_stays_or_comes_back_is_no_trend(levels: np.ndarray) -> None:
    places = 1 + np.flatnonzero(np.diff(levels)) if np.unique(levels).size < 10 else ()
    assert find_trend(noisy(levels), tuple(int(each) for each in places)) is None


def test_a_leak_is_found_beside_steps_and_a_rise_that_slows_down_to_a_few_percent() -> None:
    assert find_trend(noisy(STEPS * (1.0 + 0.5 * SHARE)), (400, 800, 1_200, 1_600)) is not None
    levels = 1.0 + 0.2 * np.clip(SHARE, 0.0, 0.3) + 0.1 * np.clip(SHARE - 0.3, 0.0, None)
    assert find_trend(levels * RNG.normal(1.0, 0.01, SHARE.size), ()) is not None


def test_too_few_readings_and_constant_ones_have_none() -> None:
    assert find_trend(np.arange(6.0), ()) is None
    assert find_trend(np.arange(7.0), ()) is not None
    assert find_trend(np.ones(100), ()) is None
