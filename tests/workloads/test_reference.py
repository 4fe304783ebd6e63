"""The reference in turn with readings, and with commands: a bare start of the interpreter."""

import itertools
import sys

import pytest
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.testing import FakeClock, FakeMeter
from benchrigor.workloads import AmountWorkload, CallableWorkload, CommandWorkload, Pick
from benchrigor.workloads.command import ReferenceCommand
from benchrigor.workloads.processes.worker import Reference


def test_it_takes_real_time_and_is_due_again_after_half_a_millisecond():
    reference = Reference()
    assert 0 < reference.measure(0) < 50_000_000
    clock = FakeClock(cost_ns=1_000)
    stepping = Reference(clock.now_ns)
    stepping.measure(0)
    due_from = next(now for now in range(0, 10**7, 1_000) if stepping.is_due(now))
    last = clock.now_ns() - 1_000  # the read that ended it
    assert due_from - last == pytest.approx(500_000, abs=2_000)


def test_a_slow_machine_spends_a_twentieth_on_it_at_most():
    clock = FakeClock(cost_ns=1_000_000)  # each run seems to take a millisecond
    reference, last = Reference(clock.now_ns), clock.now_ns()
    assert not reference.is_due(last + 30_000_000)


def test_a_reference_that_was_delayed_itself_does_not_count(
    clock: FakeClock, meter: FakeMeter, monkeypatch: pytest.MonkeyPatch
):
    workload = CallableWorkload(lambda: clock.advance(1_000_000), clock=clock, inner=1, meter=meter)
    workload.take_turns()
    measure, calls = Reference.measure, itertools.count()

    def measured(reference: Reference, lasting_ns: int) -> int:
        if next(calls) == 4:
            meter.lose(3_000_000)
        return measure(reference, lasting_ns)

    monkeypatch.setattr(Reference, "measure", measured)
    finished = run(workload, readings=20)
    assert finished.references.stops.size == 19
    assert sum(finished.delays.seconds["run queue"]) == 0.0


def test_a_call_with_an_amount_is_followed_by_one(clock: FakeClock):
    workload = AmountWorkload(clock.advance, clock=clock)
    workload.take_turns()
    assert run(workload, work=5_000_000).references.stops.tolist() == [1]


def test_a_bare_start_is_timed_with_the_clock_of_the_command_and_then_not_due() -> None:
    clock = FakeClock(cost_ns=1000)
    reference = ReferenceCommand(clock, None)
    found = reference.measure(lasting_ns=0)
    assert found.keys() == {"command", "command cpu", "command rest"}
    assert found["command"] == pytest.approx(1e-6)
    assert 0.0 < found["command cpu"] < 1.0
    assert reference.measure(lasting_ns=0) == {}
    clock.sleep_ns(100_000)  # it took a few microseconds
    assert reference.measure(lasting_ns=0)


def test_where_there_is_no_interpreter_nothing_is_measured(monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert ReferenceCommand(WallClock(), None).measure(lasting_ns=0) == {}


def test_a_command_records_it_beside_its_own_time() -> None:
    workload = CommandWorkload(["true"], clock=FakeClock(cost_ns=1000))
    assert run(workload).references is None
    workload.take_turns()
    first, second = run(workload), run(workload)
    assert first.references is not None
    assert first.references.stops.tolist() == [1]
    assert first.readings == second.readings == {"time": pytest.approx(1e-6)}
    assert second.references is None  # not due
    picked = CommandWorkload(
        ["echo", "3"], picks=[Pick.parse("time:s=regex:(.+)")], clock=FakeClock(cost_ns=1000)
    )
    picked.take_turns()
    assert run(picked).references is None


def test_a_command_that_sleeps_is_told_from_one_that_only_runs() -> None:
    runs, sleeps = (
        run(CommandWorkload(argv, clock=FakeClock(cost_ns=1000))).facts["voluntary_switches"]
        for argv in (["true"], ["sleep", "0.001"])
    )
    assert runs <= 1 < sleeps
