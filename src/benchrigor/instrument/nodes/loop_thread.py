"""An event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads; `end` stops it."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def end(self) -> None:
        """Cancel what still runs, and wait until the thread has ended."""
        if self._thread.is_alive():
            self.run(self._cancelled())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    async def _cancelled(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()
