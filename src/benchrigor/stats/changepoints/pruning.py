"""Which of the splits found are the change points of a series, and where exactly."""

from __future__ import annotations

from bisect import bisect_right, insort
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from benchrigor.model.series import Ints
from benchrigor.stats.changepoints.likelihood_ratio import Search, Strengths
from benchrigor.stats.changepoints.seeded_intervals import SPLITS, Found
from benchrigor.stats.changepoints.windows import Lens, Lenses

__all__ = ["Selection", "leading_bits"]

_ZOOM = 33
_MOST_POINTS = 4_096
_LOOKS = 3
_SIGHT = 8

_Rough = tuple[int, int]
"""About where a split is, and within what reach, a power of two, its exact place lies."""


class _Split(NamedTuple):
    """A rough split between two borders."""

    place: int
    reach: int
    start: int
    stop: int


class Selection:
    """Chooses change points among splits; what it has once worked out it remembers.

    Parameters
    ----------
    lenses
        The series; may be extended between calls, which leaves all that was worked out true.
    search
        What counts as a change.
    """

    def __init__(self, lenses: Lenses, search: Search) -> None:
        self._lenses = lenses
        self._search = search
        self._places: dict[_Split, int] = {}
        self._judgements: dict[tuple[int, int, int], float] = {}
        self._whole: set[tuple[int, int]] = set()
        self._windows = lenses.whole

    def among(self, found: Found) -> Ints:
        """Return the first reading of each new segment, ascending; all are significant.

        Notes
        -----
        The strongest split is taken, the intervals that hold it are dropped, and so on. Each
        split is then moved to its strongest place, and dropped if it is not significant between
        its neighbours. The segments that are left are intervals that no seed has hit: splits
        found in them are added, and all are moved and judged again.
        """
        if self._lenses.whole != self._windows:
            # What was seen near the end is now seen through other windows.
            self._windows = self._lenses.whole
            for memory in (self._places, self._judgements, self._whole):
                memory.clear()
        most = min(max(64, self._lenses.far.n // 512), _MOST_POINTS)
        rough = _strongest(found, most)
        for _ in range(_LOOKS):
            placed = self._relocated(rough)
            rough = self._confirmed(placed)
            more = self._inside(rough)
            if not more or len(rough) + len(more) > most:
                break
            rough = sorted([*rough, *more])
        if len(rough) < len(placed):
            # Those that were dropped leave more readings to place their neighbours by.
            rough = self._confirmed(self._relocated(rough, _beside(placed, rough)))
        return np.array([place for place, _ in rough], dtype=np.int64)

    def _relocated(self, rough: list[_Rough], only: set[_Rough] | None = None) -> list[_Rough]:
        """Move each split to its strongest place, through a window where one holds its sight.

        Only readings within some times its reach are looked at, so that what lies further
        behind, however much is appended, does not matter. Those that are not among ``only``, if
        given, stay where they are.
        """
        borders = [0, *(place for place, _ in rough), self._lenses.far.n]
        splits = [
            _Split(
                place,
                reach,
                max(before, place - _SIGHT * reach),
                min(behind, place + _SIGHT * reach),
            )
            for (place, reach), before, behind in zip(rough, borders, borders[2:], strict=False)
        ]
        stay: list[_Rough] = []
        if only is not None:
            stay = [each for each in rough if each not in only]
            splits = [each for each in splits if each[:2] in only]
        new = [each for each in splits if each not in self._places]
        if new:
            place, reach, start, stop = np.array(new, dtype=np.int64).T
            lenses = self._lenses
            close = stop - start <= (2 * lenses.near.hop if lenses.near.windows else 0)
            for lens, mine in ((lenses.far, ~close), (lenses.near, close)):
                if mine.any():
                    some = np.nonzero(mine)[0]
                    moved = self._moved(lens, place[mine], reach[mine], start[mine], stop[mine])
                    for index, exact in zip(some.tolist(), moved.tolist(), strict=True):
                        self._places[new[index]] = exact
        placed = {self._places[each]: each.reach for each in splits}
        return sorted({**dict(stay), **placed}.items())

    def _moved(self, lens: Lens, splits: Ints, reach: Ints, start: Ints, stop: Ints) -> Ints:
        """Move each split to its strongest place within reach, in steps that shrink to one."""
        columns = np.arange(splits.size)
        search = self._search._replace(placing=True)
        window = lens.window(splits)
        start, stop = lens.within(window, start, stop)
        while True:
            low = np.maximum(splits - reach, start + 1)
            width = np.maximum(np.minimum(splits + reach, stop - 1) - low, 0)
            most = min(_ZOOM, int(width.max()) + 1)
            trial = low + width * np.arange(most)[:, np.newaxis] // max(1, most - 1)
            strength = lens.strengths(window, start, trial, stop, search)
            best = trial[strength.argmax(axis=0), columns]
            splits = np.where(strength.max(axis=0) > 0, best, splits)
            spacing = -(-width // max(1, most - 1))
            if spacing.max() <= 1:
                return splits
            reach = 2 * spacing

    def _confirmed(self, rough: list[_Rough]) -> list[_Rough]:
        """Drop the weakest split until all are significant between their neighbours."""
        while rough:
            borders = [0, *(place for place, _ in rough), self._lenses.far.n]
            strength = self._judged(list(zip(borders, borders[1:], borders[2:], strict=False)))
            # Splits that are not neighbours' neighbours do not touch: drop them at once.
            rivals = np.concatenate(([np.inf], strength, [np.inf]))
            weakest = (strength < rivals[:-2]) & (strength <= rivals[2:])
            dropped = weakest & (strength <= self._search.threshold)
            if not dropped.any():
                break
            rough = [each for each, out in zip(rough, dropped, strict=True) if not out]
        return rough

    def _judged(self, splits: list[tuple[int, int, int]]) -> Strengths:
        """Return the strength of splits, each between two neighbours, through the better lens."""
        new = [each for each in splits if each not in self._judgements]
        if new:
            start, split, stop = np.array(new, dtype=np.int64).T
            strength = self._seen(self._lenses.far, start, split, stop)
            weak = np.nonzero(strength <= self._search.threshold)[0]
            if weak.size and self._lenses.near.windows:
                near = self._seen(self._lenses.near, start[weak], split[weak], stop[weak])
                strength[weak] = np.maximum(strength[weak], near)
            self._judgements.update(zip(new, strength.tolist(), strict=True))
        return np.array([self._judgements[each] for each in splits], dtype=np.float32)

    def _inside(self, rough: list[_Rough]) -> list[_Rough]:
        """Return splits inside the segments.

        Of the last one, which grows, up to a sixteenth may be left for later.
        """
        borders = [0, *(place for place, _ in rough)]
        borders.append(borders[-1] + leading_bits(self._lenses.far.n - borders[-1], 5))
        segments = [
            each
            for each in pairwise(borders)
            if each[1] - each[0] >= 2 * self._search.shortest and each not in self._whole
        ]
        if not rough or not segments:
            return []
        start, stop = np.array(segments, dtype=np.int64).T
        places = np.arange(1, SPLITS + 1)[:, np.newaxis]
        trial = start + (stop - start) * places // (SPLITS + 1)
        short = stop - start <= (self._lenses.near.hop if self._lenses.near.windows else 0)
        strength = np.zeros(trial.shape, dtype=np.float32)
        for lens, mine in ((self._lenses.near, short), (self._lenses.far, ~short)):
            if mine.any():
                window = lens.window((start[mine] + stop[mine]) // 2)
                strength[:, mine] = lens.strengths(
                    window, start[mine], trial[:, mine], stop[mine], self._search
                )
        best = strength.argmax(axis=0)
        hit = strength.max(axis=0) > self._search.threshold
        self._whole.update(each for each, at in zip(segments, hit, strict=True) if not at)
        found = trial[best, np.arange(best.size)][hit].tolist()
        return [_rough(*each) for each in zip(found, (stop - start)[hit].tolist(), strict=True)]

    def _seen(self, lens: Lens, start: Ints, split: Ints, stop: Ints) -> Strengths:
        """Return the strength of one split of each interval, as far as a window shows it."""
        window = lens.window(split)
        start, stop = lens.within(window, start, stop)
        # Behind the last window nothing is seen: a split at the end has no strength.
        split = np.minimum(split, stop)[np.newaxis]
        found: Strengths = lens.strengths(window, start, split, stop, self._search)[0]
        return found


def _beside(before: list[_Rough], after: list[_Rough]) -> set[_Rough]:
    """Return those left that had a neighbour before which is there no more."""
    left = set(after)
    pairs = [*pairwise(before), *pairwise(before[::-1])]
    gone = [(one, other) for one, other in pairs if other not in left]
    return {one for one, _ in gone if one in left}


def leading_bits(number: int, kept: int) -> int:
    """Return a number with all but so many of its leading bits cleared."""
    rest = max(0, number.bit_length() - kept)
    return number >> rest << rest


def _strongest(found: Found, most: int) -> list[_Rough]:
    """Return the strongest splits none of whose intervals holds a stronger one, ascending."""
    order = np.argsort(-found.strength, kind="stable")
    start, split, stop = (each[order].tolist() for each in (found.start, found.split, found.stop))
    chosen: list[_Rough] = []
    for left, middle, right in zip(start, split, stop, strict=True):
        behind = bisect_right(chosen, (left, right))
        if behind < len(chosen) and chosen[behind][0] < right:
            continue
        place, reach = _rough(middle, right - left)
        for at in (behind - 1, behind):
            # Within reach of a rougher split lies that same one, seen closer.
            if 0 <= at < len(chosen) and abs(chosen[at][0] - place) <= chosen[at][1] > 16 * reach:
                del chosen[at]
                break
        insort(chosen, (place, reach))
        if len(chosen) == most:
            break
    return chosen


def _rough(place: int, length: int) -> _Rough:
    """Round the best of a few splits of an interval of that length."""
    reach = 1 << max(2, (2 * length // (SPLITS + 1)).bit_length())
    return round(4 * place / reach) * reach // 4, reach
