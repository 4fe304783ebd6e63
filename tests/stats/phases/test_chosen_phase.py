"""Levels that come back are measured; what goes on to the end is not."""

import numpy as np
import pytest
from tests.stats.told import analysed

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, StablePhase
from benchrigor.stats import estimate_mean


def readings(*levels: tuple[float, int], seed: int = 1, shape: float = 400.0) -> np.ndarray:
    """Return gamma readings around levels, a number at each."""
    around = np.repeat([each for each, _ in levels], [n for _, n in levels])
    drawn: np.ndarray = around * np.random.default_rng(seed).gamma(shape, 1.0 / shape, around.size)
    return drawn


def phase_of(series: np.ndarray, *, rates: bool = False) -> StablePhase:
    return analysed(series, unit="1/s" if rates else "").phases[0]


def found(*levels: tuple[float, int], rates: bool = False) -> StablePhase:
    return phase_of(readings(*levels), rates=rates)


PACED = [(1.0, 300), (1.4, 300), (1.0, 300), (1.3, 300)]
FALLING_BACK = [(1.4, 100), (1.0, 50), (1.4, 100), (1.0, 750)]
FAST = [(1.0 / level, n) for level, n in FALLING_BACK]
KEPT = {
    "no change": ([(1.0, 1_000)], "STABLE", (0, 1_000)),
    "a very slow start": ([(3.0, 400), (1.0, 600)], "STABLE", (400, 1_000)),
    "a start in several steps": ([(2.0, 150), (1.5, 150), (1.0, 700)], "STABLE", (300, 1_000)),
    "a brief step up": ([(1.0, 40), (1.3, 960)], "STABLE", (40, 1_000)),
    "a cool-down": ([(1.0, 930), (1.3, 70)], "STABLE", (0, 930)),
    "a step down before the middle": ([(1.5, 400), (1.0, 600)], "STABLE", (400, 1_000)),
    "both, and long": ([(1.6, 250), (1.0, 520), (1.65, 230)], "STABLE", (250, 770)),
    "several levels at both ends": (
        [(1.6, 100), (1.3, 100), (1.0, 600), (1.5, 120), (1.2, 80)],
        "STABLE",
        (200, 800),
    ),
    "a start that falls back": (FALLING_BACK, "STABLE", (250, 1_000)),
    "a step within the materiality": ([(1.004, 400), (1.0, 600)], "STABLE", (0, 1_000)),
    "levels behind it in no order": (
        [(1.0, 700), (1.3, 100), (1.1, 100), (1.2, 100)],
        "STABLE",
        (0, 700),
    ),
    "levels behind it in order": (
        [(1.0, 700), (1.1, 100), (1.2, 100), (1.3, 100)],
        "TREND",
        None,
    ),
    "a fast start that falls back": (FAST, "CHANGING_PACE", (0, 1_000)),
    "levels that come back": (PACED, "CHANGING_PACE", (0, 1_200)),
    "a step in the middle": ([(1.0, 500), (1.5, 500)], "CHANGING_PACE", (0, 1_000)),
    "a level between others": ([(1.0, 550), (1.6, 150), (1.0, 300)], "CHANGING_PACE", (0, 1_000)),
    "a start far slower than all paces": ([(5.0, 100), *PACED], "CHANGING_PACE", (100, 1_300)),
    "paces far apart": ([(1.0, 300), (8.0, 300)] * 2, "CHANGING_PACE", (0, 1_200)),
    "levels of the work itself": ([(1.0, 300), (40.0, 300)] * 2, "NO_DOMINANT_SEGMENT", None),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_longest_phase_counts_if_it_holds_more_than_half_and_all_of_a_changing_pace(
    name: str,
) -> None:
    levels, reason, ends = KEPT[name]
    phase = found(*levels)
    assert phase.reason.name == reason
    assert (phase.start, phase.stop) == (
        (None, None) if ends is None else pytest.approx(ends, abs=10)
    )
    if reason == "CHANGING_PACE":
        labels = ["warm-up"] * (phase.start != 0)
        assert [each.label for each in phase.phases if each.label != "other"] == labels


def test_a_slow_start_of_rates_is_low() -> None:
    assert found(*FAST, rates=True).reason == "stable"
    assert found(*FALLING_BACK, rates=True).reason.name == "CHANGING_PACE"
    assert found((0.5, 150), (1.0, 600), (1.1, 450), rates=True).start == pytest.approx(150, abs=3)
    assert found((1.5, 150), (1.0, 600), (1.1, 450), rates=True).start == 0


def test_what_moves_to_the_end_is_refused_and_what_comes_back_is_not() -> None:
    late = np.r_[np.ones(700), np.linspace(1.4, 1.5, 300)]
    one = phase_of(late * readings((1.0, 1_000), shape=10_000.0))
    assert (one.start, one.notices[0].code) == (None, Code.NO_STABLE_PHASE)
    back = np.r_[np.linspace(1.0, 1.2, 600), np.linspace(1.2, 1.0, 600)]
    assert phase_of(back * readings((1.0, 1_200))).start is not None


def test_a_leak_behind_a_long_level_is_refused() -> None:
    levels = np.r_[np.ones(550), np.linspace(1.0, 2.0, 450)]
    values = levels * readings((1.0, 1_000))
    phase = phase_of(values)
    assert (phase.start, phase.stop) == (None, None)
    assert phase.reason.name == "STILL_MOVING"
    (notice,) = phase.notices
    assert notice.evidence["first"] == pytest.approx(1.0, rel=0.03)
    assert notice.evidence["last"] == pytest.approx(1.9, rel=0.03)


@pytest.mark.parametrize("n", [7, 12, 20, 29])
def test_few_readings_that_climb_have_no_mean(n: int) -> None:
    rng = np.random.default_rng([20271126, n])
    for way in (np.linspace(1.0, 2.0, n), np.linspace(2.0, 1.0, n)):
        with pytest.raises(NotEstimable):
            estimate_mean(way * rng.normal(1.0, 0.02, n), trim=True)
    assert estimate_mean(rng.normal(1.0, 0.1, n), trim=True).n_effective > 1.0
    step = np.repeat((1.0, 1.4), (n - n // 2, n // 2)) * rng.normal(1.0, 0.05, n)
    middle = 1.0 if n == 29 else 1.2  # the longest of 29 is found, and holds more than half
    assert estimate_mean(step, trim=True).value == pytest.approx(middle, abs=0.1)


def test_ends_of_few_readings_are_single_ones_and_tell_no_movement() -> None:
    """A cold start, or a neighbour that leaves, makes a first reading many times the last one."""
    falling = np.geomspace(12.0, 1.0, 30) * np.random.default_rng(5).lognormal(0.0, 1.0, 30)
    falling[:3], falling[-3:] = (12.0, 11.0, 12.5), (1.0, 1.1, 0.9)
    with pytest.raises(NotEstimable):
        estimate_mean(falling, trim=True)
    assert estimate_mean(np.delete(falling, 15), trim=True).n_effective > 1.0


@pytest.mark.parametrize(("growth", "numbers"), [(1.0, range(7)), (0.0, range(58, 61))])
def test_what_grows_on_a_restless_machine_has_no_mean(growth: float, numbers: range) -> None:
    """Of 60 series, each at two paces in turn."""
    count = 0
    for seed in range(60):
        rng = np.random.default_rng([20361201, seed])
        pace = np.repeat(rng.choice([1.0, 2.4], 300), rng.geometric(0.05, 300))[:300]
        series = (1.0 + growth * np.arange(300)) * pace * rng.lognormal(0.0, 0.15, 300)
        count += phase_of(series).start is not None
    assert count in numbers


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_scaling_changes_nothing_also_below_zero(factor: float) -> None:
    rng = np.random.default_rng(13)
    for _ in range(8):
        steps = np.repeat(rng.permutation([-1.0, 0.0, 1.0, 0.0, -1.0, 1.0]), 300)
        values = steps + np.linspace(0.0, 1.5, 1_800) + 0.05 * rng.normal(size=1_800)
        one, other = (phase_of(each) for each in (values, factor * values))
        assert (one.start, one.stop, one.reason) == (other.start, other.stop, other.reason)


def test_the_interval_of_a_mean_stays_among_the_readings() -> None:
    values = readings((1.0, 900), (14.0, 30), (1.0, 900), (14.0, 30))
    mean = estimate_mean(values, trim=True)
    assert values.min() <= mean.low < mean.high <= values.max()


BESIDE_SMALL_STEPS = {
    "a slow start, a step up": ([(1.2, 150), (1.0, 600), (1.03, 450)], (150, 1_200)),
    "a slow start, a step down": ([(3.0, 150), (1.03, 600), (1.0, 450)], (150, 1_200)),
    "a very slow start, many steps": (
        [(3.0, 100), (1.0, 300), (1.02, 300), (0.99, 300), (1.03, 200)],
        (100, 1_200),
    ),
    "a brief fast start": ([(0.7, 40), (1.0, 500), (1.04, 460)], (40, 1_000)),
    "a cool-down": ([(1.0, 500), (1.04, 440), (1.5, 60)], (0, 940)),
    "a slow start and the same at the end": (
        [(1.4, 150), (1.0, 500), (1.04, 480), (1.4, 70)],
        (150, 1_130),
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", BESIDE_SMALL_STEPS)
def test_ends_that_stand_apart_are_cut_beside_smaller_steps(name: str, seed: int) -> None:
    levels, ends = BESIDE_SMALL_STEPS[name]
    phase = phase_of(readings(*levels, seed=seed, shape=10_000.0))
    assert phase.reason.name == "CHANGING_PACE"
    assert (phase.start, phase.stop) == pytest.approx(ends, abs=3)
    for part in phase.phases:
        label = "other"
        if part.stop <= ends[0] + 3:
            label = "warm-up"
        elif part.start >= ends[1] - 3:
            label = "cool-down"
        assert part.label == label


def test_a_first_reading_among_zeros_is_none_that_is_cold() -> None:
    assert estimate_mean([3.0, 0.0, 0.0, 0.0, 1.0, 0.0], trim=True).n == 6


@pytest.mark.parametrize("n", [5, 11, 19, 20, 29, 30, 31, 49, 50, 400, 5000])
def test_a_cold_first_reading_is_left_out_of_any_number(n: int) -> None:
    values = np.random.default_rng([20261127, n]).normal(0.1, 0.002, n)
    values[0] = 0.31
    estimate = estimate_mean(values, trim=True)
    if n < 50:  # of more, the first fiftieth is left out by its place
        assert estimate.notices[0].code is Code.START_CUT
    assert estimate.n == n - max(1, min(10, n // 50))
    assert 0.094 < estimate.low < estimate.high < 0.106


def test_among_readings_that_are_alike_the_first_is_seldom_cold() -> None:
    """Of lognormal readings with a heavy tail at most once in n times: here far less."""
    rng = np.random.default_rng(4)
    for n in (5, 20, 50):
        found = [estimate_mean(rng.lognormal(0.0, 1.0, n), trim=True) for _ in range(300)]
        cold = [each for each in found if Code.START_CUT in {one.code for one in each.notices}]
        assert len(cold) < 300 / n / 2
