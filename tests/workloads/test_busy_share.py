"""How much of a reading a processor worked: that share alone follows the pace of the machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchrigor.clocks import WallClock
from benchrigor.instrument.run_delay import RunDelay
from benchrigor.model import Round, RoundPlan
from benchrigor.testing import FakeClock, FakeMeter
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    InterpreterWorkload,
    RoundRecorder,
    StepwiseWorkload,
)

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
    argv = [sys.executable, "-I", "-S", "-c", "sum(range(2_000_000))"]
    subprocess.run(argv, check=True)


def in_sleeping_child() -> None:
    argv = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(0.3)"]
    subprocess.run(argv, check=True)


def timed(workload: Any, readings: int, **plan: Any) -> Round:
    workload.take_turns()
    planned, recorder = RoundPlan(index=0, readings=readings, **plan), RoundRecorder()
    workload.run(planned, recorder)
    return recorder.finish(planned, elapsed_ns=1)


def share_of(finished: Round) -> float:
    """Return the share of work in the readings before the last reference, without their delay."""
    references = finished.references
    assert references is not None
    calls = finished.facts.get("inner_loop", 1)
    seconds = finished.unit_readings["time"][: references.stops[-1]] * calls
    waited = 0.0
    if (delays := finished.delays) is not None:
        here = delays.stops <= references.stops[-1]
        waited = float(sum(each[here].sum() for each in delays.seconds.values()))
    return float(references.busy.sum() / (seconds.sum() - waited))


def made(kind: type, function: Callable[..., object], **given: Any) -> Any:
    meter = RunDelay()
    return kind(function, clock=WallClock(), meter=meter if meter.available else None, **given)


@pytest.mark.parametrize(
    ("workload", "low", "high"),
    [
        (made(CallableWorkload, lambda: time.sleep(NAP_S)), 0.0, 0.2),
        (made(CallableWorkload, lambda: time.sleep(0.00002), inner=50), 0.0, 0.5),
        (made(CallableWorkload, nap), 0.0, 0.35),
        (made(StepwiseWorkload, naps), 0.0, 0.2),
        (made(CallableWorkload, lambda: time.sleep(NAP_S), setup=work), 0.0, 0.2),
        (made(CallableWorkload, work), 0.9, 1.1),
        (made(CallableWorkload, lambda: sorted(range(100))), 0.9, 1.1),
        (made(CallableWorkload, half), 0.3, 0.6),
        (made(CallableWorkload, in_sleeping_child), 0.0, 0.5),
    ],
    ids=["sleep", "loop", "coroutine", "steps", "setup", "work", "short", "half", "sleeping child"],
)
def test_a_sleep_is_no_work(workload: Any, low: float, high: float) -> None:
    readings = 4 if workload.name.endswith("child") else 60
    assert low <= share_of(timed(workload, readings)) <= high


@pytest.mark.parametrize("function", [in_thread, in_child])
def test_the_work_of_threads_and_children_counts(function: Callable[[], None]) -> None:
    """On a busy machine they wait, which nobody counts."""
    finished = timed(made(CallableWorkload, function), 12)
    own = made(CallableWorkload, lambda: time.sleep(NAP_S))
    assert share_of(finished) > max(0.2, 2.0 * share_of(timed(own, 12)))


def test_a_work_amount_that_sleeps_is_no_work() -> None:
    workload = made(AmountWorkload, lambda amount: time.sleep(amount * NAP_S))
    references = timed(workload, 1, work=3).references
    assert references is not None
    assert 0.0 < references.busy[0] < 0.2 * 3 * NAP_S


def test_a_fresh_interpreter_tells_it_too(tmp_path: Path) -> None:
    (tmp_path / "naps.py").write_text(
        "import time\ndef nap(): time.sleep(0.004)\ndef work(): sum(range(100_000))\n"
    )
    nap, work = (
        share_of(timed(InterpreterWorkload(f"naps:{name}", cwd=tmp_path), 40))
        for name in ("nap", "work")
    )
    assert nap < 0.2
    assert work > 0.9


def test_segments_without_a_reference_have_it_as_well() -> None:
    workload = made(CallableWorkload, half)
    planned, recorder = RoundPlan(index=0, readings=20), RoundRecorder()
    workload.run(planned, recorder)
    delays = recorder.finish(planned, elapsed_ns=1).delays
    if delays is None:
        pytest.skip("nothing here counts how long threads wait")
    assert delays.busy.size == delays.stops.size
    assert np.all(delays.busy > 0.9 * NAP_S)


def test_simulated_time_has_no_processor_time(clock: FakeClock, meter: FakeMeter) -> None:
    workload = CallableWorkload(lambda: clock.advance(4_000_000), clock=clock, meter=meter)
    planned, recorder = RoundPlan(index=0, readings=5), RoundRecorder()
    workload.run(planned, recorder)
    delays = recorder.finish(planned, elapsed_ns=1).delays
    assert delays is not None
    assert delays.busy is None
