"""Taps the streams of `asyncio`: a reader is the head of a queue, a writer the tail of one."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any, Self

from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.awaiting import timed
from benchrigor.queues.tapping.wrapping import Tapped, Wrapper

__all__ = ["tap_reader", "tap_writer"]


class _Reader(Wrapper):
    """Counts each call that gets bytes, and times it if it has to wait for them."""

    async def read(self, n: int = -1) -> bytes:
        """Read up to so many bytes, as the source does."""
        return await self._counted(self._source.read(n))

    async def readline(self) -> bytes:
        """Read a line, as the source does."""
        return await self._counted(self._source.readline())

    async def readexactly(self, n: int) -> bytes:
        """Read so many bytes, as the source does."""
        return await self._counted(self._source.readexactly(n))

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        """Read up to a separator, as the source does."""
        return await self._counted(self._source.readuntil(separator))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line

    async def _counted(self, reading: Coroutine[Any, Any, bytes]) -> bytes:
        found = await timed(reading, self._head)
        self._head.count_bytes(len(found))
        return found


class _Writer(Wrapper):
    """Counts what is written; the time that draining takes is the wait."""

    def write(self, data: Any) -> None:
        """Write bytes, as the source does."""
        self._source.write(data)
        self._tail.count_bytes(memoryview(data).nbytes)

    def writelines(self, data: Iterable[Any]) -> None:
        """Write pieces of bytes, as the source does."""
        pieces = list(data)
        self._source.writelines(pieces)
        self._tail.count_bytes(sum(memoryview(piece).nbytes for piece in pieces))

    async def drain(self) -> None:
        """Wait until there is room for more, as the source does."""
        await timed(self._source.drain(), self._tail)


def tap_reader(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Return what stands in for a `asyncio.StreamReader`."""
    return Tapped(queue=_Reader(source, head, tail))


def tap_writer(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Return what stands in for a `asyncio.StreamWriter`."""
    return Tapped(queue=_Writer(source, head, tail))
