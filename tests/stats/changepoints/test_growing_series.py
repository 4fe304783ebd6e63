"""A `ChangeDetector` fed in batches, and through the interface of ruptures."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
import ruptures as rpt
from hypothesis import given, settings
from hypothesis import strategies as st
from ruptures.metrics import hausdorff, precision_recall

from benchrigor.errors import InvalidInput
from benchrigor.stats import ChangeDetector, detect_changes
from benchrigor.stats.changepoints.windows import Windows

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


@pytest.mark.slow
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


def test_appending_costs_no_more_work_than_its_own_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = 0
    ratios = Windows.ratios

    def counting(windows: Windows, intervals: object, split: np.ndarray, *rest: object, **more):  # type: ignore[no-untyped-def]
        nonlocal looked_at
        looked_at += split.size
        return ratios(windows, intervals, split, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Windows, "ratios", counting)
    work = {}
    for n in (2**13, 2**18):
        series = np.repeat([3.0, 0.0], [n // 8, n]) + np.random.default_rng(1).normal(
            size=n + n // 8
        )
        detector = ChangeDetector()
        detector.append(series[:n])
        detector.change_points()
        looked_at = 0
        for at in range(n, n + 500, 100):
            detector.append(series[at : at + 100])
            detector.change_points()
        work[n] = looked_at
    # The lengths of intervals grow from 17 to 22; the readings grow 32 times.
    assert 0 < work[2**18] <= 2 * work[2**13]


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
