"""Methods set on one object; a queue that a fork copies counts apart from its parent's."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable
from multiprocessing.process import BaseProcess

import pytest

from benchrigor.queues import Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.hooks import Patches, count_items, is_own

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


class Stage:
    limit = 3

    def name(self) -> str:
        return "reduce"


def test_patches_are_of_one_object_and_can_be_undone() -> None:
    stage, other = Stage(), Stage()
    patches = Patches()
    patches.set(stage, "name", lambda: "map")
    patches.set(stage, "name", lambda: "filter")
    assert (stage.name(), other.name()) == ("filter", "reduce")
    patches.undo()
    assert stage.name() == "reduce"
    assert "name" not in vars(stage)
    patches.undo()


def test_what_was_set_before_comes_back() -> None:
    stage = Stage()
    stage.name = lambda: "mine"  # type: ignore[method-assign]
    patches = Patches()
    patches.set(stage, "name", lambda: "map")
    patches.undo()
    assert stage.name() == "mine"


def test_a_method_of_the_class_is_told_from_one_of_the_object() -> None:
    stage = Stage()
    assert not is_own(stage, "name")
    stage.name = Stage().name  # type: ignore[method-assign]
    assert is_own(stage, "name")


def test_a_forked_copy_of_the_queue_is_counted_in_cells_of_its_own(
    page: Page, head: Writer, tail: Writer, fork: Callable[..., BaseProcess]
) -> None:
    source: queue.Queue[int] = queue.Queue()
    count_items(source, head, tail, Patches())
    for each in range(5):
        source.put(each)
    source.get()

    def work() -> None:
        source.put(7)
        os._exit(source.get())

    child = fork(work)
    child.join(20.0)
    assert child.exitcode == 1
    source.put(8)
    found = [(each.name, each.read().items, each.read().pid) for each in page.cells()]
    ours = os.getpid()
    assert found == [
        ("work.tail", 6, ours),
        ("work.head", 1, ours),
        ("work.tail", 1, child.pid),
        ("work.head", 1, child.pid),
    ]


def test_a_released_queue_stays_released_in_a_forked_process(
    page: Page, head: Writer, tail: Writer, in_fork: Callable[..., int]
) -> None:
    source: queue.Queue[int] = queue.Queue()
    patches = Patches()
    count_items(source, head, tail, patches)
    patches.undo()
    for each in (head, tail):
        each.close()
    assert in_fork(lambda: os._exit(len(vars(source).keys() & {"_get", "_put"}))) == 0
