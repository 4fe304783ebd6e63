"""The memory that Python allocates during one call."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def traced_memory(
    func: Callable[..., Any], *, is_coroutine: bool
) -> Iterator[tuple[Callable[..., Any], Callable[[], int]]]:
    """Trace allocations inside, and give the function to call and what returns its peak in bytes.

    The peak is the most that was allocated at once during the last call, beyond what was before:
    what is called around the function is no part of it.
    """
    was_tracing, peak = tracemalloc.is_tracing(), 0

    @contextmanager
    def traced() -> Iterator[None]:
        nonlocal peak
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        yield
        peak = tracemalloc.get_traced_memory()[1] - before

    def called(*args: Any, **kwargs: Any) -> object:
        with traced():
            return func(*args, **kwargs)

    async def awaited(*args: Any, **kwargs: Any) -> object:
        with traced():
            return await func(*args, **kwargs)

    tracemalloc.start()
    try:
        yield awaited if is_coroutine else called, lambda: peak
    finally:
        if not was_tracing:
            tracemalloc.stop()
