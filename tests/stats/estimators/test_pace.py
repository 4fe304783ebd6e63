"""The pace of a machine that flips between two states, with a known sensitivity of the work."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from simulated.estimates import within

from benchrigor.model import Estimate
from benchrigor.stats.figures_at_full_speed import at_full_speed, pieces_at_full_speed
from benchrigor.stats.pace import (
    Segments,
    common_sensitivity,
    pace_of,
)
from benchrigor.stats.statistic import statistic_for

FULL_S = 4e-6
SLOW = math.log(1.6)  # of the reference in the slow state


def segments(
    seed: int,
    *,
    sensitivity: float = 0.9,
    slow_share: float = 0.6,
    n: int = 4_000,
    piece: int = 0,
) -> Segments:
    """Simulate segments of ten moments each, with a reference of one moment at either end.

    The machine is slow or fast for forty moments at a time.
    """
    rng = np.random.default_rng(seed)
    state = np.repeat(rng.random(n // 4 + 1) < slow_share, 40)[: 10 * n + 1]
    ends = FULL_S * np.exp(SLOW * state[::10] + rng.normal(0.0, 0.02, n + 1))
    relative = np.exp(sensitivity * SLOW * state[:-1]).reshape(n, 10).mean(axis=1)
    level = 1e-4 * relative * np.exp(rng.normal(0.0, 0.02, n))
    return Segments(
        level=level,
        busy=np.ones(n),
        before=ends[:-1],
        after=ends[1:],
        duration_s=5.0 * level,
        waited_s=np.zeros_like(5.0 * level),
        piece=np.full(n, piece),
    )


def estimate_of(given: Segments) -> Estimate:
    return within(float(given.level.mean()))


def joined(pieces: Sequence[Segments]) -> Segments:
    names = [each.name for each in fields(Segments)]
    return Segments(
        **{name: np.concatenate([getattr(each, name) for each in pieces]) for name in names}
    )


def test_few_segments_tell_no_pace():
    assert pace_of(segments(1, n=2), FULL_S, version=1) is None
    few = pace_of(segments(1, n=29, sensitivity=1.2), FULL_S, version=1)
    assert (few.sensitivity, few.sensitivity_sd) == (0.88, 0.31)
    assert few.blocks == 29


def test_intervals_of_six_long_readings_hold_the_level():
    found = [
        at_full_speed(estimate_of(given), pace_of(given, FULL_S, version=1))
        for given in (segments(seed, n=6) for seed in range(60))
    ]
    assert sum(each.low <= 1e-4 <= each.high for each in found) >= 54


def slower_throughout(given: Segments, by: float, sensitivity: float = 0.88) -> Segments:
    """Return segments on a machine that is slower all the time."""
    return replace(
        given,
        level=by**sensitivity * given.level,
        before=by * given.before,
        after=by * given.after,
    )


def test_runs_of_unlike_work_do_not():
    paces = [pace_of(segments(1, sensitivity=each), FULL_S, version=1) for each in (0.2, 1.0)]
    assert common_sensitivity(*paces) is None


def test_a_piece_without_references_does_not_count():
    pieces = [segments(each, piece=each, n=500) for each in (0, 2)]
    whole = joined(pieces)
    pace = pace_of(whole, FULL_S, version=1, pieces=3)
    assert pace.by_piece[1] is None
    assert pieces_at_full_speed(estimate_of(whole), pace).n == 2


def test_the_level_changes_steadily_as_the_machine_gets_slower():
    """Whether it is told by the machine or by the process does not depend on a hair."""
    given = segments(4, sensitivity=1.4)
    by = np.exp(np.linspace(0.0, 0.5, 51))
    levels = [pace_of(slower_throughout(given, each, 0.0), FULL_S, version=1).level for each in by]
    steps = np.diff(np.log(levels)) / np.diff(np.log(by))
    assert np.all((steps > -1.8) & (steps < -0.5))


def resting(given: Segments, rest_s: float) -> Segments:
    """Let each reading also sleep for so long, whatever the pace."""
    level = given.level + rest_s
    busy = given.level * given.busy / level
    return replace(given, level=level, busy=busy, duration_s=5.0 * level)


def test_a_common_sensitivity_is_that_of_whole_readings():
    """Two runs that work for half of the time, at different paces, come to one figure."""
    half = [resting(segments(seed, slow_share=share), 1e-4) for seed, share in ((1, 0.3), (2, 0.8))]
    one, two = (pace_of(each, FULL_S, version=1) for each in half)
    shared = common_sensitivity(one, two)
    assert shared.value == pytest.approx(0.5 * 0.88, abs=0.1)
    for each in half:
        pace = pace_of(each, FULL_S, version=1, sensitivity=shared)
        assert pace.sensitivity == pytest.approx(shared.value)
        assert pace.level == pytest.approx(2e-4, rel=0.02)


def test_few_segments_none_of_which_is_near_the_quantile_have_a_share() -> None:
    given = segments(3, n=4)
    pace = pace_of(given, FULL_S, version=1, statistic=statistic_for("median"))
    assert pace is not None
    assert math.isfinite(at_full_speed(estimate_of(given), pace).value)


def test_few_moments_at_full_speed_are_not_mixed_with_slow_ones() -> None:
    """Of 300 segments 15 are at full speed, fewer than a tenth."""
    rng = np.random.default_rng(54)
    state = np.where(np.arange(300) < 15, 1.0, 1.45) * np.exp(rng.normal(0.0, 0.03, 300))
    before, after = (FULL_S * state * np.exp(rng.normal(0.0, 0.005, 300)) for _ in range(2))
    level = 1e-4 * state**0.7 * np.exp(rng.normal(0.0, 0.01, 300))
    given = segments(54, n=300)
    given = replace(given, level=level, before=before, after=after, duration_s=5.0 * level)
    assert pace_of(given, FULL_S, version=1).level == pytest.approx(1e-4, rel=0.03)
