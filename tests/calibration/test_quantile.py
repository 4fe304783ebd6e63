"""Intervals of quantiles cover the true one where readings persist, and behind a warm-up."""

import numpy as np
from scipy import stats as scipy_stats
from simulated.series import autoregressive

from benchrigor.errors import NotEstimable
from benchrigor.stats import estimate_quantile

NORMAL = {q: float(scipy_stats.norm.ppf(q)) for q in (0.1, 0.9)}


def test_a_tenth_of_persistent_readings_is_seldom_refused_and_then_covered() -> None:
    hits = refused = 0
    for repetition in range(200):
        values = autoregressive(np.random.default_rng([46, repetition]), 1000)
        try:
            found = estimate_quantile(values, 0.1)
        except NotEstimable:
            refused += 1
            continue
        hits += found.low <= NORMAL[0.1] <= found.high
    assert refused <= 12  # chance at a share of 0.025: 0.002
    assert hits >= 0.9 * (200 - refused)


def test_trimming_withstands_a_warm_up() -> None:
    answered, hits, widths = 0, 0, []
    for repetition in range(60):
        rng = np.random.default_rng([45, repetition])
        values = 1.0 + 0.15 * rng.normal(size=1000)
        warming = values + np.exp(-np.arange(1000.0) / 25.0)
        try:
            found = estimate_quantile(warming, 0.9, trim=True)
        except NotEstimable:
            continue
        answered += 1
        hits += found.low <= 1.0 + 0.15 * NORMAL[0.9] <= found.high
        widths.append(found.half_width / estimate_quantile(values, 0.9).half_width)
    assert answered >= 57
    assert hits >= answered - 9  # chance at a coverage of 0.95: 0.001
    assert 1.1 < np.median(widths) < 1.6
