"""Two processes that measure by turns."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from benchrigor.model import RoundPlan
from benchrigor.testing import FakeClock
from benchrigor.workloads import InterpreterWorkload
from benchrigor.workloads.processes.worker import TURN_NS, Enough, SegmentTimer, Turns

Ends = tuple[socket.socket, socket.socket]
WAIT_S = 60.0


@pytest.fixture
def ends() -> Iterator[Ends]:
    one, two = socket.socketpair()
    with one, two:
        yield one, two


def turns_of(end: socket.socket, is_first: bool, now_ns: Callable[[], int] = int) -> Turns:
    turns = Turns((end.fileno(), is_first), now_ns)
    turns.begin()
    return turns


def beside(work: Callable[[], object]) -> threading.Thread:
    """Run what stands for the other process."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def end(other: threading.Thread) -> None:
    other.join(WAIT_S)
    assert not other.is_alive()


def test_one_works_while_the_other_waits_until_it_ends(ends: Ends):
    said: list[str] = []

    def take_three(name: str, end: socket.socket, is_first: bool) -> None:
        turns = turns_of(end, is_first)
        for _ in range(3):
            said.append(name)
            turns.hand_over()
        turns.end()

    other = beside(lambda: take_three("second", ends[1], is_first=False))
    take_three("first", ends[0], is_first=True)
    end(other)
    assert said == ["first", "second"] * 3


@pytest.mark.parametrize("ended", ["ended", "died"])
def test_who_is_left_goes_on_alone(ends: Ends, ended: str):
    def leave() -> None:
        turns = turns_of(ends[1], is_first=False)
        turns.end() if ended == "ended" else ends[1].close()

    other = beside(leave)
    turns = turns_of(ends[0], is_first=True)
    assert not turns.is_alone
    turns.hand_over()
    turns.end()
    end(other)
    assert turns.is_alone
    assert not turns.is_over(10**18)
    if ended == "ended":  # nothing is written: SIGPIPE would kill what has it as programs do
        with pytest.raises(BlockingIOError):
            ends[1].recv(1, socket.MSG_DONTWAIT)


def test_a_turn_is_over_after_its_time(ends: Ends):
    other = beside(lambda: turns_of(ends[1], is_first=False))
    turns = turns_of(ends[0], True, lambda: 5)
    assert not turns.is_over(5 + TURN_NS - 1)
    assert turns.is_over(5 + TURN_NS)
    turns.end()
    end(other)


def timed(turns: Turns, clock: FakeClock, readings: int) -> tuple[SegmentTimer, list[int]]:
    """Time readings as long as turns."""
    timer, taken = SegmentTimer(lambda: 0, clock.now_ns, turns=turns), list[int]()
    timer.expect(TURN_NS)
    take = timer.begin(taken, done=0, readings=readings)
    with suppress(Enough):
        for _ in range(readings):
            clock.advance(TURN_NS)
            take(TURN_NS)
    timer.close(len(taken))
    return timer, taken


@pytest.mark.parametrize(("readings_there", "readings"), [(40, 40), (10, 100)])
def test_who_has_enough_readings_ends_with_the_other(
    ends: Ends, clock: FakeClock, readings_there: int, readings: int
):
    """The pace of the machine is another one later on."""
    there = FakeClock()

    def work() -> None:
        turns = turns_of(ends[1], False, there.now_ns)
        timed(turns, there, readings_there)
        turns.end()

    other = beside(work)
    _, taken = timed(turns_of(ends[0], True, clock.now_ns), clock, 100)
    end(other)
    assert len(taken) == pytest.approx(readings, abs=2)


def test_who_waits_too_long_goes_on_alone(ends: Ends):
    """The other one hangs, and is to be named by whoever ends it."""
    workload = InterpreterWorkload("os:getcwd", timeout_s=0.01)
    workload.start(RoundPlan(index=0, readings=2), ends[0], is_first=True)
    workload.close()
    assert turns_of(ends[0], is_first=True).is_alone


