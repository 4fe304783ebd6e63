"""What sessions make of their rounds: work amounts and durations, and detectors of the user."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ruptures as rpt
from shared_cases import analysed_again
from simulated.rounds import InRoundsOf

import benchrigor as br
from benchrigor import errors
from benchrigor.errors import DetectorFailed
from benchrigor.model import (
    ChangePoints,
    Code,
    Notice,
    RunRecord,
    StopReason,
)
from benchrigor.report import explain
from benchrigor.session import Engine
from benchrigor.stats import detect_changes
from benchrigor.stats.changepoints.ruptures_adapter import RupturesDetector
from benchrigor.testing import FakeClock, MemoryStore, StepWarmUp, SyntheticWorkload

SPEED = 50.0


def told(
    engine: Engine,
    *,
    overhead_s: float = 0.3,
    cv: float = 0.02,
    seed: int = 1,
    duration: Callable[[float], float] | None = None,
    **more: Any,
) -> list[br.Round]:
    """Drive an engine with durations around overhead + work / 50, until it stops."""
    rng = np.random.default_rng(seed)
    rounds = []
    while (plan := engine.ask()) is not None:
        assert plan.work is not None
        seconds = overhead_s + plan.work / SPEED if duration is None else duration(plan.work)
        seconds *= 1.0 + cv * rng.normal()
        given = {name: value(plan.work) for name, value in more.items()}
        rounds.append(br.Round(plan=plan, elapsed_ns=int(seconds * 1e9), **given))
        engine.tell(rounds[-1])
    return rounds


def wps(**options: Any) -> br.Options:
    return br.Options(**{"analysis": "wps", "target": 0.05, "budget_s": 60.0, **options})


def codes(record: br.RunRecord) -> set[str]:
    return {str(notice.code) for notice in record.notices}


def test_whole_ranges_give_whole_amounts_and_others_do_not() -> None:
    whole = told(Engine(wps(work=(0, 10_000)), seed=1))
    broken = told(Engine(wps(work=(0.5, 10_000.0)), seed=1))
    assert all(isinstance(each.plan.work, int) for each in whole)
    assert all(isinstance(each.plan.work, float) for each in broken)


def test_a_range_means_wps_and_without_one_amounts_grow_from_one() -> None:
    record = Engine(br.Options(work=(1, 10_000)), seed=1)
    told(record)
    assert record.result().estimate() is not None
    unbounded = Engine(br.Options(analysis="wps"), seed=1)
    first = unbounded.ask()
    assert first is not None
    assert first.work == 1
    told(unbounded)
    found = unbounded.result().estimate("speed")
    assert found is not None
    assert found.low <= SPEED <= found.high


def test_the_duration_is_the_reading_of_time_where_there_is_one() -> None:
    engine = Engine(wps(work=(10, 1000)), seed=1)
    rng = np.random.default_rng(2)
    while (plan := engine.ask()) is not None:
        assert plan.work is not None
        seconds = 1.0 + plan.work / SPEED * (1.0 + 0.02 * rng.normal())
        engine.tell(br.Round(plan=plan, elapsed_ns=0, readings={"time": seconds}))
    record = engine.result()
    found = record.estimate()
    assert found is not None
    assert found.low <= SPEED <= found.high
    assert [metric.name for metric in record.metrics] == ["speed"]


def test_other_readings_stand_beside_the_speed() -> None:
    engine = Engine(wps(work=(10, 1000)), seed=1)
    told(engine, readings=lambda work: {"hits": 0.1 * work})
    record = engine.result()
    assert [(each.name, each.must_satisfy) for each in record.metrics] == [
        ("speed", True),
        ("hits", False),
    ]


def test_amounts_too_small_for_a_unit_do_not_settle_what_is_measured() -> None:
    engine = Engine(br.Options(work=(1, 100_000), target=0.05), seed=1)
    for units in (0, 0, 40):
        plan = engine.ask()
        assert plan is not None
        given = {"time": np.full(units, 0.1)} if units else {}
        engine.tell(br.Round(plan=plan, elapsed_ns=10**6, unit_readings=given))
    assert [(each.name, each.must_satisfy) for each in engine.result().metrics] == [
        ("time", True),
        ("speed", False),
    ]


def test_a_maximum_that_stays_too_short_ends_with_an_error_that_says_so() -> None:
    engine = Engine(wps(work=(1, 100)), seed=1)
    with pytest.raises(errors.WorkTooShort, match="100") as caught:
        told(engine, duration=lambda work: work * 1e-6)
    assert "short_round_s" in str(caught.value)
    record = engine.result()
    assert record.decision is not None
    assert record.decision.reason is br.StopReason.WORK_TOO_SHORT
    assert len(record.rounds) <= 8
    assert record.estimate() is None
    assert "work-too-short" in codes(record)
    assert engine.ask() is None


@pytest.mark.parametrize("order", ["bisecting", "random"])
def test_a_session_finds_the_speed_by_subsessions(order: str) -> None:
    how = {"work": (0, 10_000), "work_order": order, "target": 0.02}
    engine = Engine(wps(method="subsessions", autocorrelation_limit=0.2, **how), seed=1)
    told(engine)
    record = engine.result()
    (analysis,), found = record.analyses, record.estimate()
    assert record.decision is not None
    assert record.decision.reason is br.StopReason.SATISFIED
    assert found is not None
    assert found.method == "wps-subsessions"
    assert found.low < SPEED < found.high
    assert analysis.wps is not None
    assert found.degrees_of_freedom == analysis.n_kept // analysis.wps.merged - 2


def test_readings_of_units_may_have_another_statistic_than_the_mean() -> None:
    rng = np.random.default_rng(4)
    engine = Engine(
        br.Options(work=(1, 2000), target=0.05, budget_s=60.0, statistic="median"), seed=1
    )
    told(engine, unit_readings=lambda work: {"time": rng.normal(1.0, 0.1, int(work))})
    record = engine.result()
    assert record.decision is not None
    assert record.decision.reason is br.StopReason.SATISFIED
    assert record.analysis("speed") is not None


def test_where_no_round_counts_there_is_a_refusal() -> None:
    engine = Engine(wps(work=(1, 10**9), max_rounds=3), seed=1)
    told(engine, duration=lambda work: work * 1e-6)
    record = engine.result()
    assert record.estimate() is None
    assert "too-few-readings" in codes(record)
    assert "0 rounds count" in str(record)


def test_pilots_are_no_sample_to_stop_on() -> None:
    engine = Engine(wps(work=(0, 10**9), target=0.5), seed=1)
    rounds = told(engine, cv=0.0001)
    assert engine.result().analyses[0].n_kept >= 15
    works = [each.plan.work or 0.0 for each in rounds][-15:]
    assert "ramp" not in codes(engine.result())
    assert max(works) > 3.0 * min(works)


@pytest.mark.parametrize("returned", [0, -5, math.nan, "many", (1, 2)])
def test_a_hook_that_returns_no_amount_ends_the_session(returned: Any) -> None:
    engine = Engine(wps(work=(10, 5000)), seed=1, next_work=lambda _: returned)
    assert engine.ask() is None
    record = engine.result()
    assert record.decision is not None
    assert record.decision.reason is br.StopReason.HOOK_FAILED


def test_a_stored_run_is_analysed_to_the_same_line() -> None:
    engine = Engine(wps(work=(0, 10_000)), seed=7)
    told(engine)
    record = engine.result()
    again = br.RunRecord.from_dict(record.to_dict())
    assert again.to_dict() == record.to_dict()
    cut_off = analysed_again(again)
    assert cut_off.to_dict()["analyses"][0] == record.to_dict()["analyses"][0]


@pytest.mark.slow
def test_a_run_of_amounts_of_ones_own_is_analysed_without_further_rounds() -> None:
    own = (40, 80, 160, 320, 5_000, 9_000, 20_000)
    engine = Engine(
        wps(work=(1, 100_000), target=1e-9, budget_s=1e6),
        seed=1,
        next_work=lambda plan: own[plan.index % 7],
    )
    rng = np.random.default_rng(2)
    for _ in range(50):
        plan = engine.ask()
        assert plan is not None
        assert plan.work is not None
        seconds = 0.05 + 0.001 * plan.work * rng.normal(1.0, 0.02)
        engine.tell(br.Round(plan=plan, elapsed_ns=int(seconds * 1e9)))
    record = engine.result()
    again = analysed_again(record)
    assert again.analyses[0].left_out == record.analyses[0].left_out
    assert again.estimate() == record.estimate()


def test_whoever_sees_every_round_still_stops_only_at_a_look() -> None:
    engine = Engine(wps(work=(10, 5000), target=0.2), seed=1)
    rounds = told(engine, cv=0.0001)
    counted = engine.result().analyses[0].n_kept
    assert counted >= 15
    assert len(rounds) <= 21 + 3  # further rounds do not count


# Readings are analysed once


def test_a_finished_session_looks_for_change_points_once_per_number_of_readings() -> None:
    sizes: list[int] = []

    def counting(values: np.ndarray) -> ChangePoints:
        sizes.append(len(values))
        return detect_changes(values)

    clock = FakeClock()
    workload = SyntheticWorkload(mean=0.001, cv=0.1, seed=3, clock=clock)
    session = br.Session(
        br.Options(target=0.005), seed=1, clock=clock, detector=counting, store=MemoryStore()
    )
    record = session.run(workload)
    session.result()
    assert len(sizes) > 2
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == record.readings().size


def test_what_is_noted_after_the_end_is_in_the_result() -> None:
    clock = FakeClock()
    session = br.Session(br.Options(target=0.05), seed=1, clock=clock)
    record = session.run(SyntheticWorkload(mean=0.001, cv=0.1, seed=3, clock=clock))
    assert session.result().to_dict() == record.to_dict()
    session.note(Notice.note(Code.RESUMED, "More."))
    assert "More." in {each.sentence for each in session.result().notices}


# Detectors


WARM_UP = 60
ESTIMATORS = {
    "Pelt": lambda: rpt.Pelt(model="l2"),
    "KernelCPD": lambda: rpt.KernelCPD(kernel="rbf"),
    "Binseg": lambda: rpt.Binseg(model="l2"),
}


def measured(detector: Any, *, restarted: bool = False, readings: int = 100) -> RunRecord:
    clock = FakeClock()
    workload = SyntheticWorkload(
        mean=0.002,
        cv=0.05,
        seed=7,
        clock=clock,
        restarted=restarted,
        warm_up=StepWarmUp(amplitude=0.5, length=WARM_UP),
    )
    options = br.Options(
        target=0.02,
        rounds="restarted" if restarted else "continuous",
        budget_readings=4 * readings,
    )
    return br.Session(options, seed=1, clock=clock, detector=detector).run(
        InRoundsOf(readings, workload)
    )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_of_ruptures_is_taken_as_it_is(name: str) -> None:
    record = measured(ESTIMATORS[name]())
    analysis, estimate = record.analysis(), record.estimate()
    assert analysis is not None
    (phase,) = analysis.phases
    assert phase.start == pytest.approx(WARM_UP, abs=5)
    assert phase.stop == analysis.n
    assert phase.change_points.level is None
    assert estimate is not None
    assert estimate.value == pytest.approx(0.002, rel=0.02)
    assert "Change point" in explain(record)
    assert RunRecord.from_dict(record.to_dict()).to_dict() == record.to_dict()


def test_a_bare_estimator_means_its_adapter_with_the_default_penalty() -> None:
    estimator = rpt.KernelCPD(kernel="rbf")
    bare, wrapped = (measured(each) for each in (estimator, RupturesDetector(estimator)))
    assert bare.to_dict()["analyses"] == wrapped.to_dict()["analyses"]
    deaf = measured(RupturesDetector(estimator, pen=1e6)).analysis()
    assert deaf is not None
    assert deaf.phases[0].change_points.indices == ()


def test_restarted_rounds_are_cut_one_by_one() -> None:
    analysis = measured(rpt.KernelCPD(kernel="linear"), restarted=True, readings=200).analysis()
    assert analysis is not None
    assert [phase.start for phase in analysis.phases] == [pytest.approx(WARM_UP, abs=3)] * 4


def test_an_estimator_is_not_changed_by_a_session() -> None:
    estimator = rpt.KernelCPD(kernel="rbf")
    measured(estimator)
    assert estimator.n_samples is None
    assert estimator.cost.gamma is None


def test_what_can_be_called_is_a_detector_even_if_it_could_be_fitted() -> None:
    class Both:
        def __call__(self, values: np.ndarray) -> ChangePoints:
            return ChangePoints(indices=(100,), n=values.size, level=0.5, inflation=1.0)

        def fit(self, signal: object) -> None:
            raise AssertionError

        def predict(self, pen: float) -> None:
            raise AssertionError

    analysis = measured(Both(), readings=250).analysis()
    assert analysis is not None
    assert analysis.phases[0].change_points.level == 0.5


def raising(_: object) -> ChangePoints:
    raise RuntimeError("out of ideas")


class Unable:
    def fit(self, signal: object) -> None: ...

    def predict(self, pen: float) -> list[int]:
        raise ValueError(pen)


FAILING: dict[str, Any] = {
    "raises": raising,
    "gives nothing": lambda _: None,
    "gives a list": lambda _: [5],
    "is of another series": lambda _: ChangePoints(indices=(), n=7, level=None, inflation=1.0),
    "is out of order": lambda values: ChangePoints(
        indices=(50, 20), n=len(values), level=None, inflation=1.0
    ),
    "cannot cut": RupturesDetector(Unable()),
}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("name", FAILING)
def test_a_detector_that_fails_loses_no_round(name: str, restarted: bool) -> None:
    with pytest.raises(DetectorFailed) as caught:
        measured(FAILING[name], restarted=restarted)
    record = caught.value.record
    assert isinstance(record, RunRecord)
    # At the first look: of each restarted round, or an early one, as the budget allows no other.
    assert record.readings().size == 100
    assert record.estimate() is None
    assert record.decision is not None
    assert record.decision.reason is StopReason.DETECTOR_FAILED
    assert RunRecord.from_dict(record.to_dict()).to_dict() == record.to_dict()
