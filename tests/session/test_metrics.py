"""What a metric is: rates by time or by work, shares, and which way is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from simulated.series import persistent
from tests.session.telling import following, number, steady, told, units

import benchrigor as br
from benchrigor.model import Metric, Verdict
from benchrigor.units import Quantity


def rounds_of(
    metric: Metric,
    readings: Sequence[float],
    *,
    seconds: Sequence[float],
) -> br.RunRecord:
    """Tell one reading a round, with the time that it took."""
    options = br.Options(target=1e-9, max_rounds=len(readings), budget_s=60.0)
    return told(
        br.Session(options, (metric,), seed=1),
        lambda plan: {
            "elapsed_ns": round(1e9 * seconds[plan.index]),
            "readings": {metric.name: readings[plan.index]},
        },
    )


def units_of(metric: Metric, values: np.ndarray, **options: Any) -> br.RunRecord:
    """Tell readings of units in one session."""
    given = br.Options(**{"target": 1e-9, "budget_readings": len(values), **options})
    give = units(following(values), name=metric.name, reading_s=1e-6)
    return told(br.Session(given, (metric,), seed=1), give)


RATE, OK = Metric(name="rate", unit="req/s"), Metric(name="ok", kind=Quantity.SHARE)


def test_a_rate_is_total_work_over_total_time() -> None:
    equal_work = rounds_of(RATE, [100.0, 300.0] * 10, seconds=[3.0, 1.0] * 10)
    assert number(equal_work).value == pytest.approx(150.0)
    equal_time = rounds_of(RATE, [100.0, 300.0] * 10, seconds=[1.0] * 20)
    assert number(equal_time).value == pytest.approx(200.0)


def test_a_rate_of_0_has_no_harmonic_mean() -> None:
    values = np.append(steady(level=100.0, cv=0.01)(799), 0.0)
    assert "harmonic" not in number(units_of(RATE, values)).method


def test_the_target_of_a_share_is_relative_to_the_rarer_outcome() -> None:
    values = (np.random.default_rng(3).random(60_000) < 0.98).astype(float)
    record = units_of(Metric(name="ok"), values, target=0.1)
    assert record.decision is not None
    assert record.decision.satisfied
    assert number(record).half_width <= 0.1 * (1.0 - number(record).value)


def test_shares_are_compared_as_shares() -> None:
    rng = np.random.default_rng(4)
    old, new = (persistent(rng, 4_000, share, 0.5).astype(float) for share in (0.99, 0.9))
    metric = Metric(name="ok", direction=br.Direction.HIGHER)
    by_session = br.compare_runs(*(units_of(metric, each) for each in (old, new)))
    for comparison in (by_session, br.stats.compare(old, new, direction="higher")):
        assert comparison.verdict is Verdict.WORSE
        assert comparison.ratio is not None
        assert comparison.ratio.method == comparison.difference.method == "MOVER"  # type: ignore[union-attr]
        assert comparison.ratio.low < 0.9 / 0.99 < comparison.ratio.high


def test_without_a_direction_a_change_is_only_different() -> None:
    metric = Metric(name="score", unit="points")
    sides = [units_of(metric, steady(5, level, 0.01)(600)) for level in (1.0, 1.2)]
    assert br.compare_runs(*sides).verdict is Verdict.DIFFERENT
    assert br.compare_runs(*sides, direction="higher").verdict is Verdict.BETTER
