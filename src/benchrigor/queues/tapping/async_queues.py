"""Taps `asyncio.Queue` and its subclasses from inside, and whatever has its ``get`` and ``put``."""

# ruff: noqa: SLF001  # the bound of a queue and who waits for it have no public names

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.awaiting import timed
from benchrigor.queues.tapping.bounds import Move
from benchrigor.queues.tapping.override_points import OverridePoints
from benchrigor.queues.tapping.wrapping import Patches, Tapped, Wrapper, is_own

__all__ = ["tap_async_queue", "tap_awaited"]

Queue = asyncio.Queue[Any]


class _AwaitedQueue(Wrapper):
    """Stands in for a queue whose ``get`` and ``put`` are coroutines."""

    async def put(self, *args: Any, **options: Any) -> Any:
        """Put an item, as the source does."""
        done = await timed(self._source.put(*args, **options), self._tail)
        self._tail.count()
        return done

    async def get(self, *args: Any, **options: Any) -> Any:
        """Get an item, as the source does."""
        item = await timed(self._source.get(*args, **options), self._head)
        self._head.count()
        return item

    def put_nowait(self, *args: Any, **options: Any) -> Any:
        """Put an item if there is room, as the source does."""
        done = self._source.put_nowait(*args, **options)
        self._tail.count()
        return done

    def get_nowait(self, *args: Any, **options: Any) -> Any:
        """Get an item if there is one, as the source does."""
        item = self._source.get_nowait(*args, **options)
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

    kind, points, methods = type(source), OverridePoints(source, head, tail), Patches(source)
    stock = kind.get is asyncio.Queue.get and kind.put is asyncio.Queue.put
    methods.set("get", counted_get if stock else _timed_if(source.empty, get, head))
    methods.set("put", counted_put if stock else _timed_if(source.full, put, tail))

    def release() -> None:
        points.release()
        methods.undo()

    resize = partial(_resize, source)
    return Tapped(queue=source, release=release, resize=resize, local=True)


def _timed_if(must_wait: Callable[[], bool], work: Callable[..., Any], writer: Writer) -> Any:
    """Return what counts a method of a subclass, which may take and return what it likes."""

    async def asked(*args: Any, **options: Any) -> Any:
        return await work(*args, **options)  # which may be a future

    async def counted(*args: Any, **options: Any) -> Any:
        if must_wait():
            return await timed(asked(*args, **options), writer)
        return await asked(*args, **options)

    return counted


def _resize(source: Any, move: Move) -> None:
    before = source.maxsize
    source._maxsize = move(before)
    # Nobody has waited yet in a queue that knows no loop; nobody will where that is closed.
    if source._loop is not None and source.maxsize > before:
        with suppress(RuntimeError):
            source._loop.call_soon_threadsafe(_wake, source, source.maxsize - before)


def _wake(source: Any, count: int) -> None:
    for _ in range(count):
        source._wakeup_next(source._putters)
