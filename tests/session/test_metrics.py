"""What a metric is: rates by time or by work, shares, and which way is better."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from simulated.series import persistent

import benchrigor as br
from benchrigor.model import Code, Verdict
from benchrigor.units import Quantity


def rounds_of(
    metric: br.Metric, readings: list[float], *, seconds: list[float], **more: list[float]
) -> br.RunRecord:
    """Tell one reading a round, with the time that it took."""
    session = br.Session(
        br.Options(target=1e-9, max_rounds=len(readings), budget_s=60.0), (metric,), seed=1
    )
    while (plan := session.ask()) is not None:
        index = plan.index
        weights = {metric.name: more["trials"][index]} if more else {}
        told = {metric.name: readings[index]}
        elapsed_ns = round(1e9 * seconds[index])
        session.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, readings=told, weights=weights))
    return session.result()


def units_of(metric: br.Metric, values: np.ndarray, **options: object) -> br.RunRecord:
    """Tell readings of units in one session."""
    session = br.Session(
        br.Options(**{"target": 1e-9, "budget_readings": len(values), **options}), (metric,), seed=1
    )
    at = 0
    while (plan := session.ask()) is not None:
        part = values[at : at + plan.readings]
        at += plan.readings
        told = {metric.name: part}
        session.tell(br.Round(plan=plan, elapsed_ns=10**6, unit_readings=told))
    return session.result()


RATE = br.Metric(name="rate", unit="req/s")


def test_a_rate_is_total_work_over_total_time() -> None:
    equal_work = rounds_of(RATE, [100.0, 300.0] * 10, seconds=[3.0, 1.0] * 10)
    estimate = equal_work.estimate()
    assert estimate is not None
    assert estimate.value == pytest.approx(150.0)
    equal_time = rounds_of(RATE, [100.0, 300.0] * 10, seconds=[1.0, 1.0] * 10).estimate()
    assert equal_time is not None
    assert equal_time.value == pytest.approx(200.0)


def test_a_rate_of_units_is_harmonic_and_arithmetic_on_request() -> None:
    values = np.tile([100.0, 300.0], 400) * np.random.default_rng(1).normal(1.0, 0.001, 800)
    means = {}
    for averaging in ("auto", "harmonic", "arithmetic"):
        metric = br.Metric(name="rate", unit="req/s", averaging=averaging)
        estimate = units_of(metric, values).estimate()
        assert estimate is not None
        means[averaging] = estimate.value
    assert means["auto"] == means["harmonic"] == pytest.approx(150.0, rel=0.01)
    assert means["arithmetic"] == pytest.approx(200.0, rel=0.01)


@pytest.mark.parametrize("rate", [0.3, 49.0, 123456789.123])
def test_equal_rates_are_said_as_they_were_given(rate: float) -> None:
    for record in (
        units_of(RATE, np.full(40, rate)),
        rounds_of(RATE, [rate] * 12, seconds=[0.1, 0.2, 0.3] * 4),
    ):
        (analysis,) = record.analyses
        estimate = analysis.estimate
        assert (estimate.low, estimate.value, estimate.high) == (rate, rate, rate)
        assert Code.CONSTANT in {each.code for each in estimate.notices}


def test_a_rate_of_0_has_no_harmonic_mean() -> None:
    values = np.append(np.random.default_rng(1).normal(100.0, 1.0, 799), 0.0)
    estimate = units_of(RATE, values).estimate()
    assert estimate is not None
    assert "harmonic" not in estimate.method


def test_outcomes_have_the_interval_of_a_share() -> None:
    ones = units_of(br.Metric(name="ok"), np.ones(800)).estimate()
    assert ones is not None
    assert (ones.value, ones.high) == (1.0, 1.0)
    assert 0.98 < ones.low < 1.0
    some = units_of(br.Metric(name="ok"), (np.arange(800) % 100 > 0).astype(float)).estimate()
    assert some is not None
    assert some.method == "Wilson"
    assert some.low < 0.99 < some.high < 1.0


def test_counts_are_shares_of_their_trials() -> None:
    metric = br.Metric(name="ok", kind=Quantity.SHARE)
    trials = [100.0, 10_000.0] * 5
    record = rounds_of(metric, [0.9, 0.99] * 5, seconds=[1.0] * 10, trials=trials)
    estimate = record.estimate()
    assert estimate is not None
    assert estimate.value == pytest.approx((0.9 * 100 + 0.99 * 10_000) / 10_100)


def test_the_target_of_a_share_is_relative_to_the_rarer_outcome() -> None:
    rng = np.random.default_rng(3)
    values = (rng.random(60_000) < 0.98).astype(float)
    record = units_of(br.Metric(name="ok"), values, target=0.1)
    estimate = record.estimate()
    assert estimate is not None
    assert record.decision is not None
    assert record.decision.satisfied
    assert estimate.half_width <= 0.1 * (1.0 - estimate.value)


@pytest.mark.slow
def test_shares_are_compared_as_shares() -> None:
    rng = np.random.default_rng(4)
    old, new = (persistent(rng, 4_000, share, 0.5).astype(float) for share in (0.99, 0.9))
    sides = [units_of(br.Metric(name="ok", direction=br.Direction.HIGHER), x) for x in (old, new)]
    for comparison in (
        br.compare_runs(*sides),
        br.stats.compare(old, new, direction="higher"),
    ):
        assert comparison.verdict is Verdict.WORSE
        assert comparison.ratio is not None
        assert comparison.ratio.method == comparison.difference.method == "MOVER"
        assert comparison.ratio.low < 0.9 / 0.99 < comparison.ratio.high


def test_without_a_direction_a_change_is_only_different() -> None:
    rng = np.random.default_rng(5)
    metric = br.Metric(name="score", unit="points")
    sides = [units_of(metric, rng.normal(level, 0.01, 600)) for level in (1.0, 1.2)]
    comparison = br.compare_runs(*sides)
    assert comparison.verdict is Verdict.DIFFERENT
    assert "higher" in str(comparison)
    assert br.compare_runs(*sides, direction="higher").verdict is Verdict.BETTER


def test_rounds_of_one_unit_are_single_readings() -> None:
    rng = np.random.default_rng(7)
    session = br.Session(br.Options(target=1e-9, rounds="restarted", max_rounds=12), seed=1)
    while (plan := session.ask()) is not None:
        told = {"u": [rng.normal(1.0, 0.05)]}
        session.tell(br.Round(plan=plan, elapsed_ns=10**6, unit_readings=told))
    record = session.result()
    estimate = record.estimate()
    assert estimate is not None
    assert estimate.n == 12
    assert br.compare_runs(record, record).unit == "reading"


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("kind", [None, Quantity.OTHER])
def test_no_time_is_negative_whatever_its_unit(unit: str, kind: Quantity | None) -> None:
    given = {} if kind is None else {"kind": kind}
    session = br.Session(br.Options(), (br.Metric(name="lag", unit=unit, **given),), seed=1)
    plan = session.ask()
    assert plan is not None
    told = br.Round(plan=plan, elapsed_ns=1, unit_readings={"lag": [1.0, -2.0]})
    with pytest.raises(br.InvalidInput) if kind is None else nullcontext():
        session.tell(told)
