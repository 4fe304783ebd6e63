"""Which stretch of a series may be measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated.series import autoregressive
from tests.stats.told import analysed

from benchrigor.errors import NotEstimable
from benchrigor.model import ChangePoints
from benchrigor.stats import find_stable_phase, trimmed
from benchrigor.stats.phases.stability_rules import LongestPhase, find_reason

WARM_UP, STABLE, COOL_DOWN, OTHER = "warm-up", "stable", "cool-down", "other"


def points(*indices: int, n: int, inflation: float = 1.0) -> ChangePoints:
    return ChangePoints(indices=indices, n=n, level=0.01, inflation=inflation)


def levels(*pairs: tuple[float, int]) -> list[float]:
    return [level for level, count in pairs for _ in range(count)]


def test_every_phase_is_labelled() -> None:
    series = levels((9, 20), (7, 20), (5, 200), (6, 20), (4, 20))
    found = find_stable_phase(series)
    assert [phase.label for phase in found.phases] == [WARM_UP, WARM_UP, STABLE, OTHER, COOL_DOWN]
    assert [phase.median for phase in found.phases] == [9, 7, 5, 6, 4]
    assert (found.start, found.stop, found.n, found.reason.name) == (40, 240, 200, "STABLE")
    assert found.notices == ()


@pytest.mark.parametrize(
    ("phases", "labels"),
    [
        # A disturbance that comes back to the level on its way is no warm-up, and no cool-down.
        ([(5, 20), (8, 20), (5.1, 300)], [OTHER, OTHER, STABLE]),
        ([(9, 20), (5.2, 20), (8, 20), (5, 300)], [WARM_UP, OTHER, OTHER, STABLE]),
        ([(5, 300), (8, 20), (5.2, 20)], [STABLE, OTHER, OTHER]),
        # An approach may overshoot.
        ([(9, 20), (4.5, 20), (5, 300), (3, 20)], [WARM_UP, WARM_UP, STABLE, COOL_DOWN]),
    ],
)
def test_what_returns_to_the_level_is_neither_warm_up_nor_cool_down(
    phases: list[tuple[float, int]], labels: list[str]
) -> None:
    found = find_stable_phase(levels(*phases))
    assert [phase.label for phase in found.phases] == labels


def test_a_change_inside_the_phase_that_is_immaterial_does_no_harm() -> None:
    series = levels((9, 20), (5.0, 60), (5.03, 60))
    assert find_stable_phase(series).n == 120
    assert find_stable_phase(series, materiality=0.004, change_points=points(20, n=140)).n == 0


def test_a_phase_that_bends_as_a_whole_is_not_stable() -> None:
    bend = np.cos(np.linspace(-np.pi / 2, np.pi / 2, 900))
    series = 1.0 + 0.1 * np.random.default_rng(1).normal(size=1_000)
    series[100:] += 0.04 * bend
    found = find_stable_phase(
        series + levels((1, 100), (0, 900)), change_points=points(100, n=1_000)
    )
    assert found.reason.name == "NOT_STABLE_INSIDE"


def test_a_very_long_phase_is_searched_once_more_in_part_and_placed_within_a_step() -> None:
    rng = np.random.default_rng(1)
    series = rng.normal(10.0, 1.0, 100_000) + np.repeat([5.0, 0.0, 0.5], [10_000, 50_000, 40_000])
    found = find_stable_phase(series, change_points=points(10_000, n=100_000))
    assert found.reason.name == "NOT_STABLE_INSIDE"
    assert found.notices[0].evidence["changes_inside"] == 1


@pytest.mark.parametrize(
    ("start", "stop", "n", "kept"),
    [
        # Nothing was cut: what may be cold.
        (0, 5_000, 5_000, (10, 5_000)),
        (0, 500, 500, (10, 500)),
        (0, 499, 499, (9, 499)),
        (0, 50, 50, (1, 50)),
        (0, 49, 49, (0, 49)),
        # Half as many as were cut, at either end.
        (40, 200, 200, (60, 200)),
        (40, 170, 200, (60, 155)),
        (0, 400, 500, (10, 350)),
        # A quarter of the phase at most.
        (100, 140, 200, (110, 130)),
    ],
)
def test_margins_are_left_out_of_the_phase(
    start: int, stop: int, n: int, kept: tuple[int, int]
) -> None:
    phase = replace(find_stable_phase([1.0] * n), start=start, stop=stop)
    found = trimmed(np.arange(float(n)), phase)
    assert (found[0], found[-1] + 1) == kept


RISING = [(5, 100), (6, 100), (7, 100), (8, 100)]
UP_AND_DOWN = [(5, 100), (7, 100), (6, 100), (8, 100)]
SLOWLY_RISING = [(5, 100), (5.1, 100), (5.2, 100), (5.3, 100)]


@pytest.mark.parametrize(
    ("phases", "inflation", "materiality", "reason"),
    [
        ([(5, 1)], 1.0, 0.01, "STABLE"),
        ([(5, 100)], 1.0, 0.01, "STABLE"),
        (RISING, 1.0, 0.01, "TREND"),
        (RISING[::-1], 1.0, 0.01, "TREND"),
        (RISING[:3], 1.0, 0.01, "NO_DOMINANT_SEGMENT"),
        ([(5, 100), (6, 40), (6.03, 60), (7, 100)], 1.0, 0.01, "TREND"),  # before any are joined
        (SLOWLY_RISING, 1.0, 0.05, "TREND"),
        (SLOWLY_RISING, 1.0, 0.07, "STABLE"),
        (UP_AND_DOWN, 1.0, 0.01, "NO_DOMINANT_SEGMENT"),
        ([(9, 30), (7, 30), (6, 30), (5, 300)], 1.0, 0.01, "STABLE"),
        ([(5, 300), (6, 60), (7, 60), (8, 60)], 1.0, 0.01, "STILL_MOVING"),
        ([(5, 900), (6, 30), (7, 30), (8, 30)], 1.0, 0.01, "STABLE"),
        ([(7, 60), (9, 60), (5, 150), (6, 60), (7, 60), (8, 60)], 1.0, 0.01, "STILL_MOVING"),
        (UP_AND_DOWN, 5.1, 0.01, "FEW_EFFECTIVE"),
        (UP_AND_DOWN, 4.9, 0.01, "NO_DOMINANT_SEGMENT"),
        ([(5, 2_000)], 401.0, 0.01, "FEW_EFFECTIVE"),
        ([(5, 2_000)], 399.0, 0.01, "STABLE"),
    ],
)
def test_each_reason_has_one_rule(
    phases: list[tuple[float, int]], inflation: float, materiality: float, reason: str
) -> None:
    sizes = [count for _, count in phases]
    given_points = points(*np.cumsum(sizes)[:-1].tolist(), n=sum(sizes), inflation=inflation)
    found = find_stable_phase(levels(*phases), change_points=given_points, materiality=materiality)
    assert found.reason.name == reason
    assert found.change_points is given_points


@pytest.mark.parametrize(
    ("sizes", "slow_effective", "inflation", "reason"),
    [
        ([100], 6.8, 30.0, "RANDOM_WALK"),
        ([100], 6.8, 10.0, "FEW_EFFECTIVE"),
        ([60], 6.1, 1.0, "STABLE"),
        ([100, 100, 100], 2.0, 10.0, "RANDOM_WALK"),
        ([2_000], 29.0, 70.0, "FEW_EFFECTIVE"),
        ([2_000], 31.0, 70.0, "STABLE"),
        ([2_000], 29.0, 66.0, "STABLE"),
    ],
)
def test_two_measures_of_slow_noise_say_how_many_effective_readings_are_few(
    sizes: list[int], slow_effective: float, inflation: float, reason: str
) -> None:
    longest = LongestPhase(
        borders=(0, *np.cumsum(sizes).tolist()),
        medians=(5.0, 7.0, 6.0)[: len(sizes)],
        index=0,
        inflation=inflation,
        slow_effective=slow_effective,
    )
    assert find_reason(longest).name == reason


@pytest.mark.parametrize(
    ("phi", "reason"), [(0.5, "STABLE"), (0.97, "FEW_EFFECTIVE"), (1.0, "RANDOM_WALK")]
)
def test_slow_noise_leaves_few_effective_readings_and_a_walk_none(phi: float, reason: str) -> None:
    rng = np.random.default_rng([1_000, 2])
    series = autoregressive(rng, 1_000, phi) if phi < 1.0 else rng.normal(size=1_000).cumsum()
    assert find_stable_phase(100.0 + series).reason.name == reason
    assert (analysed(100.0 + series).estimate is None) == (reason == "RANDOM_WALK")


@pytest.mark.parametrize(("first", "second"), [(0.0, 1e-9), (-1e-9, 1e-9), (1e-200, -1e-200)])
def test_medians_of_zero_or_different_sign_are_never_joined(first: float, second: float) -> None:
    found = find_stable_phase(
        levels((first, 30), (second, 50)), materiality=1e6, change_points=points(30, n=80)
    )
    assert len(found.phases) == 2


@pytest.mark.parametrize("n", [500, 1_001, 20_000])
def test_sorted_readings_and_a_slow_ramp_have_no_stable_phase(n: int) -> None:
    rng = np.random.default_rng(n)
    assert find_stable_phase(np.sort(rng.lognormal(size=n))).reason.name == "TREND"
    ramp = 100.0 * (1.0 + 0.03 * np.arange(n) / n) + 0.1 * rng.normal(size=n)
    assert find_stable_phase(ramp).start is None


@pytest.mark.parametrize(("warm_up", "starts"), [(30, [0, 30]), (50, [])])
def test_what_lies_before_a_phase_of_few_effective_readings_is_its_warm_up(
    warm_up: int, starts: list[int]
) -> None:
    """Exactly half of the readings is no phase to measure."""
    series = np.random.default_rng(1).lognormal(size=100) + levels(
        (20, warm_up), (0, 100 - warm_up)
    )
    given_points = points(warm_up, n=100, inflation=40.0)
    assert find_stable_phase(series, change_points=given_points).reason.name == "FEW_EFFECTIVE"
    (found,) = analysed(series, detector=lambda _: given_points).phases
    assert [each.start for each in found.phases if each.label in {WARM_UP, STABLE}] == starts


def test_a_detector_is_believed_but_for_what_a_second_search_finds() -> None:
    series = np.random.default_rng(1).normal(5.0, 0.1, 400)
    series[:60] += 0.2
    assert find_stable_phase(series).start == 60
    nothing = replace(points(n=400), level=None)
    found = find_stable_phase(series, change_points=nothing)
    assert (found.start, found.stop, found.reason.name) == (0, 400, "STABLE")
    series[:150] += 1.0
    found = find_stable_phase(series, change_points=replace(points(50, n=400), level=None))
    assert found.reason.name == "NOT_STABLE_INSIDE"
    with pytest.raises(NotEstimable) as caught:
        trimmed(series, found)
    assert caught.value.notice == found.notices[0]
