"""Times what a coroutine waits, and only if it waits."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from benchrigor.queues.counting.cells import Cell
from benchrigor.queues.counting.writers import Writer

__all__ = ["timed"]

_T = TypeVar("_T")


@types.coroutine
def timed(work: Coroutine[Any, Any, _T], writer: Writer) -> Generator[Any, Any, _T]:
    """Await a coroutine; from where it first gives way until its end is a wait.

    Parameters
    ----------
    work
        The coroutine.
    writer
        Counts the wait; nothing is counted where the coroutine has what it needs at once.

    Examples
    --------
    >>> import asyncio
    >>> from benchrigor.queues import Page
    >>> async def soon(delay_s):
    ...     if delay_s:
    ...         await asyncio.sleep(delay_s)
    >>> async def main(writer):
    ...     for delay_s in (0.0, 0.001, 0.0):
    ...         await timed(soon(delay_s), writer)
    >>> with Page.create() as page:
    ...     asyncio.run(main(Writer(page, "work.head")))
    ...     page.cells()[0].read().blocked_events
    1
    """
    begun: Cell | None = None
    step: Any = work.send
    given: Any = None
    try:
        while True:
            wanted = step(given)
            begun = begun or writer.begin_wait()
            try:
                given = yield wanted
                step = work.send
            except BaseException as error:  # noqa: BLE001  # whatever it is, the coroutine gets it
                given, step = error, work.throw
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        if begun is not None:
            writer.end_wait(begun)
        given = None  # an error that was thrown holds this frame: else they would hold each other
