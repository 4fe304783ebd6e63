"""Readings at the ends of a series that are at another level, but too few to call a change."""

import numpy as np
import pytest

from benchrigor.model import ChangePoints
from benchrigor.stats import ChangeDetector, detect_changes, find_stable_phase


def steady(n: int, seed: int, *, spread: float = 0.02, correlation: float = 0.0) -> np.ndarray:
    """Return readings around 1, whose noise may be autoregressive."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=n)
    for at in range(1, n if correlation else 0):
        noise[at] = correlation * noise[at - 1] + (1.0 - correlation**2) ** 0.5 * noise[at]
    return 1.0 + spread * noise


def with_step(n: int, behind: int, seed: int, *, factor: float = 1.5) -> np.ndarray:
    series = steady(n + behind, seed)
    series[n:] *= factor
    return series


def found(points: ChangePoints) -> tuple[tuple[int, ...], int, int]:
    return points.indices, points.early, points.late


@pytest.mark.parametrize("n", [30, 200, 2_000])
@pytest.mark.parametrize("behind", [2, 3, 6, 8, 9])
def test_fewer_than_the_least_segment_are_counted_at_either_end(n: int, behind: int) -> None:
    series = with_step(n, behind, seed=behind + 10)
    assert found(detect_changes(series)) == ((), 0, behind)
    assert found(detect_changes(series[::-1])) == ((), behind, 0)


@pytest.mark.parametrize("behind", [10, 11, 14, 25])
def test_from_the_least_segment_on_they_are_a_change_in_its_place(behind: int) -> None:
    assert found(detect_changes(with_step(200, behind, seed=3))) == ((200,), 0, 0)


def test_a_smaller_least_segment_finds_a_later_change() -> None:
    assert found(detect_changes(with_step(200, 6, seed=1), min_segment=5)) == ((200,), 0, 0)
    assert found(detect_changes(with_step(200, 4, seed=1), min_segment=5)) == ((), 0, 4)


def test_one_outlier_at_an_end_or_two_that_others_come_near_are_no_level() -> None:
    assert found(detect_changes(with_step(200, 1, seed=1))) == ((), 0, 0)
    assert found(detect_changes(with_step(200, 2, seed=1, factor=1.05))) == ((), 0, 0)
    series = with_step(200, 2, seed=1)
    series[50] = series[-1]
    assert found(detect_changes(series)) == ((), 0, 0)


def test_two_outliers_behind_a_late_change_do_not_hide_it() -> None:
    series = np.concatenate([with_step(200, 12, seed=6, factor=1.2), [9.0, 9.1]])
    assert found(detect_changes(series)) == ((200,), 0, 0)


def test_both_ends_are_counted_beside_a_change_between_them() -> None:
    series = np.concatenate([steady(6, 1) * 2.0, steady(200, 2), steady(200, 3) * 1.1])
    series = np.concatenate([series, steady(7, 4) * 2.0])
    assert found(detect_changes(series)) == ((206,), 6, 7)


def test_a_growing_series_counts_them_until_they_are_enough() -> None:
    series, detector = with_step(200, 12, seed=5), ChangeDetector()
    detector.append(series[:206])
    assert found(detector.change_points()) == ((), 0, 6)
    detector.append(series[206:])
    assert found(detector.change_points()) == ((200,), 0, 0)


def test_a_named_detector_counts_them_too() -> None:
    phase = find_stable_phase(with_step(200, 6, seed=2), detector="pelt")
    assert phase.change_points.late == 6


def test_a_level_that_nothing_else_reaches_is_found_in_slow_noise() -> None:
    for seed in range(10):
        series = steady(1_200, seed, spread=0.002, correlation=0.8)
        series[:150] *= 2.0
        series[700:] *= 1.03
        assert 150 in detect_changes(series).indices


@pytest.mark.parametrize("n", [25, 200, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", ["normal", "lognormal", "outliers", "coarse"])
def test_steady_readings_have_no_other_level_at_their_ends(noise: str, n: int) -> None:
    rng, told = np.random.default_rng([n, len(noise)]), 0
    for _ in range(100):
        series = {
            "normal": rng.normal(size=n),
            "lognormal": rng.lognormal(size=n),
            "outliers": rng.normal(1.0, 0.02, n) * np.where(rng.random(n) < 0.12, 3.0, 1.0),
            "coarse": rng.integers(0, 3, n).astype(float),
        }[noise]
        points = detect_changes(series)
        told += points.early > 0 or points.late > 0
    assert told <= 4  # one in a hundred by the level
