"""Intervals of proportions cover the true one as often as they claim."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.series import persistent

from benchrigor.stats import estimate_proportion
from benchrigor.stats.series.interval import fit_level
from benchrigor.stats.statistics.shares_and_quantiles import fit_indicators

REPETITIONS = 400
LEAST, MOST = (int(scipy_stats.binom.ppf(p, REPETITIONS, 0.95)) for p in (1e-3, 0.9995))


@pytest.mark.parametrize(("share", "stay"), [(0.5, 0.0), (0.1, 0.0), (0.5, 0.8), (0.1, 0.5)])
def test_the_interval_covers(share: float, stay: float) -> None:
    hits = 0
    for repetition in range(REPETITIONS):
        outcomes = persistent(np.random.default_rng([52, repetition]), 1000, share, stay)
        found = estimate_proportion(outcomes)
        hits += found.low <= share <= found.high
    assert LEAST <= hits <= MOST


def test_a_slow_change_behind_noisy_outcomes_is_minded() -> None:
    hits = {"here": 0, "single outcomes": 0}
    for repetition in range(REPETITIONS):
        rng = np.random.default_rng([53, repetition])
        chance = np.where(persistent(rng, 1000, 0.5, 0.9), 0.1, 0.4)
        outcomes = (rng.random(1000) < chance).astype(float)
        for name, fit in (
            ("here", fit_indicators(outcomes)),
            ("single outcomes", fit_level(outcomes)),
        ):
            hits[name] += abs(fit.level - 0.25) <= 2.0 * fit.standard_error
    assert hits["here"] >= LEAST
    assert hits["single outcomes"] < hits["here"] - 5
