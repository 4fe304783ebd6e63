"""The verdict on a phase, and the figures that it is given with."""

from __future__ import annotations

import math

import pytest

from benchrigor.model.analysis import PhaseReason
from benchrigor.stats.phases.stability_rules import (
    LongestPhase,
    find_reason,
)


def longest(*phases: tuple[float, int], **others: object) -> LongestPhase:
    """Return the longest of phases given as (median, readings)."""
    borders = [0]
    for _, count in phases:
        borders.append(borders[-1] + count)
    known: dict[str, object] = {
        "borders": tuple(borders),
        "medians": tuple(float(median) for median, _ in phases),
        "index": max(range(len(phases)), key=lambda each: phases[each][1]),
        "inflation": 1.0,
        "slow_effective": math.inf,
    }
    return LongestPhase(**(known | others))  # type: ignore[arg-type] # fields by name


RISING = [(5, 100), (6, 100), (7, 100), (8, 100)]
UP_AND_DOWN = [(5, 100), (7, 100), (6, 100), (8, 100)]
ARRIVING = [(9, 30), (7, 30), (6, 30), (5, 300)]
LEAVING = [(5, 300), (6, 60), (7, 60), (8, 60)]
COOLING_DOWN = [(5, 900), (6, 30), (7, 30), (8, 30)]
TURNING = [(7, 60), (9, 60), (5, 150), (6, 60), (7, 60), (8, 60)]


@pytest.mark.parametrize(
    ("phases", "others", "reason"),
    [
        ([(5, 100)], {}, PhaseReason.STABLE),
        (RISING, {}, PhaseReason.TREND),
        (RISING[::-1], {}, PhaseReason.TREND),
        (RISING[:3], {}, PhaseReason.NO_DOMINANT_SEGMENT),
        (RISING[:3], {"raw": (5.0, 6.0, 6.5, 7.0)}, PhaseReason.TREND),
        ([(5, 100)], {"joined": (5.0, 5.1, 5.2, 5.3), "materiality": 0.05}, PhaseReason.TREND),
        ([(5, 100)], {"joined": (5.0, 5.1, 5.2, 5.3), "materiality": 0.07}, PhaseReason.STABLE),
        ([(5, 100)], {"joined": (5.0, 5.3, 5.1, 5.4), "materiality": 0.05}, PhaseReason.STABLE),
        (UP_AND_DOWN, {}, PhaseReason.NO_DOMINANT_SEGMENT),
        (ARRIVING, {}, PhaseReason.STABLE),
        (LEAVING, {}, PhaseReason.STILL_MOVING),
        (COOLING_DOWN, {}, PhaseReason.STABLE),
        (TURNING, {}, PhaseReason.STILL_MOVING),
        ([(5, 100)], {"slow_effective": 6.8, "inflation": 30.0}, PhaseReason.RANDOM_WALK),
        ([(5, 100)], {"slow_effective": 6.8, "inflation": 10.0}, PhaseReason.FEW_EFFECTIVE),
        (UP_AND_DOWN, {"inflation": 5.1}, PhaseReason.FEW_EFFECTIVE),
        (UP_AND_DOWN, {"inflation": 4.9}, PhaseReason.NO_DOMINANT_SEGMENT),
        ([(5, 60)], {"slow_effective": 6.1}, PhaseReason.STABLE),
        (UP_AND_DOWN, {"slow_effective": 2.0, "inflation": 10.0}, PhaseReason.RANDOM_WALK),
        (RISING, {"slow_effective": 2.0}, PhaseReason.TREND),
        ([(5, 2_000)], {"slow_effective": 29.0, "inflation": 70.0}, PhaseReason.FEW_EFFECTIVE),
        ([(5, 2_000)], {"slow_effective": 31.0, "inflation": 70.0}, PhaseReason.STABLE),
        ([(5, 2_000)], {"slow_effective": 29.0, "inflation": 66.0}, PhaseReason.STABLE),
        ([(5, 2_000)], {"inflation": 401.0}, PhaseReason.FEW_EFFECTIVE),
        ([(5, 100)], {"changes": (30,)}, PhaseReason.NOT_STABLE_INSIDE),
        ([(5, 100)], {"thirds": (5.0, 6.0, 5.0)}, PhaseReason.NOT_STABLE_INSIDE),
    ],
)
def test_each_reason_has_one_rule(
    phases: list[tuple[float, int]], others: dict[str, object], reason: PhaseReason
) -> None:
    assert find_reason(longest(*phases, **others)) is reason
