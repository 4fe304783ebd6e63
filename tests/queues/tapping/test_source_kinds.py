"""What can be tapped is told from what cannot, and nothing is imported to find out."""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
from enum import Enum
from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.source_kinds import tap_source


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize("source", [12, None, object(), len, 1.5])
def test_what_cannot_be_tapped_is_named_with_what_can(
    page: Page, head: Writer, tail: Writer, source: Any
) -> None:
    with pytest.raises(InvalidInput) as caught:
        tap_source(source, head, tail)
    message = str(caught.value)
    assert f"of type {type(source).__name__}" in message
    assert "expected a queue, an iterable, a socket" in message
    assert page.cells() == ()


@pytest.mark.parametrize(
    "source",
    [
        list,
        dict,
        queue.Queue,
        queue.SimpleQueue,
        queue.Queue[int],
        list[int],
        socket.socket,
        Colour,
    ],
)
def test_a_class_is_refused(page: Page, head: Writer, tail: Writer, source: Any) -> None:
    name = source.__qualname__
    with pytest.raises(InvalidInput) as caught:
        tap_source(source, head, tail)
    assert str(caught.value) == (
        f"source is the class {name}, expected an object of it, as {name}(...)"
    )


@pytest.mark.parametrize("source", ["work", "", b"", bytearray(b"work")])
def test_text_is_no_queue_unless_its_elements_are_asked_for(
    head: Writer, tail: Writer, source: Any
) -> None:
    with pytest.raises(
        InvalidInput, match=r"expected a queue, .*; to count its elements, tap iter"
    ):
        tap_source(source, head, tail)
    assert list(tap_source(iter(source), head, tail).queue) == list(source)


def test_one_coroutine_of_two_is_refused(head: Writer, tail: Writer) -> None:
    class Mixed:
        async def get(self) -> int:
            return 1

        def put(self, item: int) -> None:
            pass

    with pytest.raises(InvalidInput, match="one of get and put is a coroutine, expected both or"):
        tap_source(Mixed(), head, tail)


def test_a_dictionary_is_iterated_over_although_it_has_get(
    page: Page, head: Writer, tail: Writer
) -> None:
    assert list(tap_source({1: 2}, head, tail).queue) == [1]


@pytest.mark.parametrize(
    "source", ["queue.Queue()", "queue.SimpleQueue()", "iter('abc')", "[1, 2]"]
)
def test_tapping_imports_nothing_heavy(source: str) -> None:
    code = (
        "import queue, sys; from benchrigor.queues import Tap\n"
        f"tap = Tap({source}); tap.close()\n"
        "print(*sorted({'numpy', 'scipy', 'asyncio', 'multiprocessing', 'socket', 'ssl'}"
        " & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
