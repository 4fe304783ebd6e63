"""Limits of an agent for its clients: connections, requests a second, time, size."""

from __future__ import annotations

import asyncio
from typing import cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

MOST_CONNECTIONS = 256
MOST_BODY_BYTES = 64 * 1024
SLOWEST_S = 10.0  # for the header of a first request, and for a whole request
REQUESTS_A_SECOND, MOST_AT_ONCE = 200.0, 400.0


class Allowance:
    """Lets a number of requests pass per second, and some more at once.

    Examples
    --------
    >>> allowance = Allowance(rate=1.0, most=2.0)
    >>> [allowance.take(now_s) for now_s in (0.0, 0.0, 0.0, 1.5)]
    [True, True, False, True]
    """

    def __init__(self, rate: float, most: float) -> None:
        self._rate, self._most = rate, most
        self._left, self._at_s = most, 0.0

    def take(self, now_s: float) -> bool:
        """Return whether a request may pass now."""
        self._left = min(self._most, self._left + (now_s - self._at_s) * self._rate)
        self._at_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class _Refusing(asyncio.Protocol):
    """Closes a connection as soon as it is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()


class GuardedConnections:
    """Makes the protocols of connections: not too many, and none that never asks anything."""

    def __init__(self, server: web.Server, slowest_s: float) -> None:
        self._server, self._slowest_s = server, slowest_s
        self._arriving: set[object] = set()  # their transport is not ready yet
        self._unasked: set[object] = set()  # their first header has not come
        self._unsent: dict[RequestHandler, int] = {}  # bytes that wait for who asked to read them
        self._look()

    def __call__(self) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection."""
        # The server does not count connections before their transport is ready.
        if len(self._arriving.union(self._server.connections)) >= MOST_CONNECTIONS:
            return _Refusing()
        handler = self._server()
        accepting = asyncio.current_task()  # ends when the handshake has, well or not
        if accepting is not None:
            self._arriving.add(handler)
            accepting.add_done_callback(lambda _: self._arriving.discard(handler))
        self._unasked.add(handler)
        asyncio.get_running_loop().call_later(self._slowest_s, self._close, handler)
        return handler

    def _look(self) -> None:
        """Cut off clients that have read no part of an answer since the last look."""
        unsent = {
            connection: connection.transport.get_write_buffer_size()
            for connection in self._server.connections
            if isinstance(connection.transport, asyncio.Transport)
        }
        for handler, size in unsent.items():
            if 0 < self._unsent.get(handler, 0) <= size and handler.transport is not None:
                handler.transport.abort()
        self._unsent = unsent
        asyncio.get_running_loop().call_later(self._slowest_s, self._look)

    def has_asked(self, handler: object) -> None:
        """Note that the header of a request came."""
        self._unasked.discard(handler)

    def _close(self, handler: RequestHandler) -> None:
        if handler in self._unasked:
            self._unasked.discard(handler)
            handler.force_close()
