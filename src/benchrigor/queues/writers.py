"""What this process counts at one end of a queue.

`Writer` counts. `End` is the same end as a reader in any process sees it. `Owners` are the
processes and threads that count: whether they run, and their processor time.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from benchrigor.errors import InvalidInput
from benchrigor.machine.kernel_files import ROOT, KernelFile, Unavailable, open_file
from benchrigor.queues.cells import Cell, Counts, Page, reopen

HEAD, TAIL = ".head", ".tail"  # endings of the names of a queue's ends

# Doubles the bound of a queue, up to a multiple of the program's own; returns the bound before and
# after, None if it is not raised.
Double = Callable[[int], tuple[int, int] | None]


class EndKey(NamedTuple):
    """Names an end of a queue, in the same way in all processes."""

    path: str
    name: str


class End:
    """One end of a queue, as a reader in any process sees it; other processes may receive it.

    Parameters
    ----------
    page, name
        Of the cells.
    servers
        How many threads of a process share this end.

    Examples
    --------
    >>> with Page.create() as page:
    ...     page.claim("work.head").words[0] = 7
    ...     [counts.items for counts in End(page, "work.head").read()]
    [7]
    """

    def __init__(self, page: Page, name: str, *, servers: int = 1) -> None:
        self.page = page
        self.name = name
        self.servers = servers
        self.double: Double | None = None  # known if the queue was tapped, if it can grow
        self._cells: tuple[Cell, ...] = ()

    @property
    def key(self) -> EndKey:
        """Page and name."""
        return EndKey(str(self.page.path), self.name)

    @property
    def queue(self) -> str:
        """Name of its queue."""
        return self.name[: -len(HEAD)] if self.name.endswith((HEAD, TAIL)) else self.name

    @property
    def tail(self) -> End | None:
        """The producers' end of its queue; None if its own name is unusual."""
        if not self.name.endswith((HEAD, TAIL)):
            return None
        return End(self.page, f"{self.queue}{TAIL}")

    def read(self, now_ns: int | None = None) -> tuple[Counts, ...]:
        """Return the counts of every process that has used this end.

        Parameters
        ----------
        now_ns
            Time until which waits under way count; now by default.
        """
        if not self.page.closed:  # after that the cells stay as they are
            self._cells = tuple(cell for cell in self.page.cells() if cell.name == self.name)
        return tuple(cell.read(now_ns) for cell in self._cells)

    def __reduce__(self) -> tuple[Any, ...]:
        return _receive, (self.page.path, self.name, self.servers)


def _receive(path: Path, name: str, servers: int) -> End:
    return End(reopen(path, writable=False), name, servers=servers)


class Owner(NamedTuple):
    """A thread, as the system numbers it and its process."""

    pid: int
    tid: int


class Used(NamedTuple):
    """Processor use of a thread since it began, in nanoseconds."""

    cpu_ns: int
    delay_ns: int  # time that it waited for a processor although it could have run


class Owners:
    """Asks the system, through files that stay open until `close`, or until their process ends.

    An open file stands for one process or thread, even if another one gets its number.
    """

    def __init__(self, *, root: Path = ROOT) -> None:
        self._root = root
        self._processes: dict[int, int | None] = {}
        self._threads: dict[Owner, KernelFile | None] = {}
        self._gone: set[int] = set()
        self._poll = select.poll() if hasattr(os, "pidfd_open") else None

    def gone(self, pids: Iterable[int]) -> frozenset[int]:
        """Return the processes that have ended, without 0 (unknown) and the one that asks."""
        known = self._processes
        for pid in pids:
            if pid not in known and pid not in (0, os.getpid()):
                known[pid] = self._open(pid)
            if known.get(pid, 0) is None and not _is_there(pid):
                self._gone.add(pid)
        # It only asks if a file is open: any question lets other threads run.
        if self._poll is not None and any(known.values()):
            for descriptor, _ in self._poll.poll(0):
                self._forget(next(pid for pid, fd in known.items() if fd == descriptor))
        return frozenset(self._gone)

    def used(self, owner: Owner) -> Used | None:
        """Return the processor use of a thread; None if it is unknown, or the thread has ended."""
        try:
            if owner not in self._threads:
                path = self._root / f"proc/{owner.pid}/task/{owner.tid}/schedstat"
                self._threads[owner] = open_file(path)
            if (file := self._threads[owner]) is None:
                return None
            cpu_ns, delay_ns, slices = map(int, file.read().split())
        except (Unavailable, OSError, ValueError):
            self._threads[owner] = None
            return None
        # A kernel that does not count shows only zeros.
        return Used(cpu_ns, delay_ns) if slices else None

    def close(self) -> None:
        """Let go of everything."""
        for descriptor in self._processes.values():
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._processes.clear()
        self._threads.clear()

    def _open(self, pid: int) -> int | None:
        """Return a descriptor that is ready when a process ends; None if the system has none."""
        if self._poll is None:
            return None
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return None
        self._poll.register(descriptor, select.POLLIN)
        return descriptor

    def _forget(self, pid: int) -> None:
        descriptor = self._processes[pid]
        if descriptor is not None and self._poll is not None:
            self._poll.unregister(descriptor)
            os.close(descriptor)
        self._processes[pid] = None
        self._gone.add(pid)


