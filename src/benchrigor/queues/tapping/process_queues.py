"""Taps the queues of `multiprocessing`.

The stand-ins take the same steps as the queue's own methods, in the same order and under the same
locks, and read the clock in between. The wait of a reader ends when the pipe has something to
read, so that receiving and unpickling count as service. The feeder thread of a
`multiprocessing.Queue` hides how long the pipe makes a producer wait.
"""

# ruff: noqa: SLF001  # the pipe and its locks have no public names

from __future__ import annotations

import multiprocessing.queues
import select
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.reduction import ForkingPickler
from queue import Empty
from typing import Any

from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.polled_queues import PolledQueue
from benchrigor.queues.tapping.wrappers import Tapped, Wrapper

# Waits for up to this number of seconds, with None for ever; returns whether it succeeded.
_Attempt = Callable[[float | None], bool]


def tap_process_queue(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Return the stand-in for a queue of `multiprocessing`, in other processes as well."""
    kind, piped = type(source), multiprocessing.queues.SimpleQueue
    # A subclass may override methods in unknown ways: it is treated as any other queue.
    stand_in: type[Wrapper]
    if isinstance(source, piped):
        own = kind.get is piped.get and kind.put is piped.put
        stand_in = _PipeQueue if own else _PipeQueueOfOthers
    else:
        own = kind.get is multiprocessing.queues.Queue.get
        stand_in = _FedQueue if own else PolledQueue
    return Tapped(queue=stand_in(source, head, tail))


class _FedQueue(PolledQueue):
    """A Queue or JoinableQueue: bounded by a semaphore, written by a feeder thread."""

    def __init__(self, source: Any, head: Writer, tail: Writer) -> None:
        super().__init__(source, head, tail)
        self._locked = partial(source._rlock.acquire, True)
        self._readable = _poll(source._reader, select.POLLIN)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        source, head = self._source, self._head
        if source._closed:
            return source.get(block, timeout)
        left_s = _deadline(block, timeout)
        if not _done(self._locked, left_s(), head):
            raise Empty
        try:
            if not _done(self._readable, left_s(), head):
                raise Empty
            data = source._recv_bytes()
            source._sem.release()
        finally:
            source._rlock.release()
        item = ForkingPickler.loads(data)
        head.count(item)
        return item


class _PipeQueue(Wrapper):
    """A SimpleQueue: a pipe with a lock at either end.

    A message of more than `select.PIPE_BUF` bytes may wait once more while it is sent, unseen.
    """

    def __init__(self, source: Any, head: Writer, tail: Writer) -> None:
        super().__init__(source, head, tail)
        self._readable = _poll(source._reader, select.POLLIN)
        self._writable = _poll(source._writer, select.POLLOUT)

    def get(self) -> Any:
        source, head = self._source, self._head
        _done(partial(source._rlock.acquire, True), None, head)
        try:
            _done(self._readable, None, head)
            data = source._reader.recv_bytes()
        finally:
            source._rlock.release()
        item = ForkingPickler.loads(data)
        head.count(item)
        return item

    def put(self, obj: Any) -> None:
        source, tail = self._source, self._tail
        data = ForkingPickler.dumps(obj)
        _done(partial(source._wlock.acquire, True), None, tail)
        try:
            _done(self._writable, None, tail)
            source._writer.send_bytes(data)
        finally:
            source._wlock.release()
        tail.count(obj)


class _PipeQueueOfOthers(Wrapper):
    """A subclass of SimpleQueue that gets or puts in its own way."""

    def get(self) -> Any:
        source, head = self._source, self._head
        if source._reader.closed or source._reader.poll():
            item = source.get()
        else:
            with head.waiting():
                item = source.get()
        head.count(item)
        return item

    def put(self, obj: Any) -> None:
        self._source.put(obj)
        self._tail.count(obj)


def _done(attempt: _Attempt, limit_s: float | None, writer: Writer) -> bool:
    """Try at once, and then for as long as it may take, which is a wait."""
    if attempt(0.0):
        return True
    if limit_s == 0.0:
        return False
    with writer.waiting():
        return attempt(limit_s)


def _deadline(block: bool, timeout: float | None) -> Callable[[], float | None]:
    """Return a function that returns the seconds left; None for any number."""
    if not block:
        return lambda: 0.0
    if timeout is None:
        return lambda: None
    until_s = time.monotonic() + timeout
    return lambda: max(0.0, until_s - time.monotonic())


def _poll(connection: Any, event: int) -> _Attempt:
    """Return a poller of a pipe; registered once, since it is only used under the pipe's lock."""
    poll = select.poll()
    poll.register(connection.fileno(), event)

    def attempt(limit_s: float | None) -> bool:
        # A closed pipe's number may be another's by now; the pipe itself names the problem.
        return connection.closed or bool(poll.poll(None if limit_s is None else limit_s * 1e3))

    return attempt
