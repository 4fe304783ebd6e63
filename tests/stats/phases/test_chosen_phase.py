"""Levels that come back are measured; what goes on to the end is not."""

import numpy as np
import pytest
from tests.stats.told import analysed, told

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, StablePhase
from benchrigor.stats import estimate_mean, estimate_quantile


def readings(*levels: tuple[float, int], seed: int = 1, shape: float = 400.0) -> np.ndarray:
    """Return gamma readings around levels, each for so many."""
    around = np.repeat([each for each, _ in levels], [n for _, n in levels])
    drawn: np.ndarray = around * np.random.default_rng(seed).gamma(shape, 1.0 / shape, around.size)
    return drawn


def phase_of(series: np.ndarray, *, rates: bool = False) -> StablePhase:
    return analysed(series, unit="1/s" if rates else "").phases[0]


def found(*levels: tuple[float, int], rates: bool = False) -> StablePhase:
    return phase_of(readings(*levels), rates=rates)


PACED = {
    "levels that come back": [(1.0, 300), (1.4, 300), (1.0, 300), (1.3, 300)],
    "a step in the middle": [(1.0, 500), (1.5, 500)],
    "a level between others": [(1.0, 550), (1.6, 150), (1.0, 300)],
}


@pytest.mark.parametrize("name", PACED)
def test_steps_of_the_pace_leave_all_readings(name: str) -> None:
    phase = found(*PACED[name])
    n = sum(each for _, each in PACED[name])
    assert (phase.reason.name, phase.start, phase.stop) == ("CHANGING_PACE", 0, n)
    (notice,) = phase.notices
    assert (notice.code, notice.severity) == (Code.CHANGING_PACE, "warning")
    assert {each.label for each in phase.phases} == {"other"}


STEADY = {
    "no change": ([(1.0, 1_000)], (0, 1_000)),
    "a very slow start": ([(3.0, 400), (1.0, 600)], (400, 1_000)),
    "a start in several steps": ([(2.0, 150), (1.5, 150), (1.0, 700)], (300, 1_000)),
    "a brief step up": ([(1.0, 40), (1.3, 960)], (40, 1_000)),
    "a cool-down": ([(1.0, 930), (1.3, 70)], (0, 930)),
    "a step down before the middle": ([(1.5, 400), (1.0, 600)], (400, 1_000)),
    "both, and long": ([(1.6, 250), (1.0, 520), (1.65, 230)], (250, 770)),
    "several levels at both ends": (
        [(1.6, 100), (1.3, 100), (1.0, 600), (1.5, 120), (1.2, 80)],
        (200, 800),
    ),
    "a start that falls back": ([(2.0, 50), (1.0, 50), (2.0, 50), (1.0, 850)], (150, 1_000)),
    "a step within the materiality": ([(1.004, 400), (1.0, 600)], (0, 1_000)),
}


@pytest.mark.parametrize("name", STEADY)
def test_the_longest_phase_counts_if_it_holds_more_than_half(name: str) -> None:
    levels, (start, stop) = STEADY[name]
    phase = found(*levels)
    assert phase.reason == "stable"
    assert phase.start == pytest.approx(start, abs=10)
    assert phase.stop == pytest.approx(stop, abs=10)


def test_the_same_start_that_falls_back_is_another_pace_if_it_is_fast() -> None:
    slow = [(1.4, 100), (1.0, 50), (1.4, 100), (1.0, 750)]
    fast = [(1 / level, n) for level, n in slow]
    assert found(*slow).reason == "stable"
    assert found(*fast).reason.name == "CHANGING_PACE"
    assert found(*fast, rates=True).reason == "stable"
    assert found(*slow, rates=True).reason.name == "CHANGING_PACE"
    assert found((0.5, 150), (1.0, 600), (1.1, 450), rates=True).start == pytest.approx(150, abs=3)
    assert found((1.5, 150), (1.0, 600), (1.1, 450), rates=True).start == 0


def test_a_series_that_goes_on_has_no_cool_down() -> None:
    values = readings((1.6, 100), (1.0, 1_000), (1.65, 150))
    phase = told(values).phases[0]
    assert phase.reason.name == "CHANGING_PACE"
    assert (phase.start, phase.stop) == (100, 1_250)
    labels = ["warm-up", "stable", "other"]
    assert [part.label for part in phase.phases] == labels
    assert [notice.code for notice in phase.notices] == [Code.CHANGING_PACE, Code.START_CUT]
    start_only = told(values[:1_100]).phases[0]
    assert (start_only.reason, start_only.stop) == ("stable", 1_100)


def test_three_levels_in_order_behind_the_longest_are_a_movement() -> None:
    stairs = [(1.0, 700), (1.1, 100), (1.2, 100), (1.3, 100)]
    assert found(*stairs).reason.name in {"TREND", "STILL_MOVING"}
    mixed = [(1.0, 700), (1.3, 100), (1.1, 100), (1.2, 100)]
    assert found(*mixed).reason == "stable"


