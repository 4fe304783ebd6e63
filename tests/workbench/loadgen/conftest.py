"""Web servers that answer in all kinds of ways."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Handler(BaseHTTPRequestHandler):
    """Answers by the path: a status, what was sent, or nothing."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, str]] = []  # noqa: RUF012  # of all requests of a test

    def do_GET(self) -> None:  # named so by its base
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size).decode()
        Handler.seen.append((self.command, self.headers.get("X-Test") or "", body))
        match self.path:
            case "/close":
                self.close_connection = True
                return
            case "/huge":
                self.send_response(200)
                self.send_header("Content-Length", str(2**25))
                self.end_headers()
                for _ in range(2**9):
                    try:
                        self.wfile.write(b"x" * 2**16)
                    except OSError:
                        return
            case "/moved" | "/error":
                self.send_response(302 if self.path == "/moved" else 500)
                if self.path == "/moved":
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
            case "/stream":
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for pause_s in (0.1, 0.05, 0.15):
                    time.sleep(pause_s)
                    self.wfile.write(b"2\r\nok\r\n")
                self.wfile.write(b"0\r\n\r\n")
            case _:
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

    do_POST = do_GET  # noqa: N815  # likewise

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def web() -> Iterator[str]:
    """The address of a server."""
    Handler.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def seen() -> list[tuple[str, str, str]]:
    """Method, a header and body of what was received, filled by `web`."""
    return Handler.seen


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"
