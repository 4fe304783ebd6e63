"""Files opened and garbage collected."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.instrument.segment_profiles.interpreter_counters import (
    Collections,
    count_opens,
    forget_opens,
)


@pytest.fixture
def opens() -> Iterator[list[int]]:
    count = count_opens()
    yield count
    forget_opens(count)


def touch() -> None:
    os.close(os.open(os.devnull, os.O_RDONLY))


def test_opens_of_this_thread_count_in_whichever_way(opens) -> None:
    touch()
    with open(os.devnull):  # noqa: PTH123
        pass
    with pytest.raises(FileNotFoundError):
        open("/nowhere/at/all")  # noqa: PTH123, SIM115
    assert opens == [3]


def test_opens_of_others_do_not(opens) -> None:
    thread = threading.Thread(target=touch)
    thread.start()
    thread.join()
    assert opens == [0]


def test_nothing_counts_any_more_once_forgotten() -> None:
    opens = count_opens()
    thread = threading.Thread(target=forget_opens, args=(opens,))
    thread.start()
    thread.join()
    touch()
    assert opens == [0]


def test_a_thread_is_counted_by_one_recorder(opens) -> None:
    with pytest.raises(InvalidInput, match="recorded already"):
        count_opens()


def test_collections_are_counted_by_generation() -> None:
    gc.disable()
    try:
        counted = Collections()
        counted.start()
        for generation in (0, 1, 1, 2):
            gc.collect(generation)
        counted.stop()
        gc.collect()
    finally:
        gc.enable()
    assert (counted.young, counted.full) == (3, 1)
    assert not any(getattr(each, "__self__", None) is counted for each in gc.callbacks)


def test_a_program_may_clear_the_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "callbacks", [])
    counted = Collections()
    counted.start()
    gc.callbacks.clear()
    counted.stop()
    assert gc.callbacks == []
