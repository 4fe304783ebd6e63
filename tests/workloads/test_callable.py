from __future__ import annotations

import functools
import gc
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simulated.rounds import run
from tests.texts.causes.workloads import failing_at

from benchrigor.errors import ClockFailed, WorkloadFailed
from benchrigor.model import Code, RoundPlan
from benchrigor.testing import FakeClock
from benchrigor.workloads import CallableWorkload, RoundRecorder


class Taking:
    """A function that takes the given durations, the last of them from then on."""

    def __init__(self, clock: FakeClock, *durations_ns: int) -> None:
        self.clock, self.durations_ns, self.calls = clock, durations_ns, 0

    def __call__(self) -> int:
        self.clock.advance(self.durations_ns[min(self.calls, len(self.durations_ns) - 1)])
        self.calls += 1
        return self.calls


@pytest.mark.parametrize("apart", [True, False])
def test_what_the_first_call_returned_is_taken(apart: bool) -> None:
    clock = FakeClock()
    taken: list[object] = []
    func = Taking(clock, 1_000)
    workload = CallableWorkload(
        func, clock=clock, inner=2, first_call_apart=apart, take_first=taken.append
    )
    finished = run(workload, 3)
    assert taken == [1]
    assert func.calls == 6 + apart
    assert finished.unit_readings["time"].tolist() == [1e-6] * 3


@pytest.mark.parametrize(
    ("apart", "inner", "bare"), [(False, 3, 9), (False, 1, 2), (True, 3, 9), (True, 1, 3)]
)
def test_nothing_is_between_a_counting_reading_of_several_calls_and_the_function(
    apart: bool, inner: int, bare: int
) -> None:
    callers: list[str] = []

    def func() -> None:
        callers.append(inspect.stack(0)[1].function)

    run(CallableWorkload(func, clock=FakeClock(), inner=inner, first_call_apart=apart), 3)
    assert len(callers) == 3 * inner + apart
    assert callers[-bare:] == ["time_loops" if inner > 1 else "time_calls"] * bare


@pytest.mark.parametrize(
    ("later_ns", "given", "choices"),
    [(50, None, 2), (2_500, None, 1), (50_000, None, 1), (50, 4, 1)],
)
def test_the_inner_loop_is_chosen_again_only_if_calls_become_much_faster(
    later_ns: int, given: int | None, choices: int
) -> None:
    clock = FakeClock()
    workload = CallableWorkload(Taking(clock, *[5_000] * 500, later_ns), clock=clock, inner=given)
    loops = {run(workload, 100, index).facts["inner_loop"] for index in range(3)}
    assert len(loops) == choices


def test_an_interrupted_call_does_not_pass_for_a_long_one() -> None:
    clock = FakeClock()
    workload = CallableWorkload(Taking(clock, 100, 3_000_000, 100), clock=clock)
    assert run(workload, 5).facts["inner_loop"] != 1


def test_a_clock_that_stands_still_is_given_up_after_a_bounded_number_of_calls() -> None:
    clock = FakeClock()
    func = Taking(clock, 0)
    with pytest.raises(ClockFailed, match="0 ns"):
        run(CallableWorkload(func, clock=clock), readings=1)
    assert func.calls < 2_000_000


def test_the_cost_of_the_clock_is_told_and_taken_off() -> None:
    clock = FakeClock(cost_ns=300)
    finished = run(CallableWorkload(Taking(clock, 24_700), clock=clock, inner=1), readings=10)
    assert finished.facts["clock_cost_s"] == 3e-7
    assert finished.facts["clock_resolution_s"] == 1e-9
    assert finished.unit_readings["time"] == pytest.approx(24.7e-6)
    (notice,) = finished.notices
    assert (notice.code, notice.severity) == (Code.CLOCK_COST, "note")
    assert notice.evidence == {"cost_s": 3e-7, "typical_s": 25e-6}


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt()])
def test_teardown_also_follows_a_failed_call(error: BaseException) -> None:
    torn_down = []
    workload = CallableWorkload(
        failing_at(2, error), clock=FakeClock(), teardown=lambda: torn_down.append(1)
    )
    with pytest.raises((WorkloadFailed, KeyboardInterrupt)):
        run(workload, readings=5)
    assert len(torn_down) == 3


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt()])
def test_calls_per_reading_are_chosen_again_after_a_failure_meanwhile(error: BaseException) -> None:
    clock = FakeClock()
    calls: list[int] = []

    def func() -> None:
        clock.advance(1_000)
        calls.append(1)
        if len(calls) == 4:
            raise error

    workload = CallableWorkload(func, clock=clock)
    with pytest.raises((WorkloadFailed, KeyboardInterrupt)):
        run(workload, readings=5)
    assert run(workload, readings=5).facts["inner_loop"] > 1


@pytest.mark.parametrize("policy", ["on", "off"])
@pytest.mark.parametrize("was_on", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_the_collector_is_ruled_inside_and_restored_after(
    policy: str, was_on: bool, fails: bool
) -> None:
    seen = set()

    def func() -> None:
        seen.add(gc.isenabled())
        if fails:
            raise ValueError

    (gc.enable if was_on else gc.disable)()
    try:
        workload = CallableWorkload(func, clock=FakeClock(), inner=1, gc=policy)
        if fails:
            with pytest.raises(WorkloadFailed):
                run(workload, readings=2)
        else:
            stated = run(workload, readings=2).facts["gc"]
            assert stated == ("on" if was_on and policy == "on" else "off")
        assert gc.isenabled() is was_on
    finally:
        gc.enable()
    assert seen == {was_on and policy == "on"}


def test_readings_go_out_in_bounded_chunks() -> None:
    sizes = []

    class Counting(RoundRecorder):
        def unit_readings(self, metric: str, values: Any) -> None:
            sizes.append(np.size(values))
            super().unit_readings(metric, values)

    workload = CallableWorkload(lambda: None, clock=FakeClock(cost_ns=20_000), inner=1)
    workload.run(RoundPlan(index=0, readings=150_000), Counting())
    assert sizes == [65_536, 65_536, 18_928]


def hashed(function: Callable[..., object]) -> str | None:
    return CallableWorkload(function, clock=FakeClock()).function_hash


def test_the_source_of_a_function_is_hashed_without_its_comments() -> None:
    def made(steps: int) -> Callable[[], object]:
        def work() -> int:
            return sum(range(steps))  # a comment

        return work

    def other() -> None:
        def work() -> int:
            return sum(range(steps))

        steps = 3
        assert hashed(work) == hashed(made(1))

    other()
    assert hashed(made(1)) == hashed(made(2)) is not None
    assert hashed(functools.lru_cache(made(1))) == hashed(made(1)) != hashed(other)


def test_of_a_lambda_only_itself_is_hashed() -> None:
    one, two = lambda: 3, 5
    again = [lambda: 3]
    assert hashed(one) == hashed(again[0]) is not None
    more = lambda: two  # noqa: E731
    assert hashed(more) not in {hashed(one), None}


def test_what_has_no_source_has_no_hash() -> None:
    namespace: dict[str, Any] = {}
    exec("def typed(): pass", namespace)  # noqa: S102  # as one typed in
    assert hashed(namespace["typed"]) is hashed(len) is hashed(object) is None
