"""Trimmed means cover the truth, and noise is seldom cut."""

from __future__ import annotations

import numpy as np
from simulated.series import autoregressive

from benchrigor.errors import NotEstimable
from benchrigor.stats import estimate_mean, find_stable_phase
from benchrigor.stats.phases.stable_phase import MATERIALITY, phase_at_materiality


def test_change_points_that_slow_noise_explains_are_not_cut() -> None:
    cut = whole = 0
    rng = np.random.default_rng([500, 60])
    for _ in range(60):
        series = 10.0 + autoregressive(rng, 500, 0.97)
        claimed = find_stable_phase(series)
        if len(claimed.phases) == 1:
            continue
        found = phase_at_materiality(series, MATERIALITY)
        cut += 1
        whole += len(found.phases) == 1
        # Slow noise lowers the effective sample size of the phase, at most to 20.
        fast, slow = claimed.change_points.inflation, found.change_points.inflation
        assert fast <= slow <= max(fast, 500 / 20)
    # Measured 63 of 100 and, of those, 58; of 38 at 92 % fewer than 29 have a chance below 0.1 %.
    assert cut >= 25
    assert whole >= 0.75 * cut


def test_a_cool_down_too_small_to_be_seen_is_covered() -> None:
    covered, away = 0, []
    rng = np.random.default_rng([1_000, 100])
    for _ in range(100):
        series = 10.0 + autoregressive(rng, 1_000, 0.9)
        series[-80:] -= 2.0
        try:
            found = estimate_mean(series, trim=True)
        except NotEstimable:
            continue
        covered += found.low < 10.0 < found.high
        away.append((found.value - 10.0) / found.standard_error)
    # Of 100 at 95 % fewer than 89 have a chance below 0.5 %; refusals count as missed.
    assert covered >= 89
    # Measured -0.2 standard errors, -1.0 without a transient at the end; their own error is 0.1.
    assert abs(np.mean(away)) <= 0.55
