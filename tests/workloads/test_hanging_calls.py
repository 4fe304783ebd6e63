"""Calls that never end: their limit, or the budget ends them; and functions that fork."""

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
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from simulated.rounds import run

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Code
from benchrigor.protocols import Workload
from benchrigor.workloads import AmountWorkload, CallableWorkload, StepwiseWorkload
from benchrigor.workloads.processes import own_signals, time_limits

HANG_S = 60.0
CALL_S = 0.02
LIMIT_S, CALM_S = 0.2, 0.5
"""Limits of calls that are too long, and of calls that are to end in time on a busy machine too."""

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
    own_signals.left_calls.clear()


class HangingAt:
    """A function that hangs in one of its calls, counted from 0."""

    def __init__(self, call: int, quick_s: float = CALL_S) -> None:
        self.call, self.calls, self.quick_s = call, 0, quick_s

    def __call__(self, _amount: float = 0.0) -> None:
        self.calls += 1
        time.sleep(HANG_S if self.calls > self.call else self.quick_s)

    async def awaited(self) -> None:
        self()

    def steps(self) -> Iterator[None]:
        while True:
            self()
            yield


Make = Callable[..., Workload]
plain = partial(CallableWorkload, clock=WallClock())
set_up = partial(CallableWorkload, clock=WallClock(), setup=list)
of_amounts = partial(AmountWorkload, clock=WallClock())


def awaited(func: HangingAt) -> Workload:
    return CallableWorkload(func.awaited, clock=WallClock())


def stepwise(func: HangingAt, **given: Any) -> Workload:
    return StepwiseWorkload(func.steps, clock=WallClock(), **given)


@pytest.mark.parametrize("make", [plain, set_up, awaited, stepwise])
def test_a_call_that_hangs_ends_the_round_with_what_was_measured(make: Make) -> None:
    finished = run(make(HangingAt(6)), 100, seconds=1.0)
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


@pytest.mark.parametrize("make", [plain, awaited, stepwise])
def test_a_call_that_swallows_what_ends_it_is_left_too(make: Make) -> None:
    assert run(make(Swallowing(6)), 100, seconds=1.0).n_readings >= 3
    with pytest.raises(WorkloadFailed):
        run(plain(Swallowing(0), timeout_s=0.1), 100, seconds=1.0)


def test_an_alarm_from_elsewhere_is_no_tick() -> None:
    """It is that of who measures, or ends the program."""
    for timeout_s in (None, 30.0):
        work = CallableWorkload(
            lambda: signal.raise_signal(signal.SIGALRM), clock=WallClock(), timeout_s=timeout_s
        )
        with own_signals.ended_by_signals(), pytest.raises(BaseException, match="SIGALRM"):
            run(work, 3, seconds=60.0)


@pytest.mark.parametrize("make", [plain, set_up, awaited, stepwise, of_amounts])
def test_a_first_call_that_hangs_leaves_no_reading(make: Make) -> None:
    finished = run(make(HangingAt(0)), 100, seconds=0.05, work=1.0)
    assert finished.cut
    assert finished.n_readings == 0


def test_behind_a_first_call_none_is_waited_for_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one tells how long they take, though it is no reading."""
    monkeypatch.setattr(time_limits, "_FIRST_GRACE_S", HANG_S)
    began = time.monotonic()
    assert run(plain(HangingAt(1)), 100, seconds=1.0).cut
    assert time.monotonic() - began < HANG_S / 2


def test_a_slow_call_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes five times the budget, or ten times as long as those before."""
    monkeypatch.setattr(time_limits, "_FIRST_GRACE_S", HANG_S)
    assert run(plain(lambda: time.sleep(0.5)), 3, seconds=0.1).n_readings == 1


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
        mine = signal.getsignal(signal.SIGALRM)
        seen: list[Any] = []
        run(plain(lambda: seen.append(signal.getsignal(signal.SIGALRM)), inner=1), 3, seconds=0.1)
        assert set(seen) == {mine}
    finally:
        signal.signal(signal.SIGALRM, before)
    ended = list[int]()

    def measured() -> None:
        ended.append(run(plain(lambda: time.sleep(CALL_S)), 3, seconds=1.0).n_readings)

    thread = threading.Thread(target=measured)
    thread.start()
    thread.join()
    assert ended == [3]


@pytest.mark.parametrize(
    ("make", "call"), [(plain, 0), (plain, 4), (set_up, 4), (stepwise, 3), (of_amounts, 0)]
)
def test_a_call_that_lasts_longer_than_its_limit_is_ended(make: Make, call: int) -> None:
    func, began = HangingAt(call, quick_s=0.0), time.monotonic()
    with pytest.raises(WorkloadFailed):
        run(make(func, timeout_s=LIMIT_S), 20, work=1.0)
    assert func.calls == call + 1
    assert time.monotonic() - began < HANG_S / 2


def test_quick_calls_are_left_alone_however_long_the_round() -> None:
    calls = CallableWorkload(lambda: time.sleep(0.01), clock=WallClock(), timeout_s=CALM_S)
    assert run(calls, readings=60).n_readings == 60  # longer than the limit


def test_setup_and_teardown_are_not_limited() -> None:
    slow = lambda: time.sleep(3 * LIMIT_S)  # noqa: E731  # one of three places
    workload = CallableWorkload(
        lambda: None, clock=WallClock(), setup=slow, teardown=slow, timeout_s=LIMIT_S
    )
    assert run(workload, readings=1).n_readings == 1


def test_several_calls_per_reading_have_the_limit_on_average() -> None:
    workload = CallableWorkload(
        lambda: time.sleep(0.6 * CALM_S), clock=WallClock(), inner=3, timeout_s=CALM_S
    )
    assert run(workload, readings=1).n_readings == 1
    with pytest.raises(WorkloadFailed):
        run(plain(HangingAt(4, quick_s=0.0), inner=3, timeout_s=LIMIT_S), readings=20)


@pytest.mark.parametrize("calls", [0, 10**9])
def test_the_handler_and_the_timer_of_others_are_restored(calls: int) -> None:
    rung: list[int] = []

    def ring(number: int, _frame: FrameType | None) -> None:
        rung.append(number)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 100.0, 7.0)
    try:
        with suppress(WorkloadFailed):
            run(plain(HangingAt(calls, quick_s=0.0), inner=1, timeout_s=LIMIT_S), readings=20)
        assert signal.getsignal(signal.SIGALRM) is ring
        left_s, interval_s = signal.getitimer(signal.ITIMER_REAL)
        assert 50.0 < left_s < 100.0
        assert interval_s == 7.0
        assert not rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_where_a_limit_cannot_be_kept_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "setitimer")
    with pytest.raises(InvalidInput, match=r"timeout_s is 5\.0"):
        br.measure(lambda: None, timeout_s=5.0)


def test_a_forked_process_has_the_handlers_from_before(fork: Callable[..., Any]) -> None:
    told, tell = multiprocessing.Pipe(duplex=False)
    before = signal.getsignal(signal.SIGTERM)

    def handlers() -> None:
        tell.send(signal.getsignal(signal.SIGTERM) == before)

    with own_signals.ended_by_signals(), own_signals.ended_by_signals():
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
        ("run", "ended_workers"),
        ("run", "stuck_executor"),
        ("run", "stuck_pool"),
        ("timeit", "executor"),
        ("ab", "bare_fork"),
        ("fresh", "fork_pool"),
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
