"""What a process counts at an end, and in whose name."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from benchrigor.queues import Page
from benchrigor.queues.counting.cells import Cell
from benchrigor.queues.counting.writers import Writer
from benchrigor.testing import FakeClock

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def test_a_cell_is_claimed_by_the_first_event(page: Page, head: Writer) -> None:
    assert page.cells() == ()
    head.count()
    head.count()
    (cell,) = page.cells()
    counts = cell.read()
    assert (counts.name, counts.items) == ("work.head", 2)
    assert (counts.pid, counts.tid) == (os.getpid(), threading.get_native_id())


def test_a_wait_claims_it_as_well(page: Page) -> None:
    clock = FakeClock(cost_ns=5)
    writer = Writer(page, "work.head", clock.now_ns)
    with writer.waiting():
        clock.advance(100)
        assert page.cells()[0].read(clock.now_ns()).waiting == 1
    counts = page.cells()[0].read(clock.now_ns())
    assert (counts.blocked_events, counts.waiting, counts.blocked_ns) == (1, 0, 110)


def test_a_wait_ends_when_what_is_in_it_fails(page: Page, head: Writer) -> None:
    with pytest.raises(KeyError), head.waiting():
        raise KeyError
    assert page.cells()[0].read().waiting == 0


def test_no_bytes_are_no_item(page: Page, head: Writer) -> None:
    head.count_bytes(0)
    assert page.cells() == ()
    head.count_bytes(7)
    assert page.cells()[0].read().bytes == 7


def test_a_second_thread_that_waits_makes_the_owner_unknown(page: Page, head: Writer) -> None:
    with head.waiting():
        pass
    thread = threading.Thread(target=lambda: head.end_wait(head.begin_wait()))
    thread.start()
    thread.join()
    counts = page.cells()[0].read()
    assert (counts.pid, counts.tid) == (os.getpid(), None)


def test_two_threads_that_come_first_claim_one_cell(page: Page, head: Writer) -> None:
    both = threading.Barrier(8)

    def work() -> None:
        both.wait()
        head.count()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.read().items for each in page.cells()] == [8]


def test_a_forked_process_counts_in_a_cell_of_its_own(
    page: Page, head: Writer, in_fork: Callable[..., int]
) -> None:
    head.count()
    begun = head.begin_wait()

    def work() -> None:
        head.end_wait(begun)
        head.count()
        head.count()

    assert in_fork(work) == 0
    ours, theirs = (each.read() for each in page.cells())
    assert (ours.items, ours.waiting, ours.pid) == (1, 1, os.getpid())
    assert (theirs.items, theirs.waiting, theirs.pid == ours.pid) == (2, 0, False)


def test_a_forked_process_that_uses_nothing_claims_nothing(
    page: Page, head: Writer, in_fork: Callable[..., int]
) -> None:
    head.count()
    assert in_fork(lambda: None) == 0
    assert len(page.cells()) == 1


def test_who_wants_to_know_is_told_in_a_forked_process(
    page: Page, head: Writer, in_fork: Callable[..., int]
) -> None:
    told: list[int] = []
    head.on_forget = lambda: told.append(os.getpid())

    def work() -> None:
        assert told == [os.getpid()]

    assert in_fork(work) == 0
    assert told == []


@pytest.mark.slow
def test_a_writer_that_nobody_holds_is_not_kept_for_the_next_fork(
    page: Page, in_fork: Callable[..., int]
) -> None:
    writer = Writer(page, "work.head")
    writer.on_forget = lambda: os._exit(3)
    assert in_fork(lambda: None) == 3
    del writer
    gc.collect()
    assert in_fork(lambda: None) == 0


def test_closing_ends_what_waits_and_what_comes_after_is_not_counted(page: Page) -> None:
    clock = FakeClock()
    writer = Writer(page, "work.head", clock.now_ns)
    writer.count()
    begun = writer.begin_wait()
    clock.advance(40)
    writer.close()
    clock.advance(1_000)
    writer.end_wait(begun)
    writer.count()
    with writer.waiting():
        clock.advance(7)
    counts = page.cells()[0].read(clock.now_ns())
    assert (counts.items, counts.blocked_ns, counts.blocked_events) == (1, 40, 1)
    assert counts.closed
    assert len(page.cells()) == 1


def test_a_closed_writer_stays_closed_in_a_forked_process(
    page: Page, head: Writer, in_fork: Callable[..., int]
) -> None:
    head.on_forget = lambda: os._exit(3)
    head.close()
    assert in_fork(head.count) == 0
    assert page.cells() == ()


def test_a_program_goes_on_where_no_cell_can_be_had() -> None:
    with Page.create(cells=1) as page:
        writers = [Writer(page, name) for name in ("work.head", "work.tail")]
        for each in writers:
            each.count()
            with each.waiting():
                pass
        assert [each.name for each in page.cells()] == ["work.head"]
    late = Writer(page, "work.head")
    late.count()


def test_sent_to_another_process_it_claims_anew(
    page: Page, head: Writer, sent: Callable[[Any], Any]
) -> None:
    head.count()
    sent(head).count()
    assert [each.name for each in page.cells()] == ["work.head"] * 2


def test_why_nothing_is_counted_is_told_and_forgotten_by_a_forked_process(
    in_fork: Callable[..., int],
) -> None:
    with Page.create(cells=1) as page:
        first, second = (Writer(page, name) for name in ("work.head", "work.tail"))
        first.count()
        assert (first.failure, second.failure) == (None, None)
        second.count()
        assert first.failure is None
        assert "all in use" in str(second.failure)

        def work() -> None:
            assert second.failure is None
            second.count()
            assert "all in use" in str(second.failure)

        assert in_fork(work) == 0


def test_a_process_forked_while_another_thread_claims_claims_for_itself(
    page: Page, head: Writer, monkeypatch: pytest.MonkeyPatch, fork: Callable[..., BaseProcess]
) -> None:
    claiming, forked = threading.Event(), threading.Event()
    own, parent = Cell.own, os.getpid()

    def own_slowly(cell: Cell, thread: int | None) -> None:
        if os.getpid() == parent:
            claiming.set()
            forked.wait(20.0)
        own(cell, thread)

    monkeypatch.setattr(Cell, "own", own_slowly)
    thread = threading.Thread(target=head.count)
    thread.start()
    assert claiming.wait(20.0)
    child = fork(head.count)
    forked.set()
    thread.join()
    child.join(20.0)
    assert child.exitcode == 0
    assert [(each.read().items, each.read().pid) for each in page.cells()] == [
        (1, parent),
        (1, child.pid),
    ]
