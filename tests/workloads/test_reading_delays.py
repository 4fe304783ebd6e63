from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.model import Delays, Round, RoundPlan
from benchrigor.model.interference import DELAY_ELSEWHERE
from benchrigor.testing import FakeClock, FakeMeter
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    RoundRecorder,
    StepwiseWorkload,
    reading_delays,
)
from benchrigor.workloads.reading_delays import ReadingDelays, delay_by_others

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


def test_short_readings_share_segments_of_half_a_millisecond(
    clock: FakeClock, meter: FakeMeter
) -> None:
    function = delayed_once(clock, meter, nth=1000, lasting_ns=10_000)
    finished = run(CallableWorkload(function, clock=clock, meter=meter, inner=1), 2_000)
    stops = delays_of(finished).stops
    assert set(np.diff(stops, prepend=0)) == {50}
    assert stops[-1] == 2_000
    (delays,) = delays_of(finished).seconds.values()
    place = int(np.argmax(delays))
    assert stops[place - 1] < 999 <= stops[place]
    assert delays.sum() == pytest.approx(0.005)


@pytest.mark.parametrize(("by_turns", "stopped_s"), [(False, 0.7), (True, 0.0)])
def test_a_gap_between_segments_is_a_stop_unless_it_was_the_turn_of_another_process(
    clock: FakeClock, meter: FakeMeter, by_turns: bool, stopped_s: float
) -> None:
    timer, recorder = ReadingDelays(meter.delay_ns, clock.now_ns), RoundRecorder()
    n, timer.by_turns = 100, by_turns
    timer.stops, timer.delays_ns, timer.durations_ns = [*range(1, n + 1)], [0] * n, [MS] * n
    timer.began_ns = [place * MS + (700 * MS if place > 50 else 0) for place in range(n)]
    recorder.unit_readings("time", [1e-3] * n)
    timer.report(recorder, [100 * MS, 0, 800 * MS])
    delays = delays_of(recorder.finish(RoundPlan(index=0, readings=n), elapsed_ns=800 * MS))
    assert sum(delays.seconds.get("stopped", [0.0])) == pytest.approx(stopped_s)


@pytest.mark.parametrize(("others_ms", "is_told"), [(5, False), (20, True), (150, True)])
def test_what_other_threads_computed_is_a_fact(
    clock: FakeClock, meter: FakeMeter, others_ms: int, is_told: bool
) -> None:
    timer, recorder = ReadingDelays(meter.delay_ns, clock.now_ns), RoundRecorder()
    timer.stops, timer.delays_ns, timer.durations_ns = [1], [0], [100 * MS]
    timer.report(recorder, [90 * MS, others_ms * MS, 100 * MS])
    recorder.unit_readings("time", [0.1])
    facts = recorder.finish(RoundPlan(index=0), elapsed_ns=0).facts
    assert facts == ({"other_cpu_s": others_ms / 1e3} if is_told else {})


def test_segments_have_the_same_length_from_round_to_round(
    clock: FakeClock, meter: FakeMeter
) -> None:
    workload = CallableWorkload(lambda: clock.advance(10_000), clock=clock, meter=meter, inner=1)
    run(workload, 500)
    assert set(np.diff(delays_of(run(workload, 500)).stops, prepend=0)) == {50}


def test_delay_of_setup_and_teardown_counts_for_no_reading(
    clock: FakeClock, meter: FakeMeter
) -> None:
    def function() -> None:
        clock.advance(1_000_000)
        meter.lose(1_000)

    workload = CallableWorkload(
        function,
        clock=clock,
        meter=meter,
        setup=lambda: meter.lose(10_000_000),
        teardown=lambda: meter.lose(20_000_000),
    )
    (delays,) = delays_of(run(workload, 50)).seconds.values()
    assert delays.sum() == pytest.approx(50 * 1e-6)


def test_steps_of_a_generator_are_measured_alike(clock: FakeClock, meter: FakeMeter) -> None:
    def steps():  # type: ignore[no-untyped-def]  # as a user writes it
        while True:
            clock.advance(2_000_000)
            meter.lose(1_000_000)
            yield

    finished = run(StepwiseWorkload(steps, clock=clock, meter=meter), 30)
    (delays,) = delays_of(finished).seconds.values()
    assert delays_of(finished).stops.size == 30
    assert delays == pytest.approx(0.001)


