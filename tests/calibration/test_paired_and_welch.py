"""Ratios of paired quantiles are covered, and narrower than those of unpaired ones."""

import numpy as np
from scipy import stats as scipy_stats
from simulated.series import drifting

from benchrigor.stats import compare


def test_what_pairs_share_narrows_the_ratio_of_their_quantiles() -> None:
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        shared, *own = rng.normal(size=(3, 500))
        old, new = (np.exp(0.1 * (0.9 * shared + 0.4 * each)) for each in own)
        paired = compare(old, 1.05 * new, statistic="median", paired=True).ratio
        apart = compare(old, 1.05 * new, statistic="median").ratio
        assert paired is not None
        assert apart is not None
        assert paired.half_width < apart.half_width
        held += paired.low <= 1.05 <= paired.high
    assert held >= scipy_stats.binom.ppf(0.001, 200, 0.95)


def test_drift_that_both_share_does_not_count() -> None:
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(300):
        drift = drifting(rng, 100)
        old, new = (mean * drift * rng.normal(1.0, 0.02, 100) for mean in (1.0, 1.03))
        ratio = compare(old, new, paired=True).ratio
        assert ratio is not None
        held += ratio.low <= 1.03 <= ratio.high
        assert ratio.half_width < 0.012
    assert held >= scipy_stats.binom.ppf(0.001, 300, 0.95)
