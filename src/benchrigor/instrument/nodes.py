"""What agents and hubs share: tokens, places, and an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import wrong_values

SHORTEST_TOKEN = 16  # of the secret that an agent and its hubs share
T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads; `end` stops it."""

    def __init__(self, name: str) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and return its result; InvalidInput in a forked child."""
        if os.getpid() != self._pid:
            coroutine.close()
            raise InvalidInput(
                "this is of the process that has forked this one, expected one that is made here"
            )
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def end(self) -> None:
        """Cancel running calls, and wait until the thread has ended; no effect in a child."""
        if os.getpid() == self._pid and self._thread.is_alive():
            self.run(self._cancel_tasks())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    async def _cancel_tasks(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


def wrong_token(token: object) -> list[str]:
    """Return the problems with a token, without showing it; None is none, which is not wrong."""
    fits = token is None or (
        isinstance(token, str)
        and len(token) >= SHORTEST_TOKEN
        and token.isascii()
        and token.isprintable()
        and " " not in token
    )
    expected = f"at least {SHORTEST_TOKEN} printable characters of ASCII without spaces"
    return wrong_values([("token", "(not shown)", fits, expected)])


def place_of(host: str, port: int) -> str:
    """Return a host and a port as an address has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
