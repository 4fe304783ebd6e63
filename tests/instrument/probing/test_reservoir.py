"""Each event is as likely in the sample as any other, however they come and are merged."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from heapq import nsmallest

import numpy as np
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


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [[1] * 40, [10] * 4])
def test_with_decay_events_are_likely_by_their_weights(
    blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that is kept, each event's chance is its weight, which doubles every ten."""
    clock, drawn = iter(itertools.cycle([10**6 * sum(blocks[:n]) for n in range(len(blocks))])), []
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(clock))
    for _ in range(RUNS // 4):
        reservoir, numbers = Reservoir(), iter(range(EVENTS))
        for size in blocks:
            reservoir.add([*itertools.islice(numbers, size)], 1, math.log(2.0) / 10**7)
        drawn += durations_of(reservoir.entries())
    shares = np.bincount(np.array(drawn) // 10, minlength=4) / (RUNS // 4)
    weights = 2.0 ** np.arange(4)
    # A share has a standard deviation of 0.016 at most.
    assert shares == pytest.approx(weights / weights.sum(), abs=0.08)


@pytest.mark.parametrize("half_life_ns", [1.0, 1e9, 1e20])
def test_any_decay_keeps_as_many_as_asked(half_life_ns: float) -> None:
    reservoir = Reservoir()
    for _ in range(20):
        reservoir.add(range(50), 7, math.log(2.0) / half_life_ns)
    assert (len(reservoir.entries()), reservoir.seen) == (7, 1000)


def test_fewer_may_be_kept_from_now_on() -> None:
    reservoir = Reservoir()
    reservoir.add(range(100), 50)
    reservoir.add(range(100, 105), 5)
    reservoir.add(range(105, 500), 5)
    assert (len(reservoir.entries()), reservoir.seen) == (5, 500)
