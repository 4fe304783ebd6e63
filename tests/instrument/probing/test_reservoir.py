"""Each event is as likely in the sample as any other, however they come and are merged."""

from __future__ import annotations

import itertools
from collections import Counter
from heapq import nsmallest

import pytest

from benchrigor.instrument.probing.reservoir import Reservoir, durations_of

RUNS, EVENTS, KEPT = 4_000, 40, 10
# Each is in a quarter of 4,000 samples: 1000 +- 27; five deviations are exceeded once in 40,000.
NEAR = pytest.approx(RUNS * KEPT / EVENTS, abs=5 * 27.4)


@pytest.mark.parametrize("blocks", [[40], [1] * 40, [10, 30], [3, 7, 29, 1]])
def test_each_event_is_as_likely_as_any_other(blocks: list[int]) -> None:
    drawn = Counter[int]()
    for _ in range(RUNS):
        reservoir, numbers = Reservoir(), iter(range(EVENTS))
        for size in blocks:
            reservoir.add([*itertools.islice(numbers, size)], KEPT)
        drawn.update(durations_of(reservoir.entries()))
    assert sum(drawn.values()) == RUNS * KEPT
    assert all(drawn[number] == NEAR for number in range(EVENTS))


@pytest.mark.slow
def test_samples_of_unequal_parts_merge_to_one_of_all() -> None:
    drawn = Counter[int]()
    for _ in range(RUNS):
        parts = []
        for numbers in (range(5), range(5, 12), range(12, EVENTS)):
            reservoir = Reservoir()
            reservoir.add(numbers, KEPT)
            parts += reservoir.entries()
        drawn.update(durations_of(nsmallest(KEPT, parts)))
    assert all(drawn[number] == NEAR for number in range(EVENTS))


def test_fewer_may_be_kept_from_now_on() -> None:
    reservoir = Reservoir()
    reservoir.add(range(100), 50)
    reservoir.add(range(100, 105), 5)
    reservoir.add(range(105, 500), 5)
    assert (len(reservoir.entries()), reservoir.seen) == (5, 500)
