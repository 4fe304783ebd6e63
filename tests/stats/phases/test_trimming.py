"""Which phase of a series is measured, and whether its interval covers."""

from __future__ import annotations

import numpy as np
import pytest

from benchrigor.errors import NotEstimable
from benchrigor.model import ChangePoints
from benchrigor.stats import estimate_mean
from benchrigor.stats.phases.trimming import (
    MATERIALITY,
    measured_phase,
    phase_at_materiality,
    trimmed,
)


def points(*indices: int, n: int) -> ChangePoints:
    return ChangePoints(indices=indices, n=n, level=None, inflation=1.0)


def test_a_detector_that_finds_nothing_is_believed() -> None:
    series = np.random.default_rng(1).normal(5.0, 0.1, 400)
    series[:60] += 0.2
    assert phase_at_materiality(series, MATERIALITY).start == 60
    for found in (
        phase_at_materiality(series, MATERIALITY, points(n=400)),
        measured_phase(series, 0.95, points(n=400)),
    ):
        assert (found.start, found.stop, found.reason) == (0, 400, "stable")


def test_the_change_points_of_a_detector_are_checked() -> None:
    series = np.random.default_rng(1).normal(5.0, 0.1, 400)
    series[:150] += 1.0
    found = phase_at_materiality(series, MATERIALITY, points(50, n=400))
    assert (found.start, found.reason) == (None, "not stable inside")
    with pytest.raises(NotEstimable) as caught:
        trimmed(series, found)
    assert caught.value.notice == found.notices[0]


def test_a_shift_of_a_percent_is_never_joined() -> None:
    series = np.random.default_rng(2).normal(1.0, 0.001, 400)
    series[:100] += 0.0105
    assert measured_phase(series, 1.0 - 1e-9).start == 100
    assert phase_at_materiality(series, 0.012).start == 0


@pytest.mark.parametrize("seed", range(8))
def test_three_cold_readings_do_not_move_the_mean(seed: int) -> None:
    series = np.random.default_rng(seed).normal(1.0, 0.1, 500)
    cold = series.copy()
    cold[:3] *= 10.0
    warm = estimate_mean(series, trim=True)
    found = estimate_mean(cold, trim=True)
    assert found.value == pytest.approx(warm.value, abs=0.1 * warm.half_width)
    assert found.half_width == pytest.approx(warm.half_width, rel=0.1)
