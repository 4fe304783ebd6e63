"""Seeded intervals: where the splits that tell two distributions apart are looked for."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Ints
from benchrigor.stats.changepoints.likelihood_ratio import Search, Strengths
from benchrigor.stats.changepoints.windows import WINDOW, Lens, Lenses

__all__ = ["SPLITS", "Found", "Seeds"]

SPLITS = 31
_SCREENING = 3
_HOPEFUL = 0.25
_FEWEST_BLOCKS = 12


class Found(NamedTuple):
    """The best splits of intervals, each array of shape (I,); in readings."""

    start: Ints
    split: Ints
    stop: Ints
    strength: Strengths

    def where(self, kept: npt.NDArray[np.bool_]) -> Found:
        """Return the same of some intervals only."""
        return Found(self.start[kept], self.split[kept], self.stop[kept], self.strength[kept])

    def and_also(self, other: Found) -> Found:
        """Return these and others."""
        return Found(
            np.concatenate((self.start, other.start)),
            np.concatenate((self.split, other.split)),
            np.concatenate((self.stop, other.stop)),
            np.concatenate((self.strength, other.strength)),
        )


class Seeds:
    """The intervals of a series that hold a significant split; those found are remembered.

    Parameters
    ----------
    lenses
        The series; may be extended between calls.
    search
        What counts as a change.

    Notes
    -----
    Intervals are fixed in advance, half overlapping, of lengths that grow by sqrt 2 (Kovacs,
    Li, Buehlmann & Munk 2023); the short ones are seen through windows, the long ones from afar.
    None depends on the readings behind it, so each is looked at but once, however often readings
    are appended; only those that touch the end, one of each length, are looked at anew.
    """

    def __init__(self, lenses: Lenses, search: Search) -> None:
        self._lenses = lenses
        self._search = search
        # Even a perfect split of fewer (strength 0.74 (n/r - 3)) would not be significant.
        readings = max(2 * search.shortest, round((1.35 * search.threshold + 3) * search.inflation))
        fewest = max(-(-readings // lenses.grid), _FEWEST_BLOCKS if lenses.grid > 1 else 1)
        lengths = _lengths(fewest, 2 * lenses.far.n // lenses.grid)
        self._short = [each for each in lengths if each <= WINDOW // 2 and lenses.near.windows]
        self._long = [each for each in lengths if each not in self._short]
        self._blocks = 0
        self._windows = 0
        none = np.zeros(0, dtype=np.int64)
        self._found = Found(none, none, none, none.astype(np.float32))

    def found(self) -> Found:
        """Return the best split of every interval that has a significant one."""
        lenses = self._lenses
        if self._short and (lenses.whole > self._windows or not self._blocks):
            self._look_through_windows()
        n = lenses.far.n
        start, stop = _completed(self._long, self._blocks, n // lenses.grid)
        ending = _ending(self._long, -(-n // lenses.grid))
        lasting = np.arange(start.size + ending[0].size) < start.size
        start, stop = np.concatenate((start, ending[0])), np.concatenate((stop, ending[1]))
        found, at = self._best_of(lenses.far, np.zeros_like(start), start, stop)
        self._blocks = n // lenses.grid
        everything = self._found.and_also(found)
        self._found = self._found.and_also(found.where(lasting[at]))
        return everything

    def _look_through_windows(self) -> None:
        """Look at the short intervals around the middle of the windows that are new.

        When the first are looked at, also at those up to the end.
        """
        lenses = self._lenses
        start, stop = _completed(self._short, 0, WINDOW)
        middle = start + stop
        first = np.arange(self._windows, lenses.whole)[:, np.newaxis]
        inner = (middle < WINDOW * 3 // 2) & ((middle >= WINDOW // 2) | (first == 0))
        window, at = np.nonzero(inner)
        window += self._windows
        start, stop = start[at], stop[at]
        if lenses.near.windows > lenses.whole and not self._blocks:
            last = -(-lenses.near.n // lenses.grid) - lenses.whole * (WINDOW // 2)
            parts = (_completed(self._short, 0, last), _ending(self._short, last))
            begin, end = np.concatenate(parts, axis=1)
            outer = begin + end >= WINDOW // 2
            start = np.concatenate((start, begin[outer]))
            stop = np.concatenate((stop, end[outer]))
            window = np.concatenate((window, np.full(np.count_nonzero(outer), lenses.whole)))
        shift = window * (WINDOW // 2)
        found, _ = self._best_of(lenses.near, window, start + shift, stop + shift)
        self._found = self._found.and_also(found)
        self._windows = lenses.whole

    def _best_of(self, lens: Lens, window: Ints, start: Ints, stop: Ints) -> tuple[Found, Ints]:
        """Return the best splits of those intervals, given in multiples of the grid, and which.

        A few splits of each tell whether it is worth trying more: beside a split of strength T
        the next of those few has about T/4 or more.
        """
        threshold = self._search.threshold
        few = self._best(lens, window, start, stop, _SCREENING)
        at = np.nonzero(few.strength > _HOPEFUL * threshold)[0]
        found = self._best(lens, window[at], start[at], stop[at], SPLITS)
        hit = found.strength > threshold
        return found.where(hit), at[hit]

    def _best(self, lens: Lens, window: Ints, start: Ints, stop: Ints, splits: int) -> Found:
        if start.size == 0:
            return Found(start, start, stop, start.astype(np.float32))
        places = np.arange(1, splits + 1)[:, np.newaxis]
        split = (start + (stop - start) * places // (splits + 1)) * lens.grid
        begin, end = start * lens.grid, np.minimum(stop * lens.grid, lens.n)
        strength = lens.strengths(window, begin, split, end, self._search, on_grid=True)
        best = strength.argmax(axis=0)
        columns = np.arange(best.size)
        return Found(begin, split[best, columns], end, strength[best, columns])


def _lengths(fewest: int, most: int) -> list[int]:
    """Return the lengths of intervals, in multiples of the grid."""
    lengths = []
    growing = float(fewest)
    while growing <= most:
        lengths.append(round(growing))
        growing *= math.sqrt(2.0)
    return lengths


def _completed(lengths: list[int], seen: int, blocks: int) -> tuple[Ints, Ints]:
    """Return starts and stops of the intervals that end behind ``seen``, up to ``blocks``."""
    starts = [np.zeros(0, dtype=np.int64)]
    used = [each for each in lengths if each <= blocks]
    for length in used:
        hop = max(1, length // 2)
        first = max(0, (seen - length) // hop + 1)
        starts.append(np.arange(first * hop, blocks - length + 1, hop))
    start = np.concatenate(starts)
    return start, start + np.repeat(used or [0], [each.size for each in starts[1:]] or [0])


def _ending(lengths: list[int], blocks: int) -> tuple[Ints, Ints]:
    """Return starts and stops of the intervals that touch the end, the whole series among them."""
    start = np.array([*(blocks - each for each in lengths if each < blocks), 0], dtype=np.int64)
    return start, np.full_like(start, blocks)
