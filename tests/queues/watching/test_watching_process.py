"""The watching process: what it does inside, and what becomes of it when others die."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchrigor.queues import MonitorReport, Page, Stage
from benchrigor.queues.counting.ends import End
from benchrigor.queues.counting.owners import Owners
from benchrigor.queues.recording.recordings import Recording
from benchrigor.queues.stages.stage_figures import Watching
from benchrigor.queues.watching.process_watch import Order, read_published, watch

MAIN = "from benchrigor.queues.watching.process_watch import main; main()"
COMMAND = (sys.executable, "-P", "-c", MAIN)
PATIENCE_S = 120.0

PROGRAM = """
import sys, time
from benchrigor.queues import Page
with Page.open(sys.argv[1], writable=True) as page:
    cell = page.claim("work.head")
    while True:
        time.sleep(0.002)
        cell.count()
"""

LAUNCHER = """
import subprocess, sys, time
watcher = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE)
watcher.stdin.write(sys.argv[1].encode() + b"\\n")
watcher.stdin.flush()
print(watcher.pid, flush=True)
time.sleep(60)
"""
"""Starts the watcher and keeps its pipe open, until it is killed itself."""


def ordered(page: Page, folder: Path, *, launcher: int | None = None) -> Order:
    return Order(
        stages=[Stage("hash", reads=[End(page, "work.head")])],
        watching=Watching(period_s=0.005),
        state=folder / "state.rates",
        record=folder / "run.csv",
        launcher=os.getpid() if launcher is None else launcher,
    )


def until(true: Callable[[], object]) -> None:
    """Wait for something to come true; the test fails if it does not."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def rates_in(path: Path) -> int:
    """Return how many periods the last rate in a state file is made of."""
    report = read_published(path)
    rate = report.stages[0].rate if report and report.stages else None
    return 0 if rate is None else rate.periods


@pytest.fixture
def program(page: Page) -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that counts, until it is killed."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(page.path)]) as made:
        until(page.cells)
        yield made
        made.kill()


def test_it_watches_until_told_and_leaves_all_it_knows(page: Page, tmp_path: Path) -> None:
    cell, left = page.claim("work.head"), iter(range(40))

    def wait(seconds: float) -> bool:
        time.sleep(min(seconds, 0.005))
        for _ in range(3):
            cell.count()
        return next(left, None) is None

    order = ordered(page, tmp_path)
    report = watch(order, wait)
    assert report.failure is None
    assert report.stages[0].rate is not None
    assert read_published(order.state) == report
    with Recording.open(str(order.record)) as recording:
        ((name, periods),) = recording.periods()
    assert (name, periods.n) == ("hash", report.stages[0].rate.periods)


@pytest.mark.slow
def test_the_first_rate_does_not_keep_the_next_from_being_told(
    page: Page, tmp_path: Path, program: subprocess.Popen[bytes]
) -> None:
    order = ordered(page, tmp_path)
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE) as watcher:
        assert watcher.stdin is not None
        watcher.stdin.write(order.to_line())
        watcher.stdin.flush()
        until(lambda: rates_in(order.state))
        began, first = time.monotonic(), rates_in(order.state)
        until(lambda: rates_in(order.state) > first)
        assert time.monotonic() - began < 30.0


@pytest.mark.slow
def test_it_tells_what_it_knows_once_a_second_and_at_the_end(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    replace = Path.replace

    def counted(self: Path, target: Path) -> Path:
        written.append(target)
        return replace(self, target)

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return len(written) == 2

    monkeypatch.setattr(Path, "replace", counted)
    began = time.monotonic()
    watch(ordered(page, tmp_path), wait)
    assert time.monotonic() - began >= 0.9
    assert len(written) == 3


def test_what_goes_wrong_midway_leaves_the_rates_so_far(page: Page, tmp_path: Path) -> None:
    cell, left = page.claim("work.head"), iter(range(100))

    def wait(seconds: float) -> bool:
        time.sleep(min(seconds, 0.001))
        cell.count()
        if next(left) == 80:
            raise RuntimeError("the clock is broken")
        return False

    report = watch(ordered(page, tmp_path), wait)
    assert report.failure == "RuntimeError: the clock is broken"
    assert report.stages[0].rate is not None


@pytest.mark.parametrize("text", [None, "", "{", '{"stages": [3]}'])
def test_what_is_no_report_tells_nothing(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "state.rates"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert read_published(path) is None


@pytest.mark.slow
def test_it_ends_when_nobody_is_left(
    page: Page, tmp_path: Path, program: subprocess.Popen[bytes]
) -> None:
    order = ordered(page, tmp_path, launcher=program.pid)
    killed = False

    def wait(seconds: float) -> bool:
        nonlocal killed
        time.sleep(seconds)
        if not killed and rates_in(order.state):
            program.kill()
            program.wait()
            killed = True
        return False

    report = watch(order, wait)
    assert killed
    assert report.failure is None
    assert report.stages[0].rate is not None


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there pipes end with their writer")
def test_when_the_program_is_killed_nothing_is_lost(
    page: Page, tmp_path: Path, program: subprocess.Popen[bytes]
) -> None:
    order = ordered(page, tmp_path)
    state = order.state
    command = [sys.executable, "-S", "-c", LAUNCHER, order.to_line().decode().strip(), *COMMAND]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        watcher = int(launcher.stdout.readline())
        owners = Owners()
        assert not owners.gone([watcher])
        until(lambda: rates_in(state))
        before = rates_in(state)
        launcher.kill()
    until(lambda: owners.gone([watcher]))
    owners.close()
    report = read_published(state)
    assert isinstance(report, MonitorReport)
    assert report.failure is None
    assert rates_in(state) >= before
    with Recording.open(str(order.record)) as recording:
        assert sum(periods.n for _, periods in recording.periods()) >= before
