"""Calls that never end, and functions that fork: the budget ends a run with what was measured."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.errors import WorkloadFailed
from benchrigor.model import Code, RoundPlan
from benchrigor.protocols import Workload
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    RoundRecorder,
    StepwiseWorkload,
)
from benchrigor.workloads.processes import time_limits
from benchrigor.workloads.processes.own_signals import (
    EndedBySignal,
    ended_by_signals,
    handle,
    left_calls,
)

HANG_S = 60.0
CALL_S = 0.02

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer") or "fork" not in multiprocessing.get_all_start_methods(),
    reason="no timer signals, or no fork",
)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait for less time, and forget which calls were left."""
    monkeypatch.setattr(time_limits, "_GRACE_S", 0.2)
    monkeypatch.setattr(time_limits, "_FIRST_GRACE_S", 0.4)
    yield
    left_calls.clear()


class HangingAt:
    """A function that hangs in one of its calls, counted from 0."""

    def __init__(self, call: int) -> None:
        self.call, self.calls = call, 0

    def __call__(self, _amount: float = 0.0) -> None:
        self.calls += 1
        time.sleep(HANG_S if self.calls > self.call else CALL_S)

    async def awaited(self) -> None:
        self()

    def steps(self) -> Iterator[None]:
        while True:
            self()
            yield


def plain(func: HangingAt) -> Workload:
    return CallableWorkload(func, clock=WallClock())


def set_up(func: HangingAt) -> Workload:
    return CallableWorkload(func, clock=WallClock(), setup=list)


def awaited(func: HangingAt) -> Workload:
    return CallableWorkload(func.awaited, clock=WallClock())


def stepwise(func: HangingAt) -> Workload:
    return StepwiseWorkload(func.steps, clock=WallClock())


def of_amounts(func: HangingAt) -> Workload:
    return AmountWorkload(func, clock=WallClock())


@pytest.mark.slow
@pytest.mark.parametrize("make", [plain, set_up, awaited, stepwise])
def test_a_call_that_hangs_ends_the_round_with_what_was_measured(
    make: Callable[[HangingAt], Workload],
) -> None:
    plan, recorder = RoundPlan(index=0, readings=100, seconds=1.0), RoundRecorder()
    make(HangingAt(6)).run(plan, recorder)
    finished = recorder.finish(plan, 1)
    assert finished.cut
    assert 3 <= finished.n_readings <= 6
    assert [each.code for each in finished.notices if each.code is Code.CUT_ROUND]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


class Swallowing(HangingAt):
    """One that swallows whatever ends it."""

    def __call__(self, _amount: float = 0.0) -> None:
        while self.calls == self.call:
            try:
                time.sleep(HANG_S)
            except BaseException:  # noqa: BLE001, S112  # as careless code does
                continue
        super().__call__()


@pytest.mark.slow
@pytest.mark.parametrize("make", [plain, awaited, stepwise])
def test_a_call_that_swallows_what_ends_it_is_left_too(
    make: Callable[[HangingAt], Workload],
) -> None:
    plan, recorder = RoundPlan(index=0, readings=100, seconds=1.0), RoundRecorder()
    make(Swallowing(6)).run(plan, recorder)
    assert recorder.finish(plan, 1).n_readings >= 3
    limited = CallableWorkload(Swallowing(0), clock=WallClock(), timeout_s=0.1)
    with pytest.raises(WorkloadFailed, match=r"took longer than 0\.1 s"):
        limited.run(plan, RoundRecorder())


def test_an_alarm_from_elsewhere_is_no_tick() -> None:
    """It is that of who measures, or ends the program."""
    for timeout_s in (None, 30.0):
        work = CallableWorkload(
            lambda: signal.raise_signal(signal.SIGALRM), clock=WallClock(), timeout_s=timeout_s
        )
        with ended_by_signals(), pytest.raises(EndedBySignal, match="SIGALRM"):
            work.run(RoundPlan(index=0, readings=3, seconds=60.0), RoundRecorder())


@pytest.mark.slow
@pytest.mark.parametrize("make", [plain, set_up, awaited, stepwise, of_amounts])
def test_a_first_call_that_hangs_leaves_no_reading(make: Callable[[HangingAt], Workload]) -> None:
    plan = RoundPlan(index=0, readings=100, seconds=0.05, work=1.0)
    recorder = RoundRecorder()
    make(HangingAt(0)).run(plan, recorder)
    finished = recorder.finish(plan, 1)
    assert finished.cut
    assert finished.n_readings == 0


@pytest.mark.slow
def test_behind_a_first_call_none_is_waited_for_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one tells how long they take, though it is no reading."""
    monkeypatch.setattr(time_limits, "_FIRST_GRACE_S", HANG_S)
    plan, recorder = RoundPlan(index=0, readings=100, seconds=1.0), RoundRecorder()
    began = time.monotonic()
    CallableWorkload(HangingAt(1), clock=WallClock()).run(plan, recorder)
    assert time.monotonic() - began < HANG_S / 2
    assert recorder.finish(plan, 1).cut


@pytest.mark.slow
def test_a_slow_call_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes five times the budget, or ten times as long as those before."""
    monkeypatch.setattr(time_limits, "_FIRST_GRACE_S", HANG_S)
    plan, recorder = RoundPlan(index=0, readings=3, seconds=0.1), RoundRecorder()
    CallableWorkload(lambda: time.sleep(0.5), clock=WallClock()).run(plan, recorder)
    assert recorder.finish(plan, 1).n_readings == 1


