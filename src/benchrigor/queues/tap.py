"""Taps: one for each queue, with two ends to be read.

The queues of `queue` and `asyncio` are tapped from inside, and stay the objects that they are.
Their own methods count, under the mutex of a `queue.Queue` or in the single thread of an
`asyncio.Queue`: so one cell for an end is exact with any number of threads and tasks. What waits is
timed. An event without a wait reads no clock.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Self, get_origin

from benchrigor.errors import InvalidInput
from benchrigor.queues.cells import NAME_BYTES, Page, check_name
from benchrigor.queues.stand_ins import (
    AsyncPass,
    AsyncPasses,
    AwaitedQueue,
    FedQueue,
    LocalQueue,
    Pass,
    Passes,
    PipeQueue,
    PolledQueue,
    SizedPasses,
    StreamHead,
    StreamTail,
    TappedSocket,
    Wrapper,
    time_wait,
)
from benchrigor.queues.writers import HEAD, TAIL, End, ItemBytes, Writer, is_size

if TYPE_CHECKING:
    import asyncio
    import queue

# ruff: noqa: SLF001  # the bound of a queue and who waits for it have no public names


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
    # A queue without a loop has had no waiter yet; one with a closed loop will have none.
    if source._loop is not None and source.maxsize > before:
        with suppress(RuntimeError):
            source._loop.call_soon_threadsafe(_wake, source, source.maxsize - before)


def _wake(source: Any, count: int) -> None:
    for _ in range(count):
        source._wakeup_next(source._putters)


_LONGEST_NAME = NAME_BYTES - len(HEAD)

_TEXT = (str, bytes, bytearray)
_KNOWN = "a queue, an iterable, a socket, or a stream of asyncio"


class Tap:
    """Counts the items that pass a queue, and how long each end waits for the other.

    The head is the consumer's end: it counts items that leave, and waits for items. The tail is the
    producer's end: it counts items that enter, and waits for room. A failed attempt counts no item;
    its wait counts, if it has waited.

    =============================  ==============================================================
    source                         ``queue``
    =============================  ==============================================================
    `queue.Queue`, Lifo, Priority  the source itself, which counts until the tap is closed
    `asyncio.Queue` and kinds      the same
    `multiprocessing` queues       a stand-in, also in other processes
    `queue.SimpleQueue`, others    a stand-in for anything with ``get`` and ``put``
    iterables, asynchronous ones   a stand-in to iterate over; an item makes both ends wait once
    sockets                        a stand-in; counts ``recv``, ``recv_into``, ``send``, ``sendall``
    streams of `asyncio`           a stand-in; a reader has only a head, a writer only a tail
    =============================  ==============================================================

    Parameters
    ----------
    source
        The queue.
    name
        Of the queue; by default the name of its type.
    page
        Where to count; by default a new page.
    servers
        How many threads of a process share an end.
    item_bytes
        Bytes of an item, for rates in bytes: a number, or a function that either end calls with
        every item. The function must not use the queue, and travels with a queue that is sent to
        other processes. Sockets and streams count the bytes that pass.

    Raises
    ------
    InvalidInput
        When the source cannot be tapped, such as a class, text or bytes, or is tapped already;
        naming every other parameter that makes no sense.

    Attributes
    ----------
    queue
        The program uses it in place of the source.
    head, tail
        The two ends, of class `End`.
    name, page
        As given, or chosen.

    Notes
    -----
    Counters and resizing follow Beard & Chamberlain (2015), section III. Unlike theirs the counters
    are never reset, so that no count is lost, and blocked time is counted next to blocked events.

    A tap, or its ``queue``, may be sent to other processes if the source may; queues of `queue`
    and `asyncio` may only be forked. A process claims its cell at its first event. Counting never
    ends a program: a process that cannot open the page, or finds no free cell, does not count,
    and uses the queue as before. `failure` says why.

    A stand-in for an iterable has its length and its methods, uncounted, but neither indexing nor
    comparison. To count the characters of a text, tap ``iter(text)``.

    Examples
    --------
    >>> import queue
    >>> with Tap(queue.Queue(maxsize=8), name="work") as tap:
    ...     for item in range(5):
    ...         tap.queue.put(item)
    ...     _ = tap.queue.get()
    >>> tap.tail.read()[0].items, tap.head.read()[0].items, tap.head.read()[0].blocked_ns
    (5, 1, 0)
    """

    def __init__(
        self,
        source: Any,
        *,
        name: str | None = None,
        page: Page | None = None,
        servers: int = 1,
        item_bytes: ItemBytes = None,
    ) -> None:
        problems = [*_wrong_place(name, page), *_wrong_whole("servers", servers)]
        if not (item_bytes is None or callable(item_bytes) or is_size(item_bytes)):
            expected = "expected a number of bytes from 0 on, or a function of the item"
            problems.append(f"item_bytes is {item_bytes!r:.60}, {expected}")
        if problems:
            raise InvalidInput(problems)
        kind = type(source).__name__.encode()[:_LONGEST_NAME].decode(errors="ignore")
        self.name = kind if name is None else name
        self._own = page is None
        self._closed = False
        self.page = Page.create() if page is None else page
        self.head = End(self.page, f"{self.name}{HEAD}", servers=servers)
        self.tail = End(self.page, f"{self.name}{TAIL}", servers=servers)
        self._writers = tuple(
            Writer(self.page, end.name, item_bytes=item_bytes) for end in (self.head, self.tail)
        )
        try:
            self._tapped = tap_source(source, *self._writers)
        except InvalidInput:
            self._let_go()
            raise
        resize = self._tapped.resize
        self._bound = None if resize is None else Bound(resize)
        if self._bound is not None:
            self.head.double = self.tail.double = self._bound.double

    @property
    def failure(self) -> str | None:
        """Why this process cannot count items, or bytes, at an end; None as long as it can."""
        failures = (self.page.failure, *(writer.failure for writer in self._writers))
        return next((failure for failure in failures if failure is not None), None)

    @property
    def queue(self) -> Any:
        """The program uses it in place of the source."""
        return self._tapped.queue

    @contextmanager
    def grown(self, by: int) -> Iterator[None]:
        """Let a bounded queue take more items for a while, so that producers need not wait.

        Afterwards the bound is as before; one that the program has set meanwhile stays. Items above
        it stay until they are taken.

        Parameters
        ----------
        by
            How many more.

        Raises
        ------
        InvalidInput
            When ``by`` is less than one, or the queue is not a bounded one of `queue` or `asyncio`.

        Examples
        --------
        >>> import queue
        >>> work = queue.Queue(maxsize=1)
        >>> with Tap(work) as tap, tap.grown(2):
        ...     for item in range(3):
        ...         work.put_nowait(item)
        >>> work.qsize(), work.maxsize
        (3, 1)
        """
        if problems := _wrong_whole("by", by):
            raise InvalidInput(problems)
        if self._closed:
            raise InvalidInput(f"the tap of {self.name!r} is closed, expected an open one")
        if (bound := self._bound) is None:
            raise InvalidInput(
                f"the bound of {self.queue!r} cannot be moved, expected a queue of queue or asyncio"
            )
        loan = bound.lend(by)
        try:
            yield
        finally:
            bound.give_back(loan)  # unless closing has

    def close(self) -> None:
        """Restore the source, and count no more; the counters can still be read."""
        if self._bound is not None:
            self._bound.give_all_back()
        self._closed = True
        if self._tapped.release is not None:
            self._tapped.release()
        self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self._tapped.local:
            raise InvalidInput(
                f"{self.queue!r} is of this process alone and cannot be sent to another, "
                "expected a queue of multiprocessing, or of one of its managers"
            )
        return {**vars(self), "_own": False}

    def _let_go(self) -> None:
        for writer in self._writers:
            writer.close()
        if self._own:
            for end in (self.head, self.tail):
                end.read()
            self.page.close()


class Bound:
    """The bound of a queue, raised for a while by loans.

    If the bound has changed since the last loan, the program has set it, and it stays. Earlier
    loans are then void, since it is not known whether the program has included them.
    """

    def __init__(self, resize: Resize) -> None:
        self._resize = resize
        self._left = 0  # the last bound
        self._loans: dict[object, int] = {}
        self._ended = False

    def lend(self, by: int) -> object:
        """Raise the bound until the returned loan is given back; InvalidInput if it has none."""
        loan = object()

        def add(own: int) -> None:
            if own <= 0:
                raise InvalidInput("the queue takes any number of items, expected one with maxsize")
            self._loans[loan] = by

        self._change(add)
        return loan

    def give_back(self, loan: object) -> None:
        """End a loan, unless the program has set the bound meanwhile."""
        self._change(lambda _: self._loans.pop(loan, None))

    def double(self, most: int) -> tuple[int, int] | None:
        """Double the bound until all loans end; return it before and after, None if it stays.

        It stays if it is infinite, or would exceed ``most`` times the program's own bound.
        """
        moved: list[tuple[int, int]] = []

        def add(own: int) -> None:
            bound = own + sum(self._loans.values())
            if not self._ended and own > 0 and 2 * bound <= most * own:
                self._loans[object()] = bound
                moved.append((bound, 2 * bound))

        self._change(add)
        return moved[0] if moved else None

    def give_all_back(self) -> None:
        """End all loans, for good."""
        self._ended = True
        self._change(lambda _: self._loans.clear())

    def _change(self, change: Callable[[int], object]) -> None:
        """Change the loans, given the program's own bound, while no other thread can."""

        def move(bound: int) -> int:
            if bound != self._left:
                self._loans.clear()
            own = bound - sum(self._loans.values())
            change(own)
            self._left = own + sum(self._loans.values())
            return self._left

        self._resize(move)


