import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.series import autoregressive

from benchrigor.model import Code
from benchrigor.stats import detect_changes, estimate_mean

RNG = np.random.default_rng(20)
NORMAL = RNG.normal(10.0, 1.0, 400)


def test_below_thirty_readings_it_is_students_t() -> None:
    values = NORMAL[:20] - 10.0
    found = estimate_mean(values)
    low, high = scipy_stats.t.interval(0.95, 19, values.mean(), scipy_stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert [notice.code for notice in found.notices] == [Code.FEW_READINGS]


@pytest.mark.parametrize("shift", [0.003, 0.006])
def test_trimming_joins_no_shift_that_is_large_beside_the_interval(shift: float) -> None:
    values = 1.0 + 0.01 * np.random.default_rng(1).normal(size=2_000)
    values[:600] += shift
    found = estimate_mean(values, trim=True)
    # Half-width some 0.0007: both shifts are below 1 %, but beyond a quarter of that.
    assert found.n <= 1_400
    assert found.low < 1.0 < found.high


def test_trimming_joins_a_shift_that_the_interval_bears() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(1.0, 0.001, 1_000) + 2.0 * (rng.random(1_000) < 0.05)
    values[300:] += 0.003
    found = estimate_mean(values, trim=True)
    assert detect_changes(values).indices
    assert found.n == 990  # the first ten may be cold
    assert 0.25 * found.half_width > 0.003


@pytest.mark.parametrize("scale", [1e-200, 1e-120, 1e120, 1e149])
@pytest.mark.parametrize("n", [20, 400])
def test_tiny_and_huge_readings_are_no_trouble(scale: float, n: int) -> None:
    values = np.random.default_rng(3).lognormal(0.0, 0.5, n)
    found, scaled = estimate_mean(values), estimate_mean(values * scale)
    assert scaled.half_width == pytest.approx(found.half_width * scale, rel=1e-6)


def waiting(n: int, seed: int) -> np.ndarray:
    """Waiting times of a queue that is busy four fifths of the time (Lindley's recursion)."""
    rng = np.random.default_rng([n, seed])
    steps = 0.8 * rng.exponential(size=n + 500) - rng.exponential(size=n + 500)
    walk = np.concatenate([[0.0], steps.cumsum()])
    return (walk - np.minimum.accumulate(walk))[-n:]


def test_the_readings_of_a_busy_queue_are_warned_of() -> None:
    # Measured 95 %; of 20 at 90 % fewer than 14 have a chance below 0.5 %.
    assert sum(warned(waiting(5_000, seed)) for seed in range(20)) >= 14


@pytest.mark.parametrize("n", [3, 10, 40, 400])
@pytest.mark.parametrize("skewness", [0.3, 1.0])
def test_the_interval_of_a_time_is_above_0(n: int, skewness: float) -> None:
    for seed in range(20):
        level = estimate_mean(np.random.default_rng([seed, n]).lognormal(-7.0, skewness, n))
        assert 0.0 < level.low < level.value < level.high
        assert level.standard_error is not None
        reach = scipy_stats.t.ppf(0.975, level.degrees_of_freedom) * level.standard_error
        widest = max(level.value / level.low, level.high / level.value)
        assert widest >= math.exp(reach / level.value * 0.999999)


def warned(values: np.ndarray) -> bool:
    return Code.PERSISTENT_AND_SKEWED in {each.code for each in estimate_mean(values).notices}


def test_persistence_or_skewness_alone_is_no_queue() -> None:
    for seed in range(20):
        slow = autoregressive(np.random.default_rng([4_000, seed]), 4_000)
        assert not warned(slow)
        assert 4_000.0 / estimate_mean(slow).n_effective >= 10.0
        assert not warned(np.random.default_rng(seed).lognormal(0.0, 1.5, 200))


@pytest.mark.parametrize("n", [20, 500])
def test_an_interval_grows_with_its_confidence_as_students_t_does(n: int) -> None:
    series, widths = autoregressive(np.random.default_rng([n, 1]), n), []
    for confidence in (0.8, 0.95, 0.99):
        found = estimate_mean(series, confidence=confidence)
        assert found.confidence == confidence
        wanted = scipy_stats.t.ppf((1.0 + confidence) / 2.0, found.degrees_of_freedom)
        assert found.half_width / found.standard_error == pytest.approx(wanted, rel=0.05)
        widths.append(found.half_width)
    assert widths == sorted(widths)
