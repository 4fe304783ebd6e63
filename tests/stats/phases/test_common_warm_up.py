from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.model import Code, Notice, StablePhase
from benchrigor.model.analysis import PhaseReason
from benchrigor.model.series import Floats
from benchrigor.stats import estimate_mean, trimmed
from benchrigor.stats.phases import common_warm_up

N = 200
INDEX = np.arange(N)
STEP = 0.5 * (INDEX < 30)
COOL_DOWN = 0.4 * (INDEX >= N - 25)


def lottery(rng: np.random.Generator, count: int, pattern: Floats) -> list[Floats]:
    """Return invocations of which one in four is 30 % slower, each with the same pattern."""
    levels = np.where(rng.random(count) < 0.25, 1.3, 1.0)
    return [level * (rng.normal(1.0, 0.05, pattern.size) + pattern) for level in levels]


class Cut(NamedTuple):
    start: int
    end: int


def common_phases(
    invocations: Sequence[npt.ArrayLike], confidence: float = 0.95
) -> tuple[StablePhase, ...]:
    series = [np.asarray(each, dtype=float) for each in invocations]
    return common_warm_up.common_phases(series, confidence)


def common_cut(invocations: Sequence[npt.ArrayLike]) -> Cut:
    phase = common_phases(invocations)[0]
    assert phase.start is not None
    assert phase.stop is not None
    return Cut(phase.start, phase.change_points.n - phase.stop)


def refusal(invocations: Sequence[npt.ArrayLike]) -> Notice:
    phase = common_phases(invocations)[0]
    assert phase.start is None
    assert phase.notices[0].code is Code.NO_STABLE_PHASE
    return phase.notices[0]


@pytest.mark.parametrize("count", [2, 4, 5, 10, 20])
def test_a_step_that_all_share_is_cut(count: int) -> None:
    cut = common_cut(lottery(np.random.default_rng(count), count, STEP))
    assert 28 <= cut.start <= 48
    assert cut.end == 0


@pytest.mark.parametrize("count", [3, 10])
def test_a_cool_down_is_cut_as_well(count: int) -> None:
    cut = common_cut(lottery(np.random.default_rng(count), count, STEP + COOL_DOWN))
    assert 28 <= cut.start <= 48
    assert 24 <= cut.end <= 32


def test_one_cold_reading_costs_few() -> None:
    cut = common_cut(lottery(np.random.default_rng(8), 10, 3.0 * (INDEX < 1)))
    assert 1 <= cut.start <= 4


def test_periodic_work_done_in_step_is_no_warm_up() -> None:
    rng = np.random.default_rng(11)
    collections = 0.5 * (INDEX % 10 == 7)
    cuts = [common_cut([*(1.0 + collections + 0.02 * rng.normal(size=(10, N)))]) for _ in range(40)]
    assert sum(cut.start + cut.end > 0 for cut in cuts) <= 10
    assert max(cut.start for cut in cuts) < N // 2


def test_a_change_behind_the_half_is_no_warm_up() -> None:
    rng = np.random.default_rng(13)
    evidence = refusal([*(1.0 + 0.3 * (INDEX < 130) + 0.05 * rng.normal(size=(10, N)))]).evidence
    assert evidence["reason"] == str(PhaseReason.STILL_MOVING)
    assert (evidence["first"], evidence["invocations"]) == (100, 10)
    assert float(str(evidence["early"])) > 1.2 > float(str(evidence["late"]))


def test_a_small_move_beside_a_wide_interval_is_steady() -> None:
    rng = np.random.default_rng(14)
    drift = 0.01 * (INDEX > 140)
    levels = np.linspace(1.0, 2.0, 10)
    apart = [level + drift + 0.001 * rng.normal(size=N) for level in levels]
    alike = [1.0 + drift + 0.001 * rng.normal(size=N) for _ in levels]
    assert common_cut(apart).start == 0
    refusal(alike)


def test_a_few_invocations_are_judged_by_their_average() -> None:
    steady = np.random.default_rng(16).normal(1.0, 0.02, (3, 300))
    restless = np.repeat([1.0, 2.0, 3.0], 100)
    notice = refusal(list(steady * restless))
    assert notice.code is Code.NO_STABLE_PHASE
    assert common_cut(list(steady - 1.0)).start == 0


def test_one_invocation_is_judged_as_by_estimate_mean() -> None:
    series = lottery(np.random.default_rng(17), 1, STEP)[0]
    (phase,) = common_phases([series])
    assert estimate_mean(series, trim=True).n == trimmed(series, phase).size


@pytest.mark.parametrize("count", [3, 10])
def test_lengths_may_differ_and_ends_are_aligned(count: int) -> None:
    rng = np.random.default_rng(18)
    invocations = []
    for size in rng.integers(180, 220, count):
        index = np.arange(size)
        pattern = 0.5 * (index < 30) + 0.4 * (index >= size - 25)
        invocations.append(rng.normal(1.0, 0.05, size) + pattern)
    cut = common_cut(invocations)
    assert 28 <= cut.start <= 48
    assert 24 <= cut.end <= 32
    for series, phase in zip(invocations, common_phases(invocations), strict=True):
        assert (phase.start, phase.stop) == (cut.start, series.size - cut.end)
        assert phase.change_points.indices == (cut.start, series.size - cut.end)


def test_very_short_invocations_do_not_move_the_cut_and_have_no_phase() -> None:
    rng = np.random.default_rng(19)
    whole = lottery(rng, 10, STEP)
    short = rng.normal(1.5, 0.05, 20)
    phases = common_phases([short, *whole])
    assert phases[1:] == common_phases(whole)
    assert phases[0].start is None
    assert phases[0].reason is PhaseReason.FEW_EFFECTIVE


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7])
def test_tiny_invocations_are_not_refused_for_their_size(size: int) -> None:
    rng = np.random.default_rng(size)
    found = [common_phases(list(rng.normal(1.0, 0.1, (12, size)))) for _ in range(50)]
    stable = [phases[0].start is not None or size < 2 for phases in found]
    assert sum(stable) >= 47


def test_of_five_iterations_the_cold_first_is_cut() -> None:
    rng = np.random.default_rng(23)
    cut = common_cut([*(rng.normal(1.0, 0.05, (30, 5)) + 2.0 * (np.arange(5) < 1))])
    assert (cut.start, cut.end) == (1, 0)


def test_readings_without_noise_are_cut_exactly_enough() -> None:
    assert common_cut([[5.0] * 40] * 6).start == 0
    assert common_cut([[9.0] * 4 + [5.0] * 36] * 6).start == 4


seeds = st.integers(0, 2**32 - 1)


@pytest.mark.slow
@given(seed=seeds)
def test_the_order_of_invocations_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    invocations = [rng.lognormal(0.0, 0.3, 40) + 2.0 * (np.arange(40) < 6) for _ in range(6)]
    phases = common_phases(invocations)
    assert common_phases(invocations[::-1])[0].start == phases[0].start


@pytest.mark.parametrize("size", [3, 7, 60])
def test_readings_are_scored_at_once_as_row_by_row(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    rng = np.random.default_rng(size)
    warm_up = np.exp(-np.arange(size) / 2.0)
    series = [(rng.normal(1.0, 0.1, size) + warm_up).round(1) for _ in range(12)]
    at_once = common_warm_up.common_phases(series, 0.95)
    monkeypatch.setattr(common_warm_up, "_MOST_AT_ONCE", 0)
    assert common_warm_up.common_phases(series, 0.95) == at_once
