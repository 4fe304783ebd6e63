"""Queues that grow because they are full."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

import pytest

from benchrigor.queues import Monitor, Stage, Tap
from benchrigor.queues.watching.queue_growth import FullQueue, GrowthWatch

MS = 1_000_000


def test_a_queue_is_full_after_three_periods_of_waiting() -> None:
    seen = FullQueue()
    waited_ms = [0, 9, 18, 27, 36, 45, 54, 60, 69, 78]  # one period of six
    full = [seen.is_full(10 * MS * (n + 1), each * MS) for n, each in enumerate(waited_ms)]
    assert [n for n, each in enumerate(full) if each] == [3, 6]


@pytest.fixture
def full() -> Iterator[Tap]:
    """Yield the tap of a queue for two items into which a thread puts 300."""
    tap = Tap(queue.Queue(maxsize=2), name="work")
    thread = threading.Thread(target=lambda: [tap.queue.put(item) for item in range(300)])
    thread.start()
    while not tap.tail.read() or not tap.tail.read()[0].waiting:
        time.sleep(0.001)
    yield tap
    for _ in range(300):
        tap.queue.get()
    thread.join()
    tap.close()


def grow(watch: GrowthWatch, times: int) -> None:
    for _ in range(times):
        watch.grow(time.perf_counter_ns())
        time.sleep(0.002)


@pytest.mark.parametrize("end", ["head", "tail"])
def test_a_full_queue_is_doubled_up_to_a_limit_until_its_tap_is_closed(full: Tap, end: str) -> None:
    side = {"reads": [full]} if end == "head" else {"writes": [full]}
    watch = GrowthWatch([Stage("serve", **side)], period_s=0.02)
    grow(watch, 4)
    assert full.queue.maxsize == 4
    grow(watch, 60)
    assert full.queue.maxsize == 128  # 64 times its own
    bounds = [(each.name, each.before, each.after) for each in watch.growths]
    assert bounds == [("work", 2**n, 2 ** (n + 1)) for n in range(1, 7)]
    assert sorted(each.at_s for each in watch.growths) == [each.at_s for each in watch.growths]
    full.close()
    assert full.queue.maxsize == 2
    grow(watch, 10)
    assert full.queue.maxsize == 2


def test_a_bound_that_the_program_sets_is_its_own(full: Tap) -> None:
    watch = GrowthWatch([Stage("serve", reads=[full])], period_s=0.02)
    grow(watch, 4)
    full.queue.maxsize = 3
    grow(watch, 4)
    assert full.queue.maxsize == 6
    full.close()
    assert full.queue.maxsize == 3


def test_what_has_no_bound_of_this_process_is_named_and_left_alone() -> None:
    with Tap(queue.SimpleQueue(), name="simple") as tap, Tap(queue.Queue(), name="any") as other:
        watch = GrowthWatch([Stage("serve", reads=[tap], writes=[other])], period_s=0.02)
        grow(watch, 4)
        shown = str(Monitor(tap, grow=True))
    assert "cannot grow, being no queues of queue or asyncio: simple" in shown
    assert watch.fixed == ("simple",)
    assert watch.growths == ()


@pytest.mark.slow
def test_a_monitor_grows_queues_on_request_alone() -> None:
    for grow in (False, True):
        with Tap(queue.Queue(maxsize=4), name="work") as tap:
            put = threading.Thread(target=lambda each=tap: [each.queue.put(0) for _ in range(150)])
            with Monitor(tap, period_s=0.02, grow=grow) as monitor:
                put.start()
                for _ in range(150):
                    tap.queue.get()
                    time.sleep(0.002)
                put.join()
            report = monitor.report()
            assert (tap.queue.maxsize > 4) is grow
        assert tap.queue.maxsize == 4
        assert bool(report.growths) is grow
        assert ("work was full, and grew from 4 to " in str(report)) is grow
        assert report.failure is None
