"""What a command leaves behind, and prints beyond all bounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.errors import StoreFailed, WorkloadFailed
from benchrigor.model import Code, Round
from benchrigor.workloads import CommandWorkload, Pick
from benchrigor.workloads.processes import kinship, running

pytestmark = pytest.mark.skipif(not os.path.exists("/proc"), reason="not Linux")  # noqa: PTH110

UNITS = Pick.parse("u:ms=regex:took ([0-9]+)", unit_readings=True)
LAST = Pick.parse("u:ms=regex:took ([0-9]+)")


def measured(script: str, *picks: Pick, seconds: float | None = None) -> Round:
    workload = CommandWorkload(["bash", "-c", script], picks=picks, clock=WallClock(), grace_s=0.2)
    return run(workload, seconds=seconds)


def told(finished: Round, code: Code) -> str:
    return " ".join(each.sentence for each in finished.notices if each.code is code)


def sleepers(seconds: str) -> list[int]:
    found, words = [], f"sleep\0{seconds}\0".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [int(path.parent.name)] * (path.read_bytes() == words)
    return found


@pytest.mark.parametrize(
    ("script", "seconds"),
    [
        ("set -m; sleep 601.1 & sleep 0.01", "601.1"),  # a group of its own in the same session
        ("sleep 601.4 & sleep 0.01", "601.4"),
        ("(sleep 601.5 &) > /dev/null 2>&1", "601.5"),
    ],
)
def test_what_stays_in_the_session_is_ended_and_said(script: str, seconds: str) -> None:
    assert told(measured(script), Code.LEFT_RUNNING)
    assert sleepers(seconds) == []


@pytest.mark.parametrize("script", ["timeout 700 sleep 602.2; true", "set -m; sleep 602.2 & wait"])
def test_the_budget_ends_other_groups_of_the_session_too(script: str) -> None:
    assert measured(script, seconds=0.3).cut
    assert sleepers("602.2") == []


def test_what_leaves_the_session_is_named() -> None:
    try:
        sentence = told(measured("setsid sleep 603.3 & sleep 0.05"), Code.LEFT_RUNNING)
        (pid,) = sleepers("603.3")
        assert f"sleep 603.3 (process {pid})" in sentence
    finally:
        for each in sleepers("603.3"):
            with suppress(ProcessLookupError):
                os.kill(each, 9)


@pytest.mark.skipif(sys.platform != "linux", reason="no system else has it")
def test_what_leaves_without_its_environment_is_adopted_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kinship, "_gone_their_way", set())
    kinship.adopt_orphans(True)
    try:
        sentence = told(measured("setsid env -i sleep 604.4 & sleep 0.05"), Code.LEFT_RUNNING)
        (pid,) = sleepers("604.4")
        assert f"sleep 604.4 (process {pid})" in sentence
        assert pid not in kinship.descendants()  # whose rest is killed at the end
    finally:
        kinship.adopt_orphans(False)
        for each in sleepers("604.4"):
            os.kill(each, 9)
            os.waitpid(each, 0)


def test_a_group_that_has_no_descriptors_left_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> NoReturn:
        raise OSError(24, "Too many open files")

    before = set(threading.enumerate())
    monkeypatch.setattr(os, "pipe", fail)
    with pytest.raises(WorkloadFailed, match="Too many"):
        measured("true", seconds=5.0)
    assert set(threading.enumerate()) <= before


def test_a_command_that_has_no_descriptors_left_names_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(WorkloadFailed, match=r"Too many open files$"):
        measured("true", seconds=5.0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals that")
def test_a_process_whose_pipe_was_closed_before_is_killed_too() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    with subprocess.Popen(["sleep", "60"]) as child:
        kinship.kill_when_closed(reader, child.pid)
        assert child.wait(timeout=300.0) == -signal.SIGKILL
    os.close(reader)


def test_output_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_PRINTED", 2**20)
    began = time.monotonic()
    for script in ("exec yes took 5 ms", "yes took 5 ms | head -c 3000000"):
        with pytest.raises(WorkloadFailed):
            measured(script, UNITS, seconds=20.0)
    assert time.monotonic() - began < 15.0


def test_of_standard_error_the_end_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_PRINTED", 2**20)
    flood = "yes took 5 ms | head -c 5000000 >&2; sleep 0.2; yes no | head -c 3000000 >&2"
    # What is printed in the very moment in which the file is emptied is lost: the end comes later.
    with pytest.raises(WorkloadFailed, match=r"(?s)code 3.*no\n  \| the end$"):
        measured(f"{flood}; sleep 1; echo the end >&2; exit 3")
    assert measured(f"{flood}; true").readings


def test_output_is_searched_until_soon_after_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least a quarter of a second, however late it is."""
    script = "yes took 5 ms | head -c 100000000; sleep 0.1"
    finished = measured(script, UNITS, seconds=2.0)
    assert finished.cut
    assert 100 < finished.unit_readings["u"].size < 10_000_000
    assert told(finished, Code.CUT_ROUND)
    assert not measured(script, LAST, seconds=0.5).readings


def test_a_full_folder_is_no_failure_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(f_bavail=0, f_blocks=10)
    monkeypatch.setattr(os, "fstatvfs", lambda _: full)
    for script in ("exit 1", "echo took 5 ms"):
        with pytest.raises(StoreFailed, match="no room"):
            measured(script, LAST)
    assert measured("true").readings  # nothing that it prints is needed


def test_no_temporary_folder_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(running, "TemporaryFile", none)
    with pytest.raises(StoreFailed, match="No usable"):
        measured("true")


@pytest.mark.skipif(sys.platform != "linux", reason="by a signal of Linux's pipes")
def test_the_environment_has_a_mark_and_the_folder_of_descriptors_no_more_than_one_pipe() -> None:
    script = f"[ $BENCHRIGOR_STARTED_BY = {os.getpid()} ] && set -- /proc/$$/fd/* && [ $# -le 5 ]"
    assert measured(script).readings
