"""Counters of the ends of queues, in a file that any process may map into its memory.

A program in any language counts by mapping the file (``mmap``, shared) and storing into it. All
words are unsigned, 64 bits wide, in the machine's byte order, and are stored one by one, aligned.
Times are nanoseconds of ``CLOCK_MONOTONIC``, which all processes of a Linux machine share. Reserved
words are 0.

The file begins with a header of 64 bytes, 8 words:

====  ==========  =================================================================
word  name        meaning
====  ==========  =================================================================
0     magic       the 8 bytes ``BRIGCELL``
1     version     1
2     cells       number of cells that the file has room for
3     cell_bytes  128
4     claimed     number of cells in use: the first ones, in the order they were claimed
5     refused     number of claims that failed because no cell was free
6, 7  reserved
====  ==========  =================================================================

Cell k takes the 128 bytes from 64 + 128 k on, 8 words and a name:

====  ==============  ============================================================
word  name            meaning
====  ==============  ============================================================
0     items           that passed
1     bytes           that passed; 0 if they are not counted
2     blocked_events  waits begun
3     blocked_ns      of the waits ended; the rule below adds the others
4     waiting         waits begun and not ended
5     owner           process id << 32, plus the native thread id; 0 for the thread
                      if several write, or if it is unknown
6     closed          1 once counting has ended
7     check           blocked_ns XOR waiting
====  ==============  ============================================================

The name that follows has 64 bytes, UTF-8, filled up with zero bytes. It names the queue and its
end, by convention ``<queue>.head`` (the consumer's) or ``<queue>.tail`` (the producer's). Every
process that uses the end has a cell of this name.

**To claim a cell**: open the file again and take an exclusive ``flock``. If claimed = cells, add 1
to refused and give up; else write name and owner into cell number claimed, and add 1 to claimed.
Unlock. Only one writer at a time writes into a cell: a process, or the one of its threads that
holds the lock under which they count. The counters of a cell never go back.

**To begin a wait** at time t: blocked_events + 1, waiting + 1, blocked_ns - t. To **end** it:
waiting - 1, blocked_ns + t. All modulo 2^64, then check. So the time blocked until now, including
waits under way, is (blocked_ns + waiting * now) modulo 2^64 for any number of waits at once. It is
right without the writer's help while the writer waits, even if the writer is killed.

**To read**: copy the words; if check does not fit, the writer is between two stores: copy again.
A result of 2^63 or more means that a wait has begun since the reader read its clock.
"""

from __future__ import annotations

import functools
import mmap
import os
import sys
import tempfile
import threading
import time
import warnings
import weakref
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from benchrigor.errors import InvalidInput
from benchrigor.model.one_line import OneLine

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_WORD_BYTES, _HEADER_WORDS, _COUNTER_WORDS = 8, 8, 8
CELL_WORDS = 16  # words of a cell with its name
_HEADER_BYTES, _CELL_BYTES = _WORD_BYTES * _HEADER_WORDS, _WORD_BYTES * CELL_WORDS
_MASK, _HALF = (1 << 64) - 1, 1 << 63
_TRIES = 64
# Whether one lock lets only one thread run at a time, as in all builds but free-threaded ones.
_TAKES_TURNS = getattr(sys, "_is_gil_enabled", lambda: True)()

_Method = TypeVar("_Method", bound=Callable[..., Any])


def keep_whole(method: _Method, *, takes_turns: bool = _TAKES_TURNS) -> _Method:
    """Keep other threads out of a method, by the object's ``lock`` if that is needed.

    Threads that take turns change only at calls and in loops: the method has neither.
    """
    if takes_turns:
        return method

    @functools.wraps(method)
    def lock_and_run(self: Any, *args: Any, **options: Any) -> Any:
        with self.lock:
            return method(self, *args, **options)

    return cast("_Method", lock_and_run)


def blocked_until(blocked_ns: Any, waiting: Any, now_ns: Any) -> Any:
    """Return the time blocked until now from the words of cells; unsigned, numbers or arrays."""
    return (blocked_ns + waiting * now_ns) & _MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(OneLine):
    """Counts of one process at one end of a queue, since it began."""

    name: str
    items: int
    bytes: int
    blocked_events: int  # waits begun
    blocked_ns: int  # nanoseconds waited, including waits under way; the sum over all waiters
    waiting: int  # waits under way
    pid: int
    tid: int | None  # native id of the thread that counts; None if several do, or if unknown
    closed: bool  # whether counting has ended


