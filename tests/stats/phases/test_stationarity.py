"""How steady a stretch of readings is."""

from __future__ import annotations

import numpy as np
import pytest
from simulated.series import autoregressive

from benchrigor.stats import detect_changes
from benchrigor.stats.phases.stationarity import (
    movement_p_value,
    steps_beyond_noise,
)


def test_a_fading_transient_is_no_movement_but_a_bend_is() -> None:
    noise = np.random.default_rng(1).normal(size=1_000)
    time = np.linspace(0.0, 1.0, 1_000)
    assert movement_p_value(time[:29]) == movement_p_value(np.ones(500)) == 1.0
    assert movement_p_value(noise + 2.0 * np.exp(-time * 10.0)) > 0.01
    assert movement_p_value(noise + 0.7 * np.sin(np.pi * time)) < 1e-4
    assert movement_p_value(noise + 2.0 * time) < 1e-4


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


@pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e3), (3.0, -50.0)])
def test_steps_depend_neither_on_unit_nor_on_origin(scale: float, shift: float) -> None:
    series = autoregressive(np.random.default_rng([600, 2]), 600, 0.5)
    series[250:] += 2.0
    found = steps_beyond_noise(series, (100, 250, 400))
    assert found[0] == (250,)
    assert steps_beyond_noise(scale * series + shift, (100, 250, 400)) == found
