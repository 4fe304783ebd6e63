"""One end of a queue, as a reader in any process sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchrigor.queues.counting.cells import Cell, Counts
from benchrigor.queues.counting.pages import Page, reopen

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
