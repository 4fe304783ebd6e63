"""A function of an amount of work: a round is one call."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from simulated.rounds import run

import benchrigor as br
from benchrigor.errors import BenchrigorError, InvalidInput, WorkloadFailed
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
