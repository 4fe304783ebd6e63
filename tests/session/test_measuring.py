import asyncio
import functools
import itertools
import math
import platform
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.session.telling import codes, number, told

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.machine import kernel_files
from benchrigor.model import Code
from benchrigor.testing import FakeClock


def test_setup_and_teardown_are_not_timed(clock: FakeClock) -> None:
    calls = []
    record = br.measure(
        lambda: clock.advance(5_000_000),
        setup=lambda: (calls.append("setup"), clock.advance(70_000_000)),
        teardown=lambda: (calls.append("teardown"), clock.advance(30_000_000)),
        clock=clock,
        seed=1,
    )
    assert number(record).value == pytest.approx(0.005)
    assert calls[:4] == ["setup", "teardown", "setup", "teardown"]


async def _coroutine(amount: float = 0.0) -> None:
    """Do nothing, when it is awaited."""


@pytest.mark.parametrize("func", [_coroutine, functools.partial(_coroutine, 1.0)])
def test_a_coroutine_function_is_awaited(func: Any) -> None:
    record = br.measure(func, budget_s=0.05)
    assert record.readings().size > 0
    assert br.measure_pair(func, func, budget_s=0.05).reason is not None


def test_a_future_that_is_done_is_a_result_as_any_other() -> None:
    clock, loop = FakeClock(), asyncio.new_event_loop()

    def work() -> Any:
        clock.advance(2_000_000)
        future = loop.create_future()
        if is_done:
            future.set_result(1)
        return future

    is_done = True
    assert br.measure(work, budget_s=1.0, clock=clock, seed=1).readings().size > 0
    is_done = False
    with pytest.raises(br.InvalidInput, match="returned an awaitable"):
        br.measure(work, budget_s=1.0, clock=clock, seed=1)
    loop.close()


def test_only_what_is_awaited_is_timed_in_one_loop_a_round() -> None:
    clock, loops = FakeClock(), []

    async def wait() -> None:
        loops.append(asyncio.get_running_loop())
        clock.advance(2_000_000)
        await asyncio.sleep(0)

    made = []

    def factory() -> asyncio.AbstractEventLoop:
        made.append(asyncio.new_event_loop())
        return made[-1]

    record = br.measure(wait, budget_s=1.0, clock=clock, seed=1, loop_factory=factory)
    assert set(record.readings()) == {0.002}
    assert set(loops) == set(made)
    assert len(made) == len(record.rounds)
    assert all(each.is_closed() for each in made)


def test_in_a_loop_that_runs_other_tasks_go_on() -> None:
    beats = []

    async def beat() -> None:
        while True:
            beats.append(1)
            await asyncio.sleep(0.005)

    async def nap() -> None:
        await asyncio.sleep(0.001)

    async def main() -> br.RunRecord:
        task = asyncio.create_task(beat())
        record = await br.measure_async(nap, budget_s=0.5, target=None)
        task.cancel()
        return record

    record = asyncio.run(main())
    assert record.readings().min() >= 0.001
    assert len(beats) > 5


def test_a_coroutine_that_blocks_the_loop_takes_its_time() -> None:
    async def block() -> None:
        time.sleep(0.002)

    async def main() -> br.RunRecord:
        return await br.measure_async(block, budget_s=0.2)

    assert asyncio.run(main()).readings().min() >= 0.002


def test_a_cancelled_measurement_ends_after_its_round() -> None:
    calls = []

    async def nap() -> None:
        calls.append(1)
        await asyncio.sleep(0.001)

    async def main() -> None:
        task = asyncio.create_task(br.measure_async(nap, budget_s=60.0, target=None))
        while len(calls) < 5:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_calls_are_given_what_their_setup_returned_in_batches_too() -> None:
    clock, given, seen = FakeClock(resolution_ns=1), itertools.count(), []

    def setup() -> tuple[tuple[int], dict[str, int]]:
        clock.advance(10_000_000)
        return (next(given),), {"more": 1}

    def call(number: int, more: int) -> None:
        seen.append(number)
        clock.advance(1_000 * more)

    record = br.measure(call, setup=setup, clock=clock, budget_s=5.0, target=0.5, seed=1)
    assert record.facts["inner_loop"] > 1  # type: ignore[operator]
    assert set(record.readings()) == {1e-6}
    assert seen == [*range(len(seen))]
    fixed = br.measure(call, setup=setup, clock=clock, budget_s=1.0, batch=3, seed=1)
    assert fixed.facts["inner_loop"] == 3


def test_states_of_a_batch_stay_within_a_bound_of_memory() -> None:
    clock = FakeClock(resolution_ns=1)

    def setup() -> tuple[tuple[bytearray], dict[str, int]]:
        return (bytearray(b"x" * 2**20),), {}

    record = br.measure(
        lambda _: clock.advance(10), setup=setup, clock=clock, budget_s=1e-4, seed=1
    )
    assert 1 <= record.facts["inner_loop"] <= 128  # type: ignore[operator]


def test_the_first_result_of_a_plain_function_is_not_kept() -> None:
    class Result:
        alive = 0

        def __init__(self) -> None:
            Result.alive += 1

        def __del__(self) -> None:
            Result.alive -= 1

    clock = FakeClock()

    def make() -> Result:
        clock.advance(5_000_000)
        return Result()

    br.measure(make, clock=clock, seed=1)
    assert Result.alive == 0


