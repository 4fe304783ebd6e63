"""Intervals of rates cover the true one as often as they claim."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.series import autoregressive

from benchrigor.stats import estimate_rate

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
