"""Laws of protocols.Workload, over every implementation within this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import SyntheticJob

from benchrigor.clocks import WallClock
from benchrigor.model import Round, RoundPlan
from benchrigor.protocols import LastingWorkload, Workload
from benchrigor.testing import FakeClock, SyntheticWorkload
from benchrigor.workloads import AmountWorkload, CallableWorkload, CommandWorkload, Pick
from benchrigor.workloads.recorder import RoundRecorder
from benchrigor.workloads.stepwise import StepwiseWorkload


class Counter:
    """A function that takes longer with each call, so that order shows."""

    def __init__(self) -> None:
        self.clock, self.calls = FakeClock(), 0

    def __call__(self) -> None:
        self.calls += 1
        self.clock.advance(100_000 + self.calls)

    def steps(self) -> Iterator[None]:
        while True:
            self()
            yield


def function() -> Workload:
    counter = Counter()
    return CallableWorkload(counter, clock=counter.clock)


def function_in_a_loop() -> Workload:
    counter = Counter()
    return CallableWorkload(counter, clock=counter.clock, inner=3)


def function_with_setup() -> Workload:
    counter = Counter()
    return CallableWorkload(counter, clock=counter.clock, setup=lambda: None, teardown=lambda: None)


def generator() -> Workload:
    counter = Counter()
    return StepwiseWorkload(counter.steps, clock=counter.clock)


def fresh_generator() -> Workload:
    counter = Counter()
    return StepwiseWorkload(counter.steps, clock=counter.clock, fresh=True)


def synthetic() -> Workload:
    return SyntheticWorkload(mean=1e-3, phi=0.5, clock=FakeClock())


def restarted_synthetic() -> Workload:
    return SyntheticWorkload(mean=1e-3, restarted=True, between_cv=0.1)


def function_of_an_amount() -> Workload:
    clock = FakeClock()
    return AmountWorkload(lambda work: clock.advance(work * 1_000), clock=clock)


def generator_of_an_amount() -> Workload:
    clock = FakeClock()

    def steps(work: int) -> Iterator[None]:
        for _ in range(work):
            clock.advance(1_000)
            yield

    return StepwiseWorkload(steps, clock=clock)


def synthetic_job() -> Workload:
    return SyntheticJob(speed=1e6, clock=FakeClock())


MEASURING = [function, function_in_a_loop, function_with_setup, generator, fresh_generator]
ALL = [*MEASURING, synthetic, restarted_synthetic]
OF_AMOUNTS = [function_of_an_amount, generator_of_an_amount, synthetic_job]
"""Each takes a microsecond per unit of work."""
few = settings(max_examples=12, deadline=None, derandomize=True)
plans = st.lists(st.integers(1, 200), min_size=1, max_size=4)


def rounds_of(workload: Workload, sizes: list[int]) -> list[Round]:
    rounds = []
    for index, readings in enumerate(sizes):
        plan, recorder = RoundPlan(index=index, readings=readings), RoundRecorder()
        workload.run(plan, recorder)
        rounds.append(recorder.finish(plan, elapsed_ns=0))
    return rounds


@pytest.mark.parametrize("make", [*ALL, *OF_AMOUNTS])
def test_it_is_a_workload(make: Callable[[], Workload]) -> None:
    assert isinstance(make(), Workload)


@pytest.mark.parametrize("make", ALL)
@given(sizes=plans)
@few
def test_work_accounted_is_work_planned(make: Callable[[], Workload], sizes: list[int]) -> None:
    rounds = rounds_of(make(), sizes)
    assert [each.unit_readings["time"].size for each in rounds] == sizes


@pytest.mark.parametrize("make", OF_AMOUNTS)
@given(amounts=plans, readings=st.integers(1, 300))
@few
def test_amounts_accounted_are_amounts_planned_whatever_readings_are(
    make: Callable[[], Workload], amounts: list[int], readings: int
) -> None:
    workload, done = make(), []
    for index, work in enumerate(amounts):
        plan = RoundPlan(index=index, work=work, readings=readings)
        recorder = RoundRecorder()
        workload.run(plan, recorder)
        finished = recorder.finish(plan, elapsed_ns=0)
        times = finished.unit_readings.get("time", [finished.readings.get("time", 0.0)])
        done.append(round(float(np.sum(times)) * 1e6))
    assert done == amounts


@pytest.mark.parametrize("make", MEASURING)
@given(sizes=plans)
@few
def test_readings_are_in_the_order_in_which_they_were_taken(
    make: Callable[[], Workload], sizes: list[int]
) -> None:
    readings = np.concatenate([each.unit_readings["time"] for each in rounds_of(make(), sizes)])
    assert np.all(np.diff(readings) > 0)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(each, marks=pytest.mark.slow) if each is function_with_setup else each
        for each in ALL
    ],
)
def test_a_plan_beyond_one_chunk_is_carried_out_whole(make: Callable[[], Workload]) -> None:
    (finished,) = rounds_of(make(), [70_000])
    assert finished.unit_readings["time"].size == 70_000


def command() -> LastingWorkload:
    """Prints two readings a round."""
    pick = Pick.parse("time=regex:u ([0-9]+)", unit_readings=True)
    return CommandWorkload(["sh", "-c", "echo u 3; echo u 5"], picks=[pick], clock=WallClock())


LASTING = [command]


@pytest.mark.parametrize("make", LASTING)
def test_one_that_lasts_may_be_closed_at_any_time_and_begins_anew(
    make: Callable[[], LastingWorkload],
) -> None:
    workload = make()
    assert isinstance(workload, LastingWorkload)
    workload.close()
    first = rounds_of(workload, [1, 7, 100])
    workload.close()
    workload.close()
    again = rounds_of(workload, [1, 7, 100])
    workload.close()
    for before, after in zip(first, again, strict=True):
        assert before.unit_readings["time"].tolist() == after.unit_readings["time"].tolist()