def test_throughput_is_the_amount_over_the_time(clock: FakeClock) -> None:
    ticks = np.random.default_rng(1).normal(2e6, 1e5, 20_000).astype(int).tolist()
    record = br.measure(
        lambda: clock.advance(ticks.pop()), items=(4096, "B"), name="copy", clock=clock, seed=1
    )
    time, (rate, unit) = number(record), record.throughput
    assert unit == "B/s"
    assert rate.value == 4096 / time.value
    assert (rate.low, rate.high) == (4096 / time.high, 4096 / time.low)
    assert br.RunRecord.from_dict(record.to_dict()).throughput == record.throughput
    assert br.measure(lambda: clock.advance(10), clock=clock, seed=1).throughput is None


def test_what_a_device_is_waited_for_is_part_of_each_reading() -> None:
    clock, queued = FakeClock(resolution_ns=1), []

    def launch() -> None:
        queued.append(1)
        clock.advance(10)

    def wait() -> None:
        clock.advance(1_000 * len(queued))
        queued.clear()

    record = br.measure(launch, sync=wait, batch=4, clock=clock, seed=1, budget_s=1e-3)
    assert record.readings() == pytest.approx(1.01e-6)


def test_the_memory_of_a_call_is_traced_once_without_what_setup_and_teardown_take() -> None:
    calls = []

    async def fetch() -> bytes:
        calls.append(tracemalloc.is_tracing())
        return bytes(2_000_000)

    def around() -> None:
        bytes(5_000_000)

    given = {"setup": around, "teardown": around, "memory": True, "budget_s": 0.1}
    peaks = [br.measure(each, **given).facts for each in (lambda: None, fetch)]  # type: ignore[arg-type]
    small, large = (each["peak_traced_memory"] for each in peaks)
    assert small < 500  # type: ignore[operator]
    assert 2_000_000 <= large < 2_010_000  # type: ignore[operator]
    assert sum(calls) == 1
    assert not tracemalloc.is_tracing()


def test_instructions_are_those_of_a_call_and_no_part_of_its_time(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = [0]

    def work() -> None:
        clock.advance(50_000)
        counted[0] += 700

    monkeypatch.setattr(kernel_files, "open_counter", lambda: None)
    monkeypatch.setattr(kernel_files, "read_counter", lambda _: counted[0])
    record = br.measure(work, instructions=True, clock=clock, budget_s=1)
    assert number(record, "instructions").value == pytest.approx(700)
    assert number(record, "time").value == pytest.approx(50e-6)
    assert {each.direction for each in record.metrics} == {"lower"}


def test_where_nothing_counts_instructions_the_time_is_measured_and_a_notice_says_why(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "abacus")
    record = br.measure(lambda: clock.advance(50_000), instructions=True, clock=clock, budget_s=1)
    assert number(record, "time").value == pytest.approx(50e-6)
    assert [each.name for each in record.metrics] == ["time"]
    assert Code.NO_INSTRUCTIONS in codes(record)


def test_shares_may_be_given_in_percent(clock: FakeClock) -> None:

    def nap() -> None:
        clock.advance(1_000_000)

    record = br.measure(nap, target="5%", confidence="99%", budget_s=0.1, clock=clock)
    assert (record.options.target, record.options.confidence) == (0.05, 0.99)
    assert br.Options(trim="10%").trim == (0.1, 0.1)
    comparison = br.measure_pair(nap, nap, margin="2%", target="1%", budget_s=0.1, clock=clock)
    assert comparison.margin == 0.02
    with pytest.raises(InvalidInput):
        br.measure(nap, target="2")


PILOTS = (1, 5, 25, 161, 90, 707, 115, 207, 276, 64, 15, 330, 165, 212)
OTHERS = (192, 92, 291, 39, 345, 138, 245, 314, 69, 36, 360, 169, 215, 123, 261, 184, 199)


@pytest.mark.parametrize(("bend", "code"), [(10_000, False), (400, True)])
def test_a_pilot_of_more_work_than_the_line_goes_through_tests_it(bend, code):
    """Amounts of a run of which the largest, a pilot, took 2.6 times as long as the line says."""
    amounts, noise = iter(PILOTS + OTHERS), np.random.default_rng(36)
    options = br.Options(work=(0, 10_000), budget_s=10.0, max_rounds=len(PILOTS + OTHERS))
    session = br.Session(options, next_work=lambda _: next(amounts), clock=FakeClock())

    def give(plan):
        seconds = 0.005 + 0.0005 * plan.work + 0.002 * max(plan.work - bend, 0)
        return {"elapsed_ns": int(seconds * 1e9 * noise.normal(1.0, 0.02))}

    assert (Code.NOT_LINEAR in codes(told(session, give))) is code


def test_few_rounds_are_too_short_where_amounts_begin_at_nothing():
    clock = FakeClock(resolution_ns=1)
    record = br.measure(
        lambda amount: clock.advance(int((amount * 0.002 + 0.001) * 1e9)),
        work=(0.0, 1000.0),
        budget_s=60.0,
        clock=clock,
    )
    (short,) = (each for each in record.notices if each.code is Code.SHORT_ROUNDS)
    assert short.evidence["rounds"] <= 15
    assert max(each.plan.work for each in record.rounds) > 500.0
    assert number(record).value == pytest.approx(500.0, rel=1e-3)


@pytest.mark.parametrize(("bend", "code"), [(math.inf, False), (600, True)])
def test_larger_amounts_than_a_budget_allows_are_tried_and_judged(bend, code):
    clock, noise = FakeClock(resolution_ns=1), np.random.default_rng(36)

    def job(amount):
        beyond = 3 * max(amount - bend, 0)
        clock.advance(int((amount + beyond + 20) * 1e6 * noise.normal(1.0, 0.02)))

    record = br.measure(job, work=(0, 10_000), budget_s=10, seed=1, clock=clock)
    assert (Code.NOT_LINEAR in codes(record)) is code
    assert {Code.FURTHER_ROUNDS, Code.RANGE_UNTRIED} <= {*codes(record)}
