"""Taps iterables: the consumer waits while an item is fetched, the producer in between.

Either the producer works or the consumer does, never both at once. So an item makes both ends wait
once, and reads the clock twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

from benchrigor.queues.counting.cells import Cell
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.wrappers import Tapped, Wrapper


class _Turns:
    """Turns of one iteration: the producer's while an item is fetched, else the consumer's."""

    def __init__(self, head: Writer, tail: Writer) -> None:
        self._head, self._tail, self._now_ns = head, tail, head.now_ns
        self._idle: Cell | None = None

    def begin(self) -> Cell:
        """Give the producer its turn; return the cell that `end` takes."""
        at_ns = self._now_ns()
        self._end_idle(at_ns)
        begun = self._head.cell or self._head.claim()
        begun.begin_wait(at_ns)
        return begun

    def end(self, begun: Cell, came: bool, item: Any) -> None:
        """Take it back; without an item the producer waits no more."""
        at_ns = self._now_ns()
        if begun is self._head.cell:
            begun.end_wait(at_ns)
        if came:
            self._idle = tail = self._tail.cell or self._tail.claim()
            self._head.count(item)
            self._tail.count(item)
            tail.begin_wait(at_ns)

    def stop(self) -> None:
        """Let the producer wait no longer."""
        if self._idle is not None:
            self._end_idle(self._now_ns())

    def _end_idle(self, at_ns: int) -> None:
        idle, self._idle = self._idle, None
        # Else the wait ended when the cell was closed, or belongs to a parent process.
        if idle is not None and idle is self._tail.cell:
            idle.end_wait(at_ns)


class _OnePass(Wrapper):
    def __init__(self, source: Any, head: Writer, tail: Writer) -> None:
        super().__init__(source, head, tail)
        self._turns = _Turns(head, tail)

    def __del__(self) -> None:
        self._turns.stop()


class _Pass(_OnePass):
    """An iterator."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        came, item, begun = False, None, self._turns.begin()
        try:
            item = next(self._source)
            came = True
        finally:
            self._turns.end(begun, came, item)
        return item

    def close(self) -> None:
        """Close the source, if it can be closed."""
        self._turns.stop()
        if hasattr(self._source, "close"):
            self._source.close()


class _AsyncPass(_OnePass):
    """An asynchronous iterator."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        came, item, begun = False, None, self._turns.begin()
        try:
            item = await anext(self._source)
            came = True
        finally:
            self._turns.end(begun, came, item)
        return item

    async def aclose(self) -> None:
        """Close the source, if it can be closed."""
        self._turns.stop()
        if hasattr(self._source, "aclose"):
            await self._source.aclose()


class _Passes(Wrapper):
    """An iterable that can be passed through any number of times."""

    def __iter__(self) -> _Pass:
        return _Pass(iter(self._source), self._head, self._tail)


class _SizedPasses(_Passes):
    """One that knows its length."""

    def __len__(self) -> int:
        return len(self._source)


class _AsyncPasses(Wrapper):
    """An asynchronous iterable."""

    def __aiter__(self) -> _AsyncPass:
        return _AsyncPass(aiter(self._source), self._head, self._tail)


def tap_iterable(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Return the stand-in for an iterable; it is an iterator if the source is one.

    ``send`` and ``throw`` reach a generator, but are neither timed nor counted.
    """
    if isinstance(source, Iterator):
        return Tapped(queue=_Pass(source, head, tail))
    sized = hasattr(source, "__len__")
    return Tapped(queue=(_SizedPasses if sized else _Passes)(source, head, tail))


def tap_async_iterable(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Return the stand-in for an asynchronous iterable, as `tap_iterable` does."""
    one = isinstance(source, AsyncIterator)
    return Tapped(queue=(_AsyncPass if one else _AsyncPasses)(source, head, tail))
