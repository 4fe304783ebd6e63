"""Taps the queues of `queue` and `asyncio` from inside; they stay the objects that they are.

Their own methods count, under the mutex of a `queue.Queue` or in the single thread of an
`asyncio.Queue`: so one cell for an end is exact with any number of threads and tasks. What waits is
timed. An event without a wait reads no clock.
"""

# ruff: noqa: SLF001  # the bound of a queue and who waits for it have no public names

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.stand_ins import time_wait

if TYPE_CHECKING:
    import asyncio
    import queue

_ABSENT = object()

# Called with a queue's bound, returns the one that it shall have; may refuse by raising.
Move = Callable[[int], int]

# Moves the bound of a queue; no other caller can move it meanwhile.
Resize = Callable[[Move], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tapped:
    """A source that is being counted."""

    queue: Any  # the program uses it
    release: Callable[[], None] | None = None  # gives the source back as it was
    # Moves the bound of the queue, and wakes waiters for room; None if it cannot be moved.
    resize: Resize | None = None
    local: bool = True  # whether it belongs to this process, and cannot be sent to another


class Patches:
    """Methods set on single objects until `undo`; the classes stay as they are."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, str], tuple[Any, object]] = {}

    def set(self, target: Any, name: str, method: object) -> None:
        """Set a method."""
        before = getattr(target, name) if is_own(target, name) else _ABSENT
        self._before.setdefault((id(target), name), (target, before))
        setattr(target, name, method)

    def undo(self) -> None:
        """Restore the former methods of all objects."""
        for (_, name), (target, before) in self._before.items():
            if before is _ABSENT:
                delattr(target, name)
            else:
                setattr(target, name, before)
        self._before.clear()


def is_own(target: Any, name: str) -> bool:
    """Whether a method is the object's, not its class's.

    It does not read ``__dict__``: after that, every access to an attribute of the object takes
    longer.
    """
    method = getattr(target, name)
    return getattr(method, "__self__", None) is not target or method.__name__ != name


def count_items(source: Any, head: Writer, tail: Writer, patches: Patches) -> None:
    """Count in ``_get`` and ``_put`` of a queue, which are there to be overridden.

    No other code can run meanwhile: they run under the mutex of a `queue.Queue`, or in the single
    thread of an `asyncio.Queue`. Items that ``shutdown(immediate=True)`` discards do not count.
    """
    get = source._get
    if _throws_away(source):
        shutdown = source.shutdown

        def shut_down(*args: Any, **options: Any) -> Any:
            if options.get("immediate", bool(args) and args[0]):
                patches.set(source, "_get", get)
            return shutdown(*args, **options)

        patches.set(source, "shutdown", shut_down)
    for name, writer, counting in (("_get", head, _counting_get), ("_put", tail, _counting_put)):
        method = getattr(source, name)
        count = partial(_count_sizes if writer.item_bytes is not None else counting, method)
        arm = partial(_arm, source, name, writer, count, patches)
        arm()
        writer.on_forget = arm


def _arm(
    source: Any, name: str, writer: Writer, counting: Callable[..., Any], patches: Patches
) -> None:
    """Let the first item, or the first in a forked process, claim the cell."""

    def first(*item: Any) -> Any:
        method = counting(writer)
        patches.set(source, name, method)
        return method(*item)

    patches.set(source, name, first)


def _count_sizes(method: Callable[..., Any], writer: Writer) -> Callable[..., Any]:
    def run_and_count(*item: Any) -> Any:
        taken = method(*item)
        writer.count(*(item or (taken,)))
        return taken

    return run_and_count


def _counting_get(get: Callable[[], Any], writer: Writer) -> Callable[[], Any]:
    items, words = 0, writer.claim().words

    def get_and_count() -> Any:
        nonlocal items
        item = get()
        items += 1
        words[0] = items
        return item

    return get_and_count


def _counting_put(put: Callable[[Any], Any], writer: Writer) -> Callable[[Any], None]:
    items, words = 0, writer.claim().words

    def put_and_count(item: Any) -> None:
        nonlocal items
        put(item)
        items += 1
        words[0] = items

    return put_and_count


def _throws_away(source: Any) -> bool:
    """Whether it has the ``shutdown(immediate)`` of Python 3.13, not another method."""
    shutdown = getattr(source, "shutdown", None)
    return callable(shutdown) and next(iter(signature(shutdown).parameters), "") == "immediate"


def tap_queue(source: queue.Queue[Any], head: Writer, tail: Writer) -> Tapped:
    """Make a queue count, until it is released."""
    if is_own(source.not_empty, "wait"):
        raise InvalidInput(f"{source!r} is tapped already, close that tap first")
    patches = Patches()
    with source.mutex:
        count_items(source, head, tail, patches)
        for condition, writer in ((source.not_empty, head), (source.not_full, tail)):
            patches.set(condition, "wait", _timed(condition.wait, writer))

    def release() -> None:
        with source.mutex:
            patches.undo()

    def resize(move: Move) -> None:
        with source.mutex:
            before = source.maxsize
            source.maxsize = move(before)
            source.not_full.notify(max(0, source.maxsize - before))

    return Tapped(queue=source, release=release, resize=resize)


def _timed(wait: Callable[..., bool], writer: Writer) -> Callable[..., bool]:
    def wait_and_time(timeout: float | None = None) -> bool:
        with writer.waiting():
            return wait(timeout)

    return wait_and_time


def tap_async_queue(source: asyncio.Queue[Any], head: Writer, tail: Writer) -> Tapped:
    """Make a queue count, until it is released."""
    if is_own(source, "get"):
        raise InvalidInput(f"{source!r} is tapped already, close that tap first")
    patches = Patches()
    count_items(source, head, tail, patches)
    patches.set(source, "get", _timed_if(source.empty, source.get, head))
    patches.set(source, "put", _timed_if(source.full, source.put, tail))
    return Tapped(queue=source, release=patches.undo, resize=partial(_resize, source))


def _timed_if(must_wait: Callable[[], bool], method: Callable[..., Any], writer: Writer) -> Any:
    """Return a method that times another; one of a subclass may take and return anything."""

    async def run_and_time(*args: Any, **options: Any) -> Any:
        work = method(*args, **options)
        return await (time_wait(work, writer) if must_wait() else work)

    return run_and_time


def _resize(source: Any, move: Move) -> None:
    before = source.maxsize
    source._maxsize = move(before)
    # A queue without a loop has had no waiter yet; one whose loop is closed will have none.
    if source._loop is not None and source.maxsize > before:
        with suppress(RuntimeError):
            source._loop.call_soon_threadsafe(_wake, source, source.maxsize - before)


def _wake(source: Any, count: int) -> None:
    for _ in range(count):
        source._wakeup_next(source._putters)
