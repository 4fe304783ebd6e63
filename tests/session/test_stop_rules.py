"""When sessions stop, by phases and by effective rounds."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from benchrigor.model import (
    Code,
    Decision,
    Estimate,
    Metric,
    Options,
    Progress,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.model.analysis import Kind
from benchrigor.protocols import StopRule
from benchrigor.session import Engine, default_rules
from benchrigor.session.stop_rules import (
    agrees,
    min_evidence,
    minimum_effective,
    narrow_enough,
    when_satisfied,
)

SATISFIED = Decision(stop=True, reason=StopReason.SATISFIED)


def stepping(engine: Engine, size: int) -> RunRecord:
    """Tell a series of which the first 200 readings take two and a half times as long."""
    rng, taken = np.random.default_rng(1), 0
    while (plan := engine.ask()) is not None:
        levels = np.where(np.arange(taken, taken + size) < 200, 2.5, 1.0)
        taken += size
        values = rng.normal(levels, 0.05)
        engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    return engine.result()


def test_a_session_is_satisfied_once_its_latest_readings_are_of_the_longest_phase() -> None:
    inside = []

    def note(progress: Progress) -> None:
        if progress.fresh:
            (analysis,) = progress.analyses
            (phase,) = analysis.phases
            assert analysis.estimate is not None
            inside.append(phase.phases[-1].label == "stable")

    options = Options(target=0.05)
    engine = Engine(options, rules=[note, *default_rules(options)])
    levels = np.repeat([2.0, 1.0, 1.5, 1.0], [200, 1_600, 700, 60_000])
    levels *= np.random.default_rng(8).normal(1.0, 0.02, levels.size)
    done = 0
    while (plan := engine.ask()) is not None:
        part = levels[done : done + plan.readings]
        done += plan.readings
        engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": part}))
    assert engine.decision == SATISFIED
    assert inside[-1]


def test_the_prediction_counts_what_a_stable_share_takes() -> None:
    # 200 readings do not belong to the phase: they are a tenth of 2000.
    found = [
        stepping(Engine(Options(target=target, max_rounds=1)), 500).analysis()
        for target in (0.05, 0.001)
    ]
    wide, narrow = (analysis.required for analysis in found if analysis is not None)
    assert wide == 2000
    assert narrow is not None
    assert narrow > 2000


@pytest.mark.slow
def test_restarted_rounds_that_share_no_steady_state_end_the_session() -> None:
    rng = np.random.default_rng(2)
    engine = Engine(Options(rounds="restarted", max_rounds=200))
    while (plan := engine.ask()) is not None:
        values = np.linspace(1.0, 2.0, plan.readings) + rng.normal(0.0, 0.02, plan.readings)
        engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    record = engine.result()
    assert record.decision == Decision(stop=True, reason=StopReason.TOO_MANY_REJECTED)
    assert len(record.rounds) == 120  # the looks are at 10, 15, 23, 35, 53, 80 and 120
    assert record.estimate() is None
    assert [notice.code for notice in record.notices] == [Code.NO_STABLE_PHASE]


def test_a_warm_up_that_ends_just_before_a_look_does_not_bias_the_estimate() -> None:
    rng = np.random.default_rng(12)
    readings = 1.0 + 0.1 * rng.normal(size=40_000) + 0.5 * (np.arange(40_000) < 450)
    engine, at = Engine(Options(target=0.05)), 0
    while (plan := engine.ask()) is not None:
        values = readings[at : at + plan.readings]
        at += plan.readings
        engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    estimate = engine.result().estimate()
    assert estimate is not None
    assert at > 500
    assert estimate.low < 1.0 < estimate.high


def test_a_session_that_ends_behind_its_phase_averages_over_time() -> None:
    rng = np.random.default_rng(13)
    engine = Engine(Options(target=0.02, max_rounds=1))
    plan = engine.ask()
    assert plan is not None
    values = 1.0 + 0.1 * rng.normal(size=500) + 0.5 * (np.arange(500) < 460)
    engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    said = [notice.code for notice in engine.result().notices]
    assert Code.CHANGING_PACE in said
    assert Code.NOT_CONVERGED in said


def test_ten_rounds_all_alike_are_not_enough_and_thirty_are() -> None:
    engine, told = Engine(Options(target=0.05)), 0
    while (plan := engine.ask()) is not None:
        engine.tell(Round(plan=plan, elapsed_ns=1, readings={"time": 2.0}))
        told += 1
    assert 30 <= told <= 60


# Two looks in a row


def leaping(at: int, by: float) -> Callable[[int], float]:
    """Return levels that are higher between two looks, and then stay at their mean."""
    return lambda index: 1.0 + by * (index >= at) / (1.0 if index < 1.5 * at else 3.0)


def looks_of(engine: Engine, tell: Callable[[RoundPlan], dict[str, Any]]) -> list[Progress]:
    """Tell rounds until the engine ends, and return the progress at its looks."""
    looks = []
    while (plan := engine.ask()) is not None:
        engine.tell(Round(plan=plan, elapsed_ns=1_000, **tell(plan)))
        assert engine.progress is not None
        if engine.progress.fresh:
            looks.append(engine.progress)
    return looks


def narrow(progress: Progress, target: float) -> bool:
    (known,) = (each.estimate for each in progress.analyses)
    return known is not None and known.relative_half_width <= target


def units(at: int, by: float) -> Callable[[RoundPlan], dict[str, Any]]:
    """Give unit readings whose level rises at one of them."""
    rng, taken, level = np.random.default_rng(1), count(), leaping(at, by)

    def told(plan: RoundPlan) -> dict[str, Any]:
        levels = [level(next(taken)) for _ in range(plan.readings)]
        return {"unit_readings": {"time": rng.normal(levels, 0.02)}}

    return told


CUSTOM = when_satisfied(
    narrow_enough(Options(target=0.1)), minimum_effective(min_evidence(Options(), Kind.READINGS))
)


@pytest.mark.parametrize("rules", [None, [CUSTOM]], ids=["default", "custom"])
@pytest.mark.parametrize(("by", "sizes"), [(0.0, [500, 750]), (0.009, [500, 750, 1125])])
def test_a_second_look_outside_the_first_interval_lets_a_session_go_on(
    by: float, sizes: list[int], rules: list[StopRule] | None
) -> None:
    options = Options(target=0.1, trim="none")
    engine = Engine(options, rules=rules)
    looks = looks_of(engine, units(500, by))
    assert [each.readings for each in looks] == sizes
    assert all(narrow(each, 0.1) for each in looks)
    assert [each.agreed for each in looks] == [False] * (len(looks) - 1) + [True]
    assert engine.decision == SATISFIED


@pytest.mark.parametrize("rules", [None, [CUSTOM]], ids=["default", "custom"])
@pytest.mark.parametrize(("by", "sizes"), [(0.0, [10, 15]), (0.15, [10, 15, 23])])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_second_look_at_rounds_outside_the_first_interval_lets_a_session_go_on(
    by: float, sizes: list[int], rules: list[StopRule] | None, restarted: bool
) -> None:
    rng, level = np.random.default_rng(1), leaping(10, by)

    def tell(plan: RoundPlan) -> dict[str, Any]:
        reading = level(plan.index) + rng.normal(0.0, 0.02)
        if restarted:
            return {"unit_readings": {"time": rng.normal(reading, 0.001, 100)}}
        return {"readings": {"time": reading}}

    rounds = "restarted" if restarted else "continuous"
    engine = Engine(Options(target=0.1, rounds=rounds, trim="none"), rules=rules)
    looks = looks_of(engine, tell)
    assert [each.rounds for each in looks] == sizes
    assert [each.agreed for each in looks] == [False] * (len(looks) - 1) + [True]
    assert all(narrow(each, 0.1) for each in looks)
    assert engine.decision == SATISFIED


def test_every_metric_that_must_be_satisfied_agrees_with_its_look_before() -> None:
    still, leaps = units(500, 0.0), units(500, 0.009)
    metrics = [Metric(name="still", unit="s"), Metric(name="leaps", unit="s")]

    def both(plan: RoundPlan) -> dict[str, Any]:
        values = {"still": still(plan), "leaps": leaps(plan)}
        return {
            "unit_readings": {name: each["unit_readings"]["time"] for name, each in values.items()}
        }

    options = Options(target=0.1, trim="none")
    assert [each.readings for each in looks_of(Engine(options, metrics), both)] == [500, 750, 1125]
    still, leaps = units(500, 0.0), units(500, 0.009)
    beside = [metrics[0], replace(metrics[1], must_satisfy=False)]
    assert [each.readings for each in looks_of(Engine(options, beside), both)] == [500, 750]


def test_a_look_without_a_number_agrees_with_none() -> None:
    known = Estimate(
        value=1.0, low=0.9, high=1.1, confidence=0.95, n=9, n_effective=9.0, method="t"
    )
    assert agrees(known, known)
    assert agrees(replace(known, value=1.1, high=1.2), known)
    assert not agrees(replace(known, value=1.15, high=1.2), known)
    assert not agrees(replace(known, value=0.85, low=0.8), known)
    assert not agrees(None, known)
    assert not agrees(known, None)
    assert not agrees(None, None)


def test_readings_that_run_out_at_the_first_look_satisfy_nobody() -> None:
    engine, tell = Engine(Options(target=0.1, budget_readings=500)), units(500, 0.0)
    (look,) = looks_of(engine, lambda plan: tell(replace(plan, readings=500)))
    assert narrow(look, 0.1)
    assert engine.decision == Decision(stop=True, reason=StopReason.READINGS_BUDGET)
