from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.model import Delays, Round, RoundPlan
from benchrigor.testing import FakeClock, FakeMeter
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    RoundRecorder,
    StepwiseWorkload,
)
from benchrigor.workloads.processes.worker import SegmentTimer
from benchrigor.workloads.recorder import Segments, delay_by_others

MS = 1_000_000


def delays_of(finished: Round) -> Delays:
    assert finished.delays is not None
    return finished.delays


def delayed_once(
    clock: FakeClock, meter: FakeMeter, *, nth: int, lasting_ns: int
) -> Callable[[], None]:
    """Return a function that loses 5 ms at its nth call, counted from 1."""
    calls = [0]

    def function() -> None:
        clock.advance(lasting_ns)
        calls[0] += 1
        if calls[0] == nth:
            meter.lose(5_000_000)

    return function


def test_long_readings_are_a_segment_each_and_have_their_own_delay(
    clock: FakeClock, meter: FakeMeter
) -> None:
    function = delayed_once(clock, meter, nth=104, lasting_ns=3_000_000)
    workload = CallableWorkload(function, clock=clock, meter=meter, inner=1)
    finished = run(workload, 200)  # the first call is timed apart
    assert delays_of(finished).stops.tolist() == list(range(1, 201))
    (delays,) = delays_of(finished).seconds.values()
    assert delays[102] == pytest.approx(0.005)
    assert delays.sum() == pytest.approx(0.005)
    assert finished.unit_readings["time"][102] == pytest.approx(0.008)


@pytest.mark.parametrize(("by_turns", "stopped_s"), [(False, 0.7), (True, 0.0)])
def test_a_gap_between_segments_is_a_stop_unless_it_was_the_turn_of_another_process(
    by_turns: bool, stopped_s: float
) -> None:
    n, recorder = 100, RoundRecorder()
    began_ns = [place * MS + (700 * MS if place > 50 else 0) for place in range(n)]
    segments = [(place + 1, began_ns[place], 0, MS, MS) for place in range(n)]
    used_ns = [100 * MS, 0, 800 * MS]
    recorder.unit_readings("time", [1e-3] * n)
    Segments(segments, [], used_ns, is_metered=True, by_turns=by_turns).report(recorder)
    delays = delays_of(recorder.finish(RoundPlan(index=0, readings=n), elapsed_ns=800 * MS))
    assert sum(delays.seconds.get("stopped", [0.0])) == pytest.approx(stopped_s)


def test_each_segment_has_the_wall_time_of_its_readings_whatever_they_are_called(
    clock: FakeClock, meter: FakeMeter
) -> None:
    def function() -> None:
        clock.advance(5_000)
        meter.lose(1_000)

    workload = CallableWorkload(
        function, clock=clock, meter=meter, metric="latency", inner=10, setup=None
    )
    finished = run(workload, 70_000)  # two chunks
    delays = delays_of(finished)
    readings = np.diff(delays.stops, prepend=0)
    assert delays.stops[-1] == 70_000
    assert delays.duration_s == pytest.approx(readings * 10 * 6e-6)
    assert delays.seconds["run queue"] == pytest.approx(readings * 10 * 1e-6)


@pytest.mark.parametrize("setup", [None, lambda: None])
def test_a_segment_is_not_finished_when_its_readings_become_slow(
    clock: FakeClock, meter: FakeMeter, setup: Callable[[], None] | None
) -> None:
    durations = iter([40_000] * 2_010)

    def function() -> None:
        clock.advance(next(durations, 500_000_000))
        meter.lose(1_000)

    plan, recorder = RoundPlan(index=0, readings=5_000, seconds=3.0), RoundRecorder()
    workload = CallableWorkload(function, clock=clock, meter=meter, setup=setup)
    workload.run(plan, recorder)
    finished = recorder.finish(plan, elapsed_ns=0)
    assert finished.cut
    assert 3.0 <= clock.now_ns() / 1e9 < 3.6
    delays = delays_of(finished)
    readings = np.diff(delays.stops, prepend=0)
    assert delays.stops[-1] == finished.unit_readings["time"].size
    assert delays.seconds["run queue"] == pytest.approx(readings * 1e-6)
    assert delays.duration_s.sum() == pytest.approx(finished.unit_readings["time"].sum())


