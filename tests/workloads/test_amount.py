"""A function of an amount of work: a round is one call."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from simulated.rounds import run

import benchrigor as br
from benchrigor.errors import BenchrigorError, InvalidInput, WorkloadFailed
from benchrigor.model import Code
from benchrigor.testing import FakeClock
from benchrigor.workloads import AmountWorkload


class Job:
    """Takes a microsecond per unit of work, after a millisecond; remembers the amounts."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.amounts: list[Any] = []

    def __call__(self, amount: float) -> None:
        self.amounts.append(amount)
        self.clock.advance(1_000_000 + round(amount * 1_000))


def test_a_round_is_one_call_with_the_work_amount_in_seconds() -> None:
    clock = FakeClock()
    job = Job(clock)
    workload = AmountWorkload(job, clock=clock)
    amounts = (500, 10**12, 2.5, 500)
    rounds = [run(workload, index=index, work=work) for index, work in enumerate(amounts)]
    assert [each.readings for each in rounds] == [
        {"time": 0.0015},
        {"time": 1_000_000.001},
        {"time": 0.0010025},
        {"time": 0.0015},
    ]
    assert not any(each.unit_readings for each in rounds)
    assert job.amounts == [500, 10**12, 2.5, 500]
    assert [type(amount) for amount in job.amounts] == [int, int, float, int]


def test_the_facts_say_how_it_was_measured() -> None:
    clock = FakeClock(resolution_ns=100, cost_ns=200)
    finished = run(AmountWorkload(Job(clock), clock=clock, gc="off"), work=1)
    assert finished.facts == {"clock_resolution_s": 1e-7, "clock_cost_s": 2e-7, "gc": "off"}


@pytest.mark.parametrize("fails", [False, True])
def test_setup_and_teardown_stand_around_the_call_and_are_not_timed(fails: bool) -> None:
    clock = FakeClock()
    calls: list[object] = []

    def job(amount: float) -> None:
        calls.append(amount)
        clock.advance(1_000_000)
        if fails:
            raise ValueError("boom")

    workload = AmountWorkload(
        job,
        clock=clock,
        setup=lambda: (calls.append("setup"), clock.advance(10**9)),
        teardown=lambda: (calls.append("teardown"), clock.advance(10**9)),
    )
    if fails:
        with pytest.raises(WorkloadFailed) as caught:
            run(workload, work=5)
        assert isinstance(caught.value.__cause__, ValueError)
    else:
        assert run(workload, work=5).readings == {"time": 0.001}
    assert calls == ["setup", 5, "teardown"]


def test_a_coarse_clock_may_show_no_time_for_a_small_amount() -> None:
    clock = FakeClock(resolution_ns=10_000_000)
    workload = AmountWorkload(Job(clock), clock=clock)
    assert run(workload, work=1).readings == {"time": 0.0}


def test_the_clock_is_judged_by_amounts_that_come_again_only() -> None:
    clock = FakeClock(resolution_ns=100_000)
    workload = AmountWorkload(Job(clock), clock=clock)
    assert [run(workload, work=work).notices for work in (1, 2, 4, 8)] == [()] * 4
    (notice,) = run(workload, work=8).notices
    assert notice.code is Code.COARSE_CLOCK
    assert run(workload, work=8).notices == ()


def test_a_plan_without_an_amount_is_refused_before_anything_runs() -> None:
    job, made = Job(FakeClock()), []
    workload = AmountWorkload(job, clock=job.clock, setup=lambda: made.append(1))
    with pytest.raises(InvalidInput):
        run(workload)
    assert job.amounts == made == []


class Methods:
    def one(self, amount: float) -> None: ...

    @staticmethod
    def static(amount: float) -> None: ...


def two(first: float, second: float) -> None: ...


def is_refused(func: Any) -> bool:
    """Return whether a function cannot be measured with amounts of work."""
    try:
        br.measure(func, work=(1, 2), budget_s=0.001, clock=FakeClock())
    except InvalidInput:
        return True
    except BenchrigorError:
        return False
    return False


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
        (dict, False),
    ],
)
def test_a_function_with_one_argument_that_must_be_given_takes_amounts(
    func: Any, takes: bool
) -> None:
    assert is_refused(func) is not takes
