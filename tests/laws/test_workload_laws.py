"""Laws of protocols.Workload, over every implementation within this process, and of Recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import SyntheticJob
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.model import Round, RoundPlan
from benchrigor.protocols import LastingWorkload, Recorder, Workload
from benchrigor.testing import FakeClock, SyntheticWorkload
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    CommandWorkload,
    Pick,
    RoundRecorder,
    StepwiseWorkload,
)


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


def counting(make: Callable[[Counter], Workload]) -> Callable[[], Workload]:
    """Return what makes a workload of a new counter."""
    return lambda: make(Counter())


def ticking(make: Callable[[FakeClock], Workload]) -> Callable[[], Workload]:
    """Return what makes a workload with a new clock."""
    return lambda: make(FakeClock())


def generator_of_an_amount(clock: FakeClock) -> Workload:
    def steps(work: int) -> Iterator[None]:
        for _ in range(work):
            clock.advance(1_000)
            yield

    return StepwiseWorkload(steps, clock=clock)


def with_setup(count: Counter) -> Workload:
    return CallableWorkload(count, clock=count.clock, setup=lambda: None, teardown=lambda: None)


MEASURING = {
    "function": counting(lambda count: CallableWorkload(count, clock=count.clock)),
    "function in a loop": counting(
        lambda count: CallableWorkload(count, clock=count.clock, inner=3)
    ),
    "function with setup": counting(with_setup),
    "generator": counting(lambda count: StepwiseWorkload(count.steps, clock=count.clock)),
    "fresh generator": counting(
        lambda count: StepwiseWorkload(count.steps, clock=count.clock, fresh=True)
    ),
}
ALL = {
    **MEASURING,
    "synthetic": ticking(lambda clock: SyntheticWorkload(mean=1e-3, phi=0.5, clock=clock)),
    "restarted synthetic": lambda: SyntheticWorkload(mean=1e-3, restarted=True, between_cv=0.1),
}
OF_AMOUNTS = {  # each takes a microsecond per unit of work
    "function of an amount": ticking(
        lambda clock: AmountWorkload(lambda work: clock.advance(work * 1_000), clock=clock)
    ),
    "generator of an amount": ticking(generator_of_an_amount),
    "synthetic job": ticking(lambda clock: SyntheticJob(speed=1e6, clock=clock)),
}
few = settings(max_examples=12, deadline=None, derandomize=True)
plans = st.lists(st.integers(1, 200), min_size=1, max_size=4)


def rounds_of(workload: Workload, sizes: list[int]) -> list[Round]:
    return [run(workload, readings, index) for index, readings in enumerate(sizes)]


def test_each_is_a_workload() -> None:
    assert all(isinstance(make(), Workload) for make in (*ALL.values(), *OF_AMOUNTS.values()))


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
@given(sizes=plans)
@few
def test_work_accounted_is_work_planned(make: Callable[[], Workload], sizes: list[int]) -> None:
    rounds = rounds_of(make(), sizes)
    assert [each.unit_readings["time"].size for each in rounds] == sizes


@pytest.mark.parametrize("make", OF_AMOUNTS.values(), ids=OF_AMOUNTS)
@given(amounts=plans, readings=st.integers(1, 300))
@few
def test_amounts_accounted_are_amounts_planned_whatever_readings_are(
    make: Callable[[], Workload], amounts: list[int], readings: int
) -> None:
    workload, done = make(), []
    for index, work in enumerate(amounts):
        finished = run(workload, readings, index, work=work)
        times = finished.unit_readings.get("time", [finished.readings.get("time", 0.0)])
        done.append(round(float(np.sum(times)) * 1e6))
    assert done == amounts


@pytest.mark.parametrize("make", MEASURING.values(), ids=MEASURING)
@given(sizes=plans)
@few
def test_readings_are_in_the_order_in_which_they_were_taken(
    make: Callable[[], Workload], sizes: list[int]
) -> None:
    readings = np.concatenate([each.unit_readings["time"] for each in rounds_of(make(), sizes)])
    assert np.all(np.diff(readings) > 0)


@pytest.mark.parametrize(
    "make",
    ALL.values(),
    ids=ALL,
)
def test_a_plan_beyond_one_chunk_is_carried_out_whole(make: Callable[[], Workload]) -> None:
    (finished,) = rounds_of(make(), [70_000])
    assert finished.unit_readings["time"].size == 70_000


def test_one_that_lasts_may_be_closed_at_any_time_and_begins_anew() -> None:
    """It prints two readings a round."""
    pick = Pick.parse("time=regex:u ([0-9]+)", unit_readings=True)
    workload = CommandWorkload(["sh", "-c", "echo u 3; echo u 5"], picks=[pick], clock=WallClock())
    assert isinstance(workload, LastingWorkload)
    workload.close()
    first = rounds_of(workload, [1, 7, 100])
    workload.close()
    workload.close()
    again = rounds_of(workload, [1, 7, 100])
    workload.close()
    for before, after in zip(first, again, strict=True):
        assert before.unit_readings["time"].tolist() == after.unit_readings["time"].tolist()


# --- of `protocols.Recorder`: nothing is lost, order is kept, however it comes in chunks

chunks = st.lists(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5), min_size=1, max_size=8)


def test_it_is_a_recorder() -> None:
    assert isinstance(RoundRecorder(), Recorder)


@given(st.dictionaries(st.sampled_from("abc"), chunks, min_size=1))
def test_nothing_is_lost_and_order_is_kept(given_: dict[str, list[list[float]]]) -> None:
    recorder = RoundRecorder()
    for turn in range(8):  # the metrics take turns, as a workload with several of them would
        for name, parts in given_.items():
            if turn < len(parts):
                recorder.unit_readings(name, parts[turn])
    finished = recorder.finish(RoundPlan(index=0), 1)
    assert set(finished.unit_readings) == set(given_)
    for name, parts in given_.items():
        assert finished.unit_readings[name].tolist() == [value for part in parts for value in part]


@given(st.dictionaries(st.sampled_from("abc"), st.floats(-1e9, 1e9)))
def test_single_readings_come_out_as_they_went_in(given_: dict[str, float]) -> None:
    recorder = RoundRecorder()
    for name, value in given_.items():
        recorder.reading(name, value)
    assert recorder.finish(RoundPlan(index=0), 1).readings == given_


@given(chunks)
def test_a_cut_keeps_what_was_recorded(parts: list[list[float]]) -> None:
    recorder = RoundRecorder()
    for part in parts:
        recorder.unit_readings("a", part)
    assert not recorder.finish(RoundPlan(index=0), 1).cut
    recorder.cut()
    finished = recorder.finish(RoundPlan(index=0), 1)
    assert finished.cut
    assert finished.unit_readings["a"].tolist() == [value for part in parts for value in part]