def test_a_start_far_slower_than_all_paces_is_cut() -> None:
    phase = found((5.0, 100), (1.0, 300), (1.4, 300), (1.0, 300), (1.3, 300))
    assert phase.reason.name == "CHANGING_PACE"
    assert phase.start == pytest.approx(100, abs=3)
    assert phase.phases[0].label == "warm-up"
    greatest = phase.notices[0].evidence["greatest"]
    assert isinstance(greatest, float)
    assert greatest < 2.0


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
    assert (notice.code, notice.severity) == (Code.NO_STABLE_PHASE, "refusal")
    assert notice.evidence["first"] == pytest.approx(1.0, rel=0.03)
    assert notice.evidence["last"] == pytest.approx(1.9, rel=0.03)


def test_the_ends_that_are_cut_are_told() -> None:
    start, end = found((1.3, 200), (1.0, 650), (5.0, 150)).notices
    assert (start.code, start.severity) == (Code.START_CUT, "note")
    assert (end.code, end.severity) == (Code.END_CUT, "warning")
    for notice, readings, ratio in ((start, 200, 1.3), (end, 150, 5.0)):
        assert notice.evidence["readings"] == pytest.approx(readings, abs=3)
        assert notice.evidence["ratio"] == pytest.approx(ratio, rel=0.02)
    (brief,) = found((1.0, 970), (1.5, 30)).notices
    assert brief.severity == "note"


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


def test_a_tail_that_hardly_moves_is_no_climb() -> None:
    ordered = [1.5, 1.001, 1.0009, 1.0008, 1.0007, 1.0006, 1.0005, 1.0004]
    assert estimate_mean(ordered, trim=True).value == pytest.approx(1.063, abs=1e-3)


def test_mean_and_quantile_come_from_blocks() -> None:
    values = readings(*PACED["levels that come back"])
    mean, median = estimate_mean(values, trim=True), estimate_quantile(values, 0.5, trim=True)
    assert mean.method.startswith("blocks")
    assert mean.degrees_of_freedom == 7.0
    assert mean.low < 1.175 < mean.high
    assert mean.value == pytest.approx(values[10:].mean())
    assert (median.low < 1.1, median.high > 1.25) == (True, True)
    far = estimate_quantile(values, 0.9, trim=True)
    assert far.low < np.quantile(values, 0.9) <= far.high
    with pytest.raises(NotEstimable):
        estimate_quantile(values, 0.999, trim=True)
    codes = [[each.code for each in estimate.notices] for estimate in (mean, median)]
    assert codes == [[Code.CHANGING_PACE]] * 2


def test_levels_of_the_work_itself_are_refused_as_before() -> None:
    apart = [(1.0, 300), (40.0, 300), (1.0, 300), (40.0, 300)]
    assert found(*apart).reason.name == "NO_DOMINANT_SEGMENT"
    assert found(*((1.0, 300), (8.0, 300)) * 2).reason.name == "CHANGING_PACE"


@pytest.mark.slow
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


def test_paces_that_are_alike_are_only_good_to_know() -> None:
    for ratio, severity in ((1.03, "note"), (1.2, "warning")):
        values = readings((1.0, 300), (ratio, 300), (1.0, 300), (ratio, 300), shape=40_000.0)
        (notice,) = phase_of(values).notices
        assert notice.severity == severity


@pytest.mark.slow
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
    "a slightly slow start": ([(1.1, 200), (1.0, 500), (1.04, 500)], (200, 1_200)),
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


def test_a_slow_start_is_cut_before_levels_that_rise_to_the_end() -> None:
    levels = [(1.5, 150), (1.0, 300), (1.06, 300), (1.12, 300), (1.18, 300)]
    phase = phase_of(readings(*levels, shape=10_000.0))
    assert phase.start is None
    assert phase.phases[0].label == "warm-up"
    assert float(phase.notices[0].evidence["first"] or 0.0) == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("behind", [3, 6, 8])
def test_readings_that_are_too_few_to_call_are_no_part_of_the_stable_phase(behind: int) -> None:
    values = readings((1.0, 600), (1.5, behind), shape=2_500.0)
    phase = phase_of(values)
    assert (phase.reason, phase.start, phase.stop) == ("stable", 0, 600)
    assert [each.label for each in phase.phases] == ["stable", "other"]
    (notice,) = phase.notices
    assert (notice.code, notice.severity) == (Code.TOO_FEW_TO_CALL, "warning")
    mirrored = phase_of(values[::-1])
    assert (mirrored.start, mirrored.stop) == (behind, 600 + behind)
    assert mirrored.notices[0].code is Code.TOO_FEW_TO_CALL
    assert estimate_mean(values, trim=True).value == pytest.approx(1.0, rel=0.002)
