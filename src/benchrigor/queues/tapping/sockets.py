"""Taps a socket: what is received leaves a queue, what is sent enters one.

Each call that moves bytes is an item, and the bytes are counted as they are. A blocking socket is
first asked not to wait; one with a timeout, or with encryption, is looked at before it is asked.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.wrapping import Tapped, Wrapper

__all__ = ["tap_socket"]

_AT_ONCE, _PEEK = int(getattr(socket, "MSG_DONTWAIT", 0)), int(socket.MSG_PEEK)
"""As plain numbers: testing a bit of the enumeration takes as long as receiving."""

_RECORD_BYTES = 1 << 14
"""What encryption sends at once, at most; more would wait for room where nobody sees it."""


def tap_socket(source: socket.socket, head: Writer, tail: Writer) -> Tapped:
    """Return what stands in for a connected socket.

    Parameters
    ----------
    source
        The socket. ``recv``, ``recv_into``, ``send`` and ``sendall`` count; what its other methods
        move does not.
    head, tail
        Count what is received and what is sent.
    """
    return Tapped(queue=_Socket(source, head, tail))


class _Socket(Wrapper):
    def __init__(self, source: socket.socket, head: Writer, tail: Writer) -> None:
        super().__init__(source, head, tail)
        self._encrypted = hasattr(source, "pending")
        self._asks = bool(_AT_ONCE) and not self._encrypted

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Receive, as the source does."""
        data: bytes = self._received(self._source.recv, bufsize, flags)
        self._count_received(len(data), flags)
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receive into a buffer, as the source does."""
        size: int = self._received(partial(self._source.recv_into, buffer), nbytes, flags)
        self._count_received(size, flags)
        return size

    def send(self, data: Any, flags: int = 0) -> int:
        """Send, as the source does."""
        sent = self._sent(_bytes_of(data), flags)
        self._tail.count_bytes(sent)
        return sent

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all, as the source does."""
        view = _bytes_of(data)
        if self._source.gettimeout() == 0.0:
            self._source.sendall(view, flags)
        else:
            for piece in self._pieces(view):
                self._send_piece(piece, flags)
        self._tail.count_bytes(view.nbytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._source.close()

    def _received(self, receive: Callable[[int, int], Any], size: int, flags: int) -> Any:
        limit_s = self._source.gettimeout()
        if limit_s is None and not flags and self._asks:
            try:
                return receive(size, _AT_ONCE)
            except BlockingIOError:
                pass
        elif limit_s == 0.0 or flags & _AT_ONCE or self._ready("POLLIN"):
            return receive(size, flags)
        with self._head.waiting():
            return receive(size, flags)

    def _sent(self, view: memoryview[int], flags: int) -> int:
        blocks = self._source.gettimeout() is None
        if blocks and self._encrypted and view.nbytes > _RECORD_BYTES:
            return self._sent_in_records(view, flags)
        sent = self._sent_at_once(view, flags)
        if sent is None:
            with self._tail.waiting():
                return int(self._source.send(view, flags))
        if blocks and sent < view.nbytes:
            sent += self._sent_later(view[sent:], flags)
        return sent

    def _sent_at_once(self, view: memoryview[int], flags: int) -> int | None:
        """Send what there is room for; return how much, None where nothing may be sent yet."""
        send, limit_s = self._source.send, self._source.gettimeout()
        if limit_s is None and not flags and self._asks:
            try:
                return int(send(view, _AT_ONCE))
            except BlockingIOError:
                return None
        if limit_s == 0.0 or flags & _AT_ONCE or self._ready("POLLOUT"):
            return int(send(view, flags))
        return None

    def _pieces(self, view: memoryview[int]) -> Iterator[memoryview[int]]:
        size = max(1, view.nbytes)  # nothing is sent as well
        step = _RECORD_BYTES if self._encrypted else size
        for start in range(0, size, step):
            yield view[start : start + step]

    def _send_piece(self, piece: memoryview[int], flags: int) -> None:
        sent = self._sent_at_once(piece, flags)
        if sent is None or sent < piece.nbytes:
            with self._tail.waiting():
                self._source.sendall(piece[sent or 0 :], flags)

    def _sent_in_records(self, view: memoryview[int], flags: int) -> int:
        """Send all, as a blocking socket does; what fails on the way fails the next time."""
        sent = 0
        for piece in self._pieces(view):
            try:
                self._send_piece(piece, flags)
            except OSError:
                if not sent:
                    raise
                break
            sent += piece.nbytes
        return sent

    def _sent_later(self, view: memoryview[int], flags: int) -> int:
        """Send the rest, as a blocking socket would; what fails now fails the next time."""
        if flags & _AT_ONCE:
            return 0
        try:
            with self._tail.waiting():
                return int(self._source.send(view, flags))
        except OSError:
            return 0

    def _ready(self, event: str) -> bool:
        source = self._source
        if source.fileno() < 0 or (self._encrypted and event == "POLLIN" and source.pending()):
            return True
        if not hasattr(select, "poll"):  # Windows
            here = [source.fileno()]
            read, write = (here, []) if event == "POLLIN" else ([], here)
            return any(select.select(read, write, [], 0.0))
        poll = select.poll()
        poll.register(source.fileno(), getattr(select, event))
        return bool(poll.poll(0))

    def _count_received(self, size: int, flags: int) -> None:
        # What is only peeked at stays in the socket.
        if not flags & _PEEK:
            self._head.count_bytes(size)


def _bytes_of(data: Any) -> memoryview[int]:
    view = memoryview(data)
    try:
        return view.cast("B")
    except TypeError:  # as of no items in several dimensions, or of what lies in pieces
        if not view.c_contiguous:
            raise BufferError("memoryview: underlying buffer is not C-contiguous") from None
        return memoryview(view.tobytes())
