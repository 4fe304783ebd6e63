"""What the estimator makes of counts: phases, widths of periods, moments of service times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchrigor.model import ServiceRate
from benchrigor.queues import ServiceRateEstimator

RARE, FEW = "no-nonblocking-period", "few-nonblocking-periods"


def rates(
    items: Any, period_s: Any = 0.05, *told: Any, method: str = "busy-time"
) -> list[ServiceRate]:
    est = ServiceRateEstimator(method)
    est.tell_many(items, period_s, *told)
    return est.rates


def poisson(seed: int, *levels: tuple[float, int]) -> Any:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.poisson(level, n) for level, n in levels]).astype(np.float64)


def stalled(at: int) -> Any:
    items = poisson(3, (100.0, 80))
    items[at] = 0.0
    return items


@pytest.mark.parametrize(
    ("items", "begin"),
    [
        (poisson(1, (100.0, 60), (50.0, 6)), [0, 61]),
        (poisson(1, (100.0, 60), (200.0, 6)), [0, 61]),
        (poisson(1, (100.0, 60), (115.0, 60)), [0, 64]),
        (poisson(2, (1e6, 60), (0.95e6, 60)), [0]),  # less than a tenth
        (stalled(77), [0]),
        (np.array([100.0] * 40 + [0.0] * 5), [0, 41]),  # it hangs
        (np.array([100.0] * 15 + [50.0] * 8), [0]),  # few tell nothing
        (poisson(5, (40.0, 10), (100.0, 190)), [0, 11]),  # a short warm-up
        (np.random.default_rng(6).poisson(np.linspace(4e3, 2e3, 200)), [0, 42, 78, 111, 138, 167]),
    ],
)
def test_phases_begin_where_the_rate_has_changed(items: Any, begin: list[int]) -> None:
    found = rates(items)
    assert [round(each.start_s / 0.05) for each in found] == begin
    assert (found[-1].reason == "no-items") is bool(items[-1] == 0.0)


def test_of_a_steady_rate_there_is_one_phase_in_a_hundred_looks() -> None:
    assert all(len(rates(poisson(seed, (100.0, 128)))) == 1 for seed in range(100))


@pytest.mark.parametrize(
    ("free", "items", "width", "used", "reason"),
    [
        ([1] * 200, 20.0, 4, 33, None),
        ([1, 1, 1, 1, 1, 1, 0, 0] * 64, 20.0, 1, 33, None),
        ([1, 1, 1, 1, 0] * 40, 20.0, 1, 33, None),
        ([1] * 128, 8.0, 4, 32, "not-converged"),  # of few items they are widened
        ([1, 1, 1, 1, 1, 1, 0, 0] * 64, 8.0, 1, 384, "too-few-items-per-period"),
        ([0] * 128, 20.0, 1, 0, RARE),
        ([1] * 5 + [0] * 123, 20.0, 1, 5, FEW),
        ([0] * 20, 20.0, 1, 0, RARE),
        ([1] * 20, 20.0, 1, 20, "not-converged"),
    ],
)
def test_periods_free_of_waiting_are_joined_as_far_as_there_are_enough(
    free: list[int], items: float, width: int, used: int, reason: str | None
) -> None:
    blocked = np.array(free) == 0
    for counts in (
        np.full(blocked.size, items),
        items * ~blocked,
    ):  # of others they need not be known
        found = rates(counts, 0.01, 0.0, blocked, method="quantile")[0]
        assert (round(found.period_s / 0.01), found.used, found.reason) == (width, used, reason)


@pytest.mark.parametrize(
    ("shape", "variation", "skewness", "process"),
    [
        (1.0, 1.0, 2.0, "exponential"),
        (4.0, 0.25, 1.0, "other"),
        (100.0, 0.01, None, "deterministic"),
    ],
)
def test_moments_of_gamma_service_are_read_off_counts(
    shape: float, variation: float, skewness: float | None, process: str
) -> None:
    rng = np.random.default_rng(7)
    ends = np.cumsum(rng.gamma(shape, 1.0 / shape, 1_000_000) * 0.001)
    counts = np.diff(np.searchsorted(ends, np.arange(0.0, ends[-1], 0.1)))
    found = rates(counts, 0.1)[-1].moments
    assert found is not None
    assert found.mean_s == pytest.approx(0.001, rel=0.01)
    # Of m counts the variance has a relative standard error of sqrt(2/m); borders add 1/6.
    error = np.sqrt(2.0 / counts.size) + 1.0 / 6.0 / 100.0 / variation
    assert found.variation == pytest.approx(variation, rel=4.0 * error)
    assert found.process == process
    if skewness is not None:
        assert found.third_s3 / found.variance_s2**1.5 == pytest.approx(skewness, abs=1.0)


def test_the_third_moment_holds_where_service_itself_ends_the_busy_time() -> None:
    """At a low load a period holds as many services as items came: their time is random."""
    rng = np.random.default_rng(8)
    counts = rng.poisson(64.0, 20_000).astype(np.float64)
    found = rates(counts, 200.0, 200.0 - rng.gamma(counts, 1.0))[-1].moments
    assert found is not None
    assert found.variation == pytest.approx(1.0, abs=0.05)
    assert found.third_s3 == pytest.approx(2.0, abs=1.0)
