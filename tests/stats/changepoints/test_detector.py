"""What `detect_changes` finds, and what it leaves alone."""

from __future__ import annotations

import statistics
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.stats import detect_changes

STEPS = np.repeat([4.0, 1.5, 0.0, -2.0], [40, 50, 450, 60])


def noise(kind: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([n, seed])
    return {
        "normal": lambda: rng.normal(size=n),
        "lognormal": lambda: rng.lognormal(0.0, 0.8, n),
        "t2": lambda: rng.standard_t(2, n),
    }[kind]()


@pytest.mark.parametrize("sd", [0.0, 1e-9, 0.1, 1.0])
def test_thirty_low_130_high_30_low_is_cut_exactly(sd: float) -> None:
    levels = np.repeat([10.0, 30.0, 10.0], [30, 130, 30])
    assert detect_changes(levels + sd * noise("normal", 190, 3)).indices == (30, 160)


def test_no_segment_is_shorter_than_asked_for() -> None:
    for seed in range(60):
        borders = (0, *detect_changes(np.sort(noise("normal", 100, seed))).indices, 100)
        assert np.diff(borders).min() >= 10


@pytest.mark.parametrize("n", [5_000, 40_000, 300_000])
def test_long_series_are_cut_at_every_block_size(n: int) -> None:
    series = noise("normal", n, 2)
    series[: n // 7] += 5.0
    series[-n // 9 :] -= 5.0
    assert detect_changes(series).indices == pytest.approx((n // 7, n - n // 9), abs=12)


def test_fewer_than_two_segments_of_readings_have_no_change_points() -> None:
    series = [1.0] * 12 + [9.0] * 13
    assert detect_changes(series, min_segment=13).indices == ()
    assert detect_changes(series, min_segment=12).indices == (12,)


@pytest.mark.parametrize("n", [4, 5, 9, 10, 23])
def test_the_shortest_series_are_worked_with(n: int) -> None:
    for series in (noise("normal", n, 1), np.arange(n), 1e140 * noise("t2", n, 1)):
        assert len(detect_changes(series, min_segment=2).indices) < n / 2


def test_a_stricter_level_never_finds_more() -> None:
    series = noise("normal", 600, 4) + 0.4 * STEPS
    counts = [len(detect_changes(series, level=each).indices) for each in (0.2, 1e-2, 1e-4, 1e-9)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


@pytest.mark.parametrize("factor", [0.1, 1e-9, 1 / 3])
def test_the_unit_does_not_matter_where_many_gaps_are_equal(factor: float) -> None:
    for seed in range(20):
        fading = 20.0 * np.exp(-np.arange(600) / 30.0) + 0.3 * noise("normal", 600, seed)
        for ticks in (np.round(fading) + 100.0, np.sort(np.round(10.0 * noise("t2", 600, seed)))):
            assert detect_changes(factor * ticks).indices == detect_changes(ticks).indices


@settings(derandomize=True, max_examples=10, deadline=None)
@given(seed=st.integers(0, 1_000))
def test_reversed_input_has_mirrored_change_points(seed: int) -> None:
    series = noise("normal", 600, seed) + STEPS
    ahead, back = detect_changes(series).indices, detect_changes(series[::-1]).indices
    assert len(ahead) == len(back)
    assert all(abs(600 - b - a) <= 12 for a, b in zip(ahead, reversed(back), strict=True))


# --- The published E-Divisive with medians: exactly its dynamic programme, quirks included.


def detect_by_medians(series: np.ndarray, min_segment: int = 30) -> tuple[int, ...]:
    return detect_changes(series, method="edm", min_segment=min_segment).indices


def literally(readings: list[float], shortest: int) -> tuple[int, ...]:
    """Carry the recursion out as it is written down, each median from scratch."""
    n = len(readings)
    best, last = [0.0] * (n + 1), [0] * (n + 1)
    for stop in range(2 * shortest, n + 1):
        for split in range(shortest, stop - shortest + 1):
            before = last[split]
            gap = statistics.median(readings[before:split]) - statistics.median(
                readings[split:stop]
            )
            weight = (split - before) * (stop - split) / (stop - before) ** 2
            reached = best[split] + weight * (gap * gap)
            if reached > best[stop]:
                best[stop], last[stop] = reached, split
        point = last[stop]
        if point > 0 and best[stop] - best[point] < 0.25 * best[point]:
            best[stop], last[stop] = best[point], last[point]
    points = []
    point = last[n]
    while point > 0:
        points.append(point)
        point = last[point]
    return tuple(sorted(points))


readings = st.one_of(
    st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=40),
    st.lists(st.integers(0, 3).map(float), min_size=1, max_size=40),
)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(series=readings, shortest=st.integers(2, 6))
def test_the_points_are_those_of_the_recursion(series: list[float], shortest: int) -> None:
    found = detect_by_medians(np.array(series), min_segment=shortest)
    assert found == literally(series, shortest)


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_longer_series_with_and_without_ties_are_cut_like_by_the_recursion(digits: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        series = np.round(np.repeat([6.0, 0.0, 4.0], 50) + rng.normal(size=150), digits)
        found = detect_by_medians(series, min_segment=10)
        assert found == literally(series.tolist(), 10)
        assert found


def test_the_second_border_of_a_low_stretch_is_misplaced_as_published() -> None:
    series = np.repeat([10.0, 30.0, 10.0], [30, 130, 30])
    assert detect_by_medians(series, min_segment=30) == (30, 131)


@pytest.mark.parametrize("power", [-1_000, -600, 300, 490])
def test_readings_of_any_size_are_cut_alike(power: int) -> None:
    series = np.random.default_rng(5).normal(size=200) + np.repeat([9.0, 0.0], 100)
    with np.errstate(all="raise"):
        found = detect_by_medians(np.ldexp(series, power), min_segment=30)
    assert found == detect_by_medians(series, min_segment=30) != ()


@pytest.mark.alone
def test_a_long_series_is_cut_in_bounded_memory() -> None:
    n = 5_000 // 4
    series = np.random.default_rng(1).normal(size=n) + 9.0 * (np.arange(n) < 500)
    tracemalloc.start()
    found = detect_by_medians(series, min_segment=30)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.abs(np.array(found) - 500).min() <= 2
    assert peak < 120e6 / 4**2  # of the longest, as it grows with the square


def test_a_longer_series_is_averaged_to_means_of_neighbours() -> None:
    levels = np.repeat([9.0, 1.0, 4.0], [1_000, 3_500, 1_001])
    series = levels + np.random.default_rng(6).normal(size=levels.size)
    means = series[:5_500].reshape(2_750, 2).mean(axis=1)
    points = detect_by_medians(means)
    assert detect_by_medians(series) == tuple(2 * point for point in points) != ()
