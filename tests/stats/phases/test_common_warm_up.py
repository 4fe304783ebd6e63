"""What invocations share of their warm-up, and what of pieces is left out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from tests.stats.told import analysed, told

from benchrigor.model import Analysis, Code, StablePhase
from benchrigor.stats import estimate_invocations, trimmed

N = 200
INDEX = np.arange(N)
STEP = 0.5 * (INDEX < 30)


def lottery(rng: np.random.Generator, count: int, pattern: np.ndarray) -> list[np.ndarray]:
    """Return invocations of which one in four is 30 % slower, each with the same pattern."""
    levels = np.where(rng.random(count) < 0.25, 1.3, 1.0)
    return [level * (rng.normal(1.0, 0.05, pattern.size) + pattern) for level in levels]


class Cut(NamedTuple):
    start: int
    end: int


def phases_of(invocations: Sequence[np.ndarray]) -> tuple[StablePhase, ...]:
    return analysed(*invocations).phases


def common_cut(invocations: Sequence[np.ndarray]) -> Cut:
    phase = phases_of(invocations)[0]
    assert phase.start is not None
    assert phase.stop is not None
    return Cut(phase.start, phase.change_points.n - phase.stop)


def are_cut_one_by_one(invocations: Sequence[np.ndarray]) -> bool:
    """Return whether they have no steady state in common."""
    notices = estimate_invocations(invocations, trim=True).notices
    return Code.NO_STABLE_PHASE in {each.code for each in notices}


@pytest.mark.parametrize("count", [2, 4, 5, 10, 20])
def test_a_step_that_all_share_is_cut(count: int) -> None:
    cut = common_cut(lottery(np.random.default_rng(count), count, STEP))
    assert 28 <= cut.start <= 48
    assert cut.end == 0


def test_periodic_work_done_in_step_is_no_warm_up() -> None:
    rng = np.random.default_rng(11)
    collections = 0.5 * (INDEX % 10 == 7)
    cuts = [common_cut([*(1.0 + collections + 0.02 * rng.normal(size=(10, N)))]) for _ in range(12)]
    assert sum(cut.start + cut.end > 0 for cut in cuts) <= 3
    assert max(cut.start for cut in cuts) < N // 2


def test_a_change_behind_the_half_is_no_warm_up() -> None:
    rng = np.random.default_rng(13)
    assert are_cut_one_by_one([*(1.0 + 0.3 * (INDEX < 130) + 0.05 * rng.normal(size=(10, N)))])
    assert not are_cut_one_by_one([*(1.0 + 0.05 * rng.normal(size=(10, N)))])


def test_a_small_move_beside_a_wide_interval_is_steady() -> None:
    rng = np.random.default_rng(14)
    drift = 0.01 * (INDEX > 140)
    levels = np.linspace(1.0, 2.0, 10)
    apart = [level + drift + 0.001 * rng.normal(size=N) for level in levels]
    assert common_cut(apart).start == 0
    assert are_cut_one_by_one([1.0 + drift + 0.001 * rng.normal(size=N) for _ in levels])


def test_a_few_invocations_are_judged_by_their_average() -> None:
    steady = np.random.default_rng(16).normal(1.0, 0.02, (3, 300))
    restless = np.repeat([1.0, 2.0, 3.0], 100)
    phase = phases_of(list(steady * restless))[0]
    assert phase.start is None
    assert phase.notices[0].code is Code.NO_STABLE_PHASE
    assert common_cut(list(steady - 1.0)).start == 0


def test_very_short_invocations_do_not_move_the_cut_and_have_no_phase() -> None:
    rng = np.random.default_rng(19)
    whole = lottery(rng, 10, STEP)
    short = rng.normal(1.5, 0.05, 20)
    phases = phases_of([short, *whole])
    assert phases[1:] == phases_of(whole)
    assert phases[0].start is None
    assert phases[0].reason.name == "FEW_EFFECTIVE"


@pytest.mark.parametrize("size", [2, 3, 5])
def test_tiny_invocations_are_not_refused_for_their_size(size: int) -> None:
    rng = np.random.default_rng(size)
    found = [phases_of(list(rng.normal(1.0, 0.1, (12, size)))) for _ in range(25)]
    assert sum(phases[0].start is not None for phases in found) >= 23


def test_the_order_of_invocations_does_not_matter() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        invocations = [rng.lognormal(0.0, 0.3, 40) + 2.0 * (np.arange(40) < 6) for _ in range(6)]
        assert phases_of(invocations[::-1])[0].start == phases_of(invocations)[0].start


# --- Restarted rounds whose warm-ups and cool-downs differ from round to round.


COUNT, TIMES = 25, np.arange(300)


def noisy(rng: np.random.Generator, levels: np.ndarray) -> np.ndarray:
    return levels * rng.normal(1.0, 0.01) * rng.normal(1.0, 0.03, TIMES.size)


def stepping(seed: int, cool_downs: float) -> list[np.ndarray]:
    """Draw rounds with a warm-up of a length of its own, and so many with a cool-down."""
    rng, drawn = np.random.default_rng([36, seed]), []
    for _ in range(COUNT):
        warm_up, cool_down = rng.integers(5, 100), rng.integers(1, 60)
        series = 1.0 + 0.5 * (warm_up > TIMES)
        if rng.random() < cool_downs:
            series[300 - cool_down :] += 0.3
        drawn.append(noisy(rng, series))
    return drawn


@pytest.mark.parametrize("cool_downs", [0.0, 0.5, 1.0])
def test_a_cool_down_of_some_rounds_does_not_bias_the_mean(cool_downs: float) -> None:
    values = [
        estimate_invocations(stepping(seed, cool_downs), trim=True).value for seed in range(3)
    ]
    assert np.mean(values) == pytest.approx(1.0, abs=0.004)


@pytest.mark.parametrize("seed", [4, 23])
def test_cool_downs_of_a_height_of_their_own_are_cut_where_warm_ups_fade(seed: int) -> None:
    rng, drawn = np.random.default_rng([37, seed]), []
    for _ in range(COUNT):
        series = 1.0 + 0.5 * np.exp(-3.0 * TIMES / rng.integers(5, 100))
        if rng.random() < 0.3:
            series[300 - rng.integers(1, 60) :] += rng.uniform(0.15, 0.8)
        drawn.append(noisy(rng, series))
    mean = estimate_invocations(drawn, trim=True)
    assert mean.value == pytest.approx(1.0, abs=0.005)
    assert mean.half_width < 0.01


def at_two_paces(seed: int) -> list[np.ndarray]:
    """Draw rounds on a machine that is slower by 30% for a quarter of the time, in turns."""
    rng, drawn = np.random.default_rng([37, seed]), []
    for _ in range(COUNT):
        slow, stretches = rng.random() < 0.25, list[np.ndarray]()
        while sum(stretch.size for stretch in stretches) < 300:
            length = 1 + rng.geometric(1 / 30 if slow else 1 / 90)
            stretches.append(np.full(length, 1.3 if slow else 1.0))
            slow = not slow
        drawn.append(np.concatenate(stretches)[:300] * rng.normal(1.0, 0.03, 300))
    return drawn


def test_rounds_in_which_the_machine_changes_its_pace_are_not_cut_to_one_pace() -> None:
    values = []
    for seed in range(2):
        found = estimate_invocations(at_two_paces(seed), trim=True)
        assert Code.CUT_ONE_BY_ONE not in {notice.code for notice in found.notices}
        values.append(found.value)
    assert np.mean(values) == pytest.approx(1.075, rel=0.015)


def in_pieces(*pieces: np.ndarray, **options: object) -> Analysis:
    return told(*pieces, **{"pieces": len(pieces), "budget_s": 2.0 * len(pieces), **options})


def codes(found: Analysis) -> set[Code]:
    return {each.code for each in found.notices} - {Code.NOT_CONVERGED}


def test_the_start_of_a_piece_is_left_out_by_its_place() -> None:
    sizes, starts = [7, 1, 2, 3, 99, 100, 2_500], [0, 0, 1, 1, 1, 25]
    pieces = [np.arange(float(n)) + 1.0 for n in sizes]
    phases = in_pieces(*pieces).phases[1:]  # of the first more may be cut
    assert [(each.start, each.stop) for each in phases] == [*zip(starts, sizes[1:], strict=True)]
    assert {each.reason.name for each in phases} == {"WHOLE"}
    for series, phase in zip(pieces[1:], phases, strict=True):
        assert phase.start is not None
        assert trimmed(series, phase).tolist() == series[phase.start :].tolist()  # no margin
        assert phase.phases[-1].label == "stable"
        assert (phase.phases[0].start, phase.phases[-1].stop) == (0, series.size)


def test_a_first_piece_that_moves_to_its_end_counts_by_its_second_half() -> None:
    rng = np.random.default_rng(1)
    falling = np.linspace(2.0, 1.0, 600) * rng.normal(1.0, 0.01, 600)
    others = [rng.normal(1.0, 0.01, 600) for _ in range(3)]
    found = in_pieces(falling, *others)
    assert found.levels[0] == pytest.approx(falling[300:].mean())
    assert codes(found) == {Code.START_CUT}
    # The others count whole, whatever they do: they cannot be warming up.
    swapped = in_pieces(others[0], falling, *others[1:])
    assert swapped.levels[1] == pytest.approx(falling[6:].mean())


def test_shares_at_both_ends_are_cut_from_each_piece() -> None:
    found = in_pieces(*(np.arange(100.0) + each for each in range(4)), trim=(0.1, 0.2))
    assert [(each.start, each.stop) for each in found.phases] == [(10, 80)] * 4


@pytest.mark.parametrize("unit", ["s", "1/s"])
def test_the_mean_of_equal_readings_is_their_value(unit: str) -> None:
    """The sum of seven times 0.1 is not 0.7, nor 1 / (1 / 49) = 49."""
    for level in (0.1, 49.0):
        found = in_pieces(*(np.full(size, level) for size in (3, 7, 5, 9)), unit=unit).estimate
        assert found is not None
        assert (found.low, found.value, found.high) == (level, level, level)


@pytest.mark.parametrize("changing", [3, 4])
def test_rounds_are_cut_one_by_one_if_more_than_a_tenth_change(changing: int) -> None:
    rounds = np.random.default_rng(1).normal(1.0, 0.02, (30, 100))
    rounds[:changing, 80:] *= 1.5
    notices = estimate_invocations(list(rounds), trim=True).notices
    assert (Code.CUT_ONE_BY_ONE in {notice.code for notice in notices}) == (changing > 3)
