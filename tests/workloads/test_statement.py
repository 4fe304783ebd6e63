"""Statements stand in the timed loop itself; steps are readings."""

from __future__ import annotations

import dis
import timeit
from collections.abc import Iterator

import numpy as np
import pytest
from simulated.rounds import run

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Round, RoundPlan
from benchrigor.testing import FakeClock
from benchrigor.workloads import RoundRecorder, StatementWorkload, StepwiseWorkload
from benchrigor.workloads.processes import worker
from benchrigor.workloads.statement import _compile
from benchrigor.workloads.timing import Stopwatch


def loop_of(function):
    """Return the instructions of a function's loop, without the name of its variable.

    Before it, a call stands in a loop of its own, once.
    """
    steps = [*dis.get_instructions(function)]
    loops = [place for place, step in enumerate(steps) if step.opname == "FOR_ITER"]
    first = loops["_benchrigor_made" in function.__code__.co_varnames]
    start, stop = steps[first + 2].offset, steps[first].argval

    def shown(step):
        if step.opcode in dis.hasjrel:
            return step.argval - start
        return getattr(step.argval, "co_name", step.argrepr)

    return [(step.opname, shown(step)) for step in steps if start <= step.offset < stop]


@pytest.mark.parametrize(
    ("setup", "statement"),
    [
        ("", "pass"),
        ("x = 1", "x + 1"),
        ("rows = [3, 1, 2]", "[row * 2 for row in rows]"),
        ("", "for i in range(5):\n  str(i)\nx = 'a'.upper()"),
        ("def double(x):\n  return 2 * x", "double(4)"),
    ],
)
def test_what_is_timed_are_the_instructions_that_timeit_times(setup, statement):
    ours, timeits = _compile(statement, setup), timeit.Timer(statement, setup).inner
    assert loop_of(ours) == loop_of(timeits)


@pytest.mark.parametrize("quoted", ["'''a\n  b'''", '"""a\n  b"""', r"'it\'s'", "'# no comment'"])
def test_text_in_quotes_stays_as_it_is(quoted):
    statement = f"for _ in (0,):\n    assert {quoted} == expected"
    setup = f"expected = {quoted}"
    assert run(StatementWorkload(statement, setup=setup, clock=FakeClock(cost_ns=9), inner=2))


@pytest.mark.parametrize("nothing", ["", "  ", "# only a comment", "'only text'"])
def test_a_statement_may_do_nothing(nothing):
    assert run(StatementWorkload(nothing, clock=FakeClock(cost_ns=9), inner=2))


@pytest.mark.parametrize("statement", ["for", "  x = 1\ny = 2"])
def test_what_is_no_python_is_refused(statement):
    for given in ({"statement": statement}, {"statement": "1", "setup": statement}):
        with pytest.raises(InvalidInput):
            StatementWorkload(clock=FakeClock(), **given)


def microseconds(finished: Round) -> list[int]:
    return [round(reading * 1e6) for reading in finished.unit_readings["time"]]


class Steps:
    """Makes generators whose steps take 100, 101, 102, ... µs."""

    def __init__(self, clock: FakeClock, length: int = 10**9) -> None:
        self.clock, self.length = clock, length
        self.made = self.closed = 0

    def __call__(self) -> Iterator[str]:
        self.made += 1
        try:
            for step in range(self.length):
                self.clock.advance((100 + step) * 1_000)
                yield "ignored"
        finally:
            self.closed += 1


def test_what_an_ended_generator_gave_is_kept_and_its_end_is_told() -> None:
    clock = FakeClock()
    workload = StepwiseWorkload(Steps(clock, length=5), clock=clock)
    run(workload, 3)
    finished = run(workload, 3, index=1)
    assert microseconds(finished) == [103, 104]
    (notice,) = finished.notices
    assert notice.code is Code.EXHAUSTED
    assert notice.evidence == {"taken": 2, "wanted": 3}


@pytest.mark.parametrize("chunk", [3, 100])
def test_a_generator_that_has_no_more_says_so_before_recording(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CHUNK", chunk)
    clock = FakeClock()
    workload = StepwiseWorkload(Steps(clock, length=6), clock=clock)
    assert run(workload, 6).n_readings == 6
    recorder = RoundRecorder()
    plan = RoundPlan(index=1, readings=3)
    with pytest.raises(StopIteration):
        workload.run(plan, recorder)
    finished = recorder.finish(plan, elapsed_ns=0)
    assert (finished.n_readings, finished.facts, finished.notices) == (0, {}, ())


def test_a_generator_may_end_at_the_border_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "CHUNK", 3)
    clock = FakeClock()
    finished = run(StepwiseWorkload(Steps(clock, length=6), clock=clock), 10)
    assert microseconds(finished) == [100, 101, 102, 103, 104, 105]
    assert [notice.code for notice in finished.notices] == [Code.EXHAUSTED]


class WorkSteps:
    """Makes generators that yield once for every two units of work, each of which takes 1 µs."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.amounts: list[float] = []
        self.closed = 0

    def __call__(self, work: int) -> Iterator[None]:
        self.amounts.append(work)
        try:
            for _ in range(work // 2):
                self.clock.advance(2_000)
                yield
        finally:
            self.closed += 1


def test_a_generator_of_a_work_amount_is_refused_without_one() -> None:
    steps = WorkSteps(FakeClock())
    with pytest.raises(InvalidInput):
        run(StepwiseWorkload(steps, clock=steps.clock))
    assert steps.amounts == []


@pytest.mark.parametrize("step_ns", [54, 900, 20_000])
def test_what_the_clock_adds_to_a_step_is_taken_off(step_ns: int) -> None:
    clock = FakeClock(cost_ns=97)

    def steps() -> Iterator[None]:
        while True:
            clock.advance(step_ns)
            yield

    taken = run(StepwiseWorkload(steps, clock=clock), 50).unit_readings["time"]
    assert taken == pytest.approx(np.full(50, step_ns / 1e9))


class PacedClock(FakeClock):
    """A clock of a machine that may become slower."""

    def change_pace(self, factor: float) -> None:
        self._cost_ns = round(self._cost_ns * factor)


def test_the_cost_of_the_clock_is_that_at_the_pace_of_the_readings() -> None:
    clock = PacedClock(cost_ns=100)
    stopwatch = Stopwatch(clock)
    clock.change_pace(1.5)
    assert stopwatch.without_cost(np.array([100e-6]), 1)[0] == pytest.approx(99.9e-6)
    short = np.array([204e-9, 140e-9, 214e-9])
    assert stopwatch.without_cost(short, 1).tolist() == pytest.approx([54e-9, 0.0, 64e-9])
    assert stopwatch.without_cost(np.array([1e-6]), 150)[0] == pytest.approx(0.999e-6)