def test_a_call_with_an_amount_is_one_segment(clock: FakeClock, meter: FakeMeter) -> None:
    def job(amount: int) -> None:
        clock.advance(amount * 1_000)
        meter.lose(70_000)

    finished = run(AmountWorkload(job, clock=clock, meter=meter), 1, work=500)
    assert delays_of(finished).stops.tolist() == [1]
    assert delays_of(finished).seconds["run queue"].tolist() == pytest.approx([70e-6])
    assert delays_of(finished).duration_s.tolist() == [finished.readings["time"]]


@pytest.mark.slow
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
    delays, plan = ReadingDelays(meter.delay_ns, WallClock.now_ns), RoundPlan(index=0, readings=1)
    for _ in range(2):
        code = "import time\nwhile time.process_time() < 0.1: pass"
        subprocess.run([sys.executable, "-S", "-c", code], check=True)
        recorder = RoundRecorder()
        recorder.unit_readings("time", [1.0])
        delays.begin([], done=0, readings=1)(1_000_000_000)
        delays.report(recorder)
        assert recorder.finish(plan, elapsed_ns=0).delays is not None


@pytest.mark.parametrize(("others_ms", "is_told"), [(9, True), (11, False)])
def test_where_others_used_a_tenth_of_the_time_and_more_than_the_work_no_delay_is_told(
    monkeypatch: pytest.MonkeyPatch, meter: FakeMeter, others_ms: int, is_told: bool
) -> None:
    used = iter([(0, 0, 0), (5 * MS, others_ms * MS, 100 * MS)])
    monkeypatch.setattr(ReadingDelays, "spent_ns", lambda _: next(used))
    delays, recorder = ReadingDelays(meter.delay_ns, WallClock.now_ns), RoundRecorder()
    delays.begin([], done=0, readings=1)(100 * MS)
    recorder.unit_readings("time", [0.1])
    delays.report(recorder)
    finished = recorder.finish(RoundPlan(index=0, readings=1), elapsed_ns=0)
    assert (finished.delays is not None) == is_told
    sentences = [] if is_told else [DELAY_ELSEWHERE]
    assert [each.sentence for each in finished.notices] == sentences


def test_a_warm_up_does_not_fix_the_length_for_good(meter: FakeMeter) -> None:
    delays, elapsed_ns = ReadingDelays(meter.delay_ns, WallClock.now_ns), list[int]()
    take = delays.begin(elapsed_ns, done=0, readings=20_016)
    for reading_ns in [900_000] * 16 + [10_000] * 20_000:
        take(reading_ns)
    assert np.diff(delays.stops)[-1] == pytest.approx(50, abs=2)


@pytest.mark.parametrize("readings", [7, 490, 523, 1_009])
def test_the_segments_of_a_round_are_about_equal(meter: FakeMeter, readings: int) -> None:
    delays, elapsed_ns = ReadingDelays(meter.delay_ns, WallClock.now_ns), list[int]()
    delays.expect(40_000)
    take = delays.begin(elapsed_ns, done=0, readings=readings)
    for _ in range(readings):
        take(40_000)
    sizes = np.diff(delays.stops, prepend=0)
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


@pytest.mark.slow
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
    ("siblings_ms", "wall_ms", "told"),
    [(0, 130, (80, None, None)), (50, 130, (30, 50, 1.0)), (20, 150, (60, 20, 0.8))],
)
def test_what_own_threads_may_have_taken_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
    siblings_ms: int,
    wall_ms: int,
    told: tuple[int, int | None, float | None],
) -> None:
    """The thread has 50 ms of one processor, and waits 80 ms."""
    clock = FakeClock()
    meter = FakeMeter(clock)
    used = iter([(0, 0, 0), (0, 0, 0), (50 * MS, siblings_ms * MS, wall_ms * MS)])
    monkeypatch.setattr(ReadingDelays, "spent_ns", lambda _: next(used))
    monkeypatch.setattr(reading_delays, "processors", lambda: 1)

    def function() -> None:
        clock.advance(2_000_000)
        meter.lose(8_000_000)

    workload = CallableWorkload(function, clock=clock, meter=meter, inner=1)
    delays = delays_of(run(workload, 10))
    assert delays.duration_s.sum() == pytest.approx(0.1)
    by_others_ms, own_ms, known = told
    assert 1e3 * delays.seconds["run queue"].sum() == pytest.approx(by_others_ms)
    assert (None if delays.own is None else 1e3 * delays.own.sum()) == pytest.approx(own_ms)
    assert (None if delays.known is None else delays.known.min()) == pytest.approx(known)