def test_a_copy_of_a_process_takes_no_turns(ends: Ends):
    """As one that the target forks, which may outlive it by hours."""
    other = beside(lambda: turns_of(ends[1], is_first=False))
    turns = turns_of(ends[0], is_first=True)
    turns.leave()
    turns.leave()  # a copy of the copy
    turns.end()
    assert not turns.is_over(10**18)
    end(other)
    ends[0].detach()  # it is closed


def test_the_time_of_the_other_is_in_no_segment(ends: Ends, clock: FakeClock):
    def work() -> None:
        turns = turns_of(ends[1], is_first=False)
        for _ in range(5):
            clock.advance(7_000_000)
            turns.hand_over()
        turns.end()

    other = beside(work)
    timer, taken = timed(turns_of(ends[0], True, clock.now_ns), clock, 10)
    end(other)
    _, began_ns, _, durations_ns, _ = zip(*timer.segments, strict=True)
    assert [*durations_ns] == taken == [TURN_NS] * 10
    begun_ns = [later - earlier for earlier, later in pairwise(began_ns)]
    assert begun_ns == [TURN_NS + 7_000_000] * 5 + [TURN_NS] * 4


def test_readings_that_find_the_caches_of_the_other_do_not_count(
    ends: Ends, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    """Else what needs caches would look slower beside what needs none than by itself."""

    def work() -> None:
        turns = turns_of(ends[1], is_first=False)
        for _ in range(5):
            turns.hand_over()
        turns.end()

    other, turns = beside(work), turns_of(ends[0], True, clock.now_ns)
    is_cold, hand_over = list[bool](), turns.hand_over
    monkeypatch.setattr(turns, "hand_over", lambda: (hand_over(), is_cold.append(True)))
    timer, taken = SegmentTimer(lambda: 0, clock.now_ns, turns=turns), list[int]()
    timer.expect(100_000)
    take = timer.begin(taken, done=0, readings=1_000)
    with suppress(Enough):
        for _ in range(1_000):
            clock.advance(reading_ns := 900_000 if is_cold else 100_000)
            is_cold.clear()
            take(reading_ns)
    end(other)
    assert set(taken) == {100_000}
    stops, _, _, durations_ns, _ = zip(*timer.segments, strict=True)
    assert (stops[-1], sum(durations_ns)) == (len(taken), sum(taken))


def test_the_time_of_the_other_is_no_time_of_the_round(ends: Ends, clock: FakeClock):
    def work() -> None:
        turns = turns_of(ends[1], is_first=False)
        time.sleep(0.3)
        turns.end()

    other = beside(work)
    turns, began_s = turns_of(ends[0], True, clock.now_ns), time.monotonic()
    timer, _ = timed(turns, clock, 10)
    assert timer.used_ns is not None
    used_s = (timer.spent_ns()[2] - timer.used_ns[2]) / 1e9
    assert time.monotonic() - began_s - used_s > 0.2
    end(other)


@pytest.mark.skipif(not Path("/proc/thread-self/stat").exists(), reason="of Linux")
@pytest.mark.parametrize("is_forbidden", [False, True], ids=["moved", "in a sandbox"])
def test_who_waits_is_moved_to_this_processor_where_it_may_be_and_set_free_again(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, is_forbidden: bool
):
    moves: list[tuple[int, set[int]]] = []

    def move(process: int, cpus: set[int]) -> None:
        if is_forbidden:
            raise PermissionError
        if threading.current_thread() is threading.main_thread():
            moves.append((process, {*cpus}))

    monkeypatch.setattr(os, "sched_setaffinity", move)

    def work() -> None:
        turns = turns_of(ends[1], is_first=False)
        turns.hand_over()
        turns.end()

    other = beside(work)
    turns = turns_of(ends[0], is_first=True)
    turns.hand_over()
    assert not turns.is_alone
    turns.end()
    end(other)
    if not is_forbidden:
        (moved, here), freed = moves
        assert moved == os.getpid()  # of the other one, which is a thread here
        assert here <= os.sched_getaffinity(0)
        assert len(here) == 1
        assert freed == (0, os.sched_getaffinity(0))
