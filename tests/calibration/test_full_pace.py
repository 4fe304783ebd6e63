"""Figures at full pace hold what the work takes there, whatever the machine does meanwhile."""

import math

import numpy as np
from scipy import stats
from simulated import paced

RUNS = 120


def test_figures_at_full_pace_hold_what_the_work_takes_there():
    """A fifth of the time at full speed shows what that is, and work may follow it more or less."""
    rng = np.random.default_rng(20270305)
    held, errors = 0, []
    for seed in range(RUNS):
        level_s = paced.TRUE_S * math.exp(rng.normal(0.0, 0.015))  # processes differ
        given = {"slow_share": rng.uniform(0.1, 0.8), "sensitivity": rng.uniform(0.5, 1.2)}
        found = paced.told(seed, rounds=2, level_s=level_s, **given).at_full_pace()
        held += found.low <= paced.TRUE_S <= found.high
        errors.append(math.log(found.value / paced.TRUE_S))
    assert stats.binomtest(held, RUNS, 0.95, alternative="less").pvalue > 0.01
    assert np.std(errors) < 0.04
    assert abs(np.mean(errors)) < 0.01
