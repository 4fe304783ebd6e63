"""A server of a known rate, one request after the other; prints its port.

Its kind is "asyncio", "threads", or "queue", which also works off requests that nobody awaits.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def _serve(rate: float, *, works_off: bool) -> None:
    alone = asyncio.Lock()

    async def work() -> None:
        async with alone:
            await asyncio.sleep(1.0 / rate)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readline():
                while await reader.readline() not in (b"\r\n", b""):
                    pass
                working = asyncio.ensure_future(work())
                await (asyncio.shield(working) if works_off else working)
                writer.write(_ANSWER)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def _serve_by_threads(rate: float) -> None:
    alone = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # as the library calls it
            with alone:
                time.sleep(1.0 / rate)
            self.wfile.write(_ANSWER)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size, daemon_threads = 4096, True

    with Server(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    kind, a_second = sys.argv[1], float(sys.argv[2])
    if kind == "threads":
        _serve_by_threads(a_second)
    else:
        asyncio.run(_serve(a_second, works_off=kind == "queue"))
