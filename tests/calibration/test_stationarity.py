"""How often steady readings seem to move."""

from __future__ import annotations

import numpy as np
import pytest
from simulated.series import autoregressive

from benchrigor.stats import detect_changes
from benchrigor.stats.phases.stability_rules import (
    movement_p_value,
    steps_beyond_noise,
)


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
