"""Samples of many cells at once: copied as they are, and made sense of later, many together.

While a program runs, every microsecond between two of its own counts; so a sample is a copy of
words, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.cells import blocked_until
from benchrigor.queues.counting.ends import End
from benchrigor.queues.counting.pages import CELL_WORDS, Page
from benchrigor.queues.watching.owners import Owner, Used

__all__ = ["Cells", "Copies", "EndKey", "Sample", "Span", "key_of", "owners_of", "spans_of"]

_ITEMS, _BLOCKED, _WAITING, _OWNER, _CLOSED, _CHECK = 0, 3, 4, 5, 6, 7

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Copies = tuple[bytes, ...]
"""Of each page, what its cells held."""


class EndKey(NamedTuple):
    """Which end of which queue, as all processes know it."""

    path: str
    name: str


def key_of(end: End) -> EndKey:
    """Return which end that is."""
    return EndKey(str(end.page.path), end.name)


class Cells:
    """All cells of some ends, in the order in which they were found.

    Parameters
    ----------
    ends
        Whose cells are read.

    Attributes
    ----------
    places
        For each end, which of the cells are its own.

    Examples
    --------
    >>> from benchrigor.queues import Page
    >>> with Page.create() as page:
    ...     cells = Cells([End(page, "work.head")])
    ...     page.claim("work.head").count()
    ...     cells.words([cells.copy()])[0, :, 0], list(cells.places.values())
    (array([1], dtype=uint64), [[0]])
    """

    def __init__(self, ends: Iterable[End]) -> None:
        self.places: dict[EndKey, list[int]] = {}
        pages = {}
        for end in ends:
            self.places[key_of(end)] = []
            pages[str(end.page.path)] = end.page
        self._pages = [_CopiedPage(path, page) for path, page in pages.items()]
        self._found = 0

    def copy(self) -> Copies:
        """Copy all pages, as far as cells in them are in use; once each, whoever is writing.

        A cell whose writer is between two stores does not fit its check, and will the next time.
        """
        for each in self._pages:
            for key, index in each.found():
                if key in self.places:
                    self.places[key].append(self._found)
                    each.own.append((self._found, index))
                    self._found += 1
        return tuple([each.copy() for each in self._pages])

    def words(self, copies: Sequence[Copies]) -> Words:
        """Return the words of each cell, shape (copies, cells, 8); of as many cells in each copy.

        Cells that have been found since are left out.
        """
        columns: dict[int, Words] = {}
        for page, parts in zip(self._pages, zip(*copies, strict=True), strict=True):
            words = np.frombuffer(b"".join(parts), dtype=np.uint64)
            words = words.reshape(len(parts), -1, CELL_WORDS)
            for place, index in page.own:
                if index < words.shape[1]:
                    columns[place] = words[:, index, : _CHECK + 1]
        if not columns:
            return np.zeros((len(copies), 0, _CHECK + 1), dtype=np.uint64)
        return np.stack([columns[place] for place in sorted(columns)], axis=1)


class _CopiedPage:
    """A page whose cells are copied all at once."""

    def __init__(self, path: str, page: Page) -> None:
        self._path, self._page = path, page
        self.own: list[tuple[int, int]] = []
        self._known, self._cells, self._claimed = 0, memoryview(b""), memoryview(b"")
        with suppress(InvalidInput):  # a page that is closed has none
            self._claimed, self._cells = page.view()

    def found(self) -> Iterator[tuple[EndKey, int]]:
        """Yield the cells that have been claimed since, and where each stands."""
        if not self._claimed or self._claimed[0] == self._known:
            return
        with suppress(InvalidInput):  # a page that is closed has no more; those known stay
            cells = self._page.cells()
            for index in range(self._known, len(cells)):
                yield EndKey(self._path, cells[index].name), index
            self._known = len(cells)

    def copy(self) -> bytes:
        """Return what the cells that are known hold."""
        return self._cells[: self._known * CELL_WORDS].tobytes()


def owners_of(words: Words) -> list[Owner]:
    """Return the process and thread that count in each cell, 0 where it is not known.

    Parameters
    ----------
    words
        Shape (cells, 8).
    """
    return [Owner(each >> 32, each & 0xFFFFFFFF) for each in words[:, _OWNER].tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cells at one time.

    Parameters
    ----------
    at_ns
        What the clock showed just before they were copied.
    copies
        Of the cells' pages.
    used
        What threads had used just after that, where it is known.
    """

    at_ns: int
    copies: Copies
    used: Mapping[Owner, Used | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """Successive samples of the same cells, in which nobody came or went.

    Parameters
    ----------
    at_ns
        Times, shape (n,).
    items
        That each cell has counted, shape (n, cells).
    blocked_ns
        Nanoseconds waited, those of waits under way included, shape (n, cells).
    waiting
        Waits under way, shape (n, cells).
    used
        What threads had used, for each sample.
    owners
        Process and thread of each cell; thread 0 is not known.
    live
        Whether each cell has somebody who still counts.
    closed
        Whether somebody has said of each that nothing more will be counted.
    places
        For each end, which of the cells are its own.
    """

    at_ns: Integers
    items: Integers
    blocked_ns: Integers
    waiting: Integers
    used: Sequence[Mapping[Owner, Used | None]]
    owners: Sequence[Owner]
    live: Sequence[bool]
    closed: Sequence[bool]
    places: Mapping[EndKey, Sequence[int]]


def spans_of(
    samples: Sequence[Sample],
    words: Words,
    places: Mapping[EndKey, Sequence[int]],
    *,
    gone: Collection[int] = (),
    before: Integers | None = None,
) -> Iterator[Span]:
    """Yield what successive samples of the same cells hold.

    Parameters
    ----------
    samples
        One at least.
    words
        That the cells held, shape (samples, cells, 8).
    places
        As of `Span`.
    gone
        Processes that have ended.
    before
        Time blocked that was last seen of each cell; none where it is not given.

    Notes
    -----
    The time blocked is what `counting.cells` says; a wait that began behind the look at
    the clock, and a cell whose writer was killed between two stores, stay where they were.
    """
    size = words.shape[1]
    at_ns = np.array([sample.at_ns for sample in samples], dtype=np.int64)
    torn = words[:, :, _BLOCKED] ^ words[:, :, _WAITING] != words[:, :, _CHECK]
    now_ns = at_ns.astype(np.uint64)[:, None]
    blocked_ns = blocked_until(words[:, :, _BLOCKED], words[:, :, _WAITING], now_ns)
    signed = np.where(torn, np.int64(0), blocked_ns.view(np.int64))
    seen = np.zeros(size, dtype=np.int64) if before is None else before
    blocked = np.maximum.accumulate(np.vstack([seen, signed]))[1:]
    status = words[:, :, _OWNER : _CLOSED + 1].reshape(len(samples), -1)
    turns = np.flatnonzero((status[1:] != status[:-1]).any(axis=1)) + 1
    # Cells that were found since are in no sample yet.
    found = {key: [cell for cell in cells if cell < size] for key, cells in places.items()}
    for start, stop in zip([0, *turns], [*turns, len(samples)], strict=True):
        first = words[start]
        owners = owners_of(first)
        closed = first[:, _CLOSED].tolist()
        yield Span(
            at_ns=at_ns[start:stop],
            items=words[start:stop, :, _ITEMS].astype(np.int64),
            blocked_ns=blocked[start:stop],
            waiting=words[start:stop, :, _WAITING].astype(np.int64),
            used=[sample.used for sample in samples[start:stop]],
            owners=owners,
            live=[
                not end and owner.pid not in gone for owner, end in zip(owners, closed, strict=True)
            ],
            closed=[bool(end) for end in closed],
            places=found,
        )
