"""Taps anything with the ``get`` and ``put`` of `queue.Queue`, which tries without waiting first.

Such are `queue.SimpleQueue`, queues of `multiprocessing`, proxies of a manager, queues of other
packages. Only an attempt that found the queue empty or full reads a clock.
"""

from __future__ import annotations

import select
import time
from inspect import signature
from queue import Empty, Full, SimpleQueue
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.wrappers import Tapped, Wrapper

_PAUSE_S = 1e-3


def tap_polled(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Return the stand-in for a queue whose ``get`` and ``put`` take ``block``."""
    for name, wanted in (("get", (False,)), ("put", (None, False))):
        if not _takes(getattr(source, name), *wanted):
            raise InvalidInput(
                f"{name} of {source!r} always waits, "
                "expected get(block, timeout) and put(item, block, timeout)"
            )
    return Tapped(queue=PolledQueue(source, head, tail), local=isinstance(source, SimpleQueue))


class PolledQueue(Wrapper):
    """Stands in for a queue that raises `queue.Empty` and `queue.Full` when asked not to block."""

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an item, as the source does."""
        if block and (timeout is None or timeout > 0):
            try:
                self._source.put(item, False)
            except Full:
                pass
            else:
                self._tail.count(item)
                return
            with self._tail.waiting():
                self._source.put(item, True, timeout)
        else:
            self._source.put(item, block, timeout)
        self._tail.count(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Get an item, as the source does."""
        if block and (timeout is None or timeout > 0):
            try:
                item = self._source.get(False)
            except Empty:
                pass
            else:
                self._head.count(item)
                return item
            # Outside of the handler, so that another Empty does not seem to come of the first.
            with self._head.waiting():
                item = self._source.get(True, timeout)
        else:
            item = self._source.get(block, timeout)
        self._head.count(item)
        return item

    def put_nowait(self, item: Any) -> None:
        """Put an item if there is room."""
        self.put(item, False)

    def get_nowait(self) -> Any:
        """Get an item if there is one."""
        return self.get(False)


class FedQueue(PolledQueue):
    """Stands in for a `multiprocessing.Queue`, which a thread of its own feeds through a pipe.

    A wait ends when the pipe has something to read, so that receiving and unpickling is none. If
    another consumer was quicker, another wait begins, with a pause. The thread hides how long the
    pipe makes a producer wait.
    """

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Get an item, as the source does."""
        if not block or (timeout is not None and timeout <= 0):
            return super().get(block, timeout)
        until_s = None if timeout is None else time.monotonic() + timeout
        left_s, is_first = timeout, True
        while left_s is None or left_s > 0:
            try:
                return super().get(False)
            except Empty:
                pass
            with self._head.waiting():
                if not is_first:
                    time.sleep(_PAUSE_S)
                _is_ready(self._source._reader, select.POLLIN, left_s)  # noqa: SLF001  # no public way
            is_first = False
            left_s = None if until_s is None else until_s - time.monotonic()
        return super().get(False)


class PipeQueue(Wrapper):
    """Stands in for a `multiprocessing.SimpleQueue`, whose methods always wait.

    It asks whether the pipe has something to read, or room; another process may be quicker then,
    and a message of more than `select.PIPE_BUF` bytes may wait for more room: both unseen. An item
    that was waited for is also received and unpickled within the wait.
    """

    def get(self) -> Any:
        """Get an item, as the source does."""
        if self._source.empty():
            with self._head.waiting():
                item = self._source.get()
        else:
            item = self._source.get()
        self._head.count(item)
        return item

    def put(self, obj: Any) -> None:
        """Put an item, as the source does."""
        # There is no public way to know whether a pipe has room.
        if _is_ready(self._source._writer, select.POLLOUT):  # noqa: SLF001
            self._source.put(obj)
        else:
            with self._tail.waiting():
                self._source.put(obj)
        self._tail.count(obj)


def _is_ready(pipe: Any, event: int, limit_s: float | None = 0.0) -> bool:
    """Wait until a pipe can be read or written, for that long; None for ever."""
    poll = select.poll()
    poll.register(pipe.fileno(), event)
    return bool(poll.poll(None if limit_s is None else limit_s * 1e3))


def _takes(method: Any, *args: object) -> bool:
    try:
        expected = signature(method)
    except ValueError:  # as of some methods written in C
        return True
    try:
        expected.bind(*args)
    except TypeError:
        return False
    return True
