"""What sessions make of their rounds: work amounts and durations, and detectors of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import ruptures as rpt
from shared_cases import analysed_again
from simulated.rounds import InRoundsOf
from tests.session.telling import TIME, engine_of, number, reason, recorded, steady, tell, told

import benchrigor as br
from benchrigor import errors
from benchrigor.model import ChangePoints, Delays, RoundPlan, RunRecord, StopReason
from benchrigor.session.engine import Engine
from benchrigor.session.subject import Subject
from benchrigor.stats import detect_changes
from benchrigor.testing import FakeClock, MemoryStore, StepWarmUp, SyntheticWorkload

SPEED = 50.0


def lasting(
    duration_s: Callable[[float], float] = lambda work: 0.3 + work / SPEED,
    *,
    cv: float = 0.02,
    **more: Callable[[float], object],
) -> Callable[[RoundPlan], Mapping[str, Any]]:
    """Give rounds that last as their work says, with noise."""
    rng = np.random.default_rng(1)

    def give(plan: RoundPlan) -> Mapping[str, Any]:
        assert plan.work is not None
        seconds = duration_s(plan.work) * (1.0 + cv * rng.normal())
        given = {name: value(plan.work) for name, value in more.items()}
        return {"elapsed_ns": int(seconds * 1e9), **given}

    return give


def wps(**options: Any) -> Engine[Subject]:
    given = {"analysis": "wps", "target": 0.05, "budget_s": 60.0, **options}
    return engine_of(br.Options(**given), seed=1)


def test_the_duration_is_the_reading_of_time_where_there_is_one() -> None:
    seconds = lasting(lambda work: 1.0 + work / SPEED)
    record = told(
        wps(work=(10, 1000)),
        lambda plan: {"elapsed_ns": 0, "readings": {"time": seconds(plan)["elapsed_ns"] / 1e9}},
    )
    assert number(record).low <= SPEED <= number(record).high
    assert [metric.name for metric in record.metrics] == ["speed"]


@pytest.mark.parametrize("order", ["bisecting", "random"])
def test_a_session_finds_the_speed_by_subsessions(order: str) -> None:
    how = {"work": (0, 10_000), "work_order": order, "target": 0.02}
    record = told(wps(method="subsessions", autocorrelation_limit=0.2, **how), lasting())
    (analysis,), found = record.analyses, number(record)
    assert reason(record) is StopReason.SATISFIED
    assert found.method == "wps-subsessions"
    assert found.low < SPEED < found.high
    assert analysis.wps is not None
    assert found.degrees_of_freedom == analysis.n_kept // analysis.wps.merged - 2


def test_a_run_of_amounts_of_ones_own_is_analysed_without_further_rounds() -> None:
    own = (40, 80, 160, 320, 5_000, 9_000, 20_000)
    options = br.Options(work=(1, 100_000), target=1e-9, budget_s=1e6, max_rounds=50)
    engine = engine_of(options, seed=1, next_work=lambda plan: own[plan.index % 7])
    record = told(engine, lasting(lambda work: 0.05 + 0.001 * work))
    again = analysed_again(record)
    assert again.analyses[0].left_out == record.analyses[0].left_out
    assert again.estimate() == record.estimate()


def test_whoever_sees_every_round_still_stops_only_at_a_look() -> None:
    record = told(wps(work=(10, 5000), target=0.2), lasting(cv=0.0001))
    assert record.analyses[0].n_kept >= 15
    assert len(record.rounds) <= 21 + 3  # further rounds do not count


# Readings are analysed once


def test_a_session_looks_for_change_points_once_per_number_of_readings() -> None:
    sizes: list[int] = []

    def counting(values: Any) -> ChangePoints:
        sizes.append(len(values))
        return detect_changes(values)

    clock = FakeClock()
    workload = SyntheticWorkload(mean=0.001, cv=0.1, seed=3, clock=clock)
    options = br.Options(target=0.005)
    session = br.Session(options, seed=1, clock=clock, detector=counting, store=MemoryStore())
    record = session.run(workload)
    session.result()
    assert len(sizes) > 2
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == record.readings().size


def test_interference_and_the_line_of_a_finished_session_are_worked_out_once() -> None:
    session = br.Session(br.Options(work=(10, 1000), target=0.05), seed=1, clock=FakeClock())
    give, still = lasting(), Delays(stops=[1], seconds={"run queue": [0.1]}, duration_s=[1.0])
    told(session, lambda plan: {**give(plan), "delays": still})
    first, again = session.result(), session.result()
    assert first.interference is again.interference is not None
    assert first.analyses is again.analyses
    assert first.analyses[0].wps is not None


# Detectors


WARM_UP = 60


def measured(detector: Any, *, rounds: Any = "continuous", readings: int = 100) -> RunRecord:
    clock = FakeClock()
    workload = SyntheticWorkload(
        mean=0.002,
        cv=0.05,
        seed=7,
        clock=clock,
        restarted=rounds == "restarted",
        warm_up=StepWarmUp(amplitude=0.5, length=WARM_UP),
    )
    options = br.Options(target=0.02, rounds=rounds, budget_readings=4 * readings)
    session = br.Session(options, seed=1, clock=clock, detector=detector)
    return session.run(InRoundsOf(readings, workload))


def test_an_estimator_of_ruptures_is_taken_as_it_is_and_not_changed() -> None:
    estimator = rpt.KernelCPD(kernel="rbf")
    record = measured(estimator)
    (analysis,) = record.analyses
    (phase,) = analysis.phases
    assert phase.start == pytest.approx(WARM_UP, abs=5)
    assert phase.stop == analysis.n
    assert phase.change_points.level is None
    assert number(record).value == pytest.approx(0.002, rel=0.02)
    assert RunRecord.from_dict(record.to_dict()).to_dict() == record.to_dict()
    assert estimator.n_samples is None
    assert estimator.cost.gamma is None


def test_restarted_rounds_are_cut_one_by_one() -> None:
    record = measured(rpt.KernelCPD(kernel="linear"), rounds="restarted", readings=200)
    found = [phase.start for phase in record.analyses[0].phases]
    assert found == [pytest.approx(WARM_UP, abs=3)] * 4


@pytest.mark.parametrize("rounds", ["continuous", "restarted"])
def test_a_detector_that_fails_loses_no_round(rounds: str) -> None:
    with pytest.raises(errors.DetectorFailed) as caught:
        measured(lambda _: None, rounds=rounds)
    record = caught.value.record
    assert isinstance(record, RunRecord)
    # At the first look: of each restarted round, or an early one, as the budget allows no other.
    assert record.readings().size == 100
    assert record.estimate() is None
    assert reason(record) is StopReason.DETECTOR_FAILED
    assert RunRecord.from_dict(record.to_dict()).to_dict() == record.to_dict()


# Each entry point takes a detector by name


LEVEL = 20.0


def by_session(*rounds: np.ndarray, **options: Any) -> br.RunRecord:
    """Tell a session the readings of what ends by itself, and return its record."""
    given = br.Options(detector="edm", target=None, **options)
    session = br.Session(given, (TIME,), clock=FakeClock())
    for values in rounds:
        tell(session, {"unit_readings": {"time": values}})
    session.engine.end(StopReason.EXHAUSTED)
    return session.result()


DOORS: dict[str, Callable[[np.ndarray], br.RunRecord]] = {
    "session": by_session,
    "file": lambda series: recorded(series, detector="edm"),
    "rounds": lambda series: recorded(*[series] * 6, detector="edm"),
}


def test_a_detector_cuts_longer_rounds_after_one_of_a_single_reading() -> None:
    sizes, draw = (1, 1, 50, 50, 1, 50), steady(36, level=LEVEL, cv=0.02)
    record = by_session(*map(draw, sizes), rounds="restarted")
    assert len(record.analyses[0].phases) == len(sizes)
    assert number(record).value == pytest.approx(LEVEL, rel=0.02)


@pytest.mark.parametrize("door", DOORS)
def test_one_segment_with_more_than_half_is_measured_whole_and_none_at_half(door: str) -> None:
    record = DOORS[door](np.repeat([30.0, 20.0], [30, 130]))
    phase = record.analyses[0].phases[0]
    assert (phase.start, phase.stop, phase.reason) == (30, 160, "longest segment")
    assert number(record).value == 20.0
    record = DOORS[door](np.repeat([30.0, 20.0], 100))
    assert record.estimate() is None
    assert record.analyses[0].phases[0].reason.name == "NO_DOMINANT_SEGMENT"


def test_each_function_that_measures_takes_a_detector() -> None:
    clock = FakeClock(resolution_ns=1)
    durations = np.random.default_rng(1).normal(1e6, 3e4, 4096)
    calls = iter(np.tile(durations, 100))

    def work() -> None:
        clock.advance(int(next(calls)))

    asked: dict[str, Any] = {"detector": "edm", "clock": clock}
    record = br.measure(work, **asked, batch=1, seed=1, budget_s=2.0)
    assert record.options.detector == "edm"
    assert record.analyses[0].phases[0].change_points.level is None
    many = br.measure_many({"work": work}, **asked, batch=1, budget_s=1.0)
    assert many["work"].options.detector == "edm"
    engines: list[Any] = []
    asked |= {"began": engines.append, "budget_s": 0.1}
    br.measure_pair(work, work, **asked)
    both = [SyntheticWorkload(restarted=True, seed=seed, clock=clock) for seed in (1, 2)]
    br.measure_pair(*both, **asked)
    assert [each.goal.options.detector for each in engines] == ["edm", "edm"]
