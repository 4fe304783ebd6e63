"""What `detect_changes` finds, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.stats import detect_changes

STEPS = np.repeat([4.0, 1.5, 0.0, -2.0], [40, 50, 450, 60])


def noise(kind: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([n, seed])
    if kind.startswith("AR"):
        phi = float(kind[2:])
        series = rng.normal(size=n + 200)
        for i in range(1, n + 200):
            series[i] = phi * series[i - 1] + np.sqrt(1 - phi**2) * series[i]
        return series[200:]
    return {
        "normal": lambda: rng.normal(size=n),
        "lognormal": lambda: rng.lognormal(0.0, 0.8, n),
        "bimodal": lambda: 3.0 * (rng.random(n) < 0.3) + 0.5 * rng.normal(size=n),
        "t2": lambda: rng.standard_t(2, n),
        "Cauchy": lambda: rng.standard_cauchy(n),
        "ticks": lambda: np.round(rng.normal(size=n)),
        "rare": lambda: (rng.random(n) < 0.02).astype(np.float64),
    }[kind]()


@pytest.mark.parametrize("sd", [0.0, 1e-9, 0.1, 1.0])
def test_thirty_low_130_high_30_low_is_cut_exactly(sd: float) -> None:
    levels = np.repeat([10.0, 30.0, 10.0], [30, 130, 30])
    assert detect_changes(levels + sd * noise("normal", 190, 3)).indices == (30, 160)


def test_no_segment_is_shorter_than_asked_for() -> None:
    for seed in range(60):
        borders = (0, *detect_changes(np.sort(noise("normal", 100, seed))).indices, 100)
        assert np.diff(borders).min() >= 10


@pytest.mark.parametrize("length", [10, 50])
def test_two_segments_of_the_least_length_are_parted(length: int) -> None:
    levels = np.repeat([1.0, 2.0], length)
    assert detect_changes(levels, min_segment=length).indices == (length,)


def test_a_short_warm_up_of_a_long_series_is_found_to_the_reading() -> None:
    series = noise("lognormal", 200_000, 1)
    series[:40] += 20.0
    assert detect_changes(series).indices == (40,)


@pytest.mark.parametrize("n", [5_000, 40_000, 300_000])
def test_long_series_are_cut_at_every_block_size(n: int) -> None:
    series = noise("normal", n, 2)
    series[: n // 7] += 5.0
    series[-n // 9 :] -= 5.0
    assert detect_changes(series).indices == pytest.approx((n // 7, n - n // 9), abs=12)


@pytest.mark.parametrize("n", [1, 19, 20, 500, 5_000])
def test_a_constant_series_has_no_change_points(n: int) -> None:
    found = detect_changes(np.full(n, 0.1))
    assert (found.indices, found.n, found.inflation) == ((), n, 1.0)


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


@pytest.mark.slow
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


def test_the_type_of_the_input_does_not_matter() -> None:
    series = np.round(10.0 * (noise("normal", 600, 1) + STEPS))
    expected = detect_changes(series)
    assert expected.indices
    for same in (series.astype(np.float32), series.astype(np.int16), series.tolist()):
        assert detect_changes(same) == expected
