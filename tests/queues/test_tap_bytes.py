"""Bytes of items, counted by taps and told by monitors."""

from __future__ import annotations

import asyncio
import multiprocessing
import queue
import time
from pathlib import Path
from typing import Any

import pytest

from benchrigor.queues import Monitor, Recording, Stage, Tap, rate_recording

ITEMS = ["a", "bcd", "ef", ""]


def pass_all(source: Any) -> None:
    for item in ITEMS:
        source.put(item)
    for _ in ITEMS:
        source.get()


async def pass_all_awaiting(source: asyncio.Queue[str]) -> None:
    for item in ITEMS:
        await source.put(item)
    for _ in ITEMS:
        await source.get()


class Awaited:
    """A queue of another package, with coroutines."""

    def __init__(self) -> None:
        self.items: list[str] = []

    async def put(self, item: str) -> None:
        self.items.append(item)

    async def get(self) -> str:
        return self.items.pop()


def counted(tap: Tap) -> list[tuple[int, int]]:
    return [(each.items, each.bytes) for end in (tap.head, tap.tail) for each in end.read()]


@pytest.mark.parametrize(("item_bytes", "size"), [(len, 6), (10, 40), (2.5, 10)])
@pytest.mark.parametrize(
    "make", [queue.Queue, queue.LifoQueue, queue.SimpleQueue, multiprocessing.Queue]
)
def test_bytes_of_queues(make: Any, item_bytes: Any, size: int) -> None:
    with Tap(make(), item_bytes=item_bytes) as tap:
        pass_all(tap.queue)
        assert counted(tap) == [(4, size), (4, size)]


@pytest.mark.parametrize("make", [asyncio.Queue, Awaited])
def test_bytes_of_queues_that_are_awaited(make: Any) -> None:
    with Tap(make(), item_bytes=len) as tap:
        asyncio.run(pass_all_awaiting(tap.queue))
        assert counted(tap) == [(4, 6), (4, 6)]


@pytest.mark.slow
def test_bytes_of_queues_in_other_processes() -> None:
    context = multiprocessing.get_context("spawn")
    for make in (context.Queue, context.SimpleQueue):
        with Tap(make(), item_bytes=len) as tap:
            process = context.Process(target=pass_all, args=(tap.queue,))
            process.start()
            process.join(30.0)
            assert counted(tap) == [(4, 6), (4, 6)]


def test_bytes_of_iterables() -> None:
    with Tap(iter(ITEMS), item_bytes=len) as tap:
        assert list(tap.queue) == ITEMS
        assert counted(tap) == [(4, 6), (4, 6)]


@pytest.mark.parametrize("wrong", [lambda item: item / 0, str.upper, lambda item: -1 - len(item)])
def test_a_size_that_fails_ends_no_program_and_is_said(wrong: Any) -> None:
    with Tap(queue.Queue(), item_bytes=wrong) as tap:
        pass_all(tap.queue)
        assert counted(tap) == [(4, 0), (4, 0)]
        assert tap.failure is not None
        assert "item_bytes" in tap.failure


@pytest.mark.slow
@pytest.mark.parametrize(("item_bytes", "mean"), [(1000, 1000.0), (len, 4.0), (None, None)])
def test_a_monitor_tells_bytes_per_second(
    item_bytes: Any, mean: float | None, tmp_path: Path
) -> None:
    path = tmp_path / "serve.csv"
    with (
        Tap(queue.Queue(), name="work", item_bytes=item_bytes) as work,
        Monitor(Stage("serve", reads=[work]), period_s=0.02, record=path) as monitor,
    ):
        for _ in range(100):
            work.queue.put("four")
            work.queue.get()
            time.sleep(0.004)
        rate = monitor.rates()["serve"][-1]
        shown = str(monitor)
    assert rate.item_bytes == mean
    with Recording.open(path) as recording:
        (recorded,) = rate_recording(recording)
    assert recorded.outline.throughput(0.0, 60.0)[1] == mean
    if mean is None:
        assert rate.byte_rate is None
        assert "B/s" not in shown
    else:
        assert rate.estimate is not None
        assert rate.byte_rate is not None
        assert rate.byte_rate.value == pytest.approx(mean * rate.estimate.value)
        assert rate.byte_rate.low == pytest.approx(mean * rate.estimate.low)
        assert "B/s" in shown
