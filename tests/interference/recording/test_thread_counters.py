"""Counters of this thread against what it is made to do."""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from operator import sub
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.interference.recording import thread_counters
from benchrigor.interference.recording.thread_counters import (
    EVIDENCE,
    NOMINAL,
    Collections,
    ThreadCounters,
    count_opens,
    forget_opens,
)
from benchrigor.machine import perf_events
from benchrigor.machine.kernel_files import KernelFile, Unavailable

NAMES = ("delay", "computation", *NOMINAL, *EVIDENCE)
SOFTWARE, TASK_CLOCK = 1, 1
linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux counts")

Gains = Callable[[Callable[[], object]], dict[str, int]]


@pytest.fixture(params=["cpu time", "counter"])
def counters(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ThreadCounters]:
    """Counters without a hardware counter, and with a software event in its place."""

    def opener() -> KernelFile:
        if request.param == "counter":
            return perf_events.open_counter(SOFTWARE, TASK_CLOCK)
        raise Unavailable("none wanted")

    monkeypatch.setattr(thread_counters, "open_counter", opener)
    made = ThreadCounters()
    yield made
    made.close()


def start(counters: ThreadCounters) -> None:
    """Start them, in the process that is counted; skip where some are missing."""
    gc.collect()  # files of other tests are closed before, not while counting
    gc.disable()
    counters.start()
    for name in ("reads", "closes"):
        if name in counters.missing:
            pytest.skip(f"{name}: {counters.missing[name]}")


@pytest.fixture
def gains(counters: ThreadCounters) -> Gains:
    is_started = False

    def gains(work: Callable[[], object]) -> dict[str, int]:
        nonlocal is_started
        if not is_started:
            start(counters)
            is_started = True
        before = counters.read()
        counters.exclude_own()
        work()
        return dict(zip(NAMES, map(sub, counters.read(), before), strict=True))

    return gains


def nominal(found: dict[str, int]) -> dict[str, int]:
    return {name: found[name] for name in NOMINAL if found[name]}


@pytest.mark.alone
@pytest.mark.slow
@linux
def test_reading_the_counters_does_not_show_in_them(gains: Gains) -> None:
    for _ in range(5):
        assert nominal(gains(lambda: None)) == {}


@linux
def test_floating_point_operations_of_a_pause_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter of the kernel in place of the processor's, which few machines show."""
    task_clock = lambda: perf_events.open_counter(SOFTWARE, TASK_CLOCK)  # noqa: E731
    monkeypatch.setattr(thread_counters, "open_floating_point", task_clock)
    made = ThreadCounters()
    made.start()
    if "floating_point" in made.missing:
        pytest.skip(made.missing["floating_point"])
    before = made.read()[-1]
    sum(range(200_000))
    between = made.read()[-1]
    made.pause()
    sum(range(4_000_000))
    made.proceed()
    assert 0 < made.read()[-1] - between < 5 * (between - before)
    made.close()


@pytest.mark.alone
@pytest.mark.slow
@linux
def test_files_are_counted_exactly(gains: Gains, tmp_path: Path) -> None:
    path = tmp_path / "known"
    path.write_bytes(b"x" * 1000)

    def read() -> None:
        descriptor = os.open(path, os.O_RDONLY)
        os.read(descriptor, 600)
        os.read(descriptor, 600)
        os.close(descriptor)

    assert nominal(gains(read)) == {"opens": 1, "closes": 1, "reads": 2, "read_bytes": 1000}


@pytest.mark.alone
@pytest.mark.slow
@linux
def test_writes_are_counted_exactly_and_what_stays_open_is_not_closed(
    gains: Gains, tmp_path: Path
) -> None:
    opened = []

    def write() -> None:
        opened.append(os.open(tmp_path / "new", os.O_WRONLY | os.O_CREAT))
        os.write(opened[0], b"12345")

    assert nominal(gains(write)) == {"opens": 1, "writes": 1, "written_bytes": 5}
    assert nominal(gains(lambda: os.close(opened[0]))) == {"closes": 1}


