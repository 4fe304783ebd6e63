"""The run delay of the calling thread: of a made-up kernel, and of this one under load."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchrigor.machine.run_delay import RunDelay

SCHEDSTAT = "proc/thread-self/schedstat"
real = pytest.mark.skipif(not RunDelay().available, reason=RunDelay().reason)


def test_it_is_the_second_number(write) -> None:
    meter = RunDelay(root=write({SCHEDSTAT: "100 250 3\n"}))
    assert meter.available
    assert meter.delay_ns() == 250
    write({SCHEDSTAT: "100 700 3\n"})
    assert meter.delay_ns() == 700


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "No such file"),
        ({SCHEDSTAT: "0 0 0\n"}, "the kernel does not count"),
        ({SCHEDSTAT: "what\n"}, "cannot be understood"),
    ],
    ids=["absent", "idle", "foreign"],
)
def test_where_nothing_is_counted_it_is_zero_and_says_why(write, files, reason) -> None:
    meter = RunDelay(root=write({"proc/stat": "", **files}))
    assert not meter.available
    assert reason in meter.reason
    assert meter.delay_ns() == 0


def test_what_cannot_be_read_once_has_not_grown(write) -> None:
    meter = RunDelay(root=write({SCHEDSTAT: "100 250 3\n"}))
    meter.delay_ns()
    write({SCHEDSTAT: ""})
    assert meter.delay_ns() == 250


def test_a_forked_process_reads_its_own(write, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write({SCHEDSTAT: "100 250 3\n"})
    meter = RunDelay(root=root)
    (root / SCHEDSTAT).unlink()
    write({SCHEDSTAT: "10 20 1\n"})
    assert meter.delay_ns() == 250
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert meter.delay_ns() == 20


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.alone
@real
def test_each_thread_has_a_file_of_its_own_until_it_ends() -> None:
    meter = RunDelay()
    meter.delay_ns()
    before = descriptors()
    inside: list[int] = []

    def ask() -> None:
        meter.delay_ns()
        inside.append(descriptors())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert inside == [before + 1]
    assert descriptors() == before


@pytest.mark.slow
@real
def test_a_neighbour_on_the_same_processor_shows() -> None:
    allowed = os.sched_getaffinity(0)
    shared = {min(allowed)}
    code = f"import os\nos.sched_setaffinity(0, {shared})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as neighbour:
        try:
            os.sched_setaffinity(0, shared)
            assert neighbour.stdout is not None
            neighbour.stdout.readline()
            meter = RunDelay()
            began_ns, before_ns = time.perf_counter_ns(), meter.delay_ns()
            while (wall_ns := time.perf_counter_ns() - began_ns) < 400_000_000:
                pass
            waited_ns = meter.delay_ns() - before_ns
        finally:
            neighbour.kill()
            os.sched_setaffinity(0, allowed)
    # Half of the time when both are treated alike; the rest of the machine may take more.
    assert 0.1 * wall_ns < waited_ns <= wall_ns


def test_nothing_is_imported_that_is_heavy() -> None:
    code = "import sys, benchrigor.machine.run_delay; print('numpy' in sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "False"
