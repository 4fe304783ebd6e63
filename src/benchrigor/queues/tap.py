"""Taps: one for each queue, with two ends to be read."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Self, get_origin

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.cells import NAME_BYTES, Page, check_name
from benchrigor.queues.counting.writers import HEAD, TAIL, End, ItemBytes, Writer, is_size
from benchrigor.queues.tapping.hooked_queues import Resize, Tapped
from benchrigor.queues.tapping.stand_ins import Wrapper

_LONGEST_NAME = NAME_BYTES - len(HEAD)

# Module and class of a source; module and name of its tap: a function, or a stand-in class.
# The first that fits is taken. A class whose module has never been loaded has no objects, so that
# finding out imports no module.
_CLASSES = (
    ("queue", "Queue", "hooked_queues", "tap_queue"),
    ("queue", "SimpleQueue", "stand_ins", "LocalQueue"),
    ("multiprocessing.queues", "Queue", "stand_ins", "FedQueue"),
    ("multiprocessing.queues", "SimpleQueue", "stand_ins", "PipeQueue"),
    ("asyncio.queues", "Queue", "hooked_queues", "tap_async_queue"),
    ("asyncio.streams", "StreamReader", "stand_ins", "_StreamHead"),
    ("asyncio.streams", "StreamWriter", "stand_ins", "_StreamTail"),
    ("socket", "socket", "sockets", "_TappedSocket"),
)
_COUNT_BYTES = {"_StreamHead", "_StreamTail", "_TappedSocket"}  # as they pass
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
        bound = self._movable(by)
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

    def _movable(self, by: int) -> Bound:
        if problems := _wrong_whole("by", by):
            raise InvalidInput(problems)
        if self._closed:
            raise InvalidInput(f"the tap of {self.name!r} is closed, expected an open one")
        if self._bound is None:
            raise InvalidInput(
                f"the bound of {self.queue!r} cannot be moved, expected a queue of queue or asyncio"
            )
        return self._bound


class Bound:
    """The bound of a queue, raised for a while by loans.

    If the bound has changed since the last loan, the program has set it, and it stays. Earlier
    loans are then void, since it is not known whether the program has included them.
    """

    def __init__(self, resize: Resize) -> None:
        self._resize = resize
        self._left = 0  # what the bound was set to last
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
        """Change the loans, told the program's own bound, while no other thread can."""

        def move(bound: int) -> int:
            if bound != self._left:
                self._loans.clear()
            own = bound - sum(self._loans.values())
            change(own)
            self._left = own + sum(self._loans.values())
            return self._left

        self._resize(move)


def tap_source(source: Any, head: Writer, tail: Writer) -> Tapped:
    """Tap a source, or raise InvalidInput if it cannot be tapped, or is tapped already."""
    if isinstance(source, type) or get_origin(source) is not None:
        name = getattr(source, "__qualname__", source)
        raise InvalidInput(f"source is the class {name}, expected an object of it, as {name}(...)")
    home, name = _maker_by_class(source) or ("stand_ins", _stand_in_by_methods(source))
    if head.item_bytes is not None and name in _COUNT_BYTES:
        raise InvalidInput("item_bytes is given, expected none: its bytes are counted as they pass")
    make = getattr(import_module(f"benchrigor.queues.tapping.{home}"), name)
    made: Tapped | Wrapper = make(source, head, tail)
    return Tapped(queue=made, local=made.is_local) if isinstance(made, Wrapper) else made


def _maker_by_class(source: Any) -> tuple[str, str] | None:
    for module, kind, home, name in _CLASSES:
        loaded = getattr(sys.modules.get(module), kind, None)
        if loaded is not None and isinstance(source, loaded):
            return home, name
    return None


def _stand_in_by_methods(source: Any) -> str:
    ends = [getattr(source, name, None) for name in ("get", "put")]
    if all(map(callable, ends)):
        return _queue_by_methods(source, ends)
    kind = type(source)
    if hasattr(kind, "__aiter__"):
        return "AsyncPass" if hasattr(kind, "__anext__") else "AsyncPasses"
    if hasattr(kind, "__iter__") and not isinstance(source, _TEXT):
        if hasattr(kind, "__next__"):
            return "Pass"
        return "SizedPasses" if hasattr(source, "__len__") else "Passes"
    hint = "; to count its elements, tap iter(...) of it" * isinstance(source, _TEXT)
    raise InvalidInput(
        f"source is {source!r}, of type {type(source).__name__}, expected {_KNOWN}{hint}"
    )


def _queue_by_methods(source: Any, ends: list[Any]) -> str:
    awaited = [*map(inspect.iscoroutinefunction, ends)]
    if all(awaited):
        return "_AwaitedQueue"
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
    return "PolledQueue"


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
        problems.append("name is None, expected one to tell this tap from the page's others")
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