@pytest.mark.slow
def test_a_session_ends_with_it_and_so_does_a_pair() -> None:
    record = br.Session(br.Options(budget_s=0.5, target=None, reference=False)).run(HangingAt(3))
    assert record.decision is not None
    assert record.decision.reason is br.StopReason.TIME_BUDGET
    assert record.analysis().n >= 1
    assert any("was left" in each.sentence for each in record.session_notices)
    once, steady = HangingAt(5), HangingAt(1000)
    compared = br.measure_pair(steady, once, budget_s=1.0, seed=1, batch=1)
    assert compared.reason is br.StopReason.TIME_BUDGET
    assert any("HangingAt" in each.sentence for each in compared.notices)
    with pytest.raises(WorkloadFailed, match="candidate"):
        br.measure_pair(steady, HangingAt(0), budget_s=0.05, seed=1, batch=1)


def test_other_threads_and_timers_in_use_are_left_alone() -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        plan, recorder = RoundPlan(index=0, readings=3, seconds=0.1), RoundRecorder()
        mine = signal.getsignal(signal.SIGALRM)
        seen: list[Any] = []
        work = CallableWorkload(
            lambda: seen.append(signal.getsignal(signal.SIGALRM)), clock=WallClock(), inner=1
        )
        work.run(plan, recorder)
        assert set(seen) == {mine}
    finally:
        signal.signal(signal.SIGALRM, before)
    ended = list[int]()

    def measured() -> None:
        planned, told = RoundPlan(index=0, readings=3, seconds=1.0), RoundRecorder()
        CallableWorkload(lambda: time.sleep(CALL_S), clock=WallClock()).run(planned, told)
        ended.append(told.finish(planned, 1).n_readings)

    thread = threading.Thread(target=measured)
    thread.start()
    thread.join()
    assert ended == [3]


def test_a_forked_process_has_the_handlers_from_before(fork: Callable[..., Any]) -> None:
    told, tell = multiprocessing.Pipe(duplex=False)
    before = signal.getsignal(signal.SIGTERM)

    def handlers() -> None:
        tell.send(signal.getsignal(signal.SIGTERM) == before)

    with handle({signal.SIGTERM: lambda *_: None}), handle({signal.SIGTERM: lambda *_: None}):
        fork(handlers).join()
        assert signal.getsignal(signal.SIGTERM) != before
    assert told.recv() is True
    assert signal.getsignal(signal.SIGTERM) == before


POOLS = """
import concurrent.futures, multiprocessing, os, time

CALLS = []

def work(n):
    return sum(range(n))

def fork_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(work, [2_000] * 4)

def ended_workers():
    workers = [
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        for _ in range(2)
    ]
    for each in workers:
        each.start()
    for each in workers:
        each.terminate()
        each.join()

def bare_fork():
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)

def executor():
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(work, [2_000] * 4))

EXECUTORS = []

def stuck_executor():
    CALLS.append(1)
    if not EXECUTORS:
        context = multiprocessing.get_context("fork")
        EXECUTORS.append(concurrent.futures.ProcessPoolExecutor(2, mp_context=context))
    if len(CALLS) > 2:
        EXECUTORS[0].submit(time.sleep, 1_000).result()
    return list(EXECUTORS[0].map(work, [2_000] * 4))

def stuck_pool():
    CALLS.append(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(time.sleep, [1_000 if len(CALLS) > 2 else 0.001] * 2)
"""


@pytest.mark.parametrize(
    ("verb", "function"),
    [
        ("run", "fork_pool"),
        pytest.param("run", "ended_workers", marks=pytest.mark.slow),
        pytest.param("run", "stuck_executor", marks=pytest.mark.slow),
        ("run", "stuck_pool"),
        pytest.param("timeit", "executor", marks=pytest.mark.slow),
        pytest.param("ab", "bare_fork", marks=pytest.mark.slow),
        pytest.param("fresh", "fork_pool", marks=pytest.mark.slow),
    ],
)
def test_pools_end_with_the_budget_and_say_nothing(
    tmp_path: Path, verb: str, function: str
) -> None:
    seconds = "3" if function.startswith("stuck") else "0.5"  # for three calls, which start pools
    name, budget = f"pools:{function}", ["--budget", seconds, "--json"]
    words = {
        "run": ["run", "--in-process", "--no-store", *budget, name],
        "fresh": ["run", "--no-store", *budget, name],
        "timeit": ["timeit", *budget, "-s", f"from pools import {function}", f"{function}()"],
        "ab": ["ab", *budget, name, "pools:work_twice"],
    }
    (tmp_path / "pools.py").write_text(POOLS + "\ndef work_twice():\n    bare_fork()\n")
    done = subprocess.run(
        [sys.executable, "-m", "benchrigor", *words[verb]],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "BENCHRIGOR_STORE": str(tmp_path / "store")},
        capture_output=True,
        text=True,
        timeout=120,  # of a busy machine; without the fix it is for ever
        check=False,
    )
    assert "KeyboardInterrupt" not in done.stderr
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)
    assert "error" not in found
    if function.startswith("stuck"):
        assert "was left" in done.stdout
