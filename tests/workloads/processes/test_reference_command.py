"""A bare start of the interpreter is timed now and then, and is no part of what is measured."""

import sys

import pytest
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.model.pace import COMMAND, COMMAND_CPU, COMMAND_REST
from benchrigor.protocols import PacedWorkload
from benchrigor.testing import FakeClock
from benchrigor.workloads import CommandWorkload, Pick
from benchrigor.workloads.processes.reference_command import ReferenceCommand


def test_it_is_timed_with_the_clock_of_the_command_and_then_not_due() -> None:
    clock = FakeClock(cost_ns=1000)
    reference = ReferenceCommand(clock, None)
    found = reference.measure(lasting_ns=0)
    assert found.keys() == {COMMAND, COMMAND_CPU, COMMAND_REST}
    assert found[COMMAND] == pytest.approx(1e-6)
    assert 0.0 < found[COMMAND_CPU] < 1.0
    assert reference.measure(lasting_ns=0) == {}
    clock.sleep_ns(100_000)  # it took a few microseconds
    assert reference.measure(lasting_ns=0)


def test_it_is_repeated_after_a_long_command() -> None:
    clock = FakeClock(cost_ns=1000)
    reference = ReferenceCommand(clock, None)
    before_ns = clock.now_ns()
    reference.measure(lasting_ns=300_000)  # three hundred times its own
    assert clock.now_ns() - before_ns == 10_000  # 3 runs of 2, and 4 looks at the clock


def test_where_there_is_no_interpreter_nothing_is_measured(monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert ReferenceCommand(WallClock(), None).measure(lasting_ns=0) == {}


def test_a_command_records_it_beside_its_own_time() -> None:
    workload = CommandWorkload(["true"], clock=FakeClock(cost_ns=1000))
    assert isinstance(workload, PacedWorkload)
    assert run(workload).references is None
    workload.take_turns()
    first, second = run(workload), run(workload)
    assert first.references is not None
    assert first.references.stops.tolist() == [1]
    assert first.readings == second.readings == {"time": pytest.approx(1e-6)}
    assert second.references is None  # not due


def test_a_command_that_sleeps_is_told_from_one_that_only_runs() -> None:
    runs, sleeps = (
        run(CommandWorkload(argv, clock=FakeClock(cost_ns=1000))).facts["voluntary_switches"]
        for argv in (["true"], ["sleep", "0.001"])
    )
    assert runs <= 1 < sleeps


def test_a_time_that_is_picked_has_none() -> None:
    picks = [Pick.parse("time:s=regex:(.+)")]
    workload = CommandWorkload(["echo", "3"], picks=picks, clock=FakeClock(cost_ns=1000))
    workload.take_turns()
    assert run(workload).references is None
