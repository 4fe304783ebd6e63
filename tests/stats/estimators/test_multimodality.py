"""The values around which readings gather."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.mixtures import Draw, Rng, counts_found
from tests.stats.told import analysed

from benchrigor.model import Code
from benchrigor.stats import find_stable_phase, observe


def modes_of(readings: np.ndarray) -> list[tuple[float, float]]:
    """Return the values around which readings gather, with their shares."""
    return [(each.value, each.share) for each in observe(readings).levels]


def severity(readings: np.ndarray) -> str | None:
    """Return how severe a session that took these readings says several modes are."""
    notices = analysed(readings, unit="s").notices
    return next((each.severity for each in notices if each.code is Code.SEVERAL_MODES), None)


def mixture(n: int, rng: Rng, share: float = 0.55, apart: float = 18.0) -> np.ndarray:
    """Draw ``share`` of the readings at 1, the others so many standard deviations above."""
    return np.where(rng.random(n) < share, 1.0, 1.0 + 0.05 * apart) + rng.normal(0.0, 0.05, n)


def switching(n: int, rng: Rng, stay: float) -> np.ndarray:
    return 1.0 + 0.9 * (np.cumsum(rng.random(n) > stay) % 2) + rng.normal(0.0, 0.05, n)


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
    assert modes_of(readings) == [(float(np.median(readings)), 1.0)]


@given(st.integers(0, 50), st.sampled_from([-250.0, -1.0, 1e-9, 3.0]))
def test_unit_and_direction_do_not_matter(seed: int, scale: float) -> None:
    readings = mixture(300, np.random.default_rng(seed), 0.6, 5.0)
    expected = modes_of(readings)[:: int(math.copysign(1, scale))]
    values, shares = zip(*modes_of(scale * readings), strict=True)
    assert shares == pytest.approx([share for _, share in expected])
    assert values == pytest.approx([scale * value for value, _ in expected])


@given(
    st.lists(st.integers(-3, 40), min_size=60, max_size=200)
    | st.lists(st.floats(-1e100, 1e100), min_size=60, max_size=100)
)
def test_modes_ascend_and_share_all_readings(readings: list[float]) -> None:
    values, shares = zip(*modes_of(np.array(readings, dtype=float)), strict=True)
    assert sum(shares) == pytest.approx(1.0)
    assert values == tuple(sorted(values))
    assert min(shares) >= 0.05 - 1e-9


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
        readings = rng.permutation(readings)
        values, shares = zip(*modes_of(readings), strict=True)
        assert values == pytest.approx(levels, rel=0.05)
        assert shares == pytest.approx([1 / len(levels)] * len(levels), abs=0.1)
        assert severity(readings) == "warning"


def test_equal_readings_have_modes_unless_they_are_ticks_of_a_clock() -> None:
    assert len(modes_of(np.resize(FAR["two"], 40))) == 2
    assert len(modes_of(np.resize(FAR["three"], 40))) == 3
    for ticks in ([83.0, 125.0], [0.0, 41.0], [15.6, 31.2, 46.8], [5.0]):
        assert len(modes_of(np.resize(ticks, 40))) == 1
    assert len(modes_of(np.resize(FAR["two"], 19))) == 1


def test_ticks_with_a_few_values_between_and_modes_that_are_not_far_apart_are_a_note() -> None:
    ticks = np.repeat([100e-9, 110e-9, 150e-9, 160e-9, 101e-9], [300, 60, 300, 60, 1])
    near = np.random.default_rng(5).normal(np.resize([1.0, 1.25], 600), 0.05)
    for readings in (np.random.default_rng(1).permutation(ticks), near):
        assert len(modes_of(readings)) > 1
        assert severity(readings) == "note"


@pytest.mark.parametrize("n", [20, 30, 59])
def test_few_skewed_readings_seldom_look_like_modes_far_apart(n: int) -> None:
    rng = np.random.default_rng([20301201, n])
    drawn = [
        draw
        for _ in range(200)
        for draw in (rng.exponential(size=n), rng.lognormal(0.0, 1.0, n), 1.0 + rng.pareto(2.0, n))
    ]
    assert sum(len(modes_of(draw)) > 1 for draw in drawn) <= (24 if n == 20 else 12)


READINGS = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=200)


@given(READINGS)
def test_figures_are_in_order_and_levels_share_all_readings(values: list[float]) -> None:
    observed = observe(values)
    assert observed.least <= observed.p10 <= observed.median <= observed.greatest
    assert observed.least <= observed.mean <= observed.greatest
    assert (observed.least, observed.greatest) == (min(values), max(values))
    assert 1 <= len(observed.levels) <= 5
    assert sum(each.share for each in observed.levels) == pytest.approx(1.0)


def levels(values: np.ndarray, *, cut: bool) -> list[tuple[float, float]]:
    phases = (find_stable_phase(values),) if cut else ()
    found = observe(values, phases).levels
    return [(round(each.value, 1), round(each.share, 2)) for each in found]
