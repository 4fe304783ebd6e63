"""Plans and decisions of sessions whose rounds are told."""

from typing import Any

import numpy as np
import pytest
from tests.session.telling import (
    codes,
    following,
    number,
    reason,
    singles,
    steady,
    tell,
    told,
    units,
)

from benchrigor.errors import PlanMismatch
from benchrigor.model import Code, Decision, Options, Progress, Round, StopReason
from benchrigor.session import Engine, default_rules

ENDLESS = Options(target=1e-6, budget_readings=4000)


def test_a_steady_workload_is_satisfied_at_the_second_look() -> None:
    record = told(Engine(Options(target=0.05)), units(steady()))
    assert record.decision == Decision(stop=True, reason=StopReason.SATISFIED)
    assert record.readings().size == 750
    assert number(record).low < 1.0 < number(record).high
    assert number(record).notices == ()


def test_ask_gives_the_same_plan_until_it_is_told() -> None:
    engine = Engine()
    first = engine.ask()
    assert engine.ask() is first is not None
    told_round = Round(plan=first, elapsed_ns=1, unit_readings={"time": [1.0]})
    engine.tell(told_round)
    with pytest.raises(PlanMismatch):
        engine.tell(told_round)
    second = engine.ask()
    assert second is not None
    assert (second.index, second.seed == first.seed) == (1, False)
    with pytest.raises(PlanMismatch):
        engine.tell(told_round)
    assert len(engine.result().rounds) == 1


def test_names_in_the_first_round_define_the_metrics() -> None:
    engine = Engine()
    tell(engine, {"readings": {"time": 1.0, "throughput": 3.2}})
    found = {metric.name: metric.unit for metric in engine.result().metrics}
    assert found == {"time": "s", "throughput": ""}


def test_looks_are_taken_at_sample_sizes_that_grow_by_half_whatever_a_rule_that_goes_on() -> None:
    sizes = []

    def go_on(progress: Progress) -> Decision:
        if progress.fresh:
            sizes.append(progress.readings)
        return Decision(stop=False)

    told(Engine(ENDLESS, rules=[go_on, *default_rules(ENDLESS)]), units(steady(), size=50))
    assert sizes == [500, 750, 1150, 1750, 2650, 4000]


def test_a_narrow_interval_does_not_suffice_without_effective_readings() -> None:
    walk = np.random.default_rng(3).normal(0.0, 1e-5, 2000).cumsum() + 1.0
    engine = Engine(Options(target=0.05, budget_readings=2000))
    assert reason(told(engine, units(following(walk), size=50))) is StopReason.READINGS_BUDGET


@pytest.mark.parametrize(
    ("limit", "reason", "readings"),
    [
        ({"budget_s": 2.5}, StopReason.TIME_BUDGET, 2500),
        ({"budget_readings": 700}, StopReason.READINGS_BUDGET, 700),
        ({"max_rounds": 3}, StopReason.ROUND_LIMIT, 111),
    ],
)
def test_a_spent_budget_ends_the_session_in_time_and_flags_its_number(
    limit: dict[str, float], reason: StopReason, readings: int
) -> None:
    record = told(Engine(Options(target=1e-6, **limit)), units(steady()))  # type: ignore[arg-type]
    assert record.decision == Decision(stop=True, reason=reason)
    assert codes(number(record))[0] is Code.NOT_CONVERGED
    assert record.readings().size == pytest.approx(readings, abs=10)


def test_minimum_rounds_are_run() -> None:
    record = told(Engine(Options(target=0.05, min_rounds=7)), units(steady(), size=500))
    assert len(record.rounds) >= 7


@pytest.mark.parametrize("target", [None, 0.05, 0.02])
def test_what_counts_depends_on_the_readings_and_not_on_the_target(target: float | None) -> None:
    # 0.8 % is more than a quarter of the 0.1 % that these readings reach.
    series = np.repeat([1.008, 1.0], [1_500, 3_500])
    series += 0.01 * np.random.default_rng(1).normal(size=5_000)
    engine = Engine(Options(target=target, max_rounds=1))
    (analysis,) = told(engine, units(lambda _: series)).analyses
    assert analysis.phases[0].change_points.indices
    assert analysis.n_kept == 2_720


def test_a_stop_requested_between_rounds_ends_at_the_next_ask() -> None:
    engine = Engine()
    engine.request_stop()
    assert engine.ask() is None
    assert engine.decision == Decision(stop=True, reason=StopReason.STOP_REQUESTED)


@pytest.mark.slow
def test_looking_at_the_result_changes_nothing() -> None:
    quiet, watched = Engine(Options(target=0.004)), Engine(Options(target=0.004))
    first = told(quiet, units(steady(seed=10)))
    again = told(watched, units(steady(seed=10)), after=watched.result)
    assert again.to_dict() == first.to_dict()


def test_a_narrow_first_look_still_needs_a_second_one() -> None:
    engine = Engine(Options(target=0.05))
    tell(engine, {"elapsed_ns": 10**9, "unit_readings": {"time": steady()(500)}})
    assert engine.progress is not None
    assert engine.progress.readings_needed == 250
    assert engine.progress.seconds_left == pytest.approx(0.5)
    by_round, give = Engine(Options(target=0.5)), singles(steady())
    for _ in range(10):
        plan = by_round.ask()
        assert plan is not None
        tell(by_round, give(plan))
    assert by_round.progress is not None
    assert by_round.progress.readings_needed == 5


def test_the_same_seed_gives_the_same_plans() -> None:
    plans = [Engine(seed=5).ask(), Engine(seed=5).ask(), Engine(seed=6).ask()]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]


@pytest.mark.parametrize(
    ("options", "give"),
    [
        (Options(target=0.5, max_rounds=2), singles),
        (Options(target=0.5, budget_readings=25), units),
        (Options(target=0.5, rounds="restarted", max_rounds=1), units),
    ],
    ids=["two single readings", "25 unit readings", "one invocation"],
)
def test_a_spent_budget_never_makes_too_little_evidence_satisfied(
    options: Options, give: Any
) -> None:
    record = told(Engine(options), give(steady(cv=1e-6)))
    assert reason(record) is not StopReason.SATISFIED
    assert Code.NOT_CONVERGED in codes(record)


@pytest.mark.slow
def test_a_satisfied_session_meets_its_target_for_metrics_of_every_rate() -> None:
    for seed in range(5):
        slow, fast = steady(seed), steady(seed + 5, cv=0.3)
        record = told(
            Engine(Options(target=0.02)),
            lambda _: {"unit_readings": {"slow": slow(60), "fast": fast(600)}},  # noqa: B023  # called here
        )
        assert reason(record) is StopReason.SATISFIED
        widths = [number(record, name).relative_half_width for name in ("slow", "fast")]
        assert max(widths) <= 0.02


def test_rounds_do_not_collapse_when_one_metric_gives_fewer_readings() -> None:
    draw = steady()
    record = told(
        Engine(Options(target=1e-6, budget_readings=5000)),
        lambda plan: {
            "unit_readings": {
                "many": draw(plan.readings),
                "few": draw(max(1, plan.readings // 10)),
            }
        },
    )
    assert len(record.rounds) < 60
