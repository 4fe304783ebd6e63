"""The run delay of the calling thread: of a made-up kernel, and of this one under load."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchrigor.instrument import RunDelay

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


@pytest.mark.parametrize(
    ("own_ticks", "used_ticks", "delay_ns"),
    [
        pytest.param(100, (90, 10, 0, 0), 40, id="alone"),
        pytest.param(0, (2, 0, 0, 0), 40, id="within-a-tick-or-two"),
        pytest.param(100, (110, 10, 0, 0), 40, id="little-beside"),
        pytest.param(100, (120, 30, 0, 0), None, id="threads"),
        pytest.param(100, (90, 10, 30, 20), None, id="children"),
    ],
)
def test_a_main_thread_stands_for_a_process_if_it_did_the_work(
    write, own_ticks, used_ticks, delay_ns
) -> None:
    own_ns = own_ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    stat = f"77 (a ) b) Z 1 2 3 4 5 6 7 8 9 10 {' '.join(map(str, used_ticks))} 20 0 1\n"
    files = {"proc/77/schedstat": f"{own_ns} 40 2\n", "proc/77/stat": stat}
    meter = RunDelay(root=write({SCHEDSTAT: "1 1 1\n", **files}))
    assert meter.delay_of(77) == delay_ns
    assert meter.delay_of(78) is None


@real
@pytest.mark.parametrize("elsewhere", [False, True], ids=["main-thread", "grandchild"])
def test_the_delay_of_a_child_is_that_of_its_main_thread(elsewhere) -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])"
    child = subprocess.Popen([sys.executable, "-S", "-c", code if elsewhere else burn])
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert (RunDelay().delay_of(child.pid) is None) == elsewhere
    finally:
        child.wait()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


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
    code = "import sys, benchrigor.instrument.run_delay; print('numpy' in sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "False"


def test_its_root_may_be_nowhere() -> None:
    assert RunDelay(root=Path("/nowhere")).delay_of(1) is None