class Cell:
    """The counters of one process at one end of a queue; a page hands them out."""

    __slots__ = (
        "_blocked_ns",
        "_bytes",
        "_events",
        "_items",
        "_seen_ns",
        "_waiting",
        "lock",
        "name",
        "words",
    )

    def __init__(self, words: memoryview[int], name: str) -> None:
        self.words = words
        self.name = name
        self.lock = threading.RLock()
        self._seen_ns = 0
        # Copies of the words: storing takes half the time of reading and storing.
        self._items = self._events = self._blocked_ns = self._waiting = 0
        self._bytes: float = 0  # sizes of items may be means

    @classmethod
    def spare(cls, name: str) -> Self:
        """Return a cell that no other process sees."""
        return cls(memoryview(bytearray(_WORD_BYTES * _COUNTER_WORDS)).cast("Q"), name)

    @keep_whole
    def count(self) -> None:
        """Count an item."""
        self._items = items = self._items + 1
        self.words[0] = items

    @keep_whole
    def count_bytes(self, size: float) -> None:
        """Count an item of ``size`` bytes."""
        self._items = items = self._items + 1
        self._bytes = total = self._bytes + size
        self.words[0] = items
        self.words[1] = int(total) & _MASK

    @keep_whole
    def begin_wait(self, at_ns: int) -> None:
        """Begin a wait; any number may be under way."""
        words = self.words
        self._events = events = self._events + 1
        self._blocked_ns = blocked_ns = (self._blocked_ns - at_ns) & _MASK
        self._waiting = waiting = self._waiting + 1
        words[2] = events
        words[3] = blocked_ns
        words[4] = waiting
        words[7] = blocked_ns ^ waiting

    @keep_whole
    def end_wait(self, at_ns: int) -> None:
        """End a wait, if there is one."""
        if self._waiting:
            words = self.words
            self._blocked_ns = blocked_ns = (self._blocked_ns + at_ns) & _MASK
            self._waiting = waiting = self._waiting - 1
            words[3] = blocked_ns
            words[4] = waiting
            words[7] = blocked_ns ^ waiting

    def own(self, thread: int | None) -> None:
        """Note which thread of this process writes; None when several do."""
        known = thread is not None and thread < 1 << 32
        self.words[5] = os.getpid() << 32 | (thread or 0 if known else 0)

    def close(self, at_ns: int) -> None:
        """End all waits, and mark that counting has ended."""
        while self._waiting:
            self.end_wait(at_ns)
        self.words[6] = 1

    def read(self, now_ns: int | None = None) -> Counts:
        """Return the counts, with waits under way until now, or until a given time.

        The blocked time never goes back; a writer that was killed between two stores leaves it.
        """
        last_ns = self._seen_ns
        for _ in range(_TRIES):
            items, size, events, blocked_ns, waiting, owner, closed, check = self.words.tolist()
            if blocked_ns ^ waiting == check:
                now = time.perf_counter_ns() if now_ns is None else now_ns
                gained_ns = (blocked_until(blocked_ns, waiting, now) - last_ns) & _MASK
                # Less than before: a wait began or ended after the clock was read.
                last_ns += gained_ns if gained_ns < _HALF else 0
                break
        self._seen_ns = last_ns
        return Counts(
            name=self.name,
            items=items,
            bytes=size,
            blocked_events=events,
            blocked_ns=last_ns,
            waiting=waiting,
            pid=owner >> 32,
            tid=owner & 0xFFFFFFFF or None,
            closed=bool(closed),
        )


NAME_BYTES = 64
_MAGIC, _VERSION = int.from_bytes(b"BRIGCELL", sys.byteorder), 1
_CELLS, _CLAIMED, _REFUSED = 2, 4, 5
_MOST_CELLS = 1 << 20
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # the system's own place for shared memory


