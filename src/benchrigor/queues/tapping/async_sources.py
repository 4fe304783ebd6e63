"""Taps the streams of `asyncio`, and other objects with coroutines ``get``, ``put``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from benchrigor.queues.tapping.wrappers import Wrapper, time_wait


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
