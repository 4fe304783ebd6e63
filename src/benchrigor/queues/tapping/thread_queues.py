"""Taps `queue.Queue` and its subclasses from inside.

The queue's own methods count: ``_get`` and ``_put``, which are there to be overridden, run under
its mutex, so that one cell for each end is exact with any number of threads; and its conditions
time their waits. An event that does not wait reads no clock.
"""

from __future__ import annotations

import heapq
import queue
from collections import deque
from collections.abc import Callable
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.bounds import Move
from benchrigor.queues.tapping.override_points import OverridePoints
from benchrigor.queues.tapping.wrapping import Patches, Tapped, is_own

__all__ = ["tap_queue"]

Queue = queue.Queue[Any]

_STOCK: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], None]]] = {
    queue.Queue: (deque.popleft, deque.append),
    queue.LifoQueue: (list.pop, list.append),
    queue.PriorityQueue: (heapq.heappop, heapq.heappush),
}
"""What ``_get`` and ``_put`` of these classes do to ``queue``; done without a call of theirs."""


def tap_queue(source: Queue, head: Writer, tail: Writer) -> Tapped:
    """Make a queue count, until it is released.

    Parameters
    ----------
    source
        The queue.
    head, tail
        Count what leaves and what enters.

    Raises
    ------
    InvalidInput
        When it is being tapped already.

    Examples
    --------
    >>> from benchrigor.queues import Page
    >>> source = queue.Queue()
    >>> with Page.create() as page:
    ...     tapped = tap_queue(source, Writer(page, "work.head"), Writer(page, "work.tail"))
    ...     source.put("item")
    ...     [each.read().items for each in page.cells()]
    [1]
    """
    if is_own(source.not_empty, "wait"):
        raise InvalidInput(f"{source!r} is tapped already, close that tap first")
    hooks = _Hooks(source, head, tail)
    return Tapped(queue=source, release=hooks.release, resize=hooks.resize, local=True)


class _Hooks:
    """What is set on one queue and its conditions."""

    def __init__(self, source: Queue, head: Writer, tail: Writer) -> None:
        self._source = source
        self._waits = (Patches(source.not_empty), Patches(source.not_full))
        with source.mutex:
            take, keep = _STOCK.get(type(source), (None, None))
            self._points = OverridePoints(source, head, tail, take=take, keep=keep)
            for patches, writer in zip(self._waits, (head, tail), strict=True):
                patches.set("wait", _timed(patches.target.wait, writer))

    def release(self) -> None:
        with self._source.mutex:
            self._points.release()
            for patches in self._waits:
                patches.undo()

    def resize(self, move: Move) -> None:
        source = self._source
        with source.mutex:
            before = source.maxsize
            source.maxsize = move(before)
            source.not_full.notify(max(0, source.maxsize - before))


def _timed(wait: Callable[..., bool], writer: Writer) -> Callable[..., bool]:
    def timed(timeout: float | None = None) -> bool:
        with writer.waiting():
            return wait(timeout)

    return timed
