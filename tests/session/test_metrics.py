"""What a metric is: rates, shares, which way is better; and what a pilot plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from simulated.series import persistent
from tests.session.telling import codes, following, number, steady, told, units

import benchrigor as br
from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Metric, RunRecord, Verdict
from benchrigor.session import plan
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload
from benchrigor.units import Quantity


def rounds_of(
    metric: Metric,
    readings: Sequence[float],
    *,
    seconds: Sequence[float],
) -> br.RunRecord:
    """Pass one reading a round, with the time that it took."""
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


@cache
def pilot(**given: object) -> RunRecord:
    clock = FakeClock()
    options = br.Options(**{"target": 0.05, **given})  # type: ignore[arg-type]
    restarted = options.rounds == "restarted"
    workload = SyntheticWorkload(
        mean=0.001,
        cv=0.1,
        warm_up=StepWarmUp(amplitude=2.0, length=80),
        restarted=restarted,
        between_cv=0.02 if restarted else 0.0,
        seed=1,
        clock=clock,
    )
    return br.Session(options, seed=1, clock=clock, name="synthetic").run(workload)


def test_an_invocation_pays_for_its_own_warm_up() -> None:
    found = plan(pilot(rounds="restarted"), change=0.02)
    assert found.counted_in == "invocation"
    assert found.seconds == pytest.approx(
        found.n * pilot(rounds="restarted").elapsed_s / found.pilot.n
    )


def test_no_price_is_below_what_the_run_itself_would_look_at() -> None:
    series = plan(pilot(), half_widths=(0.5,)).prices[0].n
    estimate = number(pilot())
    assert series >= 750
    assert series * estimate.n_effective / estimate.n >= 100 * (1.0 - 1e-9)
    assert plan(pilot(rounds="restarted"), half_widths=(0.5,)).prices[0].n == 15
    assert plan(pilot(preset="quick"), half_widths=(0.5,)).prices[0].n < 750


def test_one_process_does_not_speak_for_others() -> None:
    assert plan(pilot()).notices[0].code is Code.THIS_PROCESS_ONLY
    assert Code.THIS_PROCESS_ONLY not in codes(plan(pilot(rounds="restarted")))


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (lambda: br.Session(name="empty", seed=1).result(), Code.NO_DATA),
        (lambda: pilot(max_rounds=1), Code.TOO_FEW_READINGS),
    ],
)
def test_a_run_without_a_number_says_why(run: Callable[[], RunRecord], why: Code) -> None:
    with pytest.raises(NotEstimable) as caught:
        plan(run())
    assert caught.value.notice.code is why  # type: ignore[attr-defined]
