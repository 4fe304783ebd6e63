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
from benchrigor.model.series import Ints
from benchrigor.queues.counting.cells import CELL_WORDS, Page, blocked_until
from benchrigor.queues.counting.writers import End, EndKey, Owner, Used

_WORDS = ("items", "bytes", "events", "blocked_ns", "waiting", "owner", "closed", "check")
_CELL = np.dtype([(name, np.uint64) for name in _WORDS])

CellTable = npt.NDArray[np.void]  # shape (samples, cells), with the words of a cell as fields
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

    def table(self, copies: Sequence[Copies]) -> CellTable:
        """Return all cells in successive copies of the same cells, without those found since."""
        columns: dict[int, npt.NDArray[np.uint64]] = {}
        for page, parts in zip(self._pages, zip(*copies, strict=True), strict=True):
            words = np.frombuffer(b"".join(parts), dtype=np.uint64)
            words = words.reshape(len(parts), -1, CELL_WORDS)
            for place, index in page.own:
                if index < words.shape[1]:
                    columns[place] = words[:, index, : len(_WORDS)]
        if not columns:
            return np.zeros((len(copies), 0), dtype=_CELL)
        return np.stack([columns[place] for place in sorted(columns)], axis=1).view(_CELL)[..., 0]


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


def owners_of(cells: CellTable) -> list[Owner]:
    """Return the process and thread that count in each of some cells; 0 is unknown."""
    return [Owner(word >> 32, word & 0xFFFFFFFF) for word in cells["owner"].tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cells at one time."""

    at_ns: int  # time of the clock just before they were copied
    copies: Copies
    used: Mapping[Owner, Used | None]  # processor use of threads just after that, if known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """Successive samples of the same cells, all with the same owners."""

    at_ns: Ints  # times, shape (n,)
    cells: CellTable  # shape (n, cells)
    blocked_ns: Ints  # nanoseconds waited, including waits under way, of the same shape
    used: Sequence[Mapping[Owner, Used | None]]  # processor use of threads, per sample
    owners: Sequence[Owner]  # process and thread, per cell
    live: Sequence[bool]  # whether its owner still counts, per cell
    places: Mapping[EndKey, Sequence[int]]  # the indices of an end's cells

    def of(self, ends: Iterable[End]) -> list[int]:
        """Return the indices of the cells of some ends; cells found since are in no sample yet."""
        found = (cell for end in ends for cell in self.places[end.key])
        return [cell for cell in found if cell < len(self.owners)]

    def total(self, word: str, cells: Sequence[int]) -> Ints:
        """Return what a word of some cells sums up to, sample by sample."""
        total: Ints = self.cells[word][:, cells].sum(axis=1).astype(np.int64)
        return total


def spans_of(
    samples: Sequence[Sample], cells: Cells, *, gone: Collection[int] = (), before: Ints
) -> Iterator[Span]:
    """Yield the spans of successive samples.

    ``gone`` are processes that have ended, ``before`` the blocked time of the cells in the last
    sample before. The blocked time stays as it was if a wait began after the clock was read, or if
    the writer was killed between two stores.
    """
    table = cells.table([sample.copies for sample in samples])
    at_ns = np.array([sample.at_ns for sample in samples], dtype=np.int64)
    blocked, waiting = table["blocked_ns"], table["waiting"]
    blocked_ns = blocked_until(blocked, waiting, at_ns.astype(np.uint64)[:, None]).view(np.int64)
    torn = blocked ^ waiting != table["check"]
    floor = np.zeros((1, table.shape[1]), dtype=np.int64)
    floor[0, : before.size] = before
    blocked_ns = np.maximum.accumulate(np.vstack([floor, np.where(torn, 0, blocked_ns)]))[1:]
    differs = [table[word][1:] != table[word][:-1] for word in ("owner", "closed")]
    turns = np.flatnonzero(np.logical_or(*differs).any(axis=1)) + 1
    for start, stop in zip([0, *turns], [*turns, len(samples)], strict=True):
        owners, closed = owners_of(table[start]), table["closed"][start].tolist()
        yield Span(
            at_ns=at_ns[start:stop],
            cells=table[start:stop],
            blocked_ns=blocked_ns[start:stop],
            used=[sample.used for sample in samples[start:stop]],
            owners=owners,
            live=[
                not end and owner.pid not in gone for owner, end in zip(owners, closed, strict=True)
            ],
            places=cells.places,
        )
