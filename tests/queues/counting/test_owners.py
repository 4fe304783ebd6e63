"""Whether processes are there, and what threads have used."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchrigor.queues.counting.owners import Owner, Owners, Used

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts by thread")


@pytest.fixture
def owners() -> Iterator[Owners]:
    made = Owners()
    yield made
    made.close()


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as made:
        yield made
        made.kill()


def test_who_asks_and_who_is_not_known_are_there(owners: Owners) -> None:
    assert owners.gone([0, os.getpid()]) == frozenset()


@pytest.mark.skipif(os.name != "posix", reason="processes are only asked for there")
def test_a_process_is_gone_once_it_is_killed(
    owners: Owners, process: subprocess.Popen[bytes]
) -> None:
    assert owners.gone([process.pid]) == frozenset()
    process.kill()
    process.wait()
    assert owners.gone([process.pid]) == {process.pid}
    assert owners.gone([]) == {process.pid}


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only pidfd tells of it")
def test_a_process_that_nobody_has_waited_for_yet_is_gone_as_well(
    owners: Owners, process: subprocess.Popen[bytes]
) -> None:
    assert owners.gone([process.pid]) == frozenset()
    process.kill()
    deadline = time.monotonic() + 60.0
    while not owners.gone([process.pid]) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert owners.gone([process.pid]) == {process.pid}


@pytest.mark.skipif(os.name != "posix", reason="processes are only asked for there")
def test_it_is_known_without_descriptors_of_processes_too(
    monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes]
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    owners = Owners()
    assert owners.gone([process.pid]) == frozenset()
    process.kill()
    process.wait()
    assert owners.gone([process.pid]) == {process.pid}


@LINUX
def test_what_a_thread_has_used_grows_with_what_it_does(owners: Owners) -> None:
    me = Owner(os.getpid(), threading.get_native_id())
    before = owners.used(me)
    until_s = time.thread_time() + 0.02
    while time.thread_time() < until_s:
        pass
    time.sleep(0.001)  # the kernel adds up when a thread gives way
    after = owners.used(me)
    assert before is not None
    assert after is not None
    assert after.cpu_ns - before.cpu_ns >= 15_000_000
    assert after.delay_ns >= before.delay_ns


@LINUX
def test_nothing_is_known_of_a_thread_that_has_ended(owners: Owners) -> None:
    ready, end = threading.Event(), threading.Event()
    found: list[int] = []

    def work() -> None:
        found.append(threading.get_native_id())
        ready.set()
        end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    owner = Owner(os.getpid(), found[0])
    time.sleep(0.001)
    assert owners.used(owner) is not None
    end.set()
    thread.join()
    deadline = time.monotonic() + 60.0
    while owners.used(owner) is not None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert owners.used(owner) is None


def test_nothing_is_known_of_nobody(owners: Owners) -> None:
    assert owners.used(Owner(2**30, 2**30)) is None


def schedstat(root: Path, text: str) -> Owners:
    folder = root / "proc/5/task/6"
    folder.mkdir(parents=True)
    (folder / "schedstat").write_text(text)
    return Owners(root=root)


@pytest.mark.parametrize("text", ["0 0 0\n", "what\n", "1 2\n"])
def test_a_kernel_that_does_not_count_says_nothing(tmp_path: Path, text: str) -> None:
    owners = schedstat(tmp_path, text)
    assert owners.used(Owner(5, 6)) is None
    owners.close()


def test_both_numbers_are_the_kernels(tmp_path: Path) -> None:
    owners = schedstat(tmp_path, "120 30 7\n")
    assert owners.used(Owner(5, 6)) == Used(cpu_ns=120, delay_ns=30)
    owners.close()
