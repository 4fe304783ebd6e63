"""Taps a socket: received bytes leave a queue, sent bytes enter one.

A call that moves bytes is an item, and its bytes are counted. A blocking socket is first asked not
to wait; a socket with a timeout, or with encryption, is polled before the call.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.stand_ins import Wrapper

# As plain numbers: testing a bit of the enumeration takes as long as receiving.
_AT_ONCE, _PEEK = int(getattr(socket, "MSG_DONTWAIT", 0)), int(socket.MSG_PEEK)

# Most bytes that encryption sends at once; more would wait for room unseen.
_RECORD_BYTES = 1 << 14


class TappedSocket(Wrapper):
    """Counts ``recv``, ``recv_into``, ``send`` and ``sendall``, but no other methods."""

    counts_bytes = True

    def __init__(self, source: socket.socket, head: Writer, tail: Writer) -> None:
        super().__init__(source, head, tail)
        self._encrypted = hasattr(source, "pending")

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Receive as the source does."""
        data: bytes = self._receive(self._source.recv, bufsize, flags)
        self._count_bytes(len(data), flags)
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receive into a buffer as the source does."""
        size: int = self._receive(partial(self._source.recv_into, buffer), nbytes, flags)
        self._count_bytes(size, flags)
        return size

    def send(self, data: Any, flags: int = 0) -> int:
        """Send as the source does."""
        view = _bytes_of(data)
        sent = 0
        for piece in self._pieces(view) if self._source.gettimeout() is None else (view,):
            try:
                taken = self._send(piece, flags)
            except OSError:  # an error after a part was sent comes again the next time
                if not sent:
                    raise
                break
            sent += taken
            if taken < piece.nbytes:
                break
        self._tail.count_bytes(sent)
        return sent

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all as the source does."""
        view = _bytes_of(data)
        if self._source.gettimeout() == 0.0:
            self._source.sendall(view, flags)
        else:
            for piece in self._pieces(view):
                sent = self._sent_at_once(piece, flags) or 0
                if sent < piece.nbytes:
                    with self._tail.waiting():
                        self._source.sendall(piece[sent:], flags)
        self._tail.count_bytes(view.nbytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._source.close()

    def _receive(self, receive: Callable[[int, int], Any], size: int, flags: int) -> Any:
        limit_s = self._source.gettimeout()
        if limit_s is None and not flags and not self._encrypted:
            try:
                return receive(size, _AT_ONCE)
            except BlockingIOError:
                pass
        elif limit_s == 0.0 or flags & _AT_ONCE or self._ready(select.POLLIN):
            return receive(size, flags)
        with self._head.waiting():
            return receive(size, flags)

    def _send(self, view: memoryview[int], flags: int) -> int:
        """Send as the source does: a blocking one sends all, unless it fails midway."""
        sent = self._sent_at_once(view, flags)
        blocks = self._source.gettimeout() is None and not flags & _AT_ONCE
        if sent is None or (blocks and sent < view.nbytes):
            start = sent or 0
            try:
                with self._tail.waiting():
                    return start + int(self._source.send(view[start:], flags))
            except OSError:
                if not start:
                    raise
        return sent or 0

    def _sent_at_once(self, view: memoryview[int], flags: int) -> int | None:
        """Send as much as there is room for; return the number of bytes, None if it would wait."""
        send, limit_s = self._source.send, self._source.gettimeout()
        if limit_s is None and not flags and not self._encrypted:
            try:
                return int(send(view, _AT_ONCE))
            except BlockingIOError:
                return None
        if limit_s == 0.0 or flags & _AT_ONCE or self._ready(select.POLLOUT):
            return int(send(view, flags))
        return None

    def _pieces(self, view: memoryview[int]) -> Iterator[memoryview[int]]:
        size = max(1, view.nbytes)  # an empty view is sent as well
        step = _RECORD_BYTES if self._encrypted else size
        for start in range(0, size, step):
            yield view[start : start + step]

    def _ready(self, event: int) -> bool:
        source = self._source
        received = self._encrypted and event == select.POLLIN and source.pending()
        if source.fileno() < 0 or received:
            return True
        poll = select.poll()
        poll.register(source.fileno(), event)
        return bool(poll.poll(0))

    def _count_bytes(self, size: int, flags: int) -> None:
        # Peeked bytes stay in the socket.
        if not flags & _PEEK:
            self._head.count_bytes(size)


def _bytes_of(data: Any) -> memoryview[int]:
    view = memoryview(data)
    try:
        return view.cast("B")
    except TypeError:  # such as no items in several dimensions, or data in pieces
        if not view.c_contiguous:
            raise BufferError("memoryview: underlying buffer is not C-contiguous") from None
        return memoryview(view.tobytes())
