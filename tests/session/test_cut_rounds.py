"""Rounds that were cut: what a plan says of the time left, and what such a round does not give."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import benchrigor as br
from benchrigor.errors import WorkloadFailed
from benchrigor.model import RunRecord, StopReason
from benchrigor.protocols import LastingWorkload, Recorder
from benchrigor.report import explain
from benchrigor.session import Engine
from benchrigor.testing import FakeClock, MemoryStore

S = 10**9


def tell(engine: Engine, *, seconds: float = 1.0, **given: Any) -> br.Decision:
    plan = engine.ask()
    assert plan is not None
    return engine.tell(br.Round(plan=plan, elapsed_ns=round(seconds * S), **given))


def test_a_plan_says_how_many_seconds_are_left() -> None:
    engine = Engine(br.Options(budget_s=10.0))
    seconds = []
    while (plan := engine.ask()) is not None:
        seconds.append(plan.seconds)
        tell(engine, seconds=4.0, readings={"x": 1.0})
    assert seconds == [10.0, 6.0, 2.0]


def test_without_a_budget_there_is_no_limit() -> None:
    plan = Engine(br.Options(budget_s=math.inf)).ask()
    assert plan is not None
    assert plan.seconds is None


def test_rules_that_know_no_budget_go_on_without_a_limit() -> None:
    engine = Engine(br.Options(budget_s=1.0), rules=[])
    tell(engine, seconds=2.0, readings={"x": 1.0})
    plan = engine.ask()
    assert plan is not None
    assert plan.seconds is None


def test_the_time_left_makes_no_other_plan_of_it() -> None:
    engine = Engine(br.Options(budget_s=10.0))
    plan = engine.ask()
    assert plan is not None
    engine.tell(br.Round(plan=replace(plan, seconds=9.0), elapsed_ns=1, readings={"x": 1.0}))


def test_a_cut_round_is_no_point_on_the_line_through_work_and_duration() -> None:
    engine = Engine(br.Options(work=(1, 1000), budget_s=30.0))
    while (plan := engine.ask()) is not None:
        assert plan.work is not None
        assert plan.seconds is not None
        wanted = 0.3 + plan.work / 500.0
        took = min(wanted, plan.seconds)
        engine.tell(br.Round(plan=plan, elapsed_ns=round(took * S), cut=took < wanted))
    record = engine.result()
    assert record.decision is not None
    assert record.decision.reason is StopReason.TIME_BUDGET
    assert record.rounds[-1].cut
    n = len(record.rounds)
    assert record.analyses[0].kind == "work amounts"
    assert record.analyses[0].n == record.readings("speed").size == n - 1
    assert len(record.whole_rounds) == n - 1
    estimate = record.estimate()
    assert estimate is not None
    assert estimate.value == pytest.approx(500.0)  # without noise: one wrong duration would show
    assert f"{n - 1} rounds of" in explain(record)


def test_rounds_that_were_cut_are_not_rejected() -> None:
    engine = Engine(br.Options(budget_s=1e6))
    for _ in range(101):
        assert not tell(engine, cut=True).stop
    for _ in range(99):
        assert not tell(engine).stop
    assert tell(engine).reason is StopReason.TOO_MANY_REJECTED


def test_it_stays_cut_in_a_record_and_rounds_stored_before_there_was_that_are_not() -> None:
    engine = Engine(br.Options(budget_s=10.0))
    tell(engine, unit_readings={"u": [1.0, 2.0]}, cut=True)
    stored = engine.result().to_dict()
    (again,) = RunRecord.from_dict(stored).rounds
    assert again.cut
    assert again.plan.seconds == 10.0
    del stored["rounds"][0]["cut"], stored["rounds"][0]["plan"]["seconds"]
    (old,) = RunRecord.from_dict(stored).rounds
    assert not old.cut
    assert old.plan.seconds is None


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
    store = MemoryStore()
    session = br.Session(br.Options(budget_s=5.0), clock=clock, store=store)
    try:
        session.run(workload)
    except (KeyboardInterrupt, WorkloadFailed):
        assert error is not None
    assert workload.closed == 1
