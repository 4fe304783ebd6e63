"""The counters of one process at one end: what is stored, and what a reader makes of it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues import Page
from benchrigor.queues.cells import keep_whole
from benchrigor.queues.writers import Writer

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


def test_the_words_are_as_documented() -> None:
    cell = spare()
    cell.end_wait(100)  # of which none has begun
    assert not any(cell.words.tolist()[:5])
    cell.count_bytes(5)
    cell.begin_wait(100)
    cell.begin_wait(150)
    cell.end_wait(170)
    cell.own(77)
    assert cell.read(200).blocked_ns == 120  # also without its writer
    blocked = (-100 - 150 + 170) % WORD
    owner = os.getpid() << 32 | 77
    assert cell.words.tolist() == [1, 5, 2, blocked, 1, owner, 0, blocked ^ 1]
    for thread, told in ((77, 77), (None, None), (2**32, None)):
        cell.own(thread)
        assert (cell.read(200).pid, cell.read(200).tid) == (os.getpid(), told)
    cell.begin_wait(200)
    cell.close(300)
    counts = cell.read(1_000)
    assert (counts.blocked_ns, counts.waiting, counts.closed) == (320, 0, True)


def test_what_was_read_never_goes_back() -> None:
    cell = spare()
    cell.begin_wait(BOOT_NS + 500)
    assert cell.read(BOOT_NS).blocked_ns == 0  # it began after the reader looked at its clock
    cell.end_wait(BOOT_NS + 900)
    assert cell.read(BOOT_NS + 2_000).blocked_ns == 400
    cell.begin_wait(BOOT_NS + 2_050)
    assert cell.read(BOOT_NS + 2_010).blocked_ns == 400
    assert cell.read(BOOT_NS + 2_150).blocked_ns == 500


def test_no_event_of_several_threads_is_lost_nor_half_of_one_read() -> None:
    cell, read, done = spare(), list[int](), threading.Event()

    def work() -> None:
        for _ in range(10_000):
            cell.count()
            cell.count_bytes(2)
            cell.begin_wait(BOOT_NS)
            cell.end_wait(BOOT_NS + 3)

    def look() -> None:
        while not done.is_set():
            read.append(cell.read(BOOT_NS + 3).blocked_ns)

    with hurried_switching():
        looker = threading.Thread(target=look)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in (looker, *threads):
            each.start()
        for each in threads:
            each.join()
        done.set()
        looker.join()
    counts = cell.read()
    assert (counts.items, counts.bytes) == (80_000, 80_000)
    assert (counts.blocked_events, counts.blocked_ns, counts.waiting) == (40_000, 120_000, 0)
    assert read == sorted(read)


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


def test_a_wait_runs_nothing_but_what_counts_it() -> None:
    writer = Writer(Page.create(cells=1), "work.head")
    writer.count()
    ran: list[str] = []

    def wait() -> None:
        with writer.waiting():
            pass

    def look(frame: Any, event: str, _: object) -> None:
        if event == "call":
            ran.append(frame.f_globals["__name__"])

    sys.setprofile(look)
    try:
        wait()
    finally:
        sys.setprofile(None)
    counting = {f"benchrigor.queues.{module}" for module in ("cells", "writers")}
    assert set(ran) == {__name__, *counting}
