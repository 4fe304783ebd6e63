"""Ratios are covered, and identical code is seldom found different."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.comparisons import DECIDED, invocations
from simulated.series import autoregressive

from benchrigor.model import Verdict
from benchrigor.stats import compare


@pytest.mark.parametrize(("spread", "phi"), [(0.0, 0.9), (0.03, 0.0), (0.01, 0.5)])
def test_identical_code_is_seldom_found_different(spread: float, phi: float) -> None:
    rng = np.random.default_rng(20)
    found = 0
    for _ in range(100):
        samples = [
            [
                level * (1.0 + 0.05 * autoregressive(rng, 50, phi))
                for level in rng.normal(1.0, spread, 10)
            ]
            for _ in range(2)
        ]
        found += compare(*samples, margin=0.0).verdict in DECIDED
    assert found <= scipy_stats.binom.ppf(0.999, 100, 0.05)


@pytest.mark.parametrize("statistic", ["mean", "median", "p10"])
def test_ratios_of_correlated_series_are_covered(statistic: str) -> None:
    rng = np.random.default_rng(23)
    held = 0
    for _ in range(100):
        old, new = (np.exp(0.3 * autoregressive(rng, 600, 0.7)) for _ in range(2))
        ratio = compare(old, 1.2 * new, statistic=statistic).ratio
        assert ratio is not None
        held += ratio.low <= 1.2 <= ratio.high
    assert held >= scipy_stats.binom.ppf(0.001, 100, 0.95)


def test_a_change_of_three_per_cent_is_found() -> None:
    rng = np.random.default_rng(21)
    found = 0
    for _ in range(500):
        old, new = (mean * rng.normal(1.0, 0.012, 10) for mean in (1.0, 1.03))
        found += compare(invocations(old), invocations(new)).verdict is Verdict.WORSE
    assert found >= scipy_stats.binom.ppf(0.001, 500, 0.92)
