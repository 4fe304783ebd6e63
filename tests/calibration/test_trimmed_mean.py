"""Intervals of trimmed means cover the true one: skewed readings, rare spikes, memory."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.series import autoregressive

from benchrigor.stats.readings.analysis import estimate
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.readings.inference_units import SUCCESSIVE
from benchrigor.stats.statistics.statistic import statistic_for

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
        found = estimate(readings).estimate_or_raise()
        hits += found.low <= truth <= found.high
    assert 0.92 * 400 <= hits <= 0.98 * 400