@pytest.mark.alone
@pytest.mark.slow
@linux
def test_collections_and_switches_are_counted(gains: Gains) -> None:
    assert nominal(gains(lambda: (gc.collect(0), gc.collect()))) == {"gc_young": 1, "gc_full": 1}
    ends = socket.socketpair()

    def wait() -> None:
        ends[0].settimeout(0.001)
        with pytest.raises(TimeoutError):
            ends[0].recv(1)

    assert gains(wait)["voluntary_switches"] >= 1
    for end in ends:
        end.close()


@pytest.mark.alone
@pytest.mark.slow
@linux
def test_computation_is_the_threads_own(counters: ThreadCounters, gains: Gains) -> None:
    idle = min(gains(lambda: None)["computation"] for _ in range(20))
    busy = min(gains(lambda: sum(range(300_000)))["computation"] for _ in range(5))
    assert busy > 50 * max(idle, 1_000)
    assert counters.computation in ("cpu_s", "instructions")


@pytest.mark.alone
@pytest.mark.slow
@linux
def test_a_pause_does_not_count(counters: ThreadCounters, gains: Gains) -> None:
    def pause() -> None:
        counters.pause()
        sum(range(300_000))
        counters.proceed()

    busy = min(gains(lambda: sum(range(300_000)))["computation"] for _ in range(5))
    assert min(gains(pause)["computation"] for _ in range(5)) < busy / 5
    assert nominal(gains(pause)) == {}


def test_what_is_not_there_stays_zero_and_is_named(tmp_path: Path) -> None:
    counters = ThreadCounters(root=tmp_path)
    counters.start()
    found = dict(zip(NAMES, counters.read(), strict=True))
    counters.close()
    absent = {"run queue", "closes", "reads", "writes", "read_bytes", "written_bytes"}
    assert absent <= counters.missing.keys()
    assert all(found[name] == 0 for name in absent - {"run queue", "closes"})
    assert found["delay"] == 0


def test_folders_of_older_kernels_tell_no_number(write) -> None:
    counters = ThreadCounters(root=write({"proc/self/fd": ""}))
    counters.start()
    counters.close()
    assert "before Linux 6.2" in counters.missing["closes"]


@pytest.fixture
def opens() -> Iterator[list[int]]:
    count = count_opens()
    yield count
    forget_opens(count)


def touch() -> None:
    os.close(os.open(os.devnull, os.O_RDONLY))


def test_opens_of_this_thread_count_in_whichever_way(opens) -> None:
    touch()
    with open(os.devnull):  # noqa: PTH123
        pass
    with pytest.raises(FileNotFoundError):
        open("/nowhere/at/all")  # noqa: PTH123, SIM115
    assert opens == [3]


def test_opens_of_others_do_not(opens) -> None:
    thread = threading.Thread(target=touch)
    thread.start()
    thread.join()
    assert opens == [0]


def test_nothing_counts_any_more_once_forgotten() -> None:
    opens = count_opens()
    thread = threading.Thread(target=forget_opens, args=(opens,))
    thread.start()
    thread.join()
    touch()
    assert opens == [0]


def test_a_thread_is_counted_by_one_recorder(opens) -> None:
    with pytest.raises(InvalidInput, match="recorded already"):
        count_opens()


@pytest.mark.slow
def test_collections_are_counted_by_generation() -> None:
    gc.disable()
    try:
        counted = Collections()
        counted.start()
        for generation in (0, 1, 1, 2):
            gc.collect(generation)
        counted.stop()
        gc.collect()
    finally:
        gc.enable()
    assert (counted.young, counted.full) == (3, 1)
    assert not any(getattr(each, "__self__", None) is counted for each in gc.callbacks)


def test_a_program_may_clear_the_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "callbacks", [])
    counted = Collections()
    counted.start()
    gc.callbacks.clear()
    counted.stop()
    assert gc.callbacks == []
