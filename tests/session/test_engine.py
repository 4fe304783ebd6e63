"""Plans and decisions of sessions whose rounds are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.session.telling import (
    codes,
    engine_of,
    number,
    reason,
    singles,
    steady,
    tell,
    told,
    units,
)

import benchrigor as br
from benchrigor.errors import PlanMismatch, WorkloadFailed
from benchrigor.model import (
    Code,
    Decision,
    Headway,
    Metric,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.protocols import LastingWorkload, Recorder
from benchrigor.session import Session
from benchrigor.session.engine import Engine
from benchrigor.session.schedules import next_readings
from benchrigor.testing import FakeClock, MemoryStore


def test_ask_gives_the_same_plan_until_it_is_told() -> None:
    engine = Session()
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


def test_a_stop_requested_between_rounds_ends_at_the_next_ask() -> None:
    engine = engine_of()
    engine.request_stop()
    assert engine.ask() is None
    assert engine.decision == Decision(stop=True, reason=StopReason.STOP_REQUESTED)


def test_looking_at_the_result_changes_nothing() -> None:
    quiet, watched = engine_of(Options(target=0.004)), engine_of(Options(target=0.004))
    first = told(quiet, units(steady(seed=10)))
    again = told(watched, units(steady(seed=10)), after=watched.result)
    assert again.to_dict() == first.to_dict()


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
    record = told(engine_of(options), give(steady(cv=1e-6)))
    assert reason(record) is not StopReason.SATISFIED
    assert Code.NOT_CONVERGED in codes(record)


def test_rounds_do_not_collapse_when_one_metric_gives_fewer_readings() -> None:
    draw = steady()
    record = told(
        engine_of(Options(target=1e-6, budget_readings=5000)),
        lambda plan: {
            "unit_readings": {
                "many": draw(plan.readings),
                "few": draw(max(1, plan.readings // 10)),
            }
        },
    )
    assert len(record.rounds) < 60


# Rounds that were cut: what a plan says of the time left, and what such a round does not give


S = 10**9


def test_a_cut_round_is_no_point_on_the_line_through_work_and_duration() -> None:
    def give(plan: RoundPlan) -> Mapping[str, Any]:
        wanted = 0.3 + (plan.work or 0) / 500.0
        took = min(wanted, plan.seconds or 0)
        return {"elapsed_ns": round(took * S), "cut": took < wanted}

    record = told(engine_of(br.Options(work=(1, 1000), budget_s=30.0)), give)
    assert reason(record) is StopReason.TIME_BUDGET
    assert record.rounds[-1].cut
    n = len(record.rounds)
    assert record.analyses[0].kind == "work amounts"
    assert record.analyses[0].n == record.readings("speed").size == n - 1
    assert len(record.whole_rounds) == n - 1
    assert number(record).value == pytest.approx(500.0)  # without noise: a wrong one would show


def test_it_stays_cut_in_a_record_and_rounds_stored_before_there_was_that_are_not() -> None:
    engine = engine_of(br.Options(budget_s=10.0))
    tell(engine, {"unit_readings": {"u": [1.0, 2.0]}, "cut": True})
    stored = engine.result().to_dict()
    (again,) = RunRecord.from_dict(stored).rounds
    assert (again.cut, again.plan.seconds) == (True, 10.0)
    del stored["rounds"][0]["cut"], stored["rounds"][0]["plan"]["seconds"]
    (old,) = RunRecord.from_dict(stored).rounds
    assert (old.cut, old.plan.seconds) == (False, None)


class Lasting:
    """Notes when it is closed."""

    def __init__(self, clock: FakeClock, error: BaseException | None = None) -> None:
        self.clock, self.error, self.closed = clock, error, 0

    def run(self, plan: br.RoundPlan, recorder: Recorder) -> None:
        assert not self.closed
        self.clock.advance(S)
        recorder.reading("x", 1.0)
        if self.error is not None and plan.index == 2:
            raise self.error

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    "error", [None, KeyboardInterrupt(), WorkloadFailed("no"), StopIteration(), ValueError("odd")]
)
def test_a_session_closes_a_workload_that_lasts_whatever_ended_it(
    error: BaseException | None,
) -> None:
    clock = FakeClock()
    workload = Lasting(clock, error)
    assert isinstance(workload, LastingWorkload)
    session = br.Session(br.Options(budget_s=5.0), clock=clock, store=MemoryStore())
    try:
        session.run(workload)
    except (KeyboardInterrupt, WorkloadFailed):
        assert error is not None
    assert workload.closed == 1


# How many unit readings the next round takes


def asked(rounds: Sequence[tuple[int, float]], **options: Any) -> int:
    """Return how many readings are asked for after rounds of so many, which last so long."""
    engine = engine_of(Options(**{"target": 1e-9, **options}), seed=1)
    draw = steady(cv=0.01)
    for readings, seconds in rounds:
        values = draw(readings)
        tell(engine, {"elapsed_ns": round(1e9 * seconds), "unit_readings": {"time": values}})
    turn = engine.ask()
    assert turn is not None
    return turn.plan.readings


@pytest.mark.parametrize(
    ("rounds", "options", "wanted"),
    [
        ([], {}, 1),
        ([(100, 0.1)], {}, 400),  # to the first look
        ([(100, 1.0)], {}, 100),  # a second of them
        ([(10, 0.001)], {}, 100),  # ten times as many
        ([(100, 9.5)], {}, 6),  # what is left of ten seconds
        # None ends more than a tenth too late: of 0.5 s each two would begin in the 0.6 s left.
        ([(6, 3.0)], {"budget_s": 3.6}, 1),
        ([(1, 3.0)], {"budget_s": 5.5}, 1),  # in time, with some
        ([(1000, 0.0)], {}, 500),
        ([(100, 0.1)], {"budget_readings": 150}, 50),
    ],
)
def test_a_round_goes_to_the_next_look_within_a_second_and_the_budgets(
    rounds: list[tuple[int, float]], options: dict[str, Any], wanted: int
) -> None:
    assert asked(rounds, **options) == wanted


def started(
    n: int, start_s: float, reading_s: float, *, rounds: int = 5, **options: Any
) -> tuple[int, Engine]:
    """Return what is asked for after restarted rounds that start so long, and read so fast."""
    engine = engine_of(Options(rounds="restarted", **{"target": 1e-9, **options}), seed=1)
    give = units(steady(level=reading_s, cv=0.05), size=n, reading_s=reading_s + start_s / n)
    for _ in range(rounds):
        tell(engine, give(RoundPlan(index=0)))
    turn = engine.ask()
    assert turn is not None
    return turn.plan.readings, engine


@pytest.mark.parametrize(
    ("rounds", "wanted"),
    [
        ({"n": 500, "start_s": 0.1, "reading_s": 2e-4, "rounds": 0}, 500),
        ({"n": 500, "start_s": 0.1, "reading_s": 2e-4}, 500),
        # Slow readings: a fortieth of ten seconds, or as long as a start.
        ({"n": 10, "start_s": 0.1, "reading_s": 0.05}, 5),
        ({"n": 10, "start_s": 0.5, "reading_s": 0.05}, 10),
        ({"n": 1, "start_s": 0.5, "reading_s": 0.1}, 1),
        ({"n": 10, "start_s": 0.1, "reading_s": 0.05, "budget_s": 4.0}, 2),
        ({"n": 500, "start_s": 0.1, "reading_s": 2e-4, "budget_readings": 2_510}, 10),
    ],
)
def test_restarted_rounds_have_readings_for_as_long_as_there_is_time(
    rounds: dict[str, Any], wanted: int
) -> None:
    assert started(**rounds)[0] == pytest.approx(wanted, abs=1)


@pytest.mark.parametrize(
    ("components", "options", "wanted"),
    [
        # sqrt((0.1 s + 100 that are cut) / 0.2 ms * 25), and those that are cut
        ({}, {}, 222),
        ({"within": 0.0}, {}, 102),
        ({"within": 0.0, "readings": 500.0}, {}, 100),
        ({"between": 0.0}, {}, 4_500),  # a tenth of ten seconds
        ({"between": 0.0}, {"budget_s": float("inf")}, 10_000),
    ],
)
def test_an_invocation_is_as_long_as_its_start_and_the_spread_between_are_worth(
    components: dict[str, float], options: dict[str, Any], wanted: int
) -> None:
    _, engine = started(500, 0.1, 2e-4)
    known = engine.result().analyses[0].split
    assert known is not None
    given = {"between": 1e-4, "within": 25e-4, "readings": 400.0, **components}
    headway = Headway(
        readings=2_500,
        elapsed_s=1.0,
        last_readings=500,
        last_s=0.2,
        to_next_check=400,
        invocations=5,
        busy_s=0.5,
        split=replace(known, **given),  # type: ignore[arg-type]
    )
    assert next_readings(headway, Options(rounds="restarted", **options)) == wanted


class Unread(list[np.ndarray]):
    """Readings of rounds that only a look may go through."""

    def __iter__(self) -> Any:
        raise AssertionError("all rounds so far are read between two looks")


@pytest.mark.parametrize("size", [0, 1, 40])
def test_a_round_costs_the_same_after_any_number_of_others(size: int) -> None:
    engine = engine_of(Options(), (Metric(name="time", unit="s"),))
    values: dict[str, Any] = {"readings": {"time": 1.0}}
    if size:
        values = {"unit_readings": {"time": np.ones(size)}}
    for index in range(5):
        finished = Round(plan=RoundPlan(index=index), elapsed_ns=10**9, **values)
        engine.goal.check(finished)
        engine.goal.take(finished, engine)
        so_far = engine.goal.by_name["time"]
        so_far.chunks = Unread(so_far.chunks) if index == 0 else so_far.chunks
        assert so_far.units == (index + 1) * max(size, 1)