class Page:
    """A file of cells, mapped into memory; made by `create`, or opened by its path.

    It lies in shared memory (``/dev/shm``) if there is room, else in the folder for temporary
    files. The process that created it removes the file when it closes the page, or drops it; a
    killed process leaves the file. Cells that the program still holds go on working.

    A page may be sent to other processes, which open it by its path. There a file that is gone is
    a RuntimeWarning, not an error: the page is closed, and its ``failure`` says why.

    Attributes
    ----------
    path, writable
        Of the file, and whether cells can be claimed.
    failure
        Why a received page could not be opened here; None for any other page.

    Examples
    --------
    >>> with Page.create(cells=4) as page:
    ...     cell = page.claim("work.head")
    ...     cell.count()
    ...     [cell.read().items for cell in Page.open(page.path).cells()]
    [1]
    """

    def __init__(
        self, path: Path, mapped: memoryview[int], *, writable: bool, created: bool = False
    ) -> None:
        self.path = path
        self.writable = writable
        self.failure: str | None = None
        self._bytes = mapped
        self._words: memoryview[int] | None = mapped.cast("Q")
        self._cells: tuple[Cell, ...] = ()
        creator = os.getpid() if created else None
        self._let_go = weakref.finalize(self, _remove, path, creator)

    @classmethod
    def create(cls, *, cells: int = 256, path: str | os.PathLike[str] | None = None) -> Self:
        """Make a new page.

        Parameters
        ----------
        cells
            Number of cells of 128 bytes: one for every process at every end.
        path
            Where to put the file; chosen by default.

        Raises
        ------
        InvalidInput
            When the number makes no sense, the file exists already, room is missing, or this
            system has no ``fcntl.flock``, by which processes take turns in claiming cells.
        """
        if fcntl is None:
            raise InvalidInput("taps and pages need fcntl.flock, which this system lacks")
        if isinstance(cells, bool) or not isinstance(cells, int) or not 1 <= cells <= _MOST_CELLS:
            raise InvalidInput(f"cells is {cells!r}, expected 1 to {_MOST_CELLS}")
        created = _create_file(cells, path)
        return cls(created, _map(created, writable=True), writable=True, created=True)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, writable: bool = False) -> Self:
        """Open a page that exists; ``writable`` if cells are to be claimed.

        Raises
        ------
        InvalidInput
            When the file is missing, cannot be mapped, or is not a page of this version.
        """
        absolute = Path(path).absolute()
        return cls(absolute, _map(absolute, writable=writable), writable=writable)

    def claim(self, name: str) -> Cell:
        """Take a cell for an end of this name, in this process and the calling thread.

        Raises
        ------
        InvalidInput
            When the name is empty or too long, or the page read only, closed, full or gone.
        """
        encoded = check_name(name).ljust(NAME_BYTES, b"\0")
        if not self.writable:
            raise InvalidInput(f"{self.path} is open for reading, expected writable=True")
        words = self._mapping()
        try:
            with _lock(self.path):
                index = words[_CLAIMED]
                if index >= words[_CELLS]:
                    words[_REFUSED] += 1
                    raise InvalidInput(
                        f"{self.path} has room for {index} cells, all in use; make it with more"
                    )
                cell = Cell(self._counters(index), name)
                self._name(index)[:] = encoded
                cell.own(threading.get_native_id())
                words[_CLAIMED] = index + 1
        except OSError as error:
            raise InvalidInput(f"{self.path}: {error.strerror or error}") from error
        return cell

    def cells(self) -> tuple[Cell, ...]:
        """Return the cells in use, always the same objects; InvalidInput if it is closed."""
        words, known = self._mapping(), self._cells
        for index in range(len(known), min(words[_CLAIMED], words[_CELLS])):
            name = bytes(self._name(index)).rstrip(b"\0").decode("utf-8", "replace")
            known += (Cell(self._counters(index), name),)
        self._cells = known
        return known

    def view(self) -> tuple[memoryview[int], memoryview[int]]:
        """Return how many cells are in use, and all cells, as words that go on changing."""
        words = self._mapping().toreadonly()
        return words[_CLAIMED : _CLAIMED + 1], words[_HEADER_WORDS:]

    @property
    def closed(self) -> bool:
        """Whether this process has closed it, or could not open it."""
        return self._words is None

    def close(self) -> None:
        """Let go of the file; the process that created it removes it."""
        self._let_go()
        # The mapping goes with the last cell: a program that still counts must not fail.
        self._words, self._bytes, self._cells = None, memoryview(b""), ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return reopen, (self.path, self.writable)

    def _mapping(self) -> memoryview[int]:
        if self._words is None:
            raise InvalidInput(self.failure or f"{self.path} is closed, expected an open page")
        return self._words

    def _counters(self, index: int) -> memoryview[int]:
        start = _HEADER_WORDS + CELL_WORDS * index
        return self._mapping()[start : start + _COUNTER_WORDS]

    def _name(self, index: int) -> memoryview[int]:
        start = _HEADER_BYTES + _CELL_BYTES * index + _WORD_BYTES * _COUNTER_WORDS
        return self._bytes[start : start + NAME_BYTES]


