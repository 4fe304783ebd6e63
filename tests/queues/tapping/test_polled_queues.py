"""Queues that are asked first, and waited for only if they must."""

from __future__ import annotations

import inspect
import queue
from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.polled_queues import tap_polled


class Told:
    """A queue that remembers how it was asked, and has nothing and no room at first."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def get(self, block: bool = True, timeout: float | None = None) -> str:
        self.asked.append(("get", block, timeout))
        if not block:
            raise queue.Empty
        return "item"

    def put(self, item: str, block: bool = True, timeout: float | None = None) -> None:
        self.asked.append(("put", block, timeout))
        if not block:
            raise queue.Full


def test_only_after_an_attempt_that_failed_is_there_a_wait(
    page: Page, head: Writer, tail: Writer
) -> None:
    source = Told()
    tapped = tap_polled(source, head, tail).queue
    assert tapped.get(timeout=3.5) == "item"
    tapped.put("item")
    assert source.asked == [
        ("get", False, None),
        ("get", True, 3.5),
        ("put", False, None),
        ("put", True, None),
    ]
    assert [each.read().blocked_events for each in page.cells()] == [1, 1]
    assert [each.read().items for each in page.cells()] == [1, 1]


def test_who_would_not_wait_is_asked_once(page: Page, head: Writer, tail: Writer) -> None:
    source = Told()
    tapped = tap_polled(source, head, tail).queue
    with pytest.raises(queue.Empty):
        tapped.get_nowait()
    with pytest.raises(queue.Full):
        tapped.put_nowait("item")
    tapped.get(True, 0)
    assert source.asked == [("get", False, None), ("put", False, None), ("get", True, 0)]
    assert [each.read().blocked_events for each in page.cells()] == [0]


def test_an_error_after_a_wait_does_not_seem_to_come_of_the_attempt(
    page: Page, head: Writer, tail: Writer
) -> None:
    tapped = tap_polled(queue.SimpleQueue(), head, tail).queue
    with pytest.raises(queue.Empty) as caught:
        tapped.get(timeout=0.001)
    assert caught.value.__context__ is None


def test_what_is_not_counted_is_the_sources(head: Writer, tail: Writer) -> None:
    source: queue.SimpleQueue[int] = queue.SimpleQueue()
    tapped = tap_polled(source, head, tail).queue
    assert tapped.empty()
    tapped.put(1)
    assert tapped.qsize() == 1


def test_what_cannot_be_told_not_to_wait_is_refused(head: Writer, tail: Writer) -> None:
    class Plain:
        def get(self) -> int:
            return 1

        def put(self, item: int, block: bool = True) -> None:
            pass

    class Cache:
        def get(self, key: str) -> str:
            return key

        def put(self, item: str) -> None:
            pass

    for source, name in ((Plain(), "get"), (Cache(), "put")):
        with pytest.raises(InvalidInput, match=f"^{name} of .* always waits, expected"):
            tap_polled(source, head, tail)


def test_methods_that_tell_nothing_of_themselves_are_believed(head: Writer, tail: Writer) -> None:
    class Opaque:
        get = staticmethod(max)  # whose signature Python does not know
        put = staticmethod(print)

    with pytest.raises(ValueError, match="no signature"):
        inspect.signature(Opaque().get)
    assert tap_polled(Opaque(), head, tail).queue.get(False, 3) == 3
