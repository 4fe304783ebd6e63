"""A web server that is a queue of known rate: one request after the other, each takes its time.

``python queue_server.py RATE [PORT]`` prints its port. Service times are exponential (M/M/1, with
arrivals at random), so that at a load the mean response is 1 / (RATE - load). It sleeps instead of
working: it hardly needs a processor. Of /stream the answer begins when its service does.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time

_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_CHUNK, _LAST = b"2\r\nok\r\n", b"0\r\n\r\n"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Queue:
    """Tells each request when its service ends: after that of the one before it."""

    def __init__(self, rate: float) -> None:
        self._rng = random.Random(1)  # noqa: S311  # it draws service times, no secrets
        self._rate, self._free_s = rate, 0.0

    def times_s(self) -> tuple[float, float]:
        """Return when the service of a request that comes now begins, and is done."""
        begins_s = max(self._free_s, time.monotonic())
        self._free_s = begins_s + self._rng.expovariate(self._rate)
        return begins_s, self._free_s


async def serve(rate: float, port: int) -> None:
    """Serve until killed."""
    queue = Queue(rate)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                begins_s, ends_s = queue.times_s()
                is_streamed = b"/stream" in request
                if is_streamed:
                    await asyncio.sleep(max(begins_s - time.monotonic(), 0.0))
                    writer.write(_HEAD + _CHUNK)
                await asyncio.sleep(max(ends_s - time.monotonic(), 0.0))
                writer.write(_CHUNK + _LAST if is_streamed else _ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
