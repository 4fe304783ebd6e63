"""Which phase of a series is measured, and whether its interval covers."""

from __future__ import annotations

import numpy as np
import pytest

from benchrigor.errors import NotEstimable
from benchrigor.model import ChangePoints
from benchrigor.model.analysis import PhaseReason
from benchrigor.stats import estimate_mean, find_stable_phase, trimmed


def points(*indices: int, n: int) -> ChangePoints:
    return ChangePoints(indices=indices, n=n, level=None, inflation=1.0)


def test_a_detector_that_finds_nothing_is_believed() -> None:
    series = np.random.default_rng(1).normal(5.0, 0.1, 400)
    series[:60] += 0.2
    assert find_stable_phase(series).start == 60
    found = find_stable_phase(series, change_points=points(n=400))
    assert (found.start, found.stop, found.reason) == (0, 400, PhaseReason.STABLE)


def test_the_change_points_of_a_detector_are_checked() -> None:
    series = np.random.default_rng(1).normal(5.0, 0.1, 400)
    series[:150] += 1.0
    found = find_stable_phase(series, change_points=points(50, n=400))
    assert (found.start, found.reason) == (None, PhaseReason.NOT_STABLE_INSIDE)
    with pytest.raises(NotEstimable) as caught:
        trimmed(series, found)
    assert caught.value.notice == found.notices[0]


def test_a_shift_of_a_percent_is_never_joined() -> None:
    series = np.random.default_rng(2).normal(1.0, 0.001, 400)
    series[:100] += 0.0105
    assert estimate_mean(series, confidence=1.0 - 1e-9, trim=True).n <= 300
    assert find_stable_phase(series, materiality=0.012).start == 0


@pytest.mark.parametrize("seed", range(8))
def test_three_cold_readings_do_not_move_the_mean(seed: int) -> None:
    series = np.random.default_rng(seed).normal(1.0, 0.1, 500)
    cold = series.copy()
    cold[:3] *= 10.0
    warm = estimate_mean(series, trim=True)
    found = estimate_mean(cold, trim=True)
    assert found.value == pytest.approx(warm.value, abs=0.1 * warm.half_width)
    assert found.half_width == pytest.approx(warm.half_width, rel=0.1)
