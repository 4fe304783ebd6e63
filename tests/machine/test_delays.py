"""Delays of threads, of processes with their descendants, and of the host, made up and real."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.machine.delays import HostDelays, ProcessTree, RunDelay, attribute_delay

MS = 1_000_000
SCHEDSTAT = "proc/thread-self/schedstat"
real = pytest.mark.skipif(not RunDelay().available, reason=RunDelay().reason)


@pytest.mark.parametrize(
    ("own_ms", "busy_ticks", "stolen_ms"),
    [(100, 10, 30), (50, 10, 15), (0, 10, 0), (100, 0, 30)],
)
def test_a_thread_has_its_share_of_the_steal(write, own_ms, busy_ticks, stolen_ms) -> None:
    used_ns, text = iter([0, own_ms * MS]), "cpu  {} 0 0 900 5 0 0 {} 0 0\ncpu0 1 2 3\n"
    host = HostDelays(root=write({"proc/stat": text.format(100, 4)}), cpu_ns=lambda: next(used_ns))
    host.start()
    assert host.read().delay_ns == {"steal": 0}
    write({"proc/stat": text.format(100 + busy_ticks, 7)})
    assert host.read().delay_ns == {"steal": stolen_ms * MS}
    assert host.read().delay_ns == {"steal": 0}


def test_a_source_that_cannot_be_read_is_left_out_with_the_reason(write) -> None:
    host = HostDelays(root=write({"proc/stat": "intr 5\n"}))
    host.start()
    assert host.read().delay_ns == {}
    assert host.missing.keys() == {"throttled", "steal"}


def test_a_reading_that_fails_is_made_up_for_by_the_next_one(write, quiet) -> None:
    host = HostDelays(root=quiet, cpu_ns=lambda: 0)
    host.start()
    assert host.read().delay_ns == {"throttled": 0, "steal": 0}
    name = "sys/fs/cgroup/bench/cpu.stat"
    for text, delay_ns in (("throttled_usec 3\n", 3_000), ("throttled_usec 8\n", 5_000)):
        write({name: text, "proc/stat": ""})
        assert host.read().delay_ns == {"throttled": delay_ns}
    host.close()


def test_files_that_the_program_closed_are_no_error_and_other_files_stay_open(write, quiet) -> None:
    """A file that the program opened under a number of ours, as one that becomes a daemon does."""
    host = HostDelays(root=quiet, cpu_ns=lambda: 0)
    host.start()
    assert not host.missing  # both are open
    files, ours = {each.stat().st_ino for each in quiet.rglob("*")}, []
    with (write({"theirs": "2"}) / "theirs").open() as theirs:
        for each in range(1024):
            with contextlib.suppress(OSError):
                if os.fstat(each).st_ino in files:
                    os.close(each)
                    ours.append(each)
        os.dup2(theirs.fileno(), ours[0])
    host.close()
    assert host.read().delay_ns == {}
    assert os.read(ours[0], 9) == b"2"
    os.close(ours[0])


@given(
    st.integers(0, 500),
    st.integers(0, 500),
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=6),
)
@settings(max_examples=40)
def test_no_segment_has_more_delay_than_room_and_the_largest_is_filled_first(
    throttled, stolen, pairs
) -> None:
    waits, walls = [min(each) for each in pairs], [max(each) for each in pairs]
    delay_ns = {"throttled": throttled, "steal": stolen}
    parts = attribute_delay(SimpleNamespace(wall_ns=sum(walls), delay_ns=delay_ns), walls, waits)
    assert sum(parts["throttled"]) == min(throttled, sum(waits))
    assert all(part <= wait for part, wait in zip(parts["throttled"], waits, strict=True))
    left = [wait for wait, part in zip(waits, parts["throttled"], strict=True) if part < wait]
    full = [wait for wait, part in zip(waits, parts["throttled"], strict=True) if part == wait > 0]
    assert not left or not full or max(left) <= min(full)
    assert sum(parts["steal"]) == min(stolen, sum(walls) - sum(waits))


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
    code = "import sys, benchrigor.machine.delays; print('numpy' in sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "False"


def a_thread(pid: int, tid: int, schedstat: str, children: str = "") -> dict[str, str]:
    folder = f"proc/{pid}/task/{tid}"
    return {f"{folder}/schedstat": schedstat, f"{folder}/children": children}


def test_threads_and_descendants_count_and_those_that_went_are_remembered(write) -> None:
    root = write(
        {
            **a_thread(7, 7, "100 0 1\n", "8 "),
            **a_thread(7, 70, "200 0 1\n"),
            **a_thread(8, 8, "300 0 1\n", "9 "),
            **a_thread(9, 9, "400 0 1\n"),
            **a_thread(10, 10, "9000 0 1\n"),  # another's
        }
    )
    tree = ProcessTree(7, root=root)
    tree.read()
    shutil.rmtree(root / "proc/9")
    shutil.rmtree(root / "proc/7/task/70")
    write(a_thread(8, 8, "350 0 1\n"))
    assert tree.close()[1] == 100 + 200 + 350 + 400


def test_a_number_that_is_given_again_is_another_thread(write) -> None:
    root = write({**a_thread(7, 7, "100 0 1\n", "8"), **a_thread(8, 8, "300 0 1\n")})
    tree = ProcessTree(7, root=root)
    tree.read()
    write(a_thread(8, 8, "40 0 1\n"))
    assert tree.close()[1] == 100 + 300 + 40


@pytest.mark.parametrize(
    "files",
    [{}, a_thread(7, 7, "what\n"), a_thread(7, 7, "0 0 0\n")],
    ids=["gone", "foreign", "not counted"],
)
def test_what_cannot_be_read_is_not_known(write, files) -> None:
    assert ProcessTree(7, root=write(files)).close() == (0, 0)


@pytest.mark.parametrize(
    ("spent_ms", "wall_ms", "expected_ms"),  # expected: lost, and waited together
    [
        pytest.param([(60, 0)], 100, (0, 0), id="alone"),
        pytest.param([(50, 50)], 100, (50, 0), id="one thread, half of its time"),
        pytest.param([(20, 30)], 100, (30, 0), id="and it slept beside"),
        pytest.param([(60, 75)], 20, (75, 0), id="one thread, most of it before it was watched"),
        pytest.param([(50, 50)] * 2, 100, (50, 50), id="two threads, each half of its time"),
        pytest.param([(75, 25)] * 2, 100, (25, 25), id="two threads, each a quarter"),
        pytest.param([(25, 75)] * 8, 100, (0, 525), id="eight threads that had both processors"),
        pytest.param([(14, 86)] * 7, 100, (51, 516), id="seven threads that had half of them"),
        pytest.param([(100, 2)] * 3, 100, (0, 4), id="more than there is, by the clock's grain"),
        pytest.param([(60, 75)] * 3, 135, (45, 150), id="three: never below two processors"),
        pytest.param([(100, 0), (20, 80)], 100, (0, 0), id="never below the busiest thread"),
        pytest.param([(20, 50)] * 2, 500, (50, 50), id="two that waited at once, and slept"),
        pytest.param([(40, 0)] * 2, 45, (0, 0), id="two that did not wait"),
    ],
)
def test_what_threads_lost_that_waited_at_once(
    write, monkeypatch, spent_ms, wall_ms, expected_ms
) -> None:
    now_ms = [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ms[0] * MS)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    files: dict[str, str] = {}
    for tid, (ran_ms, waited_ms) in enumerate(spent_ms, start=7):
        files |= a_thread(7, tid, f"{ran_ms * MS} {waited_ms * MS} 1\n")
    root = write(files)
    tree = ProcessTree(7, root=root)
    now_ms[0] = wall_ms
    lost, ran = tree.close()
    assert (lost, tree.together_ns) == tuple(each * MS for each in expected_ms)
    assert ran == sum(ran_ms for ran_ms, _ in spent_ms) * MS


@pytest.mark.parametrize(
    ("polls", "lost_ms"),  # of each: for how long it slept, then waited, and what it found
    [
        pytest.param([(4, 3, [7])], 3, id="woken by the end"),
        pytest.param([(5, 3, []), (45, 6, [7])], 6, id="the second time"),
        pytest.param([(5, 3, []), (50, 9, [7])], 0, id="its time was up, and the child went on"),
        pytest.param([(5, 3, []), (0, 0, [7])], 0, id="it ended meanwhile"),
    ],
)
def test_what_the_caller_waits_at_the_end_of_the_child_is_lost(
    write, monkeypatch, polls, lost_ms
) -> None:
    now_ms, waited_ms, left = [0], [0], iter(polls)

    def poll(_timeout: float) -> list[int]:
        slept, waited, found = next(left)
        now_ms[0] += slept + waited
        waited_ms[0] += waited
        return found

    ready = SimpleNamespace(poll=poll, register=lambda *_: None)
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ms[0] * MS)
    monkeypatch.setattr(time, "monotonic", lambda: now_ms[0] / 1e3)
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)
    monkeypatch.setattr(select, "poll", lambda: ready)
    monkeypatch.setattr(os, "pidfd_open", lambda _: os.open(os.devnull, os.O_RDONLY), raising=False)
    root = write(a_thread(7, 7, f"{MS} 0 1\n"))
    tree = ProcessTree(7, root=root, own_ns=lambda: waited_ms[0] * MS)
    tree.wait()
    assert tree.close() == (lost_ms * MS, MS)


BURN = "import time\nwhile time.process_time() < {}: pass"
INSIDE = (
    "import subprocess, sys\nfor _ in range(2): subprocess.run([sys.executable, '-S', '-c', {!r}])"
)


@real
@pytest.mark.parametrize(
    "code",
    [BURN.format(0.2), INSIDE.format(BURN.format(0.3))],
    ids=["itself", "successive children"],
)
def test_the_processor_time_of_a_real_tree_is_known(code) -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", code])
    tree = ProcessTree(child.pid)
    tree.wait()
    lost, known = tree.close()
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    used = (usage.ru_utime + usage.ru_stime) * 1e9
    # What a child used after it was last seen is not known: more of it on a busy machine.
    assert 0.6 * used < known <= 1.01 * used
    assert lost >= 0


def test_its_root_may_be_nowhere() -> None:
    assert ProcessTree(1, root=Path("/nowhere")).close() == (0, 0)


def test_it_waits_for_the_end_where_the_kernel_has_no_pidfd(monkeypatch) -> None:
    def refuse(_pid: int) -> int:
        raise OSError("not here")

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    process = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(0.05)"])
    ProcessTree(process.pid).wait()
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    process.wait()
    assert ended is not None
