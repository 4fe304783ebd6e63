"""Nodes that answer whatever a test wants, and how agents are asked."""

from __future__ import annotations

import json
import re
import socketserver
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchrigor.instrument import Agent, ProbeRegistry
from benchrigor.machine import StatusReader
from benchrigor.testing import FakeSampler


def agent_of(sampler: FakeSampler | None = None, **given: Any) -> Agent:
    """Return an agent of a machine that is as a sampler says, with probes of its own."""
    reader = StatusReader(samplers=[sampler or FakeSampler({})])
    return Agent(**{"registry": ProbeRegistry(), "reader": reader, **given})


def ask(url: str, body: object = None, token: str | None = None, **more: Any) -> tuple[int, Any]:
    """Send a request, and return status and document."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    headers |= more.pop("headers", {})
    method = "GET" if body is None else "PUT"
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=20, **more) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def http(body: bytes, head: bytes = b"200 OK", more: bytes = b"") -> bytes:
    length = str(len(body)).encode()
    return b"HTTP/1.1 " + head + b"\r\nContent-Length: " + length + b"\r\n" + more + b"\r\n" + body


def report_on(**fields: Any) -> dict[str, Any]:
    """Return the document of a report."""
    return {
        "node": "n1",
        "name": "host",
        "place": "a:1",
        "sequence": 1,
        "at_s": 1000.0,
        "age_s": 0.5,
        "status": {"samples": [{"name": "load 1 min", "value": 0.5}], "at": "now"},
        "cursor": "c.1",
        "probes": {"readings": {}, "elapsed_s": 1.0},
        **fields,
    }


def telling(ahead_s: float = 0.0, **fields: Any) -> Callable[[bytes], bytes]:
    """Return what answers questions with a report, of a node whose clock is ahead."""

    def answer(request: bytes) -> bytes:
        found = re.search(rb"echo=([^& ]*)", request)
        echo = found[1].decode() if found else ""
        document = report_on(echo=echo, at_s=time.time() + ahead_s, **fields)
        return http(json.dumps(document).encode())

    return answer


@contextmanager
def server(answer: Callable[[bytes], bytes] | bytes | None) -> Iterator[str]:
    """Serve this answer to whatever is sent; None: never one. Its place is returned."""
    ended = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            request = self.request.recv(4096)
            if answer is None:
                ended.wait(60.0)
            else:
                self.request.sendall(answer(request) if callable(answer) else answer)

    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{made.server_address[1]}"
        finally:
            ended.set()
            made.shutdown()
            thread.join()
