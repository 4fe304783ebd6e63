"""A queue that is copied by a fork counts apart from its parent's."""

from __future__ import annotations

import os
import queue

import pytest

from benchrigor.queues import Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.override_points import OverridePoints

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def test_a_forked_copy_of_the_queue_is_counted_in_cells_of_its_own(
    page: Page, head: Writer, tail: Writer
) -> None:
    source: queue.Queue[int] = queue.Queue()
    OverridePoints(source, head, tail)
    for each in range(5):
        source.put(each)
    source.get()
    pid = os.fork()
    if not pid:
        source.put(7)
        os._exit(source.get())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    source.put(8)
    found = [(each.name, each.read().items, each.read().pid) for each in page.cells()]
    ours = os.getpid()
    assert found == [
        ("work.tail", 6, ours),
        ("work.head", 1, ours),
        ("work.tail", 1, pid),
        ("work.head", 1, pid),
    ]


def test_a_released_queue_stays_released_in_a_forked_process(
    page: Page, head: Writer, tail: Writer
) -> None:
    source: queue.Queue[int] = queue.Queue()
    points = OverridePoints(source, head, tail)
    points.release()
    for each in (head, tail):
        each.close()
    pid = os.fork()
    if not pid:
        os._exit(len(vars(source).keys() & {"_get", "_put"}))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