def check_name(name: str, longest: int = NAME_BYTES) -> bytes:
    """Return the name of an end, or of a tap, as a page holds it, or raise InvalidInput."""
    try:
        encoded = name.encode()
    except (AttributeError, UnicodeEncodeError):
        raise InvalidInput(f"name is {name!r}, expected text") from None
    if not 1 <= len(encoded) <= longest or b"\0" in encoded:
        raise InvalidInput(
            f"name is {name!r}, {len(encoded)} bytes, expected 1 to {longest} and no zero byte"
        )
    return encoded


def reopen(path: Path, writable: bool) -> Page:
    """Open a page that another process has sent; looking on must not end a program."""
    try:
        return Page.open(path, writable=writable)
    except InvalidInput as error:
        page = Page(path, memoryview(b""), writable=writable)
        page.close()
        page.failure = str(error)
        # In this module's name, so that Python shows it once, wherever it was received.
        warnings.warn(
            f"nothing is counted in this process ({os.getpid()}): {error}",
            RuntimeWarning,
            stacklevel=1,
        )
        return page


def _map(path: Path, *, writable: bool) -> memoryview[int]:
    """Return the bytes of a page, mapped into memory and known to be one."""
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    try:
        if not path.is_file() or not path.stat().st_size:
            raise InvalidInput(f"{path} is missing, empty or no file, expected a page of cells")
        with path.open("r+b" if writable else "rb") as file:
            view = memoryview(mmap.mmap(file.fileno(), 0, access=access))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}, expected a page of cells") from error
    if view.nbytes < _HEADER_BYTES or view[:_WORD_BYTES].cast("Q")[0] != _MAGIC:
        raise InvalidInput(f"{path} does not begin with BRIGCELL, expected a page of cells")
    _, version, cells, cell_bytes, *_ = view[:_HEADER_BYTES].cast("Q")
    if (version, cell_bytes) != (_VERSION, _CELL_BYTES):
        raise InvalidInput(
            f"{path} is version {version} with cells of {cell_bytes} bytes, "
            f"expected version {_VERSION} with {_CELL_BYTES}"
        )
    needed = _HEADER_BYTES + _CELL_BYTES * cells
    if view.nbytes < needed:
        raise InvalidInput(f"{path} has {view.nbytes} bytes, expected {needed} for {cells} cells")
    return view[:needed]


def _create_file(cells: int, path: str | os.PathLike[str] | None) -> Path:
    """Return the path of a new page, by default in shared memory if there is room."""
    name = f"benchrigor-{os.getpid()}-{os.urandom(4).hex()}.cells"
    places = [SHARED_MEMORY / name, Path(tempfile.gettempdir()) / name]
    problems = []
    for place in places if path is None else [Path(path).absolute()]:
        try:
            _fill(place, cells)
        except OSError as error:
            problems.append(f"{place} cannot be made: {error.strerror or error}")
        else:
            return place
    raise InvalidInput(problems)


def _fill(path: Path, cells: int) -> None:
    header = array("Q", (_MAGIC, _VERSION, cells, _CELL_BYTES, 0, 0, 0, 0)).tobytes()
    size = _HEADER_BYTES + _CELL_BYTES * cells
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        # Room that is only promised would fail as a bus error in the middle of the program.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.truncate(descriptor, size)
        os.write(descriptor, header)
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(descriptor)


def _remove(path: Path, creator: int | None) -> None:
    """Remove a page's file, in the process that created it; one that cannot be removed stays."""
    if os.getpid() == creator:  # a forked process holds the page as well
        with suppress(OSError):
            path.unlink()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Keep other threads and processes that claim cells of the same file out."""
    # Opened again: a lock belongs to the open file, which forked processes share.
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # Closing is not enough if another thread has forked meanwhile.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
