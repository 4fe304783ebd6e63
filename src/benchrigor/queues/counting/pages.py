"""Files of cells as processes share them; what is in them, `counting.cells` says."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from pathlib import Path
from typing import Any, Self

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.cells import Cell
from benchrigor.queues.counting.file_lock import locked
from benchrigor.queues.counting.page_files import (
    NAME_BYTES,
    check_name,
    create_page,
    map_page,
    remove_page,
)

__all__ = ["CELL_WORDS", "Page"]

CELL_WORDS = 16
"""Words of a cell with its name."""
_WORD, _HEADER, _WORDS, _CELL = 8, 8, 8, CELL_WORDS
"""Bytes of a word; words of the header, of a cell's counters, and of a cell."""
_CELLS, _CLAIMED, _REFUSED = 2, 4, 5
_MOST_CELLS = 1 << 20


class Page:
    """A file of cells, mapped into memory; made by `create`, or opened by its path.

    It lies in memory where the system offers that (``/dev/shm``), else in the folder for temporary
    files. Whoever created it removes the file by closing it, or when nobody holds it any more; a
    process that is killed leaves it behind. Cells that are still held go on working after that.

    A page may be sent to other processes, which then open it by its path, as `reopen` does: there
    a file that is gone is a warning, not an error.

    Attributes
    ----------
    path
        Of the file.
    writable
        Whether cells can be claimed.
    failure
        Why a page that was sent to this process could not be opened here; None for any other.

    Examples
    --------
    >>> with Page.create(cells=4) as page:
    ...     cell = page.claim("work.head")
    ...     cell.count()
    ...     [each.read().items for each in Page.open(page.path).cells()]
    [1]
    """

    def __init__(
        self, path: Path, mapped: memoryview[int], *, writable: bool, created: bool = False
    ) -> None:
        self.path = path
        self.writable = writable
        self._bytes = mapped
        self._words: memoryview[int] | None = mapped.cast("Q")
        self._cells: tuple[Cell, ...] = ()
        self.failure: str | None = None
        creator = os.getpid() if created else None
        self._let_go = weakref.finalize(self, remove_page, path, creator)

    @classmethod
    def create(cls, *, cells: int = 256, path: str | os.PathLike[str] | None = None) -> Self:
        """Make a new page.

        Parameters
        ----------
        cells
            How many it has room for, at 128 bytes each: one for each process at each end.
        path
            Where to put it; chosen where nothing is said.

        Raises
        ------
        InvalidInput
            When the number makes no sense, the file is there already, or there is no room.
        """
        if isinstance(cells, bool) or not isinstance(cells, int) or not 1 <= cells <= _MOST_CELLS:
            raise InvalidInput(f"cells is {cells!r}, expected 1 to {_MOST_CELLS}")
        made = create_page(cells, path)
        return cls(made, map_page(made, writable=True), writable=True, created=True)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, writable: bool = False) -> Self:
        """Open a page that is there.

        Parameters
        ----------
        path
            Of the file.
        writable
            Whether cells are to be claimed.

        Raises
        ------
        InvalidInput
            When there is no such file, it cannot be mapped, or it is no page of this version.
        """
        found = Path(path).absolute()
        return cls(found, map_page(found, writable=writable), writable=writable)

    @classmethod
    def reopen(cls, path: str | os.PathLike[str], *, writable: bool = False) -> Self:
        """Open a page that another process has sent; one that cannot be opened counts nothing.

        Looking on must not end a program: whoever made the page may have closed it by now, or be on
        another machine. Then the page is as one that is closed, its `failure` says why, and a
        RuntimeWarning does, which Python shows once for a page in a process. (Only a program that
        turns warnings into errors gets one.)

        Parameters
        ----------
        path
            Of the file.
        writable
            Whether cells are to be claimed.

        Examples
        --------
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as told:
        ...     warnings.simplefilter("always")
        ...     page = Page.reopen("/nowhere/work.cells")
        >>> page.closed, len(told), page.failure
        (True, 1, '/nowhere/work.cells is not there, or is no file, expected a page of cells')
        """
        try:
            return cls.open(path, writable=writable)
        except InvalidInput as error:
            page = cls(Path(path), memoryview(b""), writable=writable)
            page.close()
            page.failure = str(error)
            # In this module's name, so that it is shown once, wherever it was received.
            warnings.warn(
                f"nothing is counted in this process ({os.getpid()}): {error}",
                RuntimeWarning,
                stacklevel=1,
            )
            return page

    def claim(self, name: str) -> Cell:
        """Take a cell for this process, in the name of the calling thread.

        Safe while other threads and processes do the same.

        Parameters
        ----------
        name
            Of the end; other cells may have the same.

        Raises
        ------
        InvalidInput
            When the name is empty or too long, when the page is read only, closed or full, or when
            its file is gone.
        """
        written = check_name(name).ljust(NAME_BYTES, b"\0")
        if not self.writable:
            raise InvalidInput(f"{self.path} is open for reading, expected writable=True")
        words = self._mapping()
        try:
            with locked(self.path):
                taken = words[_CLAIMED]
                if taken >= words[_CELLS]:
                    words[_REFUSED] += 1
                    raise InvalidInput(
                        f"{self.path} has room for {taken} cells, all in use; make it with more"
                    )
                cell = Cell(self._counters(taken), name)
                self._name(taken)[:] = written
                cell.own(threading.get_native_id())
                words[_CLAIMED] = taken + 1
        except OSError as error:
            raise InvalidInput(f"{self.path}: {error.strerror or error}") from error
        return cell

    def cells(self) -> tuple[Cell, ...]:
        """Return the cells in use, for reading; the same objects each time.

        Raises
        ------
        InvalidInput
            When the page is closed, or could not be opened.
        """
        words, known = self._mapping(), self._cells
        for index in range(len(known), min(words[_CLAIMED], words[_CELLS])):
            text = bytes(self._name(index)).rstrip(b"\0").decode("utf-8", "replace")
            known += (Cell(self._counters(index), text),)
        self._cells = known
        return known

    def view(self) -> tuple[memoryview[int], memoryview[int]]:
        """Return how many cells are in use, and all cells, as words that change while it is held.

        Raises
        ------
        InvalidInput
            When the page is closed, or could not be opened.
        """
        words = self._mapping().toreadonly()
        return words[_CLAIMED : _CLAIMED + 1], words[_HEADER:]

    @property
    def refused(self) -> int:
        """How often a cell was asked for when none was left, so that somebody is not counted."""
        return self._mapping()[_REFUSED]

    @property
    def closed(self) -> bool:
        """Whether this process has closed it, or could not open it."""
        return self._words is None

    def close(self) -> None:
        """Let go of the file; who created it removes it."""
        self._let_go()
        # The mapping goes when the last cell does: a program that still counts must not stumble.
        self._words, self._bytes, self._cells = None, memoryview(b""), ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (type(self), self.path, self.writable)

    def _mapping(self) -> memoryview[int]:
        if self._words is None:
            raise InvalidInput(self.failure or f"{self.path} is closed, expected an open page")
        return self._words

    def _counters(self, index: int) -> memoryview[int]:
        start = _HEADER + _CELL * index
        return self._mapping()[start : start + _WORDS]

    def _name(self, index: int) -> memoryview[int]:
        start = _WORD * (_HEADER + _CELL * index + _WORDS)
        return self._bytes[start : start + NAME_BYTES]


def _reopened(kind: type[Page], path: Path, writable: bool) -> Page:
    return kind.reopen(path, writable=writable)
