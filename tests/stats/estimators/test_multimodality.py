"""The values around which readings gather."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.mixtures import Draw, Rng, counts_found

from benchrigor.model.analysis import Mode
from benchrigor.stats.estimators import multimodality as modes
from benchrigor.stats.estimators.multimodality import (
    find_modes,
    merge_near_modes,
    tell_modes,
)


def found_modes(readings: np.ndarray, level: float = 0.01) -> tuple[Mode, ...]:
    return find_modes(np.asarray(readings, dtype=float), level)


def mixture(n: int, rng: Rng, share: float = 0.55, apart: float = 18.0) -> np.ndarray:
    """Draw ``share`` of the readings at 1, the others so many standard deviations above."""
    return np.where(rng.random(n) < share, 1.0, 1.0 + 0.05 * apart) + rng.normal(0.0, 0.05, n)


def switching(n: int, rng: Rng, stay: float) -> np.ndarray:
    return 1.0 + 0.9 * (np.cumsum(rng.random(n) > stay) % 2) + rng.normal(0.0, 0.05, n)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "n", "expected", "least"),
    [
        (lambda n, rng: mixture(n, rng, 0.5, 4.0), 1_000, 2, 0.9),
        (lambda n, rng: mixture(n, rng, 0.8, 4.0), 5_000, 2, 0.85),
        (lambda n, rng: mixture(n, rng, 0.8), 300, 2, 0.95),
        (lambda n, rng: mixture(n, rng, 0.9), 1_000, 2, 0.95),
        (lambda n, rng: rng.choice([1.0, 1.5, 2.2], n) + rng.normal(0, 0.05, n), 300, 3, 0.95),
        (lambda n, rng: switching(n, rng, 0.95), 1_000, 2, 0.95),
        (lambda n, rng: switching(n, rng, 0.98), 1_000, 2, 0.9),
        (lambda n, rng: (np.arange(n) % 10 == 0) + rng.normal(0, 0.05, n), 1_000, 2, 0.95),
        (lambda n, rng: np.round(mixture(n, rng) * 1e3) * 1e-9, 300, 2, 0.95),
        (lambda n, rng: rng.choice([1.0, 1.01, 1.9, 1.91], n), 300, 2, 0.95),
    ],
)
def test_modes_are_found(draw: Draw, n: int, expected: int, least: float) -> None:
    assert np.mean(counts_found(draw, n, times=40) == expected) >= least


def test_rare_slow_readings_are_a_mode_when_they_are_a_tenth_and_none_when_three_percent() -> None:
    def spikes(n: int, rng: Rng, share: float) -> np.ndarray:
        slow = rng.permutation(n) < share * n
        return np.where(slow, 10.0, 1.0) * rng.normal(1.0, 0.05, n)

    assert (counts_found(lambda n, rng: spikes(n, rng, 0.03), 1_000, times=20) == 1).all()
    assert (counts_found(lambda n, rng: spikes(n, rng, 0.10), 1_000, times=20) == 2).all()


def test_a_block_passes_at_the_quantile_of_the_f_distribution() -> None:
    ratio = scipy_stats.f.isf(0.01 / 3, 2 * 8, 2 * 16)
    own = modes.Blocks(np.array([0, 16, 32]), 8, 8, np.log([1.0, 1.0001 * ratio, 0.9999 * ratio]))
    other = modes.Blocks(np.array([-16, 0]), 16, 16, np.zeros(2))
    found = modes.contrast(own, other, 0.01 * 5 / 3)
    assert found.chance == pytest.approx(0.01 / 3)
    assert (found.left > 0.0).tolist() == [False, True, False]
    assert (found.right == -np.inf).tolist() == [True, True, True]


def test_many_readings_have_the_same_modes() -> None:
    readings = mixture(100_000, np.random.default_rng(6))
    low, high = found_modes(readings)
    assert low.share == np.mean(readings < 1.45)
    assert high.value == np.median(readings[readings > 1.45])


@pytest.mark.parametrize(
    "readings",
    [
        [5.0],
        [3.0] * 500,
        [1.0] * 40_000 + [2.0],
        np.linspace(1.0, 1.0 + 1e-11, 300),
        mixture(59, np.random.default_rng(1), apart=5.0),
        mixture(1_000, np.random.default_rng(1)) * 1e-310,
    ],
)
def test_few_constant_and_rounded_readings_are_one_mode(readings: np.ndarray) -> None:
    assert found_modes(readings) == (Mode(value=float(np.median(readings)), share=1.0),)


def test_an_outlier_however_far_hides_nothing() -> None:
    readings = mixture(300, np.random.default_rng(2))
    readings[[7, 9]] = [1e150, -1e140]
    assert len(found_modes(readings)) == 2


@pytest.mark.slow
@given(st.integers(0, 50), st.sampled_from([-250.0, -1.0, 1e-9, 3.0]), st.floats(-1_000.0, 1_000.0))
def test_unit_origin_and_direction_do_not_matter(seed: int, scale: float, shift: float) -> None:
    readings = mixture(300, np.random.default_rng(seed), 0.6, 5.0)
    expected = found_modes(readings)[:: int(math.copysign(1, scale))]
    found = found_modes(scale * (readings + shift))
    assert [mode.share for mode in found] == pytest.approx([mode.share for mode in expected])
    values = [scale * (mode.value + shift) for mode in expected]
    assert [mode.value for mode in found] == pytest.approx(values, rel=1e-9, abs=1e-9 * abs(scale))


@pytest.mark.slow
@given(
    st.lists(st.integers(-3, 40), min_size=60, max_size=200)
    | st.lists(st.floats(-1e100, 1e100), min_size=60, max_size=100)
)
def test_modes_ascend_and_share_all_readings(readings: list[float]) -> None:
    found = find_modes(np.array(readings, dtype=float), 0.5)
    assert sum(mode.share for mode in found) == pytest.approx(1.0)
    assert [mode.value for mode in found] == sorted(mode.value for mode in found)
    assert all(mode.share >= 0.05 - 1e-9 for mode in found)


def test_modes_close_to_each_other_are_merged() -> None:
    modes = tuple(Mode(value=value, share=share) for value, share in ((1.0, 0.3), (1.04, 0.1)))
    (joined,) = merge_near_modes(modes)
    assert joined.share == pytest.approx(0.4)
    assert joined.value == pytest.approx(1.01)
    far = Mode(value=1.2, share=0.6)
    assert merge_near_modes((*modes, far)) == (joined, far)
    assert merge_near_modes(()) == ()


FAR = {
    "two": [0.012, 0.75],
    "three": [0.012, 0.3, 0.75],
    "near in size": [1.0, 1.4],
}


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("n", [20, 40, 59, 200])
def test_few_readings_show_modes_that_are_far_apart(name: str, n: int) -> None:
    levels = FAR[name]
    for noise in (0.02, 0.001):
        rng = np.random.default_rng([n, len(levels)])
        readings = np.resize(levels, n) * rng.lognormal(0.0, noise, n)
        found = found_modes(rng.permutation(readings))
        assert [mode.value for mode in found] == pytest.approx(levels, rel=0.05)
        shares = [1 / len(levels)] * len(levels)
        assert [mode.share for mode in found] == pytest.approx(shares, abs=0.1)
        assert tell_modes(readings, found, "s").severity == "warning"


def test_equal_readings_have_modes_unless_they_are_ticks_of_a_clock() -> None:
    assert len(found_modes(np.resize(FAR["two"], 40))) == 2
    assert len(found_modes(np.resize(FAR["three"], 40))) == 3
    for ticks in ([83.0, 125.0], [0.0, 41.0], [15.6, 31.2, 46.8], [5.0]):
        assert len(found_modes(np.resize(ticks, 40))) == 1
    assert len(found_modes(np.resize(FAR["two"], 19))) == 1


def test_ticks_with_a_few_values_between_are_a_note() -> None:
    ticks = np.repeat([100e-9, 110e-9, 120e-9, 130e-9, 101e-9], [60, 290, 500, 150, 1])
    levels = [Mode(value=value * 1e-9, share=0.25) for value in (100, 110, 120, 130)]
    assert tell_modes(ticks, tuple(levels), "s").severity == "note"


def test_modes_that_are_not_far_apart_are_a_note() -> None:
    near = np.random.default_rng(5).normal(np.resize([1.0, 1.25], 600), 0.05)
    found = found_modes(near)
    assert (len(found), tell_modes(near, found, "s").severity) == (2, "note")


@pytest.mark.parametrize("n", [20, 30, 59])
def test_few_skewed_readings_seldom_look_like_modes_far_apart(n: int) -> None:
    rng = np.random.default_rng([20301201, n])
    drawn = [
        draw
        for _ in range(200)
        for draw in (rng.exponential(size=n), rng.lognormal(0.0, 1.0, n), 1.0 + rng.pareto(2.0, n))
    ]
    assert sum(len(found_modes(draw)) > 1 for draw in drawn) <= (24 if n == 20 else 12)
