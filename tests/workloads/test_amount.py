"""Rounds as recorders finish them; of an amount of work each is one call."""

from __future__ import annotations

import asyncio
import functools
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated.rounds import run

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, InvalidInput, WorkloadFailed
from benchrigor.machine.delays import RunDelay
from benchrigor.model import Round, RoundPlan
from benchrigor.testing import FakeClock
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    InterpreterWorkload,
    RoundRecorder,
    StepwiseWorkload,
)


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


PLAN = RoundPlan(index=3)


def test_what_is_measured_beside_readings_comes_in_chunks_or_at_once() -> None:
    recorder = RoundRecorder()
    for start in (0, 2):
        recorder.unit_readings("time", [0.1, 0.1])
        recorder.starts_ns([start, start + 1])
        recorder.delays([0.0, start])
    recorder.references({"command": [1.0] * 4})
    finished = recorder.finish(PLAN, 0)
    assert finished.starts_ns is not None
    assert finished.delays is not None
    assert finished.references is not None
    assert finished.starts_ns.tolist() == [0, 1, 2, 3]
    assert finished.delays.seconds["run queue"].tolist() == [0.0, 0.0, 0.0, 2.0]
    assert finished.references.seconds["command"].tolist() == [1.0] * 4


@pytest.mark.parametrize("values", ["abc", None, 3, [[1]], [math.nan], []])
@pytest.mark.parametrize("what", ["starts_ns", "delays", "references"])
def test_what_is_no_series_is_refused_when_it_arrives(what: str, values: object) -> None:
    recorder = RoundRecorder()
    with pytest.raises(InvalidInput, match=what):
        getattr(recorder, what)(values)
    assert getattr(recorder.finish(PLAN, 0), what) is None


NAP_S = 0.004


def work(seconds: float = NAP_S) -> None:
    """Use a processor for so long, however busy the machine is."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def half() -> None:
    work()
    time.sleep(NAP_S)


async def nap() -> None:
    await asyncio.sleep(NAP_S)


def naps() -> Iterator[None]:
    while True:
        time.sleep(NAP_S)
        yield


def in_thread() -> None:
    thread = threading.Thread(target=work, args=(5 * NAP_S,))
    thread.start()
    thread.join()


def in_child() -> None:
    argv = [sys.executable, "-I", "-S", "-c", "sum(range(3_000_000))"]
    subprocess.run(argv, check=True)


def in_sleeping_child() -> None:
    argv = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(0.3)"]
    subprocess.run(argv, check=True)


def timed(workload: Any, readings: int, **plan: Any) -> Round:
    workload.take_turns()
    return run(workload, readings, **plan)


def busy_of(finished: Round) -> float:
    """Return the processor time of a reading, in seconds."""
    references = finished.references
    assert references is not None
    return float(references.busy.sum() / references.stops[-1])


def share_of(finished: Round) -> float:
    """Return the share of work in the readings before the last reference."""
    references = finished.references
    assert references is not None
    calls = finished.facts.get("inner_loop", 1)
    seconds = finished.unit_readings["time"][: references.stops[-1]] * calls
    return float(references.busy.sum() / seconds.sum())


def made(kind: type, function: Callable[..., object], **given: Any) -> Any:
    meter = RunDelay()
    return kind(function, clock=WallClock(), meter=meter if meter.available else None, **given)


@pytest.mark.parametrize(
    ("workload", "most"),
    [
        (made(CallableWorkload, lambda: time.sleep(NAP_S)), 0.2),
        (made(CallableWorkload, lambda: time.sleep(0.00002), inner=50), 0.5),
        (made(CallableWorkload, nap), 0.35),
        (made(StepwiseWorkload, naps), 0.2),
        (made(CallableWorkload, lambda: time.sleep(NAP_S), setup=work), 0.2),
        (made(CallableWorkload, half), 0.6),
        (made(CallableWorkload, in_sleeping_child), 0.5),
    ],
    ids=["sleep", "loop", "coroutine", "steps", "setup", "half", "child"],
)
def test_a_sleep_is_no_work(workload: Any, most: float) -> None:
    readings = 4 if workload.name.endswith("child") else 60
    assert 0.0 < share_of(timed(workload, readings)) <= most


@pytest.mark.parametrize(
    ("function", "least_s"),
    [(work, NAP_S), (half, NAP_S), (in_thread, 5 * NAP_S), (in_child, 5 * NAP_S)],
)
def test_the_work_of_all_threads_and_of_ended_children_counts(
    function: Callable[[], None], least_s: float
) -> None:
    """However busy the machine is: what they wait for is not counted."""
    assert busy_of(timed(made(CallableWorkload, function), 12)) > 0.8 * least_s


def test_short_calls_are_work_together() -> None:
    began_s = time.thread_time()
    finished = timed(made(CallableWorkload, lambda: sorted(range(100))), 2_000)
    used_s = time.thread_time() - began_s
    assert finished.references is not None
    assert 0.3 * used_s < finished.references.busy.sum() < used_s


def test_a_work_amount_that_sleeps_is_no_work() -> None:
    workload = made(AmountWorkload, lambda amount: time.sleep(amount * NAP_S))
    # Beside so little work another thread, as of the test's worker, may have done most of it: then
    # nothing is known of a round, or no work is left.
    rounds = (timed(workload, 1, work=3).references for _ in range(20))
    busy_s = next((each.busy[0] for each in rounds if each is not None and each.busy[0]), None)
    assert busy_s is not None
    assert 0.0 < busy_s < 0.2 * 3 * NAP_S


def test_a_fresh_interpreter_tells_it_too(tmp_path: Path) -> None:
    (tmp_path / "naps.py").write_text(
        "import time\ndef nap(): time.sleep(0.004)\ndef work(): sum(range(200_000))\n"
    )
    nap, busy = (
        timed(InterpreterWorkload(f"naps:{name}", cwd=tmp_path), 40) for name in ("nap", "work")
    )
    assert share_of(nap) < 0.2
    assert busy_of(busy) > 0.001


def test_segments_without_a_reference_have_it_as_well() -> None:
    delays = run(made(CallableWorkload, half), 20).delays
    if delays is None:
        pytest.skip("nothing here counts how long threads wait")
    assert delays.busy.size == delays.stops.size
    assert np.all(delays.busy > 0.9 * NAP_S)
