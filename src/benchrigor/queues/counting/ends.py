"""One end of a queue, as whoever looks on reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchrigor.queues.counting.cells import Cell, Counts
from benchrigor.queues.counting.pages import Page, reopen


class EndKey(NamedTuple):
    """Which end of which queue, as all processes know it."""

    path: str
    name: str


class End:
    """One end of a queue, as whoever looks on reads it; other processes may receive it.

    Parameters
    ----------
    page, name
        Of the cells.
    servers
        How many threads of a process share this end.
    item_bytes
        Of one item, where all have the same size.

    Examples
    --------
    >>> with Page.create() as page:
    ...     page.claim("work.head").words[0] = 7
    ...     [(each.items, each.bytes) for each in End(page, "work.head", item_bytes=8).read()]
    [(7, 56)]
    """

    def __init__(
        self, page: Page, name: str, *, servers: int = 1, item_bytes: int | None = None
    ) -> None:
        self.page = page
        self.name = name
        self.servers = servers
        self.item_bytes = item_bytes
        self._cells: tuple[Cell, ...] = ()

    @property
    def key(self) -> EndKey:
        """Page and name."""
        return EndKey(str(self.page.path), self.name)

    def read(self, now_ns: int | None = None) -> tuple[Counts, ...]:
        """Return what has been counted, one for each process that has used this end.

        Parameters
        ----------
        now_ns
            Up to when waits under way are counted; now by default.
        """
        if not self.page.closed:  # what was counted can be read after that
            self._cells = tuple(each for each in self.page.cells() if each.name == self.name)
        counts = (each.read(now_ns) for each in self._cells)
        if self.item_bytes is None:
            return tuple(counts)
        return tuple(replace(each, bytes=each.items * self.item_bytes) for each in counts)

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.page.path, self.name, self.servers, self.item_bytes)


def _received(path: Path, name: str, servers: int, item_bytes: int | None) -> End:
    return End(reopen(path, writable=False), name, servers=servers, item_bytes=item_bytes)
