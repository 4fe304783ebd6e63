"""Agents that are read in no time, and servers that do whatever a test wants."""

from __future__ import annotations

import json
import socketserver
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from benchrigor.instrument import Agent, ProbeRegistry
from benchrigor.machine import StatusReader
from benchrigor.testing import FakeSampler


@pytest.fixture
def token() -> str:
    return "a-token-of-the-tests"


@pytest.fixture
def sampler() -> FakeSampler:
    return FakeSampler({"load 1 min": 0.5, "cpu busy": 7.0, "memory available share": 50.0})


@pytest.fixture
def agent_of(sampler) -> Callable[..., Agent]:
    """Makes agents of a machine that is as the sampler says, with probes of their own."""

    def made(**given: Any) -> Agent:
        reader = StatusReader(samplers=[sampler])
        return Agent(**{"registry": ProbeRegistry(), "reader": reader, **given})

    return made


@pytest.fixture
def ask() -> Callable[..., tuple[int, Any]]:
    """Sends a request, and returns status and document."""

    def asked(url: str, body: object = None, token: str | None = None, **more: Any) -> Any:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        method = "GET" if body is None else "PUT"
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=20, **more) as answer:  # noqa: S310
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    return asked


@contextmanager
def _server(answer: bytes | None) -> Iterator[str]:
    """A server that answers whatever it is sent so; None: never."""
    ended = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4096)
            if answer is None:
                ended.wait(60.0)
            else:
                self.request.sendall(answer)

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


@pytest.fixture
def server() -> Callable[[bytes | None], AbstractContextManager[str]]:
    return _server
