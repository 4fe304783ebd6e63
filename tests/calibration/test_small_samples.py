"""Intervals of few independent readings cover as often as they claim, also from 30 on.

From there on autocorrelation is estimated, which must not cost coverage where there is none.
"""

from functools import partial

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.series import autoregressive

from benchrigor.stats.series.interval import estimate_level
from benchrigor.stats.series.level import fit_level

pytestmark = [pytest.mark.slow, pytest.mark.minutes]  # CI runs the evidence that says the same

REPETITIONS = 1_000
SIZES = (29, 30, 31, 37, 45, 60, 100)
LEVELS = (0.8, 0.95, 0.99)


def hits_of(seed, n, draw, *, levels=LEVELS, repetitions=REPETITIONS) -> dict[float, int]:
    """Count at each level how many intervals of the mean hold 0."""
    hits = dict.fromkeys(levels, 0)
    for repetition in range(repetitions):
        fit = fit_level(draw(np.random.default_rng([seed, n, repetition])))
        for level in levels:
            estimate = estimate_level(fit, level)
            hits[level] += estimate.low <= 0.0 <= estimate.high
    return hits


@pytest.mark.minutes
def test_independent_readings_are_covered_at_every_level() -> None:
    found = {n: hits_of(81, n, lambda rng, n=n: rng.normal(size=n)) for n in SIZES}
    for level in LEVELS:
        every = [hits[level] for hits in found.values()]
        # Of one size: a bound is left by chance once in two thousand times.
        least, most = scipy_stats.binom.ppf((5e-4, 1.0 - 5e-4), REPETITIONS, level)
        assert all(least <= hits <= most for hits in every), (level, every)
        # Of all from 30 on. Without what the choice of the order adds: 0.785, 0.94, 0.985.
        few, many = scipy_stats.binom.ppf((1e-3, 1.0 - 1e-3), REPETITIONS * 6, level)
        assert few - 12 <= sum(every[1:]) <= many + 12, (level, every)


@pytest.mark.parametrize(("phi", "n"), [(0.3, 60), (0.5, 60), (0.8, 100), (0.9, 100)])
def test_autocorrelated_readings_keep_their_coverage(phi: float, n: int) -> None:
    draw = partial(autoregressive, n=n, phi=phi)
    hits = hits_of(82, n, draw, levels=(0.95,), repetitions=600)
    assert hits[0.95] >= scipy_stats.binom.ppf(1e-3, 600, 0.945)
