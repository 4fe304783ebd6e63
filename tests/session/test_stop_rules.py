"""When sessions stop, by phases and by effective rounds."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from benchrigor.model import (
    Decision,
    Metric,
    Options,
    Progress,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.session import Engine, default_rules

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


@pytest.mark.parametrize(("by", "sizes"), [(0.0, [500, 750]), (0.009, [500, 750, 1125])])
def test_a_second_look_outside_the_first_interval_lets_a_session_go_on(
    by: float, sizes: list[int]
) -> None:
    options = Options(target=0.1, trim="none")
    engine = Engine(options)
    looks = looks_of(engine, units(500, by))
    assert [each.readings for each in looks] == sizes
    assert all(narrow(each, 0.1) for each in looks)
    assert [each.agreed for each in looks] == [False] * (len(looks) - 1) + [True]
    assert engine.decision == SATISFIED


@pytest.mark.parametrize(("by", "sizes"), [(0.0, [10, 15]), (0.15, [10, 15, 23])])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_second_look_at_rounds_outside_the_first_interval_lets_a_session_go_on(
    by: float, sizes: list[int], restarted: bool
) -> None:
    rng, level = np.random.default_rng(1), leaping(10, by)

    def tell(plan: RoundPlan) -> dict[str, Any]:
        reading = level(plan.index) + rng.normal(0.0, 0.02)
        if restarted:
            return {"unit_readings": {"time": rng.normal(reading, 0.001, 100)}}
        return {"readings": {"time": reading}}

    rounds = "restarted" if restarted else "continuous"
    engine = Engine(Options(target=0.1, rounds=rounds, trim="none"))
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


def test_readings_that_run_out_at_the_first_look_satisfy_nobody() -> None:
    engine, tell = Engine(Options(target=0.1, budget_readings=500)), units(500, 0.0)
    (look,) = looks_of(engine, lambda plan: tell(replace(plan, readings=500)))
    assert narrow(look, 0.1)
    assert engine.decision == Decision(stop=True, reason=StopReason.READINGS_BUDGET)
