"""A race of many benchmarks: time goes to the one that needs the least of it to be known.

It is the schedule of a gate (`gate.ratios`). Equal shares would spend most of their time on the few
noisy ones, which no budget makes narrow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from benchrigor.model import Headway, RoundPlan, Turn

LEAST_BLOCKS = 6  # of everything, before any benchmark gets more time than others
LOOKS = 2  # in a row that are narrow enough: one may be by luck
_NULL_BLOCKS = 6
_NULL_SHARE = 2 / 9  # of the blocks: a third process in them takes a tenth of all time


class Race:
    """Benchmarks of two sides, each block one process of either side, and often of a copy.

    The first six blocks hold all benchmarks. Then a block has the benchmark with the least time to
    go, and further ones until they take as long as its processes need to start. It sees widths and
    durations; a ratio that it saw could choose what is measured.

    Parameters
    ----------
    sides
        Roles: old, new, and the copy of the old code.
    seed
        Draws the order of the sides in each block.
    can_choose
        Whether a process can measure some of the benchmarks; else each measures all of them.
    """

    def __init__(self, sides: Sequence[str], seed: int, *, can_choose: bool = True) -> None:
        self._sides, self._seed, self._can_choose = tuple(sides), seed, can_choose
        self._blocks = self._null_blocks = 0

    def next(self, state: Mapping[str, Headway]) -> Turn | None:
        """Return the next block; None if all are as narrow as wanted, two looks in a row.

        Also if the first block shows no benchmark that both sides have.
        """
        still = {name: each for name, each in state.items() if each.narrow < LOOKS}
        nothing_left = not still if self._blocks >= LEAST_BLOCKS else not state
        if self._blocks and nothing_left:
            return None
        is_whole = self._blocks < LEAST_BLOCKS or not self._can_choose
        names = () if is_whole else self._chosen(still, self._start_s(state))
        turn = Turn(order=self._order(), plan=RoundPlan(index=self._blocks), names=names)
        self._null_blocks += len(turn.order) == len(self._sides)
        self._blocks += 1
        return turn

    def _start_s(self, state: Mapping[str, Headway]) -> float:
        """Return the time of a block that is spent on no benchmark."""
        elapsed_s = max(each.elapsed_s for each in state.values())
        return max(elapsed_s - sum(each.busy_s for each in state.values()), 0.0) / self._blocks

    @staticmethod
    def _chosen(still: Mapping[str, Headway], start_s: float) -> tuple[str, ...]:
        nearest = sorted(still, key=lambda name: time_to_go(still[name]))
        taken_s, names = 0.0, list[str]()
        for name in nearest:
            names.append(name)
            taken_s += _block_s(still[name])
            if taken_s >= start_s:
                break
        return tuple(names)

    def _order(self) -> tuple[str, ...]:
        """Draw the order; of two blocks without a copy, one begins with either side."""
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, self._blocks // 2]))
        old, new, copy = self._sides
        pair = (old, new) if (rng.integers(2) + self._blocks) % 2 else (new, old)
        needed = max(_NULL_BLOCKS, _NULL_SHARE * self._blocks)
        if self._null_blocks >= needed:
            return pair
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, self._blocks, 1]))
        place = int(rng.integers(3))
        return (*pair[:place], copy, *pair[place:])


def _block_s(headway: Headway) -> float:
    return headway.busy_s / max(headway.turns, 1)


def time_to_go(headway: Headway) -> float:
    """Return the expected time until an interval is narrow, which shrinks with the root of n."""
    if headway.width is None:
        return math.inf
    blocks = headway.turns * (headway.width**2 - 1.0)
    return max(blocks, 1.0) * _block_s(headway)
