"""Each way to time an event, alone and within others."""

import asyncio
import contextlib
import copy
import math
import pickle
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.instrument import Probe, ProbeRegistry
from benchrigor.report import render_probes
from benchrigor.testing import FakeClock


def test_each_way_to_time_an_event_counts_it(probe: Probe, clock: FakeClock) -> None:
    token = probe.start()
    clock.sleep_ns(10)
    probe.stop(token)
    with probe:
        clock.sleep_ns(20)
    with probe.again():
        clock.sleep_ns(30)
    probe(lambda: clock.sleep_ns(40))()
    found = probe.read()
    assert (found.count, found.rejected) == (4, 0)
    seconds = (found.total_s, found.min_s, found.max_s, found.mean_s)
    assert seconds == pytest.approx((100e-9, 10e-9, 40e-9, 25e-9))
    assert found.variance_s2 == pytest.approx(500e-18 / 3)


@pytest.mark.parametrize("form", ["held", "again"])
def test_one_probe_is_entered_by_many_at_once(form: str, probe: Probe, clock: FakeClock) -> None:
    def context() -> contextlib.AbstractContextManager[object]:
        return probe if form == "held" else probe.again()

    inside, leave = threading.Event(), threading.Event()

    def longest() -> None:
        with context():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=longest)
    thread.start()
    inside.wait(10)
    with context():
        clock.sleep_ns(1)
        with context():
            clock.sleep_ns(2)
    leave.set()
    thread.join()
    found = probe.read()
    assert (found.count, found.total_s, found.min_s, found.max_s) == (
        3,
        pytest.approx(8e-9),
        pytest.approx(2e-9),
        pytest.approx(3e-9),
    )


@pytest.mark.parametrize(
    "token",  # of a clock that went back, of no start, of another clock
    [101, -(10**18), -(10**400), 3.5, math.nan, math.inf, np.nan],
)
def test_a_token_that_cannot_be_of_an_event_is_rejected(
    token: object, probe: Probe, clock: FakeClock
) -> None:
    clock.sleep_ns(100)
    for each in (90, token, 93):
        probe.stop(each)
    found = probe.read()
    assert (found.count, found.total_s, found.rejected) == (2, pytest.approx(17e-9), 1)


