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
from benchrigor.queues.counting.cells import Cell, blocked_until
from benchrigor.queues.tap import End
from benchrigor.queues.watching.owners import Owner, Used

__all__ = ["OWNER", "Cells", "EndKey", "Sample", "Span", "key_of", "owner_of", "spans_of"]

_ITEMS, _BLOCKED, _WAITING, OWNER, _CLOSED, _CHECK = 0, 3, 4, 5, 6, 7
_TRIES = 64

Integers = npt.NDArray[np.int64]
Words = list[list[int]]


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
    ...     [words[0] for words in cells.copy()], list(cells.places.values())
    ([1], [[0]])
    """

    def __init__(self, ends: Iterable[End]) -> None:
        self.places: dict[EndKey, list[int]] = {}
        self._pages = {}
        for end in ends:
            self.places[key_of(end)] = []
            self._pages[str(end.page.path)] = end.page
        self._known = dict.fromkeys(self._pages, 0)
        self._cells: list[Cell] = []

    def copy(self) -> Words:
        """Return the words of each cell."""
        for path, page in self._pages.items():
            with suppress(InvalidInput):  # a page that is closed has no more; those known stay
                cells = page.cells()
                if len(cells) > self._known[path]:
                    self._add(path, cells)
        return [_words(cell) for cell in self._cells]

    def _add(self, path: str, cells: Sequence[Cell]) -> None:
        for cell in cells[self._known[path] :]:
            places = self.places.get(EndKey(path, cell.name))
            if places is not None:
                places.append(len(self._cells))
                self._cells.append(cell)
        self._known[path] = len(cells)


def _words(cell: Cell) -> list[int]:
    """Copy a cell; again, a few times, while its writer is between two stores."""
    for _ in range(_TRIES):
        words = cell.words.tolist()
        if words[_BLOCKED] ^ words[_WAITING] == words[_CHECK]:
            break
    return words


def owner_of(words: Sequence[int]) -> Owner:
    """Return the process and thread that count in a cell; 0 where it is not known."""
    return Owner(words[OWNER] >> 32, words[OWNER] & 0xFFFFFFFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cells at one time.

    Parameters
    ----------
    at_ns
        What the clock showed just before they were copied.
    words
        Of each cell.
    used
        What threads had used just after that, where it is known.
    """

    at_ns: int
    words: Words
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
    places: Mapping[EndKey, Sequence[int]]


def spans_of(
    samples: Sequence[Sample],
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
    words = np.array([sample.words for sample in samples], dtype=np.uint64)
    size = len(samples[0].words)
    words = words.reshape(len(samples), size, _CHECK + 1)
    at_ns = np.array([sample.at_ns for sample in samples], dtype=np.int64)
    torn = words[:, :, _BLOCKED] ^ words[:, :, _WAITING] != words[:, :, _CHECK]
    now_ns = at_ns.astype(np.uint64)[:, None]
    blocked_ns = blocked_until(words[:, :, _BLOCKED], words[:, :, _WAITING], now_ns)
    signed = np.where(torn, np.int64(0), blocked_ns.view(np.int64))
    seen = np.zeros(size, dtype=np.int64) if before is None else before
    blocked = np.maximum.accumulate(np.vstack([seen, signed]))[1:]
    status = words[:, :, OWNER : _CLOSED + 1].reshape(len(samples), -1)
    turns = np.flatnonzero((status[1:] != status[:-1]).any(axis=1)) + 1
    # Cells that were found since are in no sample yet.
    found = {key: [cell for cell in cells if cell < size] for key, cells in places.items()}
    for start, stop in zip([0, *turns], [*turns, len(samples)], strict=True):
        first = words[start]
        owners = [owner_of(each) for each in first.tolist()]
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
            places=found,
        )
