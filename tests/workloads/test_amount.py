from __future__ import annotations

import functools
import gc
from typing import Any

import pytest

from benchrigor.errors import ClockFailed, InvalidInput, WorkloadFailed
from benchrigor.model import Code, Round, RoundPlan
from benchrigor.protocols import Workload
from benchrigor.testing import FakeClock
from benchrigor.workloads import RoundRecorder
from benchrigor.workloads.amount import AmountWorkload, takes_amount


class Job:
    """Takes a microsecond per unit of work, after a millisecond; remembers the amounts."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.amounts: list[Any] = []

    def __call__(self, amount: float) -> None:
        self.amounts.append(amount)
        self.clock.advance(1_000_000 + round(amount * 1_000))


def run(workload: AmountWorkload, work: float | None, index: int = 0) -> Round:
    plan, recorder = RoundPlan(index=index, work=work, readings=7), RoundRecorder()
    workload.run(plan, recorder)
    return recorder.finish(plan, elapsed_ns=0)


def test_it_is_a_workload() -> None:
    assert isinstance(AmountWorkload(print, clock=FakeClock()), Workload)


def test_a_round_is_one_call_with_the_work_amount_in_seconds() -> None:
    clock = FakeClock()
    job = Job(clock)
    workload = AmountWorkload(job, clock=clock)
    rounds = [run(workload, work, index) for index, work in enumerate((500, 10**12, 2.5, 500))]
    assert [each.readings for each in rounds] == [
        {"time": 0.0015},
        {"time": 1_000_000.001},
        {"time": 0.0010025},
        {"time": 0.0015},
    ]
    assert not any(each.unit_readings for each in rounds)
    assert job.amounts == [500, 10**12, 2.5, 500]
    assert [type(amount) for amount in job.amounts] == [int, int, float, int]


def test_the_first_round_is_not_called_twice() -> None:
    clock = FakeClock()
    job = Job(clock)
    run(AmountWorkload(job, clock=clock), 3)
    assert job.amounts == [3]


def test_the_facts_say_how_it_was_measured() -> None:
    clock = FakeClock(resolution_ns=100, cost_ns=200)
    finished = run(AmountWorkload(Job(clock), clock=clock), 1)
    assert finished.facts == {"clock_resolution_s": 1e-7, "clock_cost_s": 2e-7, "gc": "on"}


def test_setup_and_teardown_are_not_timed() -> None:
    clock = FakeClock()
    calls: list[str] = []

    def job(amount: float) -> None:
        calls.append(f"job {amount}")
        clock.advance(1_000_000)

    workload = AmountWorkload(
        job,
        clock=clock,
        setup=lambda: (calls.append("setup"), clock.advance(10**9)),
        teardown=lambda: (calls.append("teardown"), clock.advance(10**9)),
    )
    assert run(workload, 5).readings == {"time": 0.001}
    assert calls == ["setup", "job 5", "teardown"]


def test_teardown_runs_after_a_failure_too() -> None:
    calls: list[str] = []

    def job(amount: float) -> None:
        raise ValueError("boom")

    workload = AmountWorkload(job, clock=FakeClock(), teardown=lambda: calls.append("teardown"))
    with pytest.raises(WorkloadFailed, match="boom"):
        run(workload, 5)
    assert calls == ["teardown"]


def failing(*_: object) -> None:
    raise ValueError("boom")


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"func": failing}, r"^\S*failing\(64\) raised ValueError: boom \(at reading 3\)"),
        ({"setup": failing}, r"^setup of \S*<lambda>\(64\) raised ValueError: boom"),
        ({"teardown": failing}, r"^teardown of \S*<lambda>\(64\) raised ValueError: boom"),
    ],
    ids=["func", "setup", "teardown"],
)
def test_what_fails_is_named_with_the_amount(parts: dict[str, Any], named: str) -> None:
    workload = AmountWorkload(**{"func": lambda amount: amount, "clock": FakeClock(), **parts})
    with pytest.raises(WorkloadFailed, match=named) as caught:
        run(workload, 64, index=3)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_function_that_leaves_python_is_a_failed_workload() -> None:
    def leave(amount: float) -> None:
        raise SystemExit(0)

    with pytest.raises(WorkloadFailed, match=r"leave\(2\) raised SystemExit"):
        run(AmountWorkload(leave, clock=FakeClock()), 2)


def test_a_clock_that_goes_backwards_is_named_with_the_round() -> None:
    clock = FakeClock()
    workload = AmountWorkload(lambda _: clock.advance(-5), clock=clock)
    with pytest.raises(ClockFailed, match="backwards by 5 ns at reading 2"):
        run(workload, 1, index=2)


def test_a_clock_of_nanoseconds_that_stands_still_is_named() -> None:
    with pytest.raises(ClockFailed, match=r"stood still while \S*<lambda>\(9\) ran"):
        run(AmountWorkload(lambda amount: amount, clock=FakeClock()), 9)


def test_a_coarse_clock_may_show_no_time_for_a_small_amount() -> None:
    clock = FakeClock(resolution_ns=10_000_000)
    workload = AmountWorkload(Job(clock), clock=clock)
    assert run(workload, 1).readings == {"time": 0.0}


def test_the_clock_is_judged_by_amounts_that_come_again_only() -> None:
    clock = FakeClock(resolution_ns=100_000)
    workload = AmountWorkload(Job(clock), clock=clock)
    assert [run(workload, work).notices for work in (1, 2, 4, 8)] == [()] * 4
    (notice,) = run(workload, 8).notices
    assert notice.code is Code.COARSE_CLOCK
    assert run(workload, 8).notices == ()


@pytest.mark.parametrize(("policy", "inside"), [("on", True), ("off", False)])
def test_the_collector_is_kept_off_on_request(policy: str, inside: bool) -> None:
    clock, seen = FakeClock(), []

    def job(amount: float) -> None:
        seen.append(gc.isenabled())
        clock.advance(1_000)

    finished = run(AmountWorkload(job, clock=clock, gc=policy), 1)
    assert seen == [inside]
    assert finished.facts["gc"] == policy
    assert gc.isenabled()


def test_a_plan_without_an_amount_is_refused_before_anything_runs() -> None:
    job = Job(FakeClock())
    workload = AmountWorkload(job, clock=job.clock, setup=failing)
    with pytest.raises(InvalidInput, match=r"Job takes a work amount.*Options\(work=\(low, high\)"):
        run(workload, None)
    assert job.amounts == []


def test_all_parameters_that_do_not_fit_are_named() -> None:
    with pytest.raises(InvalidInput, match="3 problems") as caught:
        AmountWorkload(3, clock=FakeClock(), setup=4, gc="maybe")  # type: ignore[arg-type] # wrong on purpose
    assert "func is 3, expected a function of an amount" in str(caught.value)
    assert "setup is 4" in str(caught.value)
    assert "gc is 'maybe'" in str(caught.value)


class Methods:
    def one(self, amount: float) -> None: ...

    @staticmethod
    def static(amount: float) -> None: ...


def two(first: float, second: float) -> None: ...


@pytest.mark.parametrize(
    ("func", "takes"),
    [
        (lambda n: n, True),
        (lambda n, more=1: (n, more), True),
        (lambda n, *more, **named: (n, more, named), True),
        (Methods().one, True),
        (Methods.static, True),
        (functools.partial(two, 1), True),
        (len, True),
        (lambda: None, False),
        (lambda n=1: n, False),
        (lambda *n: n, False),
        (lambda *, n: n, False),
        (lambda n, *, m: (n, m), False),
        (two, False),
        (functools.partial(two, 1, 2), False),
        (functools.partial(two, second=1, first=2), False),
        (print, False),
        (next, False),
        (dict, False),
    ],
)
def test_a_function_with_one_argument_that_must_be_given_takes_amounts(
    func: Any, takes: bool
) -> None:
    assert takes_amount(func) is takes
