from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchrigor.errors import PlanMismatch
from benchrigor.model import (
    Code,
    Decision,
    Options,
    Progress,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.session import Engine, default_rules

Draw = Callable[[int], np.ndarray]


def steady(seed: int = 1, level: float = 1.0, cv: float = 0.1) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda n: rng.normal(level, cv * level, n)


def drive(engine: Engine, draw: Draw, *, limit: int = 500, size: int | None = None) -> RunRecord:
    """Tell unit readings of 1 ms each, ``size`` a round, until the engine has enough."""
    for _ in range(limit):
        plan = engine.ask()
        if plan is None:
            return engine.result()
        values = draw(size or plan.readings)
        elapsed_ns = values.size * 1_000_000
        engine.tell(Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    raise AssertionError(f"the session did not end within {limit} rounds")


def drive_single(engine: Engine, draw: Draw, *, limit: int = 500) -> RunRecord:
    """Tell one reading per round until the engine has enough."""
    for _ in range(limit):
        plan = engine.ask()
        if plan is None:
            return engine.result()
        reading = float(draw(1)[0])
        engine.tell(Round(plan=plan, elapsed_ns=1_000_000, readings={"time": reading}))
    raise AssertionError(f"the session did not end within {limit} rounds")


def codes(record: RunRecord) -> list[Code]:
    return [notice.code for notice in record.notices]


def test_a_steady_workload_is_satisfied_at_the_second_look() -> None:
    record = drive(Engine(Options(target=0.05)), steady())
    assert record.decision == Decision(stop=True, reason=StopReason.SATISFIED)
    assert record.readings().size == 750
    estimate = record.estimate()
    assert estimate is not None
    assert estimate.low < 1.0 < estimate.high
    assert estimate.notices == ()


def test_ask_gives_the_same_plan_until_it_is_told() -> None:
    engine = Engine()
    first = engine.ask()
    assert first is not None
    assert engine.ask() is first
    engine.tell(Round(plan=first, elapsed_ns=1, unit_readings={"time": [1.0]}))
    second = engine.ask()
    assert second is not None
    assert second.index == 1
    assert second.seed != first.seed


def test_an_unknown_plan_and_a_told_one_are_refused() -> None:
    engine = Engine()
    with pytest.raises(PlanMismatch):
        engine.tell(Round(plan=RoundPlan(index=0), elapsed_ns=1))
    plan = engine.ask()
    assert plan is not None
    told = Round(plan=plan, elapsed_ns=1, unit_readings={"time": [1.0]})
    engine.tell(told)
    with pytest.raises(PlanMismatch):
        engine.tell(told)
    engine.ask()
    with pytest.raises(PlanMismatch):
        engine.tell(told)
    assert len(engine.result().rounds) == 1


def test_names_in_the_first_round_define_the_metrics() -> None:
    engine = Engine()
    plan = engine.ask()
    assert plan is not None
    engine.tell(Round(plan=plan, elapsed_ns=1, readings={"time": 1.0, "throughput": 3.2}))
    found = {metric.name: metric.unit for metric in engine.result().metrics}
    assert found == {"time": "s", "throughput": ""}


def test_looks_are_taken_at_sample_sizes_that_grow_by_half() -> None:
    sizes = []

    def note(progress: Progress) -> None:
        if progress.fresh:
            sizes.append(progress.readings)

    options = Options(target=1e-6, budget_readings=4000)
    drive(Engine(options, rules=[note, *default_rules(options)]), steady(), size=50)
    assert sizes == [500, 750, 1150, 1750, 2650, 4000]


def test_a_narrow_interval_does_not_suffice_without_effective_readings() -> None:
    walk = np.random.default_rng(3).normal(0.0, 1e-5, 2000).cumsum() + 1.0
    position = iter(range(0, 2000, 50))
    options = Options(target=0.05, budget_readings=2000)
    record = drive(Engine(options), lambda n: walk[(i := next(position)) : i + n], size=50)
    assert record.decision is not None
    assert record.decision.reason is StopReason.READINGS_BUDGET


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (Options(target=1e-6, budget_s=0.3), StopReason.TIME_BUDGET),
        (Options(target=1e-6, budget_readings=700), StopReason.READINGS_BUDGET),
        (Options(target=1e-6, max_rounds=3), StopReason.ROUND_LIMIT),
    ],
)
def test_a_spent_budget_ends_the_session_and_flags_its_number(
    options: Options, reason: StopReason
) -> None:
    record = drive(Engine(options), steady())
    assert record.decision == Decision(stop=True, reason=reason)
    estimate = record.estimate()
    assert estimate is not None
    assert estimate.notices[0].code is Code.NOT_CONVERGED


def test_budgets_are_not_overdrawn_by_the_schedule() -> None:
    record = drive(Engine(Options(target=1e-6, budget_readings=700)), steady())
    assert record.readings().size == 700
    record = drive(Engine(Options(target=1e-6, budget_s=2.5)), steady())
    assert record.elapsed_s == pytest.approx(2.5, abs=0.01)


def test_minimum_rounds_are_run() -> None:
    options = Options(target=0.05, min_rounds=7)
    record = drive(Engine(options), steady(), size=500)
    assert len(record.rounds) >= 7


