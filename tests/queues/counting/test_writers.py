"""What a process counts at an end, and in whose name."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from benchrigor.queues import Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.testing import FakeClock

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture
def head(page: Page) -> Writer:
    return Writer(page, "work.head")


def test_a_wait_claims_it_as_well(page: Page) -> None:
    clock = FakeClock(cost_ns=5)
    writer = Writer(page, "work.head", clock.now_ns)
    with writer.waiting():
        clock.advance(100)
        assert page.cells()[0].read(clock.now_ns()).waiting == 1
    counts = page.cells()[0].read(clock.now_ns())
    assert (counts.blocked_events, counts.waiting, counts.blocked_ns) == (1, 0, 110)


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


def test_sent_to_another_process_it_claims_anew(
    page: Page, head: Writer, sent: Callable[[Any], Any]
) -> None:
    head.count()
    sent(head).count()
    assert [each.name for each in page.cells()] == ["work.head"] * 2


def test_why_nothing_is_counted_is_told_and_forgotten_by_a_forked_process(
    in_fork: Callable[..., int], tmp_path: Path
) -> None:
    with Page.create(cells=1, path=tmp_path / "one.cells") as page:
        first, second = (Writer(page, name) for name in ("work.head", "work.tail"))
        first.count()
        assert (first.failure, second.failure) == (None, None)
        second.count()
        assert first.failure is None
        assert "one.cells" in str(second.failure)

        def work() -> None:
            assert second.failure is None
            second.count()
            assert "one.cells" in str(second.failure)

        assert in_fork(work) == 0


def test_a_process_forked_while_another_thread_claims_claims_for_itself(
    page: Page, head: Writer, monkeypatch: pytest.MonkeyPatch, fork: Callable[..., BaseProcess]
) -> None:
    claiming, forked = threading.Event(), threading.Event()
    kind = type(page.claim("other"))
    own, parent = kind.own, os.getpid()

    def own_slowly(cell: Any, thread: int | None) -> None:
        if os.getpid() == parent:
            claiming.set()
            forked.wait(20.0)
        own(cell, thread)

    monkeypatch.setattr(kind, "own", own_slowly)
    thread = threading.Thread(target=head.count)
    thread.start()
    assert claiming.wait(20.0)
    child = fork(head.count)
    forked.set()
    thread.join()
    child.join(20.0)
    assert child.exitcode == 0
    assert [(each.read().items, each.read().pid) for each in page.cells()[1:]] == [
        (1, parent),
        (1, child.pid),
    ]
