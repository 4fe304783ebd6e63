"""The full speed of a machine: the fastest level that a reference shows for a real share."""

import numpy as np
import pytest

from benchrigor.stats.series.full_speed import fastest_level

FULL_S = 4e-6


def times(share, slower, n=2_000, jitter=0.02, seed=1):
    """Return references of a machine that spends a share of its time at full speed."""
    rng = np.random.default_rng(seed)
    slow = rng.random(n) >= share
    return FULL_S * np.where(slow, slower, 1.0) * np.exp(rng.normal(0.0, jitter, n))


@pytest.mark.parametrize("n", [4, 30, 10_000])
def test_with_one_speed_it_is_the_median(n):
    seconds = times(1.0, 1.0, n=n)
    assert fastest_level(seconds).seconds == pytest.approx(np.median(seconds), rel=0.002)
    for equal in (seconds[:1], [2.0] * 9):
        found = fastest_level(equal)
        assert (found.seconds, found.share) == (equal[0], 1.0)


@pytest.mark.parametrize("share", [0.15, 0.5, 0.9])
@pytest.mark.parametrize("slower", [1.3, 1.7, 2.5])
def test_of_two_speeds_it_is_the_faster_one(share, slower):
    found = fastest_level(times(share, slower))
    assert found.seconds == pytest.approx(FULL_S, rel=0.01)
    assert found.share == pytest.approx(share, abs=0.03)


def test_luck_is_no_level():
    """A few of the times are far faster, and the fastest tenth of one level is no other one."""
    seconds = times(1.0, 1.0)
    lucky = np.append(seconds, 0.8 * seconds[:100])
    assert fastest_level(lucky).seconds == pytest.approx(FULL_S, rel=0.005)
    assert fastest_level(lucky, real=0.03).seconds == pytest.approx(0.8 * FULL_S, rel=0.02)
    wide = times(1.0, 1.0, jitter=0.12)
    assert fastest_level(wide).seconds == pytest.approx(FULL_S, rel=0.03)