@pytest.mark.parametrize("kind", ["setup and teardown", "steps", "an amount"])
def test_each_reading_is_a_segment_with_its_own_delay(
    clock: FakeClock, meter: FakeMeter, kind: str
) -> None:
    def function(_amount: float = 0.0) -> None:
        clock.advance(2_000_000)
        meter.lose(1_000_000)

    def steps() -> Iterator[None]:
        while True:
            function()
            yield

    timing = {"clock": clock, "meter": meter}
    around = {"setup": lambda: meter.lose(10 * MS), "teardown": lambda: meter.lose(20 * MS)}
    workload, n, work = {
        "setup and teardown": (CallableWorkload(function, **around, **timing), 30, None),
        "steps": (StepwiseWorkload(steps, **timing), 30, None),
        "an amount": (AmountWorkload(function, **timing), 1, 500),
    }[kind]
    delays = delays_of(run(workload, n, work=work))
    assert delays.stops.tolist() == [*range(1, n + 1)]
    assert delays.seconds["run queue"] == pytest.approx(0.001)
    assert delays.duration_s == pytest.approx(0.003)


def test_without_a_meter_nothing_is_claimed(clock: FakeClock) -> None:
    workload = CallableWorkload(lambda: clock.advance(1_000_000), clock=clock)
    assert run(workload, 20).delays is None


def test_delay_between_rounds_counts_for_no_reading(clock: FakeClock, meter: FakeMeter) -> None:
    workload = CallableWorkload(lambda: clock.advance(2_000_000), clock=clock, meter=meter)
    run(workload, 20)
    meter.lose(30_000_000)
    (delays,) = delays_of(run(workload, 20)).seconds.values()
    assert delays.sum() == 0.0


def test_work_of_others_between_rounds_counts_for_no_round(clock: FakeClock) -> None:
    meter = FakeMeter(clock)  # beside the real threads of this process
    timer, plan = SegmentTimer(meter.delay_ns, WallClock.now_ns), RoundPlan(index=0, readings=1)
    for _ in range(2):
        code = "import time\nwhile time.process_time() < 0.1: pass"
        subprocess.run([sys.executable, "-S", "-c", code], check=True)
        recorder = RoundRecorder()
        recorder.unit_readings("time", [1.0])
        timer.begin([], done=0, readings=1)(1_000_000_000)
        Segments(**timer.measured()).report(recorder)
        assert recorder.finish(plan, elapsed_ns=0).delays is not None


@pytest.mark.parametrize("readings", [7, 490, 523, 1_009])
def test_segments_follow_the_pace_and_are_about_equal(
    clock: FakeClock, meter: FakeMeter, readings: int
) -> None:
    pace_ns = iter([*[900_000] * 16, *[10_000] * 20_000])
    function = lambda: clock.advance(next(pace_ns, 40_000))  # noqa: E731  # of one place
    workload = CallableWorkload(function, clock=clock, meter=meter, inner=1, first_call_apart=False)
    sizes = np.diff(delays_of(run(workload, 20_016)).stops, prepend=0)
    assert sizes[-1] == pytest.approx(50, abs=2)  # the warm-up does not fix it
    run(workload, 2_000, index=1)
    sizes = np.diff(delays_of(run(workload, readings, index=2)).stops, prepend=0)
    assert sizes.sum() == readings
    assert sizes.max() - sizes.min() <= 1


