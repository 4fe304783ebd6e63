"""Sockets: asked not to wait, or looked at first, and in every mode as they were."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from benchrigor.queues import Counts, Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.source_kinds import tap_source

MUCH = bytes(range(256)) * 4_096
When = Callable[[Callable[[], object]], None]
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def counts(page: Page, name: str) -> Counts:
    (cell,) = (each for each in page.cells() if each.name == f"work.{name}")
    return cell.read()


def all_of(source: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        found += source.recv(size)
    return bytes(found)


@pytest.mark.parametrize("timeout_s", [None, 30.0])
@pytest.mark.parametrize("way", ["send", "sendall"])
def test_all_of_what_does_not_fit_arrives_once(
    page: Page, pair: Pair, when_waiting: When, timeout_s: float | None, way: str
) -> None:
    ours, theirs = pair
    ours.settimeout(timeout_s)
    tapped = tap_source(ours, Writer(page, "work.head"), Writer(page, "work.tail")).queue
    out: list[bytes] = []
    when_waiting(lambda: out.append(all_of(theirs, len(MUCH))))
    if way == "sendall":
        assert tapped.sendall(MUCH) is None
    else:
        sent = 0
        while sent < len(MUCH):
            sent += tapped.send(MUCH[sent:])
    while not out:
        time.sleep(0.001)
    assert out == [MUCH]
    found = counts(page, "tail")
    assert found.bytes == len(MUCH)
    assert found.blocked_ns >= 20_000_000
    if way == "sendall" or timeout_s is None:
        assert found.items == 1


@pytest.mark.parametrize("timeout_s", [None, 30.0, 0.0])
def test_a_socket_that_has_data_and_room_does_not_wait(
    page: Page, head: Writer, tail: Writer, pair: Pair, timeout_s: float | None
) -> None:
    ours, theirs = pair
    ours.settimeout(timeout_s)
    tapped = tap_source(ours, head, tail).queue
    theirs.sendall(b"onetwothree")
    assert tapped.recv(3) == b"one"
    buffer = bytearray(9)
    assert tapped.recv_into(buffer, 3) == 3
    assert buffer[:3] == b"two"
    assert tapped.recv_into(memoryview(buffer)[4:]) == 5
    assert tapped.send(b"four") == 4
    tapped.sendall(memoryview(b"five"))
    tapped.sendall(b"")
    assert theirs.recv(99) == b"fourfive"
    of_head, of_tail = counts(page, "head"), counts(page, "tail")
    assert (of_head.items, of_head.bytes, of_head.blocked_events) == (3, 11, 0)
    assert (of_tail.items, of_tail.bytes, of_tail.blocked_events) == (2, 8, 0)


def test_who_asks_not_to_wait_is_told_at_once(
    page: Page, head: Writer, tail: Writer, pair: Pair
) -> None:
    tapped = tap_source(pair[0], head, tail).queue
    with pytest.raises(BlockingIOError):
        tapped.recv(1, socket.MSG_DONTWAIT)
    while True:
        try:
            tapped.send(MUCH, socket.MSG_DONTWAIT)
        except BlockingIOError:
            break
    assert counts(page, "tail").blocked_events == 0
    assert len(page.cells()) == 1


def test_what_is_peeked_at_is_no_item(page: Page, head: Writer, tail: Writer, pair: Pair) -> None:
    ours, theirs = pair
    tapped = tap_source(ours, head, tail).queue
    theirs.send(b"item")
    assert tapped.recv(9, socket.MSG_PEEK) == b"item"
    assert page.cells() == ()
    assert tapped.recv(9) == b"item"
    assert counts(page, "head").items == 1


def test_who_wants_all_gets_all(page: Page, head: Writer, tail: Writer, pair: Pair) -> None:
    ours, theirs = pair
    tapped = tap_source(ours, head, tail).queue
    theirs.send(b"one")
    timer = threading.Timer(0.02, theirs.send, (b"two",))
    timer.start()
    assert tapped.recv(6, socket.MSG_WAITALL) == b"onetwo"
    timer.join()


def test_the_end_of_the_stream_is_no_item(
    page: Page, head: Writer, tail: Writer, pair: Pair
) -> None:
    ours, theirs = pair
    theirs.close()
    assert tap_source(ours, head, tail).queue.recv(9) == b""
    assert page.cells() == ()


def test_a_connection_that_breaks_while_the_rest_is_sent_is_told_the_next_time(
    page: Page, head: Writer, tail: Writer, pair: Pair, when_waiting: When
) -> None:
    ours, theirs = pair
    tapped = tap_source(ours, head, tail).queue
    when_waiting(theirs.close)
    sent = tapped.send(MUCH)
    assert 0 < sent < len(MUCH)
    assert counts(page, "tail").bytes == sent
    with pytest.raises(BrokenPipeError):
        tapped.send(b"more")
    assert counts(page, "tail").waiting == 0


class Encrypted(socket.socket):
    """Has bytes of its own, and takes no flags, as sockets with encryption do."""

    held = 0

    def pending(self) -> int:
        return self.held

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        assert not flags
        if self.held:
            return bytes(self.held)
        return super().recv(bufsize)

    def send(self, data: Any, flags: int = 0) -> int:  # type: ignore[override]
        assert not flags
        return super().send(data)


def test_a_socket_with_encryption_is_looked_at(
    page: Page, head: Writer, tail: Writer, pair: Pair, when_waiting: When
) -> None:
    ours, theirs = pair
    source = Encrypted(fileno=ours.detach())
    with source:
        tapped = tap_source(source, head, tail).queue
        source.held = 3
        assert tapped.recv(9) == bytes(3)
        source.held = 0
        assert tapped.send(b"item") == 4
        assert counts(page, "head").blocked_events == 0
        assert counts(page, "tail").blocked_events == 0
        when_waiting(lambda: theirs.send(b"item"))
        assert tapped.recv(9) == b"item"
    assert counts(page, "head").blocked_events == 1


def test_the_rest_of_the_socket_is_there(head: Writer, tail: Writer, pair: Pair) -> None:
    ours, _ = pair
    with tap_source(ours, head, tail).queue as tapped:
        assert tapped.fileno() == ours.fileno()
        tapped.settimeout(2.0)
        assert ours.gettimeout() == 2.0
    assert ours.fileno() == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        tapped.recv(1)


@pytest.mark.parametrize(
    "data",
    [
        array("d", [1.0, 2.0]),
        np.ones((2, 3)),
        np.ones(2, complex),
        np.ones(2, ">f8"),
        np.ones((0, 3)),
    ],
    ids=["array", "matrix", "complex", "swapped", "none"],
)
@pytest.mark.parametrize("way", ["send", "sendall"])
def test_whatever_can_be_sent_as_bytes_is(
    head: Writer, tail: Writer, pair: Pair, data: Any, way: str
) -> None:
    ours, theirs = pair
    size = memoryview(data).nbytes
    for each in (ours, tap_source(ours, head, tail).queue):
        assert getattr(each, way)(data) == (size if way == "send" else None)
        assert all_of(theirs, size) == bytes(data)


@pytest.mark.parametrize("data", ["text", None, 3, memoryview(b"item")[::2]])
@pytest.mark.parametrize("way", ["send", "sendall"])
def test_what_cannot_be_sent_is_refused_as_before(
    head: Writer, tail: Writer, pair: Pair, data: Any, way: str
) -> None:
    errors = []
    for each in (pair[0], tap_source(pair[0], head, tail).queue):
        with pytest.raises((TypeError, BufferError)) as caught:
            getattr(each, way)(data)
        errors.append(caught.type)
    assert errors[0] is errors[1]


def test_a_time_limit_that_runs_out_is_told_and_its_wait_counted(
    page: Page, head: Writer, tail: Writer, pair: Pair
) -> None:
    ours, theirs = pair
    ours.settimeout(0.02)
    tapped = tap_source(ours, head, tail).queue
    with pytest.raises(TimeoutError):
        tapped.recv(9)
    with pytest.raises(TimeoutError):
        tapped.sendall(MUCH)
    for name in ("head", "tail"):
        found = counts(page, name)
        assert (found.items, found.blocked_events, found.waiting) == (0, 1, 0)
        assert 15_000_000 <= found.blocked_ns < 10_000_000_000
    theirs.close()


def test_files_made_of_it_read_and_write_uncounted(
    page: Page, head: Writer, tail: Writer, pair: Pair
) -> None:
    ours, theirs = pair
    tapped = tap_source(ours, head, tail).queue
    with tapped.makefile("rwb") as file:
        file.write(b"one\n")
        file.flush()
        assert theirs.recv(9) == b"one\n"
        theirs.sendall(b"two\n")
        assert file.readline() == b"two\n"
    assert page.cells() == ()


def test_a_loop_of_asyncio_may_use_it(page: Page, head: Writer, tail: Writer, pair: Pair) -> None:
    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(tapped, b"item")
        theirs.sendall(b"other")
        return await loop.sock_recv(tapped, 9)

    ours, theirs = pair
    ours.setblocking(False)
    tapped = tap_source(ours, head, tail).queue
    assert asyncio.run(main()) == b"other"
    assert theirs.recv(9) == b"item"
    assert (counts(page, "head").bytes, counts(page, "tail").bytes) == (5, 4)
