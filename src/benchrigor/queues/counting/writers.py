"""What this process counts at one end of a queue."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeAlias

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.cells import Cell
from benchrigor.queues.counting.pages import Page

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