def of_a_scheduler(
    rng: np.random.Generator, *, processors: int, siblings: int, others: int
) -> tuple[int, int, int, int, int]:
    """Simulate queues of processors; return delay, delay by others, own and siblings' time, wall.

    Every thread sleeps now and then, and moves to another queue when it wakes. It waits for
    whoever has the processor of its queue.
    """
    wall, mine = 2_000, 0
    kinds = np.array([0] + [1] * siblings + [2] * others)
    awake = rng.random(kinds.size) < 0.5
    queue = rng.integers(processors, size=kinds.size)
    rests, wakes = rng.uniform(0.0, 0.2, kinds.size), rng.uniform(0.01, 0.5, kinds.size)
    ran, waited = np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    for _ in range(wall):
        for processor in range(processors):
            ready = np.flatnonzero(awake & (queue == processor))
            if ready.size:
                chosen = rng.choice(ready)
                ran[kinds[chosen]] += 1
                waited[kinds[chosen]] += bool(mine in ready and chosen != mine)
        wakening = ~awake & (rng.random(kinds.size) < wakes)
        queue[wakening] = rng.integers(processors, size=wakening.sum())
        awake = (awake & (rng.random(kinds.size) >= rests)) | wakening
    return int(waited.sum()), int(waited[2]), int(ran[0]), int(ran[1]), wall


def test_delay_by_others_is_within_its_bounds_whoever_ran() -> None:
    rng = np.random.default_rng(20261201)
    exact = 0
    for _ in range(24):
        processors, siblings, others = (int(rng.integers(low, 4)) for low in (1, 1, 0))
        delay, by_others, own, by_siblings, wall = of_a_scheduler(
            rng, processors=processors, siblings=siblings, others=others
        )
        least, most = delay_by_others(delay, own, by_siblings, wall, processors)
        assert least <= by_others <= most <= delay
        exact += most - least <= 0.1 * wall
    assert exact >= 6  # the bounds say something


def test_a_thread_that_waits_for_its_siblings_alone_lost_nothing() -> None:
    # One processor, two threads: each runs half of the time, and waits the other half.
    assert delay_by_others(500, 500, 500, 1_000, 1) == (0, 0)
    # A neighbour has a third of it.
    assert delay_by_others(660, 330, 330, 1_000, 1) == (330, 340)
    # Two processors, and the sibling need not have been in the way of anybody.
    assert delay_by_others(500, 500, 700, 1_000, 2) == (0, 500)


@pytest.mark.parametrize(
    ("siblings_ms", "wall_ms", "told", "is_fact"),
    [
        (0, 130, (80, None, None), False),
        (10, 130, (70, 10, 1.0), False),
        (50, 130, (30, 50, 1.0), True),
        (20, 150, (60, 20, 0.8), True),
        (51, 150, None, True),
    ],
)
def test_what_own_threads_may_have_taken_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
    siblings_ms: int,
    wall_ms: int,
    told: tuple[int, int | None, float | None] | None,
    is_fact: bool,
) -> None:
    """The thread has 50 ms of one processor, and waits 80 ms; who had more says nothing of it."""
    clock = FakeClock()
    meter = FakeMeter(clock)
    used = iter([(0, 0, 0), (0, 0, 0), (50 * MS, siblings_ms * MS, wall_ms * MS)])
    monkeypatch.setattr(SegmentTimer, "spent_ns", lambda _: next(used))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)

    def function() -> None:
        clock.advance(2_000_000)
        meter.lose(8_000_000)

    finished = run(CallableWorkload(function, clock=clock, meter=meter, inner=1), 10)
    assert finished.facts.get("other_cpu_s") == (siblings_ms / 1e3 if is_fact else None)
    assert [each.code for each in finished.notices] == ["delay-not-measured"] * (told is None)
    if told is None:
        assert finished.delays is None
        return
    delays, (by_others_ms, own_ms, known) = delays_of(finished), told
    assert delays.duration_s.sum() == pytest.approx(0.1)
    assert 1e3 * delays.seconds["run queue"].sum() == pytest.approx(by_others_ms)
    assert (None if delays.own is None else 1e3 * delays.own.sum()) == pytest.approx(own_ms)
    assert (None if delays.known is None else delays.known.min()) == pytest.approx(known)
