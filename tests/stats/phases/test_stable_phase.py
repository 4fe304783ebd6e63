"""Which stretch of a series may be measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchrigor.model import ChangePoints
from benchrigor.model.analysis import PhaseReason
from benchrigor.stats import detect_changes, find_stable_phase, trimmed
from benchrigor.stats.phases.stable_phase import admit_few_effective

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
    assert (found.start, found.stop, found.n, found.reason) == (40, 240, 200, PhaseReason.STABLE)
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


def test_a_single_reading_is_a_phase() -> None:
    found = find_stable_phase([3.0])
    assert (found.start, found.stop, found.phases[0].median) == (0, 1, 3.0)


@pytest.mark.parametrize(("materiality", "expected"), [(0.01, 2), (0.004, 3), (0.0, 3)])
def test_neighbours_that_differ_immaterially_are_one_phase(
    materiality: float, expected: int
) -> None:
    series = levels((9, 20), (5.0, 60), (5.03, 60))
    found = find_stable_phase(series, materiality=materiality)
    assert len(found.phases) == expected
    assert found.change_points.indices == (20, 80)


def test_joining_takes_the_most_similar_neighbours_first() -> None:
    series = levels((100.0, 40), (100.9, 40), (101.2, 40))
    found = find_stable_phase(series, change_points=points(40, 80, n=120))
    # From left to right 100 and 100.9 would be joined first, and all three in the end.
    assert [phase.start for phase in found.phases] == [0, 40]


@pytest.mark.parametrize("pair", [(0.0, 1e-9), (-1e-9, 1e-9), (1e-200, -1e-200)])
def test_medians_of_zero_or_different_sign_are_never_joined(pair: tuple[float, float]) -> None:
    found = find_stable_phase(
        levels((pair[0], 30), (pair[1], 50)), materiality=1e6, change_points=points(30, n=80)
    )
    assert len(found.phases) == 2


def test_negative_medians_are_compared_by_size() -> None:
    series = levels((-5.0, 30), (-5.01, 50))
    assert len(find_stable_phase(series, change_points=points(30, n=80)).phases) == 1


def test_medians_of_even_and_odd_phases_are_exact() -> None:
    series = np.random.default_rng(1).lognormal(size=1_001)
    found = find_stable_phase(series, materiality=0.0, change_points=points(500, n=1_001))
    assert [phase.median for phase in found.phases] == [
        np.median(series[:500]),
        np.median(series[500:]),
    ]


def test_change_points_of_another_detector_are_taken_as_they_are() -> None:
    given_points = points(10, n=100)
    found = find_stable_phase(levels((9, 5), (5, 95)), change_points=given_points, materiality=0.0)
    assert (found.start, found.stop) == (10, 100)
    assert found.change_points is given_points


def test_a_phase_that_changes_inside_is_not_stable_whoever_found_it() -> None:
    found = find_stable_phase(levels((5, 50), (9, 50)), change_points=points(10, n=100))
    assert (found.start, found.reason) == (None, PhaseReason.NOT_STABLE_INSIDE)


def test_a_change_inside_the_phase_that_is_immaterial_does_no_harm() -> None:
    series = levels((9, 20), (5.0, 60), (5.03, 60))
    assert find_stable_phase(series).n == 120
    assert find_stable_phase(series, materiality=0.004, change_points=points(20, n=140)).n == 0


def test_a_change_in_the_margin_beside_a_cut_does_no_harm() -> None:
    series = levels((9, 40), (6, 12), (5, 148))
    found = find_stable_phase(series, change_points=points(40, n=200))
    assert (found.start, found.stop) == (40, 200)


def test_a_phase_that_bends_as_a_whole_is_not_stable() -> None:
    bend = np.cos(np.linspace(-np.pi / 2, np.pi / 2, 900))
    series = 1.0 + 0.1 * np.random.default_rng(1).normal(size=1_000)
    series[100:] += 0.04 * bend
    found = find_stable_phase(
        series + levels((1, 100), (0, 900)), change_points=points(100, n=1_000)
    )
    assert found.reason is PhaseReason.NOT_STABLE_INSIDE


def test_a_very_long_phase_is_searched_once_more_in_part_and_placed_within_a_step() -> None:
    rng = np.random.default_rng(1)
    series = rng.normal(10.0, 1.0, 100_000) + np.repeat([5.0, 0.0, 0.5], [10_000, 50_000, 40_000])
    found = find_stable_phase(series, change_points=points(10_000, n=100_000))
    assert found.reason is PhaseReason.NOT_STABLE_INSIDE
    assert found.notices[0].evidence["changes_inside"] == 1


def test_sorted_readings_have_no_stable_phase() -> None:
    for n in (60, 1_001, 20_000):
        found = find_stable_phase(np.sort(np.random.default_rng(n).lognormal(size=n)))
        assert (found.start, found.reason) == (None, PhaseReason.TREND)


@pytest.mark.parametrize("n", [500, 2_000, 20_000])
def test_a_slow_ramp_of_steps_too_small_to_part_is_no_phase(n: int) -> None:
    rng = np.random.default_rng(n)
    ramp = 100.0 * (1.0 + 0.03 * np.arange(n) / n) + 0.1 * rng.normal(size=n)
    assert find_stable_phase(ramp).start is None
    assert find_stable_phase(np.sort(100.0 + rng.normal(size=n))).reason is PhaseReason.TREND


def test_giving_the_change_points_gives_the_same_phase() -> None:
    series = np.random.default_rng(2).normal(size=300) + np.repeat([9.0, 5.0], [50, 250])
    assert find_stable_phase(series, change_points=detect_changes(series)) == find_stable_phase(
        series
    )


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


def test_what_lies_before_an_admitted_phase_is_its_warm_up() -> None:
    series = np.random.default_rng(1).lognormal(size=100) + levels((20, 30), (0, 70))
    found = admit_few_effective(
        find_stable_phase(series, change_points=points(30, n=100, inflation=40.0))
    )
    assert (found.start, found.stop, found.reason) == (30, 100, PhaseReason.FEW_EFFECTIVE)
    assert [phase.label for phase in found.phases] == [WARM_UP, STABLE]


def test_nothing_but_too_few_effective_readings_is_forgiven() -> None:
    walk = np.random.default_rng([1_000, 2]).normal(size=1_000).cumsum()
    half = np.random.default_rng(1).lognormal(size=100)
    for refused, reason in (
        (find_stable_phase(100.0 + walk), PhaseReason.RANDOM_WALK),
        (find_stable_phase(levels((9, 30), (5, 40), (7, 30))), PhaseReason.NO_DOMINANT_SEGMENT),
        (find_stable_phase([3.0] * 50), PhaseReason.STABLE),
        # Exactly half of the readings is no phase to measure.
        (
            find_stable_phase(
                half, materiality=0.0, change_points=points(50, n=100, inflation=40.0)
            ),
            PhaseReason.FEW_EFFECTIVE,
        ),
    ):
        assert refused.reason is reason
        assert admit_few_effective(refused) is refused
