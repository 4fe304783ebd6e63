"""The counters of one process at one end: what is stored, and what a reader makes of it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues import Page
from benchrigor.queues.counting.cells import keep_whole

WORD = 2**64
BOOT_NS = 40 * 24 * 3600 * 10**9


def spare() -> Any:
    """Return a cell of a page that nobody else has."""
    return Page.create(cells=1).claim("work.head")


@contextmanager
def hurried_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(count: int, run: Callable[[], object]) -> None:
    with hurried_switching():
        threads = [threading.Thread(target=run) for _ in range(count)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


def test_a_fresh_cell_has_counted_nothing() -> None:
    counts = spare().read(BOOT_NS)
    assert (counts.items, counts.bytes, counts.blocked_events, counts.blocked_ns) == (0, 0, 0, 0)
    assert (counts.waiting, counts.closed, counts.pid) == (0, False, os.getpid())
    assert counts.name == "work.head"


def test_the_words_are_as_documented() -> None:
    cell = spare()
    cell.count_bytes(5)
    cell.begin_wait(100)
    cell.begin_wait(150)
    cell.end_wait(170)
    cell.own(77)
    assert cell.read(200).blocked_ns == 120  # also without its writer
    blocked = (-100 - 150 + 170) % WORD
    owner = os.getpid() << 32 | 77
    assert cell.words.tolist() == [1, 5, 2, blocked, 1, owner, 0, blocked ^ 1]


@given(
    waits=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=12),
    looks=st.lists(st.integers(0, 2 * 10**6), max_size=5),
)
def test_any_waits_at_once_add_up_whenever_one_looks(
    waits: list[tuple[int, int]], looks: list[int]
) -> None:
    cell = spare()
    events = [(begin, 0, 1) for begin, _ in waits]
    events += [(begin + length, 1, -1) for begin, length in waits]
    events += [(look, 2, 0) for look in looks]
    for at_ns, _, step in sorted(events):
        if step > 0:
            cell.begin_wait(BOOT_NS + at_ns)
        elif step < 0:
            cell.end_wait(BOOT_NS + at_ns)
        else:
            true_ns = sum(max(0, min(at_ns, begin + length) - begin) for begin, length in waits)
            assert cell.read(BOOT_NS + at_ns).blocked_ns == true_ns
    counts = cell.read(BOOT_NS + 10**7)
    assert counts.blocked_ns == sum(length for _, length in waits)
    assert (counts.blocked_events, counts.waiting) == (len(waits), 0)


def test_a_wait_that_began_after_the_reader_looked_at_its_clock_counts_nothing() -> None:
    cell = spare()
    cell.begin_wait(BOOT_NS + 500)
    assert cell.read(BOOT_NS).blocked_ns == 0
    assert cell.read(BOOT_NS + 600).blocked_ns == 100


def test_what_was_read_never_goes_back() -> None:
    cell = spare()
    cell.begin_wait(1_000)
    cell.end_wait(1_400)
    assert cell.read(2_000).blocked_ns == 400
    cell.begin_wait(2_050)
    assert cell.read(2_010).blocked_ns == 400
    assert cell.read(2_150).blocked_ns == 500


def test_a_writer_stopped_between_two_stores_leaves_the_time_as_it_was_last_seen() -> None:
    cell = spare()
    cell.begin_wait(100)
    cell.end_wait(150)
    assert cell.read(200).blocked_ns == 50
    cell.count()
    cell.words[3] = (cell.words[3] - 300) % WORD
    torn = cell.read(400)
    assert (torn.blocked_ns, torn.items) == (50, 1)
    cell.words[4] = 1
    cell.words[7] = cell.words[3] ^ 1
    assert cell.read(420).blocked_ns == 170


def test_ending_a_wait_that_never_began_changes_nothing() -> None:
    cell = spare()
    cell.end_wait(100)
    assert not any(cell.words.tolist()[:5])


@pytest.mark.parametrize(("thread", "told"), [(12, 12), (None, None), (2**32, None)])
def test_a_thread_is_told_where_there_is_one_and_its_number_has_room(
    thread: int | None, told: int | None
) -> None:
    cell = spare()
    cell.own(thread)
    counts = cell.read()
    assert (counts.pid, counts.tid) == (os.getpid(), told)


def test_no_event_of_several_threads_is_lost() -> None:
    cell = spare()

    def work() -> None:
        for at_ns in range(10_000):
            cell.count()
            cell.count_bytes(2)
            cell.begin_wait(at_ns)
            cell.end_wait(at_ns + 3)

    in_threads(4, work)
    counts = cell.read()
    assert (counts.items, counts.bytes) == (80_000, 80_000)
    assert (counts.blocked_events, counts.blocked_ns, counts.waiting) == (40_000, 120_000, 0)


def test_a_reader_never_sees_half_a_change() -> None:
    cell = spare()
    done = threading.Event()
    read: list[int] = []

    def look() -> None:
        while not done.is_set():
            read.append(cell.read(BOOT_NS + 2).blocked_ns)

    def work() -> None:
        for _ in range(20_000):
            cell.begin_wait(BOOT_NS)
            cell.end_wait(BOOT_NS + 1)
        done.set()

    threads = [threading.Thread(target=each) for each in (look, work)]
    with hurried_switching():
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert read == sorted(read)
    assert 0 <= min(read) <= max(read) <= 20_002


class Tally:
    def __init__(self) -> None:
        self.items = 0
        self.lock = threading.RLock()

    def count(self, amount: int) -> int:
        before = self.items
        time.sleep(1e-5)
        self.items = before + amount
        return self.items


def test_where_threads_run_at_once_they_are_kept_apart() -> None:
    count, tally = keep_whole(Tally.count, takes_turns=False), Tally()

    def work() -> None:
        for _ in range(50):
            count(tally, 2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert tally.items == 400
    assert count(tally, amount=3) == 403
    assert count.__name__ == "count"


def test_closing_ends_all_waits() -> None:
    cell = spare()
    cell.begin_wait(100)
    cell.begin_wait(200)
    cell.close(300)
    counts = cell.read(1_000)
    assert (counts.blocked_ns, counts.waiting, counts.closed) == (300, 0, True)
