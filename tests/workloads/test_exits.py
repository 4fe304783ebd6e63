"""Code that tries to end the process that measures it, or forks it: the run ends as failed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

import benchrigor as br
from benchrigor.errors import WorkloadFailed
from benchrigor.model import RoundPlan, StopReason
from benchrigor.protocols import Recorder
from benchrigor.session import measure_pair
from benchrigor.testing import FakeClock


class Own(BaseException):
    """An error of the code that is measured."""


ENDINGS: dict[str, Callable[[], object]] = {
    "own": lambda: raising(Own("mine")),
    "exit": lambda: sys.exit(3),  # noqa: TID251  # as code under test does
    "at once": lambda: os._exit(3),
    "generator": lambda: raising(GeneratorExit()),
    "cancelled": lambda: raising(asyncio.CancelledError()),
}


def raising(error: BaseException) -> NoReturn:
    raise error


class LateEnding:
    """A function that ends in its hundredth call, and measures itself as a workload."""

    def __init__(self, clock: FakeClock, name: str) -> None:
        self._clock, self._end, self.calls = clock, ENDINGS[name], 0

    def __call__(self) -> None:
        self.calls += 1
        self._clock.advance(1_000_000)
        if self.calls >= 100:
            self._end()

    async def awaited(self) -> None:
        self()

    def steps(self) -> Iterator[None]:
        while True:
            self()
            yield


class OwnWorkload:
    """A workload of a user's own."""

    def __init__(self, func: LateEnding) -> None:
        self._func = func

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        for _ in range(plan.readings):
            self._func()
        recorder.unit_readings("time", [0.001] * plan.readings)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(resolution_ns=1)


@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize("kind", ["plain", "awaited", "steps", "workload"])
def test_a_run_ends_with_what_was_measured(clock: FakeClock, name: str, kind: str) -> None:
    func = LateEnding(clock, name)
    workload = {
        "plain": func,
        "awaited": func.awaited,
        "steps": func.steps,
        "workload": OwnWorkload(func),
    }[kind]
    options = br.Options(target=None, budget_s=60)
    session = br.Session(options, clock=clock, seed=1)
    exit_before = os._exit
    with pytest.raises(WorkloadFailed) as raised:
        session.run(workload)
    record = raised.value.record
    assert isinstance(record, br.RunRecord)
    assert record.decision is not None
    assert record.decision.reason is StopReason.WORKLOAD_FAILED
    assert len(record.rounds) >= 1
    assert os._exit is exit_before


@pytest.mark.parametrize("name", ENDINGS)
def test_a_comparison_ends_with_the_name_of_the_side(clock: FakeClock, name: str) -> None:
    with pytest.raises(WorkloadFailed, match="candidate: ") as raised:
        measure_pair(lambda: clock.advance(1_000_000), LateEnding(clock, name), clock=clock, seed=1)
    assert not isinstance(raised.value.__cause__, WorkloadFailed)


@pytest.mark.parametrize("name", ENDINGS)
def test_a_hook_that_ends_everything_ends_the_session(clock: FakeClock, name: str) -> None:
    if name == "at once":
        pytest.skip("a hook is the caller's own code, which may end its process")
    session = br.Session(
        br.Options(target=None), clock=clock, seed=1, after_round=lambda _: ENDINGS[name]()
    )
    record = session.run(lambda: clock.advance(1_000_000))
    assert record.decision is not None
    assert record.decision.reason is StopReason.HOOK_FAILED


def test_an_interrupt_stays_one(clock: FakeClock) -> None:
    with pytest.raises(KeyboardInterrupt):
        br.Session(br.Options(), clock=clock).run(lambda: raising(KeyboardInterrupt()))


COPIES = """
import os, sys, time
def returning():
    time.sleep(0.02)
    if len(os.sched_getaffinity(0)) and not os.fork():
        return
def exiting():
    time.sleep(0.02)
    if not os.fork():
        sys.exit(0)
"""


@pytest.mark.parametrize("where", ["--in-process", "--fresh"])
@pytest.mark.parametrize("name", ["returning", "exiting"])
def test_copies_that_are_forked_neither_tell_nor_store_anything(
    tmp_path: Path, name: str, where: str
) -> None:
    (tmp_path / "copies.py").write_text(COPIES)
    words = ["run", where, "--budget", "0.3", "--batch", "1", "--max-readings", "6"]
    words.append(f"copies:{name}")
    done = subprocess.run(
        [sys.executable, "-m", "benchrigor", *words],
        cwd=tmp_path,
        env=os.environ | {"BENCHRIGOR_STORE": str(tmp_path / "store")},
        capture_output=True,
        text=True,
        timeout=300.0,
        check=False,
    )
    assert done.returncode in {0, 3, 4}, done.stderr
    assert done.stdout.count("kept as") == 1
