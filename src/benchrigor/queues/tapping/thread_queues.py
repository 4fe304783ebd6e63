"""Taps `queue.Queue` and its subclasses from inside.

The queue's own methods count under its mutex, so that a single cell for an end is exact with any
number of threads, and its conditions time their waits. An event without a wait reads no clock.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.hooks import Patches, count_items, is_own
from benchrigor.queues.tapping.wrappers import Move, Tapped


def tap_queue(source: queue.Queue[Any], head: Writer, tail: Writer) -> Tapped:
    """Make a queue count, until it is released."""
    if is_own(source.not_empty, "wait"):
        raise InvalidInput(f"{source!r} is tapped already, close that tap first")
    patches = Patches()
    with source.mutex:
        count_items(source, head, tail, patches)
        for condition, writer in ((source.not_empty, head), (source.not_full, tail)):
            patches.set(condition, "wait", _time_wait(condition.wait, writer))

    def release() -> None:
        with source.mutex:
            patches.undo()

    def resize(move: Move) -> None:
        with source.mutex:
            before = source.maxsize
            source.maxsize = move(before)
            source.not_full.notify(max(0, source.maxsize - before))

    return Tapped(queue=source, release=release, resize=resize, local=True)


def _time_wait(wait: Callable[..., bool], writer: Writer) -> Callable[..., bool]:
    def wait_and_time(timeout: float | None = None) -> bool:
        with writer.waiting():
            return wait(timeout)

    return wait_and_time