def _is_there(pid: int) -> bool:
    """Whether a process is there; one that has ended and was not waited for is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


_LARGEST = 1 << 53  # bytes of an item
# Bytes of an item: a number, or a function of the item; None if they do not count.
ItemBytes: TypeAlias = float | Callable[[Any], float] | None


class Writer:
    """Counts at one end of a queue, in a cell of this process that it claims at the first event.

    A forked process claims another one. If no cell is free the program goes on uncounted.
    """

    cell: Cell | None  # the cell that counts; None before the first event
    failure: str | None  # why it cannot count; None if it can
    _thread: int | None
    # Called in a forked process, in which the cell is another process's.
    on_forget: Callable[[], None] | None = None

    def __init__(
        self,
        page: Page,
        name: str,
        now_ns: Callable[[], int] = time.perf_counter_ns,
        item_bytes: ItemBytes = None,
    ) -> None:
        self._page = page
        self._name = name
        self.now_ns = now_ns
        self.item_bytes = item_bytes
        self._closed = False
        self._begin_anew()
        _WRITERS.add(self)

    def count(self, item: Any = None) -> None:
        """Count an item, and its bytes if their number is known."""
        cell = self.cell or self.claim()
        if self.item_bytes is None:
            cell.count()
        else:
            cell.count_bytes(self._bytes_of(item))

    def count_bytes(self, size: int) -> None:
        """Count an item of ``size`` bytes, unless that is 0."""
        if size:
            (self.cell or self.claim()).count_bytes(size)

    def begin_wait(self) -> Cell:
        """Begin a wait; return the cell that `end_wait` takes."""
        at_ns = self.now_ns()
        cell = self.cell or self.claim()
        if self._thread is not None and threading.get_ident() != self._thread:
            self._thread = None
            cell.own(None)
        cell.begin_wait(at_ns)
        return cell

    def end_wait(self, begun: Cell) -> None:
        """End a wait."""
        at_ns = self.now_ns()
        if begun is self.cell:  # else it ended when the cell was closed, or is another process's
            begun.end_wait(at_ns)

    def waiting(self) -> _Wait:
        """Return a context manager; the time inside of it is a wait."""
        return _Wait(self)

    def close(self) -> None:
        """Count no more; waits under way end now."""
        cell, self.cell, self._closed = self.cell, Cell.spare(self._name), True
        if cell is not None:
            cell.close(self.now_ns())

    def claim(self) -> Cell:
        """Return the cell of this process, claimed now in the thread's name unless it has one."""
        with self._lock:
            if self.cell is None:
                self._thread = threading.get_ident()
                try:
                    self.cell = self._page.claim(self._name)
                except InvalidInput as error:
                    # No warning: it could be raised here, in the middle of an event.
                    self.failure, self.cell = str(error), Cell.spare(self._name)
            return self.cell

    def forget(self) -> None:
        """Begin again, in a forked process."""
        self._begin_anew()
        if self.on_forget is not None and not self._closed:
            self.on_forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._page, self._name, self.now_ns, self.item_bytes)

    def _bytes_of(self, item: Any) -> float:
        """Return the size of an item; if it is unknown 0, and `failure` says so."""
        size: Any = self.item_bytes
        try:
            size = size(item) if callable(size) else size
        except Exception as error:  # noqa: BLE001  # counting never ends a program
            size = error
        if is_size(size):
            return float(size)
        problem = f"item_bytes gave {size!r:.60} for an item of {self._name!r}"
        self.failure = self.failure or f"{problem}, expected a number of bytes"
        return 0.0

    def _begin_anew(self) -> None:
        self._lock = threading.RLock()  # a finaliser may use the end while it is being claimed
        self._thread = None
        self.failure = None
        self.cell = Cell.spare(self._name) if self._closed else None


def is_size(value: Any) -> bool:
    """Whether it is a number of bytes."""
    number = value if isinstance(value, Real) and not isinstance(value, bool) else None
    return number is not None and bool(0 <= number < _LARGEST)  # type: ignore[operator]


class _Wait:
    """A wait of the program: a generator would make it dearer by half."""

    __slots__ = ("_begun", "_writer")

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def __enter__(self) -> None:
        self._begun = self._writer.begin_wait()

    def __exit__(self, *error: object) -> None:
        self._writer.end_wait(self._begun)


# All of them, for the one hook at forks: Python cannot take hooks back.
_WRITERS: weakref.WeakSet[Writer] = weakref.WeakSet()


def _forget_all() -> None:
    for writer in list(_WRITERS):
        writer.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
