"""Taps `asyncio.Queue` and its subclasses from inside, and whatever has its ``get`` and ``put``."""

# ruff: noqa: SLF001  # the bound of a queue and who waits for it have no public names

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.awaiting import timed
from benchrigor.queues.tapping.override_points import OverridePoints
from benchrigor.queues.tapping.wrapping import Patches, Tapped, Wrapper, is_own

__all__ = ["tap_async_queue", "tap_awaited"]

Queue = asyncio.Queue[Any]


class _AwaitedQueue(Wrapper):
    """Stands in for a queue whose ``get`` and ``put`` are coroutines."""

    async def put(self, item: Any) -> None:
        """Put an item, as the source does."""
        await timed(self._source.put(item), self._tail)
        self._tail.count()

    async def get(self) -> Any:
        """Get an item, as the source does."""
        item = await timed(self._source.get(), self._head)
        self._head.count()
        return item

    def put_nowait(self, item: Any) -> None:
        """Put an item if there is room, as the source does."""
        self._source.put_nowait(item)
        self._tail.count()

    def get_nowait(self) -> Any:
        """Get an item if there is one, as the source does."""
        item = self._source.get_nowait()
        self._head.count()
        return item


def tap_awaited(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Return what stands in for a queue.

    Parameters
    ----------
    source
        Has coroutines ``get`` and ``put``.
    head, tail
        Count what leaves and what enters.
    """
    return Tapped(queue=_AwaitedQueue(source, head, tail))


def tap_async_queue(source: Queue, head: Writer, tail: Writer) -> Tapped:
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
    """
    if is_own(source, "get"):
        raise InvalidInput(f"{source!r} is tapped already, close that tap first")
    get, put = source.get, source.put

    async def counted_get() -> Any:
        if source.empty():
            return await timed(get(), head)
        return await get()

    async def counted_put(item: Any) -> None:
        if source.full():
            await timed(put(item), tail)
        else:
            await put(item)

    points, methods = OverridePoints(source, head, tail), Patches(source)
    methods.set("get", counted_get)
    methods.set("put", counted_put)

    def release() -> None:
        points.release()
        methods.undo()

    return Tapped(queue=source, release=release, resize=partial(_resize, source))


def _resize(source: Any, by: int) -> None:
    if source.maxsize <= 0:
        raise InvalidInput("the queue takes any number of items, expected one with maxsize")
    source._maxsize = max(1, source.maxsize + by)
    # Nobody has waited yet in a queue that knows no loop; nobody will where that is closed.
    if source._loop is not None:
        with suppress(RuntimeError):
            source._loop.call_soon_threadsafe(_wake, source, by)


def _wake(source: Any, count: int) -> None:
    for _ in range(count):
        source._wakeup_next(source._putters)