# Module and class of a source, and what taps it; the first that fits counts. A class whose module
# has never been loaded has no objects, so that finding out imports no module.
_CLASSES: tuple[tuple[str, str, Callable[..., Tapped | Wrapper]], ...] = (
    ("queue", "Queue", tap_queue),
    ("queue", "SimpleQueue", LocalQueue),
    ("multiprocessing.queues", "Queue", FedQueue),
    ("multiprocessing.queues", "SimpleQueue", PipeQueue),
    ("asyncio.queues", "Queue", tap_async_queue),
    ("asyncio.streams", "StreamReader", StreamHead),
    ("asyncio.streams", "StreamWriter", StreamTail),
    ("socket", "socket", TappedSocket),
)


def tap_source(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Tap a source, or raise InvalidInput if it cannot be tapped, or is tapped already."""
    if isinstance(source, type) or get_origin(source) is not None:
        name = getattr(source, "__qualname__", source)
        raise InvalidInput(f"source is the class {name}, expected an object of it, as {name}(...)")
    make = next((make for *names, make in _CLASSES if _is_a(source, *names)), None)
    make = make or _stand_in_by_methods(source)
    if head.item_bytes is not None and getattr(make, "counts_bytes", False):
        raise InvalidInput("item_bytes is given, expected none: its bytes are counted as they pass")
    made = make(source, head, tail)
    return Tapped(queue=made, local=made.is_local) if isinstance(made, Wrapper) else made


def _is_a(source: Any, module: str, kind: str) -> bool:
    loaded = getattr(sys.modules.get(module), kind, None)
    return loaded is not None and isinstance(source, loaded)


def _stand_in_by_methods(source: Any) -> type[Wrapper]:
    ends = [getattr(source, name, None) for name in ("get", "put")]
    if all(map(callable, ends)):
        return _queue_by_methods(source, ends)
    kind = type(source)
    if hasattr(kind, "__aiter__"):
        return AsyncPass if hasattr(kind, "__anext__") else AsyncPasses
    if hasattr(kind, "__iter__") and not isinstance(source, _TEXT):
        if hasattr(kind, "__next__"):
            return Pass
        return SizedPasses if hasattr(source, "__len__") else Passes
    hint = "; to count its elements, tap iter(...) of it" * isinstance(source, _TEXT)
    raise InvalidInput(
        f"source is {source!r}, of type {type(source).__name__}, expected {_KNOWN}{hint}"
    )


def _queue_by_methods(source: Any, ends: list[Any]) -> type[Wrapper]:
    awaited = [*map(inspect.iscoroutinefunction, ends)]
    if all(awaited):
        return AwaitedQueue
    if any(awaited):
        raise InvalidInput(
            f"of {source!r} one of get and put is a coroutine, expected both or neither"
        )
    for name, method, wanted in zip(("get", "put"), ends, ((False,), (None, False)), strict=True):
        if not _takes(method, *wanted):
            raise InvalidInput(
                f"{name} of {source!r} always waits, "
                "expected get(block, timeout) and put(item, block, timeout)"
            )
    return PolledQueue


def _takes(method: Any, *args: object) -> bool:
    try:
        inspect.signature(method).bind(*args)
    except ValueError:  # as of some methods written in C
        return True
    except TypeError:
        return False
    return True


def _wrong_place(name: Any, page: Any) -> list[str]:
    """Return the problems with the page to count in, or with the name there."""
    problems: list[str] = []
    if name is None and page is not None:
        problems.append("name is None, expected one that no other tap of the page has")
    if name is not None:
        try:
            check_name(name, _LONGEST_NAME)
        except InvalidInput as error:
            problems.extend(error.problems)
    if page is not None and not isinstance(page, Page):
        problems.append(f"page is {page!r}, expected a Page")
    elif page is not None and (page.closed or not page.writable):
        problems.append(f"{page.path} cannot be written, expected a page that is open, writable")
    return problems


def _wrong_whole(name: str, value: Any) -> list[str]:
    """Return the problems as `model.checks` does, without importing numpy into the program."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        return [f"{name} is {value!r}, expected a whole number of at least 1"]
    return []
