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
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.machine.run_delay import RunDelay
from benchrigor.model import Round
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    InterpreterWorkload,
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
    # Beside so little work another thread, as of the test's worker, may have done most of it.
    rounds = (timed(workload, 1, work=3) for _ in range(20))
    references = next((each.references for each in rounds if each.references is not None), None)
    assert references is not None
    assert 0.0 < references.busy[0] < 0.2 * 3 * NAP_S


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