def test_events_during_which_the_clock_goes_back_are_rejected(
    probe: Probe, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = probe(lambda: clock.advance(-5))
    clock.advance(100)
    with probe:
        clock.advance(-5)
    with probe.again():
        clock.advance(-5)
    back()
    with probe:
        clock.advance(3)
    found = probe.read()
    assert (found.count, found.rejected) == (1, 3)
    assert found.min_s == found.total_s == pytest.approx(3e-9)


def test_a_token_may_be_stopped_in_another_thread(probe: Probe, clock: FakeClock) -> None:
    token = probe.start()
    clock.sleep_ns(7)
    thread = threading.Thread(target=probe.stop, args=(token,))
    thread.start()
    thread.join()
    assert probe.read().total_s == pytest.approx(7e-9)


def test_a_probe_that_is_off_counts_nothing(probe: Probe) -> None:
    timed = probe(lambda: None)
    probe.on = False
    assert not probe.on
    assert probe.start() is None
    probe.stop(probe.start())
    with probe, probe.again():
        timed()
    with pytest.raises(KeyError), probe, probe.again():
        raise KeyError
    assert probe.read().count == 0
    probe.on = True
    timed()
    assert probe.read().count == 1


def test_what_began_while_it_was_on_counts_and_what_did_not_does_not(probe: Probe) -> None:
    on = probe.start()
    with probe:
        probe.on = False
    off = probe.start()
    with probe:
        probe.on = True
    probe.stop(off)
    assert probe.read().count == 1
    probe.stop(on)
    assert probe.read().count == 2


def test_again_is_for_one_statement(probe: Probe) -> None:
    context = probe.again()
    with context:
        pass
    with pytest.raises(InvalidInput, match="again"), context:
        pass
    assert probe.read().count == 1


def test_an_event_that_was_begun_and_never_entered_harms_no_other(
    probe: Probe, registry: ProbeRegistry, hand: str, clock: FakeClock
) -> None:
    other = registry.probe("other", clock=hand)
    with other.again():
        probe.again()
        clock.sleep_ns(3)
        with other.again():
            clock.sleep_ns(4)
    with other.again():
        clock.sleep_ns(5)
    found = other.read()
    assert (found.count, round(found.total_s * 1e9)) == (3, 7 + 4 + 5)
    assert probe.read().count == 0


def test_events_that_overlap_in_one_thread_all_count(probe: Probe, clock: FakeClock) -> None:
    def steps() -> Iterator[None]:
        with probe.again():
            yield
            clock.sleep_ns(1)
            yield

    for _ in zip(steps(), steps(), strict=True):
        with probe.again():
            clock.sleep_ns(10)
    found = probe.read()
    assert (found.count, found.rejected) == (4, 0)
    assert found.total_s == pytest.approx((10 + 10 + 22 + 22) * 1e-9)


@pytest.mark.parametrize("form", ["held", "again"])
def test_the_probe_of_the_work_is_inside_of_that_of_the_kernel(
    form: str, registry: ProbeRegistry, probe: Probe, clock: FakeClock, hand: str
) -> None:
    for each in (probe, registry.probe("other", clock=hand)):
        with each if form == "held" else each.again():
            clock.sleep_ns(3)
            with each.work if form == "held" else each.work.again():
                clock.sleep_ns(7)
    work = probe.work
    assert (work.name, work.clock, work) == ("kernel.work", hand, probe.work)
    assert work.read().total_s == pytest.approx(7e-9)
    assert probe.read().total_s == pytest.approx(10e-9)
    rows = render_probes(registry.read()).splitlines()[1:3]
    assert all("50%" in each for each in rows)  # their shares of the time


def test_the_clock_of_the_processor_does_not_count_sleep(registry: ProbeRegistry) -> None:
    wall, cpu = registry.probe("wall"), registry.probe("cpu", clock="cpu")
    with wall, cpu:
        threading.Event().wait(0.02)
    assert wall.read().total_s >= 0.02 > 4 * cpu.read().total_s


def test_a_probe_shows_its_name_and_state(probe: Probe) -> None:
    probe.on = False
    assert repr(probe).startswith("<probe 'kernel', clock")
    assert repr(probe).endswith("off>")


def test_what_holds_a_probe_may_be_copied_but_not_sent_away(probe: Probe) -> None:
    assert copy.copy(probe) is probe
    assert copy.deepcopy([probe])[0] is probe
    with pytest.raises(TypeError):
        pickle.dumps(probe)


@pytest.fixture
def inner(registry: ProbeRegistry, hand: str) -> Probe:
    return registry.probe("inner", clock=hand)


def times(probe: Probe) -> tuple[float, float]:
    """Return total and self time in nanoseconds."""
    found = probe.read()
    return round(found.total_s * 1e9), round(found.self_s * 1e9)


def test_time_of_inner_events_is_no_self_time(probe: Probe, inner: Probe, clock: FakeClock) -> None:
    step = inner(lambda: clock.sleep_ns(2))
    with probe.again():
        clock.sleep_ns(1)
        with inner.again():
            clock.sleep_ns(10)
            step()
        step()
    assert times(probe) == (15, 1)
    assert times(inner) == (16, 14)


def test_tokens_and_held_contexts_do_not_nest(probe: Probe, inner: Probe, clock: FakeClock) -> None:
    with probe.again(), inner:
        clock.sleep_ns(3)
    assert (times(probe), times(inner)) == ((3, 3), (3, 3))


@pytest.mark.parametrize("decorated", [False, True])
def test_a_block_that_outlives_the_event_around_it_takes_no_later_time_off_that(
    probe: Probe, registry: ProbeRegistry, hand: str, clock: FakeClock, decorated: bool
) -> None:
    inner, later = (registry.probe(name, clock=hand) for name in ("inner", "later"))

    def rows() -> Iterator[int]:
        with inner.again():
            yield from range(3)

    def load() -> Iterator[int]:
        begun = rows()
        next(begun)
        clock.sleep_ns(1)
        return begun

    if decorated:
        left = probe(load)()
    else:
        with probe.again():
            left = load()
    list(left)
    for _ in range(3):
        with later.again():
            clock.sleep_ns(10)
    assert (times(probe), times(later)) == ((1, 1), (30, 30))


def test_a_function_that_calls_itself_has_the_time_of_each_call_once(
    probe: Probe, clock: FakeClock
) -> None:
    @probe
    def descend(depth: int) -> None:
        clock.sleep_ns(1)
        if depth:
            descend(depth - 1)

    descend(3)
    assert times(probe) == (4 + 3 + 2 + 1, 4)


def test_other_threads_are_in_no_event_of_this_one(
    probe: Probe, inner: Probe, clock: FakeClock
) -> None:
    def work() -> None:
        with inner.again():
            clock.sleep_ns(4)

    with probe.again():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert times(probe) == (4, 4)


async def interleaved(first: object, second: object) -> None:
    """Run two coroutines in turn: the second within the first's pause."""
    await asyncio.gather(first, second)


def test_other_tasks_are_in_no_event_of_a_timed_coroutine(
    probe: Probe, inner: Probe, clock: FakeClock
) -> None:
    @probe
    async def outer() -> None:
        clock.sleep_ns(1)
        await asyncio.sleep(0)
        with inner.again():
            clock.sleep_ns(2)
            await asyncio.sleep(0)
            clock.sleep_ns(4)

    async def other() -> None:
        await asyncio.sleep(0)
        with inner.again():
            clock.sleep_ns(100)

    asyncio.run(interleaved(outer(), other()))
    total_ns, self_ns = times(probe)
    assert total_ns - self_ns == times(inner)[0] - 100


def test_a_block_in_a_coroutine_that_nobody_times_stands_alone(
    probe: Probe, inner: Probe, clock: FakeClock
) -> None:
    async def waits() -> None:
        with probe.again():
            await asyncio.sleep(0)
            clock.sleep_ns(1)

    async def other() -> None:
        with inner.again():
            clock.sleep_ns(100)
            await asyncio.sleep(0)

    asyncio.run(interleaved(waits(), other()))
    for each in (probe, inner):
        total_ns, self_ns = times(each)
        assert total_ns == self_ns


def test_a_timed_coroutine_is_inside_of_the_one_that_awaits_it(
    probe: Probe, inner: Probe, clock: FakeClock
) -> None:
    @inner
    async def part() -> None:
        clock.sleep_ns(2)
        await asyncio.sleep(0)
        clock.sleep_ns(3)

    @probe
    async def whole() -> None:
        clock.sleep_ns(1)
        await part()
        await asyncio.gather(part())  # another task: none of this one's

    asyncio.run(whole())
    assert times(probe) == (11, 6)


def test_whole_numbers_of_other_kinds_count(probe: Probe, clock: FakeClock) -> None:
    clock.sleep_ns(100)
    for each in (np.int64(90), True):
        probe.stop(each)
    assert probe.read().total_s == pytest.approx(109e-9)
