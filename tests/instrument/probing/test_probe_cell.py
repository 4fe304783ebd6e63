import sys
import threading
from decimal import Decimal

import numpy as np
import pytest

from benchrigor.instrument.probing import probe_cell
from benchrigor.instrument.probing.probe_cell import Bounds, Cell, Taken
from benchrigor.instrument.probing.reservoir import durations_of

HOUR_NS = 3600 * 10**9


@pytest.fixture
def bounds() -> Bounds:
    found = Bounds()
    found.born_ns -= HOUR_NS
    return found


@pytest.fixture
def cell(bounds: Bounds) -> Cell:
    return Cell(bounds, most_samples=5)


def add(cell: Cell, *values: object) -> None:
    for value in values:
        cell.append(value)
        if len(cell) >= cell.room:
            cell.fold()


def taken(cell: Cell) -> Taken:
    found = cell.take()
    assert found is not None
    return found


def test_what_is_taken_is_what_came_since_the_last_time(cell: Cell) -> None:
    assert cell.take() is None
    add(cell, 3, 5)
    assert taken(cell).sums[:4] == (2, 8, 3, 5)
    add(cell, 4)
    assert taken(cell).sums[:4] == (1, 4, 4, 4)
    assert cell.take() is None


def test_a_full_list_is_added_up_and_emptied(cell: Cell) -> None:
    add(cell, *range(1, 1001))
    assert len(cell) < cell.room
    assert taken(cell).sums[:4] == (1000, 500_500, 1, 1000)


def test_the_list_of_a_probe_in_little_use_is_short(cell: Cell) -> None:
    assert cell.room == 4
    add(cell, *[1] * 20_000)
    assert cell.room == 128
    cell.take()
    assert cell.room == 4


@pytest.mark.parametrize(
    "wrong",
    [-1, 1.5, float("nan"), float("inf"), 2 * HOUR_NS, 10**400, Decimal(1), "1", None, np.nan],
    ids=repr,
)
def test_impossible_durations_are_counted_apart(cell: Cell, wrong: object) -> None:
    add(cell, 3, wrong, 5)
    found = taken(cell)
    assert (found.sums[:4], found.rejected) == ((2, 8, 3, 5), 1)
    add(cell, wrong)
    assert (taken(cell).rejected, [*cell]) == (1, [])


def test_whole_numbers_of_other_kinds_count(cell: Cell) -> None:
    add(cell, np.int64(3), True)
    sums = taken(cell).sums
    assert sums[:2] == (2, 4)
    assert type(sums[1]) is int


def test_samples_are_at_random_and_others_are_counted(cell: Cell) -> None:
    add(cell, *range(8))
    found = taken(cell)
    kept = durations_of(found.samples)
    assert (len(set(kept)), found.samples_lost) == (5, 3)
    assert kept == sorted(kept)
    add(cell, 9)
    assert durations_of(taken(cell).samples) == [9]


def test_time_of_nested_events_is_added_up_with_those_inside(cell: Cell, bounds: Bounds) -> None:
    inner = Cell(bounds)
    for _ in range(100):
        cell.nested.append(2)
        inner.append(2)
        if len(inner) >= inner.room:
            inner.fold(cell)
    assert len(cell.nested) < 16  # an event that lasts keeps no list of all that ran inside
    assert taken(cell).nested_ns == 200


def test_nobody_waits_for_a_cell_that_another_thread_adds_up(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_cell, "_WAIT_S", 0.0)
    with cell.lock:  # as the handler of a signal finds it
        add(cell, *[1] * 1000)
        assert cell.take() is None
    assert taken(cell).sums[0] == 1000


@pytest.mark.parametrize("threads", [1, 8])
def test_no_event_is_lost_to_threads_and_readers(threads: int, bounds: Bounds) -> None:
    cell = Cell(bounds)
    each, found = 4_000, []

    def write() -> None:
        for value in range(each):
            cell.append(value)
            if len(cell) >= cell.room:
                cell.fold()

    def read() -> None:
        while any(thread.is_alive() for thread in writers):
            found.append(cell.take())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        writers = [threading.Thread(target=write) for _ in range(threads)]
        reader = threading.Thread(target=read)
        for thread in [*writers, reader]:
            thread.start()
        for thread in [*writers, reader]:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    sums = [some.sums for some in [*found, cell.take()] if some is not None]
    assert sum(some[0] for some in sums) == threads * each
    assert sum(some[1] for some in sums) == threads * each * (each - 1) // 2