def test_single_readings_are_satisfied_at_fifteen_rounds() -> None:
    record = drive_single(Engine(Options(target=0.2)), steady())
    assert record.decision == Decision(stop=True, reason=StopReason.SATISFIED)
    assert len(record.rounds) == 15
    assert Code.FEW_READINGS in codes(record)


@pytest.mark.parametrize("target", [None, 0.05, 0.02])
def test_what_counts_depends_on_the_readings_and_not_on_the_target(target: float | None) -> None:
    # 0.8 % is more than a quarter of the 0.1 % that these readings reach.
    levels = np.repeat([1.008, 1.0], [1_500, 3_500])
    noise = 0.01 * np.random.default_rng(1).normal(size=5_000)
    engine = Engine(Options(target=target, max_rounds=1))
    analysis = drive(engine, lambda _: levels + noise).analysis()
    assert analysis is not None
    assert analysis.phases[0].change_points.indices
    assert analysis.n_kept == 2_720


def test_a_requested_stop_lets_the_round_finish() -> None:
    engine = Engine(Options(target=1e-6))
    plan = engine.ask()
    assert plan is not None
    engine.request_stop()
    decision = engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": steady()(300)}))
    assert decision == Decision(stop=True, reason=StopReason.STOP_REQUESTED)
    assert engine.ask() is None
    assert engine.result().estimate() is not None


def test_a_stop_requested_between_rounds_ends_at_the_next_ask() -> None:
    engine = Engine()
    engine.request_stop()
    assert engine.ask() is None
    assert engine.decision == Decision(stop=True, reason=StopReason.STOP_REQUESTED)


@pytest.mark.slow
def test_looking_at_the_result_changes_nothing() -> None:
    quiet, watched = Engine(Options(target=0.004)), Engine(Options(target=0.004))
    first = drive(quiet, steady(seed=10))
    draw = steady(seed=10)

    def looking(n: int) -> np.ndarray:
        watched.result()
        return draw(n)

    assert drive(watched, looking).to_dict() == first.to_dict()


def test_a_narrow_first_look_still_needs_a_second_one() -> None:
    engine = Engine(Options(target=0.05))
    plan = engine.ask()
    assert plan is not None
    engine.tell(Round(plan=plan, elapsed_ns=10**9, unit_readings={"time": steady()(500)}))
    assert engine.progress is not None
    assert engine.progress.readings_needed == 250
    assert engine.progress.seconds_left == pytest.approx(0.5)
    by_round = Engine(Options(target=0.5))
    for _ in range(10):
        plan = by_round.ask()
        assert plan is not None
        reading = float(steady(plan.index)(1)[0])
        by_round.tell(Round(plan=plan, elapsed_ns=10**6, readings={"time": reading}))
    assert by_round.progress is not None
    assert by_round.progress.readings_needed == 5


def test_the_same_seed_gives_the_same_plans() -> None:
    plans = [Engine(seed=5).ask(), Engine(seed=5).ask(), Engine(seed=6).ask()]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]


def test_a_replayed_session_ends_as_the_first_one_did() -> None:
    options = Options(target=0.01)
    first = drive(Engine(options, seed=3), steady(seed=12))
    second = Engine(options, seed=3)
    for finished in first.rounds:
        second.replay(finished)
    assert replace(second.result(), name=first.name).to_dict() == first.to_dict()


@pytest.mark.parametrize(
    ("options", "single"),
    [
        (Options(target=0.5, max_rounds=2), True),
        (Options(target=0.5, budget_readings=25), False),
        (Options(target=0.5, rounds="restarted", max_rounds=1), False),
    ],
    ids=["two single readings", "25 unit readings", "one invocation"],
)
def test_a_spent_budget_never_makes_too_little_evidence_satisfied(
    options: Options, *, single: bool
) -> None:
    run = drive_single if single else drive
    record = run(Engine(options), steady(cv=1e-6))
    assert record.decision is not None
    assert record.decision.reason is not StopReason.SATISFIED
    assert Code.NOT_CONVERGED in codes(record)


@pytest.mark.slow
def test_a_satisfied_session_meets_its_target_for_metrics_of_every_rate() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        engine = Engine(Options(target=0.02))
        while (plan := engine.ask()) is not None:
            given = {"slow": rng.normal(1.0, 0.1, 60), "fast": rng.normal(1.0, 0.3, 600)}
            engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings=given))
        record = engine.result()
        assert record.decision == Decision(stop=True, reason=StopReason.SATISFIED)
        for name in given:
            estimate = record.estimate(name)
            assert estimate is not None
            assert estimate.relative_half_width <= 0.02


def test_rounds_do_not_collapse_when_one_metric_gives_fewer_readings() -> None:
    rng = np.random.default_rng(1)
    engine = Engine(Options(target=1e-6, budget_readings=5000))
    sizes = []
    while (plan := engine.ask()) is not None:
        sizes.append(plan.readings)
        few = rng.normal(1.0, 0.1, max(1, plan.readings // 10))
        given = {"many": rng.normal(1.0, 0.1, plan.readings), "few": few}
        engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings=given))
    assert len(sizes) < 60


def test_a_rule_that_says_go_on_changes_nothing() -> None:
    looks = []

    def go_on(progress: Progress) -> Decision:
        looks.append(progress.fresh)
        return Decision(stop=False)

    options = Options(target=1e-6, budget_readings=2000)
    drive(Engine(options, rules=[go_on, *default_rules(options)]), steady(), size=50)
    assert sum(looks) == 5
