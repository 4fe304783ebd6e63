"""Intervals of proportions cover the true one as often as they claim."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.series import persistent

from benchrigor.stats.estimators.proportion import estimate_proportion

pytestmark = pytest.mark.slow

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
