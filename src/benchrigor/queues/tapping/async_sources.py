"""Taps the queues and streams of `asyncio`, and other objects with coroutines ``get``, ``put``."""

# ruff: noqa: SLF001  # the bound of a queue and who waits for it have no public names

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Self, TypeVar

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.cells import Cell
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.hooks import Patches, count_items, is_own
from benchrigor.queues.tapping.wrappers import Move, Tapped, Wrapper

_T = TypeVar("_T")


@types.coroutine
def time_wait(work: Awaitable[_T], writer: Writer) -> Generator[Any, Any, _T]:
    """Await something; the time from its first suspension to its end is a wait."""
    begun: Cell | None = None
    steps: Any = work.__await__()
    step: Any = steps.send
    given: Any = None
    try:
        while True:
            wanted = step(given)
            begun = begun or writer.begin_wait()
            try:
                given = yield wanted
                step = steps.send
            except BaseException as error:  # noqa: BLE001  # the coroutine gets any error
                given, step = error, steps.throw
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        if begun is not None:
            writer.end_wait(begun)
        given = None  # a thrown error holds this frame: breaks the cycle between them


def tap_async_queue(source: asyncio.Queue[Any], head: Writer, tail: Writer) -> Tapped:
    """Make a queue count, until it is released."""
    if is_own(source, "get"):
        raise InvalidInput(f"{source!r} is tapped already, close that tap first")
    patches = Patches()
    count_items(source, head, tail, patches)
    patches.set(source, "get", _timed_if(source.empty, source.get, head))
    patches.set(source, "put", _timed_if(source.full, source.put, tail))
    return Tapped(queue=source, release=patches.undo, resize=partial(_resize, source), local=True)


def _timed_if(must_wait: Callable[[], bool], method: Callable[..., Any], writer: Writer) -> Any:
    """Return a method that times another; one of a subclass may take and return anything."""

    async def run_and_time(*args: Any, **options: Any) -> Any:
        work = method(*args, **options)
        return await (time_wait(work, writer) if must_wait() else work)

    return run_and_time


def _resize(source: Any, move: Move) -> None:
    before = source.maxsize
    source._maxsize = move(before)
    # A queue without a loop has had no waiter yet; one whose loop is closed will have none.
    if source._loop is not None and source.maxsize > before:
        with suppress(RuntimeError):
            source._loop.call_soon_threadsafe(_wake, source, source.maxsize - before)


def _wake(source: Any, count: int) -> None:
    for _ in range(count):
        source._wakeup_next(source._putters)


class _AwaitedQueue(Wrapper):
    """Stands in for a queue whose ``get`` and ``put`` are coroutines."""

    async def put(self, *args: Any, **options: Any) -> Any:
        done = await time_wait(self._source.put(*args, **options), self._tail)
        self._tail.count(*args[:1] or [*options.values()][:1])
        return done

    async def get(self, *args: Any, **options: Any) -> Any:
        item = await time_wait(self._source.get(*args, **options), self._head)
        self._head.count(item)
        return item

    def put_nowait(self, *args: Any, **options: Any) -> Any:
        done = self._source.put_nowait(*args, **options)
        self._tail.count(*args[:1] or [*options.values()][:1])
        return done

    def get_nowait(self, *args: Any, **options: Any) -> Any:
        item = self._source.get_nowait(*args, **options)
        self._head.count(item)
        return item


def _reading(name: str) -> Any:
    """Return a method that reads as the source does, times its wait and counts the bytes."""

    async def read(self: Wrapper, *args: Any, **options: Any) -> bytes:
        data: bytes = await time_wait(getattr(self._source, name)(*args, **options), self._head)
        self._head.count_bytes(len(data))
        return data

    return read


class _StreamHead(Wrapper):
    """Stands in for a `asyncio.StreamReader`, which is the head of a queue."""

    read = _reading("read")
    readline = _reading("readline")
    readexactly = _reading("readexactly")
    readuntil = _reading("readuntil")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        line: bytes = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line


class _StreamTail(Wrapper):
    """Stands in for a `asyncio.StreamWriter`, the tail of a queue; draining is its wait."""

    def write(self, data: Any) -> None:
        self._source.write(data)
        self._tail.count_bytes(memoryview(data).nbytes)

    def writelines(self, data: Iterable[Any]) -> None:
        pieces = list(data)
        self._source.writelines(pieces)
        self._tail.count_bytes(sum(memoryview(piece).nbytes for piece in pieces))

    async def drain(self) -> None:
        await time_wait(self._source.drain(), self._tail)
