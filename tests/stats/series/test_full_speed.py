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


def test_luck_is_no_level():
    """A few of the times are far faster, and the fastest tenth of one level is no other one."""
    seconds = times(1.0, 1.0)
    lucky = np.append(seconds, 0.8 * seconds[:100])
    assert fastest_level(lucky).seconds == pytest.approx(FULL_S, rel=0.005)
    assert fastest_level(lucky, real=0.03).seconds == pytest.approx(0.8 * FULL_S, rel=0.02)
    wide = times(1.0, 1.0, jitter=0.12)
    assert fastest_level(wide).seconds == pytest.approx(FULL_S, rel=0.03)
