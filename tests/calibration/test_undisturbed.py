"""Estimates over undisturbed readings hold the truth, although long readings are hit more often."""

from __future__ import annotations

import numpy as np
import pytest
from simulated.series import autoregressive

from benchrigor.stats import estimate_mean, estimate_quantile
from benchrigor.stats.series.undisturbed import Groups, choose_undisturbed

SERIES, GROUPS = 60, 1_500


@pytest.mark.parametrize("hits", [0.3, 0.5])
@pytest.mark.parametrize("bursts", [False, True])
@pytest.mark.parametrize(("size", "cv", "phi"), [(1, 0.1, 0.5), (1, 0.5, 0.0), (20, 1.0, 0.5)])
def test_mean_and_quantiles_are_those_of_work_that_nobody_disturbs(
    hits: float, bursts: bool, size: int, cv: float, phi: float
) -> None:
    sigma = np.sqrt(np.log1p(cv**2))
    truths = {None: 1.0, 0.5: np.exp(-(sigma**2) / 2), 0.95: np.exp(1.6449 * sigma - sigma**2 / 2)}
    values: dict[float | None, list[float]] = {q: [] for q in truths}
    covered = dict.fromkeys(truths, 0)
    rng = np.random.default_rng([20271201, size, round(10 * cv), bursts, round(10 * hits)])
    for _ in range(SERIES):
        noise = autoregressive(rng, GROUPS * size, phi)
        noise /= noise.std()
        readings = np.exp(sigma * noise - sigma**2 / 2)
        own = readings.reshape(GROUPS, size).sum(axis=1)
        rate = hits / size * np.where(bursts, 2 * (np.arange(GROUPS) // 50 % 2), 1)
        hit = rng.random(GROUPS) < -np.expm1(-rate * own)
        chosen, _ = choose_undisturbed(
            Groups(
                sizes=np.full(GROUPS, size),
                delay_s=np.where(hit, own, 0.0),
                duration_s=own * np.where(hit, 2.0, 1.0),
            )
        )
        assert chosen is not None
        counted = readings[chosen.indices]
        for q, truth in truths.items():
            found = estimate_mean(counted) if q is None else estimate_quantile(counted, q)
            values[q].append(found.value / truth - 1.0)
            covered[q] += found.low <= truth <= found.high
    for q, errors in values.items():
        # Bias at most 0.5 %, of the 95th percentile 1 %, and three standard errors.
        most = 0.01 if q == 0.95 else 0.005
        assert abs(np.mean(errors)) <= most + 3.0 * np.std(errors) / np.sqrt(SERIES)
        # Of 60 at 93 %, fewer than 50 have a chance of about 0.3 %.
        assert covered[q] >= 50
