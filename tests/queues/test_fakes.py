from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from benchrigor.testing import SyntheticStage


def by_hand(arrivals: list[float], service: list[float], borders: list[float]) -> list[float]:
    """Simulate one server, event by event; return how long it was idle in each period."""
    free, idle = 0.0, []
    for came, takes in zip(arrivals, service, strict=True):
        if came > free:
            idle.append((free, came))
        free = max(free, came) + takes
    return [
        sum(max(0.0, min(stop, after) - max(start, before)) for start, stop in idle)
        for before, after in pairwise(borders)
    ]


def test_waiting_is_that_of_a_simulation_event_by_event() -> None:
    stage = SyntheticStage(utilisation=0.6, stalled=0.05)
    seen = stage.watch(500, period_s=0.02, rng=np.random.default_rng(2))
    rng = np.random.default_rng(2)
    service = rng.exponential(1.0, 500) + (rng.random(500) < 0.05) * rng.exponential(20.0, 500)
    arrivals = np.cumsum(rng.exponential(1.0, 500) / 600.0)
    borders = np.concatenate([[0.0], np.cumsum(seen.period_s)])
    expected = by_hand(arrivals.tolist(), (service / 1000.0).tolist(), borders.tolist())
    assert seen.blocked_s == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize(
    ("service", "shape", "off"),
    [("exponential", 1.5, 0.02), ("lognormal", 0.5, 0.02), ("pareto", 3.0, 0.03)],
)
def test_service_times_have_the_rate_that_is_said(
    service: str, shape: float, off: float, correlation: float
) -> None:
    stage = SyntheticStage(
        utilisation=0.5, service=service, shape=shape, correlation=correlation, stalled=0.001
    )
    seen = stage.watch(200_000, period_s=0.05, rng=np.random.default_rng(6))
    busy_s = seen.period_s.sum() - seen.blocked_s.sum()
    assert seen.items.sum() / busy_s == pytest.approx(stage.true_rate, rel=off)


def services(items: int = 200_000, **given: object) -> Any:
    """Return the service times of items that find no queue, one to a period."""
    stage = SyntheticStage(utilisation=1e-6, **given)  # type: ignore[arg-type]
    seen = stage.watch(items, period_s=10.0, rng=np.random.default_rng(7))
    busy_s = seen.period_s - seen.blocked_s
    alone: Any = busy_s[seen.items == 1.0] * 1000.0
    return alone


@pytest.mark.parametrize(("service", "shape"), [("lognormal", 1.0), ("exponential", 1.5)])
def test_correlation_is_that_of_normal_scores(service: str, shape: float) -> None:
    times = services(20_000, service=service, shape=shape, correlation=0.8)
    scores = np.log(times) if service == "lognormal" else norm.isf(np.exp(-times))
    for lag in (1, 3):
        found = np.corrcoef(scores[:-lag], scores[lag:])[0, 1]
        assert found == pytest.approx(0.8**lag, abs=0.03)
