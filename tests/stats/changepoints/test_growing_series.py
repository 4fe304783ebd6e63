"""A `ChangeDetector` fed in batches, and through the interface of ruptures."""

from __future__ import annotations

import time

import matplotlib
import numpy as np
import pytest
import ruptures as rpt
from hypothesis import given, settings
from hypothesis import strategies as st
from ruptures.metrics import hausdorff, precision_recall

from benchrigor.errors import InvalidInput
from benchrigor.model import ChangePoints
from benchrigor.stats import ChangeDetector, detect_changes, find_stable_phase

SETTLED = 31 * 2**6
"""A length with but five leading bits: there one shot and appending see by the same quantiles."""


def steps(n: int, seed: int, noise: str = "normal") -> np.ndarray:
    rng = np.random.default_rng([n, seed])
    levels = np.cumsum(rng.normal(0.0, 3.0, 4)).repeat(-(-n // 4))[:n]
    drawn = rng.normal(size=n) if noise == "normal" else np.round(rng.standard_t(2, n))
    return np.asarray(levels + drawn)


def fed(series: np.ndarray, cuts: list[int]) -> ChangeDetector:
    detector = ChangeDetector()
    for part in np.split(series, sorted(cuts)):
        if part.size:
            detector.append(part)
            detector.change_points()
    return detector


@settings(derandomize=True, max_examples=25, deadline=None)
@given(
    n=st.integers(1, 6_000),
    seed=st.integers(0, 99),
    shares=st.lists(st.floats(0.0, 1.0), max_size=8),
    noise=st.sampled_from(["normal", "ticks"]),
)
def test_batches_do_not_matter(n: int, seed: int, shares: list[float], noise: str) -> None:
    series = steps(n, seed, noise)
    whole = ChangeDetector()
    whole.append(series)
    assert fed(series, [int(n * share) for share in shares]).change_points() == (
        whole.change_points()
    )


@pytest.mark.parametrize("seed", range(5))
def test_where_the_quantiles_coincide_it_is_one_shot(seed: int) -> None:
    series = steps(SETTLED, seed)
    found = fed(series, [100, 700, 701, 1_500]).change_points()
    assert found == detect_changes(series)
    assert found.indices


@pytest.mark.parametrize("n", [1_999, 20_001, 200_003])
def test_elsewhere_the_points_lie_within_a_hundredth(n: int) -> None:
    series = np.repeat([6.0, 0.0, -3.0], [n // 8, n - n // 8 - n // 9, n // 9])
    series += np.random.default_rng(n).normal(size=n)
    ahead, at_once = fed(series, [n // 3, n // 2]).change_points(), detect_changes(series)
    assert ahead.indices == pytest.approx(at_once.indices, abs=n // 100)


def test_a_series_that_begins_with_equal_readings_is_seen_once_it_moves() -> None:
    detector = ChangeDetector()
    detector.append([5.0] * 1_000)
    assert detector.change_points().indices == ()
    detector.append([5.0] * 20 + [7.0] * 30)
    assert detector.change_points().indices == (1_020,)


def test_readings_behind_the_last_window_add_no_change_point() -> None:
    numbers = []
    for seed in range(10):
        series = np.repeat([5.0, 0.0, -4.0], [800, 4_000, 250])
        series += np.random.default_rng(seed).lognormal(0.0, 0.8, series.size)
        # Five leading bits of 5050 are 4864: there the last window ends.
        numbers.append(len(fed(series, [4_900]).change_points().indices))
    assert numbers == [2] * 10


def test_readings_that_are_no_numbers_leave_the_detector_as_it_was() -> None:
    detector = ChangeDetector()
    detector.append([1.0] * 15 + [9.0] * 15)
    with pytest.raises(InvalidInput):
        detector.append([1.0, float("nan")])
    with pytest.raises(InvalidInput):
        detector.fit(np.zeros((3, 2)))
    assert detector.predict() == [15, 30]


def test_appending_costs_no_more_work_than_its_own_intervals() -> None:
    spent_s = []
    for n in (2**13, 2**18):
        rng = np.random.default_rng(1)
        series = np.repeat([3.0, 0.0], [n // 8, n]) + rng.normal(size=n + n // 8)
        detector = fed(series[:n], [])
        parts = []
        for at in range(n, n + 1_000, 100):
            begun_s = time.process_time()
            detector.append(series[at : at + 100])
            detector.change_points()
            parts.append(time.process_time() - begun_s)
        spent_s.append(min(parts))
    # The lengths of intervals grow from 17 to 22; the readings grow 32 times.
    assert spent_s[1] < 8.0 * spent_s[0]


def test_fit_and_predict_are_those_of_ruptures() -> None:
    signal, true = rpt.pw_constant(500, 1, 3, noise_std=0.5, delta=(5, 9), seed=1)
    detector = ChangeDetector()
    assert detector.fit(signal) is detector
    found = detector.predict()
    assert found == detector.fit(signal[:, 0]).predict()
    assert found[-1] == 500
    assert precision_recall(true, found, margin=5) == (1.0, 1.0)
    assert hausdorff(true, found) <= 5


def test_the_display_of_ruptures_draws_what_it_predicts() -> None:
    matplotlib.use("Agg")
    signal, true = rpt.pw_constant(300, 1, 2, noise_std=0.5, delta=(5, 9), seed=2)
    figure, axes = rpt.display(signal, true, ChangeDetector().fit(signal).predict())
    # Two changes make three shaded segments, and a vertical line each.
    assert len(axes[0].patches) == 3
    matplotlib.pyplot.close(figure)


def test_called_it_leaves_what_was_appended_alone() -> None:
    detector = ChangeDetector()
    detector.append([1.0] * 20 + [2.0] * 20)
    assert detector(steps(700, 2)) == detect_changes(steps(700, 2))
    assert detector.predict() == [20, 40]


# --- Readings at the ends of a series that are at another level, but too few to call a change.


def steady(n: int, seed: int, *, spread: float = 0.02, correlation: float = 0.0) -> np.ndarray:
    """Return readings around 1, whose noise may be autoregressive."""
    noise = np.random.default_rng(seed).normal(size=n)
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


def test_a_named_detector_counts_them_too() -> None:
    phase = find_stable_phase(with_step(200, 6, seed=2), detector="pelt")
    assert phase.change_points.late == 6


def test_a_level_that_nothing_else_reaches_is_found_in_slow_noise() -> None:
    for seed in range(10):
        series = steady(1_200, seed, spread=0.002, correlation=0.8)
        series[:150] *= 2.0
        series[700:] *= 1.03
        assert 150 in detect_changes(series).indices


@pytest.mark.parametrize("n", [25, 200, 1_000])
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
