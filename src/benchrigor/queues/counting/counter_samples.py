"""Samples of many cells at once: copied as they are, and interpreted later, many together.

While a program runs, every microsecond falls between two of its own counts. So a sample only copies
words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting.cells import blocked_until
from benchrigor.queues.counting.pages import CELL_WORDS, Page
from benchrigor.queues.counting.writers import End, EndKey, Owner, Used

_ITEMS, _BYTES, _BLOCKED, _WAITING, _OWNER, _CLOSED, _CHECK = 0, 1, 3, 4, 5, 6, 7

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Copies = tuple[bytes, ...]  # the words of the cells, page by page


class Cells:
    """All cells of some ends, in the order in which they were found."""

    def __init__(self, ends: Iterable[End]) -> None:
        self.places: dict[EndKey, list[int]] = {}  # the indices of an end's cells
        pages = {}
        for end in ends:
            self.places[end.key] = []
            pages[end.key.path] = end.page
        self._pages = [_CopiedPage(path, page) for path, page in pages.items()]
        self._found = 0

    def copy(self) -> Copies:
        """Copy all cells in use, once, even while they are written.

        If a writer is between two stores, its cell does not fit its check, but will the next time.
        """
        for page in self._pages:
            for key, index in page.find():
                if key in self.places:
                    self.places[key].append(self._found)
                    page.own.append((self._found, index))
                    self._found += 1
        return tuple([page.copy() for page in self._pages])

    def words(self, copies: Sequence[Copies]) -> Words:
        """Return the words of all cells, shape (copies, cells, 8); all copies have the same cells.

        Cells that were found since are left out.
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
        # Place among all cells, and index in the page, of the cells that are sampled.
        self.own: list[tuple[int, int]] = []
        self._known, self._cells, self._claimed = 0, memoryview(b""), memoryview(b"")
        with suppress(InvalidInput):  # a closed page has none
            self._claimed, self._cells = page.view()

    def find(self) -> Iterator[tuple[EndKey, int]]:
        """Yield the cells that have been claimed since, and their indices."""
        if not self._claimed or self._claimed[0] == self._known:
            return
        with suppress(InvalidInput):  # a closed page gets no more; the known ones stay
            cells = self._page.cells()
            for index in range(self._known, len(cells)):
                yield EndKey(self._path, cells[index].name), index
            self._known = len(cells)

    def copy(self) -> bytes:
        """Return the words of the known cells."""
        return self._cells[: self._known * CELL_WORDS].tobytes()


def owners_of(words: Words) -> list[Owner]:
    """Return the process and thread that count in a cell, for words (cells, 8); 0 is unknown."""
    return [Owner(word >> 32, word & 0xFFFFFFFF) for word in words[:, _OWNER].tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cells at one time."""

    at_ns: int  # time of the clock just before they were copied
    copies: Copies
    used: Mapping[Owner, Used | None]  # processor use of threads just after that, if known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """Successive samples of the same cells, all with the same owners; shape (n, cells)."""

    at_ns: Integers  # times, shape (n,)
    items: Integers
    bytes: Integers
    blocked_ns: Integers  # nanoseconds waited, including waits under way
    waiting: Integers  # waits under way
    used: Sequence[Mapping[Owner, Used | None]]  # processor use of threads, per sample
    owners: Sequence[Owner]  # process and thread, per cell
    live: Sequence[bool]  # whether its owner still counts, per cell
    closed: Sequence[bool]  # whether it is marked to count no more, per cell
    places: Mapping[EndKey, Sequence[int]]  # the indices of an end's cells


def spans_of(
    samples: Sequence[Sample],
    words: Words,
    places: Mapping[EndKey, Sequence[int]],
    *,
    gone: Collection[int] = (),
    before: Integers,
) -> Iterator[Span]:
    """Yield the spans of successive samples with words of shape (samples, cells, 8).

    ``gone`` are processes that have ended, ``before`` the blocked time of the cells in the last
    sample before. The blocked time stays as it was if a wait began after the clock was read, or if
    the writer was killed between two stores.
    """
    at_ns = np.array([sample.at_ns for sample in samples], dtype=np.int64)
    torn = words[:, :, _BLOCKED] ^ words[:, :, _WAITING] != words[:, :, _CHECK]
    now_ns = at_ns.astype(np.uint64)[:, None]
    blocked_ns = blocked_until(words[:, :, _BLOCKED], words[:, :, _WAITING], now_ns)
    blocked_ns = np.where(torn, np.int64(0), blocked_ns.view(np.int64))
    blocked_ns = np.maximum.accumulate(np.vstack([before, blocked_ns]))[1:]
    status = words[:, :, _OWNER : _CLOSED + 1].reshape(len(samples), -1)
    turns = np.flatnonzero((status[1:] != status[:-1]).any(axis=1)) + 1
    # Cells that were found since are in no sample yet.
    sampled = {key: [cell for cell in cells if cell < len(before)] for key, cells in places.items()}
    for start, stop in zip([0, *turns], [*turns, len(samples)], strict=True):
        owners = owners_of(words[start])
        closed = words[start, :, _CLOSED].astype(bool).tolist()
        yield Span(
            at_ns=at_ns[start:stop],
            items=words[start:stop, :, _ITEMS].astype(np.int64),
            bytes=words[start:stop, :, _BYTES].astype(np.int64),
            blocked_ns=blocked_ns[start:stop],
            waiting=words[start:stop, :, _WAITING].astype(np.int64),
            used=[sample.used for sample in samples[start:stop]],
            owners=owners,
            live=[
                not end and owner.pid not in gone for owner, end in zip(owners, closed, strict=True)
            ],
            closed=closed,
            places=sampled,
        )
