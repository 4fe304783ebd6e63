"""When sessions stop, and what they can still reach: by phases, looks, budgets and memory."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from tests.session.telling import Given, codes, following, number, reason, steady, tell, told, units

from benchrigor.model import (
    Code,
    Decision,
    Metric,
    Options,
    Progress,
    RoundPlan,
    StopReason,
)
from benchrigor.session import Engine, default_rules, stop_rules

SATISFIED = Decision(stop=True, reason=StopReason.SATISFIED)


def test_a_session_is_satisfied_once_its_latest_readings_are_of_the_longest_phase() -> None:
    inside = []

    def note(progress: Progress) -> None:
        if progress.fresh:
            (phase,) = progress.analyses[0].phases
            inside.append(phase.phases[-1].label == "stable")

    options = Options(target=0.05)
    engine = Engine(options, rules=[note, *default_rules(options)])
    levels = np.repeat([2.0, 1.0, 1.5, 1.0], [200, 1_600, 700, 60_000])
    told(engine, units(following(levels * steady(8, cv=0.02)(levels.size)), reading_s=1e-9))
    assert engine.decision == SATISFIED
    assert inside[-1]


def test_the_prediction_counts_what_a_stable_share_takes() -> None:
    # 200 readings do not belong to the phase: they are a tenth of 2000.
    series = np.repeat([2.5, 1.0], [200, 300]) + steady(level=0.0, cv=0.0)(500)
    series += np.random.default_rng(1).normal(0.0, 0.05, 500)
    wide, narrow = (
        told(Engine(Options(target=target, max_rounds=1)), units(lambda _: series)).analyses[0]
        for target in (0.05, 0.001)
    )
    assert wide.required == 2000
    assert narrow.required is not None
    assert narrow.required > 2000


def test_ten_rounds_all_alike_are_not_enough_and_thirty_are() -> None:
    record = told(Engine(Options(target=0.05)), lambda _: {"readings": {"time": 2.0}})
    assert 30 <= len(record.rounds) <= 60


# Two looks in a row


def leaping(at: int, by: float) -> Callable[[int], float]:
    """Return levels that are higher between two looks, and then stay at their mean."""
    return lambda index: 1.0 + by * (index >= at) / (1.0 if index < 1.5 * at else 3.0)


def looks_of(engine: Engine, give: Callable[[RoundPlan], Given]) -> list[Progress]:
    """Tell rounds until the engine ends, and return the progress at its looks."""
    looks = []

    def look() -> None:
        if engine.progress is not None and engine.progress.fresh:
            looks.append(engine.progress)

    told(engine, give, after=look)
    return looks


def narrow(progress: Progress, target: float) -> bool:
    (known,) = (each.estimate for each in progress.analyses)
    return known is not None and known.relative_half_width <= target


def leaping_units(by: float) -> Callable[[RoundPlan], np.ndarray]:
    """Give unit readings whose level rises at the 500th of them."""
    rng, taken, level = np.random.default_rng(1), count(), leaping(500, by)
    return lambda plan: rng.normal([level(next(taken)) for _ in range(plan.readings)], 0.02)


@pytest.mark.parametrize(("by", "sizes"), [(0.0, [500, 750]), (0.009, [500, 750, 1125])])
def test_a_second_look_outside_the_first_interval_lets_a_session_go_on(
    by: float, sizes: list[int]
) -> None:
    engine, draw = Engine(Options(target=0.1, trim="none")), leaping_units(by)
    looks = looks_of(
        engine, lambda plan: {"elapsed_ns": 1_000, "unit_readings": {"time": draw(plan)}}
    )
    assert [each.readings for each in looks] == sizes
    assert all(narrow(each, 0.1) for each in looks)
    assert [each.agreed for each in looks] == [False] * (len(looks) - 1) + [True]
    assert engine.decision == SATISFIED


@pytest.mark.parametrize(("by", "sizes"), [(0.0, [10, 15]), (0.15, [10, 15, 23])])
@pytest.mark.parametrize("rounds", ["continuous", "restarted"])
def test_a_second_look_at_rounds_outside_the_first_interval_lets_a_session_go_on(
    by: float, sizes: list[int], rounds: Any
) -> None:
    rng, level = np.random.default_rng(1), leaping(10, by)

    def give(plan: RoundPlan) -> Given:
        reading = level(plan.index) + rng.normal(0.0, 0.02)
        if rounds == "restarted":
            return {"unit_readings": {"time": rng.normal(reading, 0.001, 100)}}
        return {"readings": {"time": reading}}

    engine = Engine(Options(target=0.1, rounds=rounds, trim="none"))
    looks = looks_of(engine, give)
    assert [each.rounds for each in looks] == sizes
    assert [each.agreed for each in looks] == [False] * (len(looks) - 1) + [True]
    assert all(narrow(each, 0.1) for each in looks)
    assert engine.decision == SATISFIED


@pytest.mark.parametrize(("must_satisfy", "sizes"), [(True, [500, 750, 1125]), (False, [500, 750])])
def test_every_metric_that_must_be_satisfied_agrees_with_its_look_before(
    must_satisfy: bool, sizes: list[int]
) -> None:
    still, leaps = leaping_units(0.0), leaping_units(0.009)
    metric = Metric(name="still", unit="s")
    metrics = [metric, replace(metric, name="leaps", must_satisfy=must_satisfy)]
    looks = looks_of(
        Engine(Options(target=0.1, trim="none"), metrics),
        lambda plan: {"unit_readings": {"still": still(plan), "leaps": leaps(plan)}},
    )
    assert [each.readings for each in looks] == sizes


def test_readings_that_run_out_at_the_first_look_satisfy_nobody() -> None:
    engine = Engine(Options(target=0.1, budget_readings=500))
    (look,) = looks_of(engine, units(steady(cv=0.02), size=500))
    assert narrow(look, 0.1)
    assert engine.decision == Decision(stop=True, reason=StopReason.READINGS_BUDGET)


# What a budget allows


def progress_of(n: int, seconds: float, *, cv: float = 0.01, **options: Any) -> Progress:
    """Return the progress after one round of readings."""
    engine = Engine(Options(**options))
    values = np.random.default_rng(2).lognormal(0.0, cv, n)
    tell(engine, {"elapsed_ns": round(1e9 * seconds), "unit_readings": {"load": values}})
    assert engine.progress is not None
    return engine.progress


@pytest.mark.parametrize(
    ("seconds", "share"),
    [(1.0, math.sqrt(0.1)), (2.0, math.sqrt(0.2)), (0.5, None)],  # the last is too soon to say
)
def test_half_widths_shrink_with_the_root_of_the_time(seconds: float, share: float | None) -> None:
    progress = progress_of(1000, seconds, cv=1.0)
    known = progress.analyses[0].estimate
    assert known is not None
    wanted = None if share is None else pytest.approx(share * known.relative_half_width, rel=0.05)
    assert progress.reachable == wanted


def test_a_budget_may_hold_too_few_readings() -> None:
    assert progress_of(1, 3.0).reachable == math.inf
    assert progress_of(1, 1.0).reachable is None  # it may have been a cold one
    few = progress_of(10, 3.0).reachable
    assert few is not None
    assert few < 0.01  # less than the target, but not a small part of it


def test_a_budget_may_hold_too_few_rounds() -> None:
    engine, found = Engine(Options()), []
    for _ in range(3):
        tell(engine, {"elapsed_ns": 10**9, "readings": {"load": 1.0}})
        assert engine.progress is not None
        found.append(engine.progress.reachable)
    assert found == [None, None, math.inf]


@pytest.mark.parametrize("options", [{"target": None}, {"budget_s": math.inf}, {"target": 0.05}])
def test_without_a_narrow_target_or_an_end_all_is_within_reach(options: dict[str, Any]) -> None:
    assert progress_of(1000, 3.0, cv=0.6, **options).reachable is None


# The memory


@pytest.mark.slow
@pytest.mark.parametrize("elapsed_ns", [0, 1_000])
def test_a_metric_that_never_comes_ends_it_with_an_estimate_of_the_other(
    monkeypatch: pytest.MonkeyPatch, elapsed_ns: int
) -> None:
    monkeypatch.setattr(stop_rules, "MOST_READINGS", 50_000)
    engine = Engine(metrics=[Metric(name="a", unit="s"), Metric(name="b", unit="s")])
    record = told(engine, units(steady(), name="a", reading_s=elapsed_ns / 1e12))
    assert reason(record) is StopReason.MEMORY_LIMIT
    assert 50_000 <= record.readings("a").size < 100_000
    assert number(record, "a").value == pytest.approx(1.0, rel=0.01)
    assert Code.NO_DATA in codes(record)


def test_readings_of_all_metrics_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_rules, "MOST_READINGS", 300)
    record = told(Engine(), lambda _: {"unit_readings": dict.fromkeys("ab", np.ones(100))})
    assert (reason(record), len(record.rounds)) == (StopReason.MEMORY_LIMIT, 2)
