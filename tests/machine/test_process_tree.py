"""The run delay of a process and its descendants: of a made-up kernel, and of this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchrigor.machine import process_tree
from benchrigor.machine.process_tree import ProcessTree, lost_ns
from benchrigor.machine.run_delay import RunDelay

MS = 1_000_000
real = pytest.mark.skipif(not RunDelay().available, reason=RunDelay().reason)


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
    ("ran_ms", "waited_ms", "lost_ms"),
    [
        pytest.param(60, 0, 0, id="alone"),
        pytest.param(50, 50, 50, id="one thread, half of its time"),
        pytest.param(20, 30, 30, id="and it slept beside"),
        pytest.param(100, 100, 50, id="two threads, each half of its time"),
        pytest.param(150, 50, 25, id="two threads, each a quarter"),
        pytest.param(200, 600, 0, id="eight threads that had both processors"),
        pytest.param(100, 700, 50, id="eight threads that had half of them"),
        pytest.param(210, 5, 0, id="more than there is, by the clock's grain"),
    ],
)
def test_what_is_lost_of_100_ms_on_two_processors(ran_ms, waited_ms, lost_ms) -> None:
    assert lost_ns(ran_ms * MS, waited_ms * MS, 100 * MS, processors=2) == lost_ms * MS


@pytest.mark.parametrize(
    ("spent_ms", "wall_ms", "expected_ms"),  # expected: lost, and waited together
    [
        pytest.param([(60, 75)], 135, (75, 0), id="one thread"),
        pytest.param([(60, 75)], 20, (75, 0), id="one thread, most of it before it was watched"),
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
    clock = SimpleNamespace(monotonic_ns=lambda: now_ms[0] * MS, monotonic=time.monotonic)
    monkeypatch.setattr(process_tree, "time", clock)
    monkeypatch.setattr(process_tree, "processors", lambda: 2)
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

    clock = SimpleNamespace(
        monotonic_ns=lambda: now_ms[0] * MS,
        monotonic=lambda: now_ms[0] / 1e3,
        thread_time=lambda: 0.0,
    )
    ready = SimpleNamespace(poll=poll, register=lambda *_: None)
    monkeypatch.setattr(process_tree, "time", clock)
    monkeypatch.setattr(process_tree, "select", SimpleNamespace(poll=lambda: ready, POLLIN=1))
    monkeypatch.setattr(os, "pidfd_open", lambda _: os.open(os.devnull, os.O_RDONLY), raising=False)
    root = write(a_thread(7, 7, f"{MS} 0 1\n"))
    tree = ProcessTree(7, root=root, own_ns=lambda: waited_ms[0] * MS)
    tree.wait()
    assert tree.close() == (lost_ms * MS, MS)


BURN = "import time\nwhile time.process_time() < {}: pass"
INSIDE = (
    "import subprocess, sys\nfor _ in range(2): subprocess.run([sys.executable, '-S', '-c', {!r}])"
)


@pytest.mark.slow
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
