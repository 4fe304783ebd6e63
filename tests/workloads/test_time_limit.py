"""A time limit for the calls of functions, on the real clock."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType

import pytest

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import RoundPlan
from benchrigor.protocols import Workload
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    RoundRecorder,
    StepwiseWorkload,
)

LIMIT_S = 0.2
HANG_S = 120.0
CALM_S = 0.5
"""For calls that are to end in time, on a busy machine as well."""

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals")


class HangingAt:
    """A function that hangs in one of its calls."""

    def __init__(self, call: int) -> None:
        self.call, self.calls = call, 0

    def __call__(self, _amount: float = 0.0) -> None:
        self.calls += 1
        if self.calls > self.call:
            time.sleep(HANG_S)

    def steps(self) -> Iterator[None]:
        while True:
            self()
            yield


def plain(func: HangingAt) -> Workload:
    return CallableWorkload(func, clock=WallClock(), inner=1, timeout_s=LIMIT_S)


def between_others(func: HangingAt) -> Workload:
    return CallableWorkload(func, clock=WallClock(), setup=list, timeout_s=LIMIT_S)


def stepwise(func: HangingAt) -> Workload:
    return StepwiseWorkload(func.steps, clock=WallClock(), timeout_s=LIMIT_S)


def of_amounts(func: HangingAt) -> Workload:
    return AmountWorkload(func, clock=WallClock(), timeout_s=LIMIT_S)


def run(workload: Workload, readings: int = 20) -> int:
    """Run a round, and return how many readings it gave."""
    plan, recorder = RoundPlan(index=0, readings=readings, work=1.0), RoundRecorder()
    workload.run(plan, recorder)
    return recorder.finish(plan, 1).n_readings


@pytest.mark.parametrize(
    ("make", "call", "where"),
    [
        (plain, 0, "before the first reading"),
        (plain, 4, "at reading 3"),
        (between_others, 4, "at reading 3"),
        (stepwise, 3, "at reading 3"),
        (of_amounts, 0, "at reading 0"),
    ],
)
def test_a_call_that_lasts_too_long_is_ended(
    make: Callable[[HangingAt], Workload], call: int, where: str
) -> None:
    func, began = HangingAt(call), time.monotonic()
    with pytest.raises(WorkloadFailed, match=rf"a call of .* took longer than 0.2 s \({where}\)"):
        run(make(func))
    assert func.calls == call + 1
    assert time.monotonic() - began < HANG_S / 2


@pytest.mark.slow
def test_quick_calls_are_left_alone_however_long_the_round() -> None:
    calls = CallableWorkload(lambda: time.sleep(0.01), clock=WallClock(), timeout_s=CALM_S)
    assert run(calls, readings=60) == 60  # longer than the limit


@pytest.mark.slow
def test_setup_and_teardown_are_not_limited() -> None:
    slow = lambda: time.sleep(3 * LIMIT_S)  # noqa: E731  # one of three places
    workload = CallableWorkload(
        lambda: None, clock=WallClock(), setup=slow, teardown=slow, timeout_s=LIMIT_S
    )
    assert run(workload, readings=1) == 1


def test_a_function_that_catches_exceptions_is_ended_too() -> None:
    def stubborn() -> None:
        until = time.monotonic() + HANG_S
        while time.monotonic() < until:
            with suppress(Exception):
                time.sleep(1.0)

    with pytest.raises(WorkloadFailed, match="took longer"):
        run(CallableWorkload(stubborn, clock=WallClock(), timeout_s=LIMIT_S))


@pytest.mark.slow
def test_several_calls_per_reading_have_the_limit_on_average() -> None:
    workload = CallableWorkload(
        lambda: time.sleep(0.6 * CALM_S), clock=WallClock(), inner=3, timeout_s=CALM_S
    )
    assert run(workload, readings=1) == 1
    func = HangingAt(4)
    with pytest.raises(WorkloadFailed, match=r"a reading of .* took longer than 3 times 0.2 s"):
        run(CallableWorkload(func, clock=WallClock(), inner=3, timeout_s=LIMIT_S))


@pytest.mark.parametrize("calls", [0, 10**9])
def test_the_handler_and_the_timer_of_others_are_restored(calls: int) -> None:
    rung: list[int] = []

    def ring(number: int, _frame: FrameType | None) -> None:
        rung.append(number)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 100.0, 7.0)
    try:
        with suppress(WorkloadFailed):
            run(CallableWorkload(HangingAt(calls), clock=WallClock(), inner=1, timeout_s=LIMIT_S))
        assert signal.getsignal(signal.SIGALRM) is ring
        left_s, interval_s = signal.getitimer(signal.ITIMER_REAL)
        assert 50.0 < left_s < 100.0
        assert interval_s == 7.0
        assert not rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_measure_keeps_what_was_finished_before() -> None:
    func = HangingAt(400)
    with pytest.raises(WorkloadFailed, match=f"took longer than {LIMIT_S:g} s") as caught:
        br.measure(func.__call__, batch=1, timeout_s=LIMIT_S, seed=1)
    record = caught.value.record
    assert isinstance(record, br.RunRecord)
    assert 1 <= record.readings("time").size < 400
    assert record.decision is not None
    assert record.decision.reason is br.StopReason.WORKLOAD_FAILED


@pytest.mark.parametrize("given", [0, -1.0, float("nan"), float("inf"), "5", True])
def test_what_is_no_limit_is_named(given: object) -> None:
    with pytest.raises(InvalidInput, match="timeout_s is"):
        br.measure(lambda: None, timeout_s=given)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidInput, match="timeout_s is"):
        StepwiseWorkload(HangingAt(0).steps, clock=WallClock(), timeout_s=given)  # type: ignore[arg-type]


def test_where_it_cannot_be_kept_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    def measure() -> None:
        try:
            br.measure(lambda: None, timeout_s=5.0)
        except InvalidInput as error:
            refused.append(str(error))

    thread = threading.Thread(target=measure, name="helper")
    thread.start()
    thread.join()
    monkeypatch.delattr(signal, "setitimer")
    measure()
    assert "only calls in the main thread can be ended, and this is 'helper'" in refused[0]
    assert "this system has no timer" in refused[1]
