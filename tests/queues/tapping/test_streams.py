"""Sockets and streams: bytes as they are, in every mode, and waits only where they had to."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.queues.sockets import connected

MUCH = bytes(range(256)) * 16_384
LONG_S = 120.0
MODES = [None, LONG_S, 0.0]
When = Callable[[Callable[[], object]], None]
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture(params=["plain", "encrypted"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    ours, theirs = connected(encrypted=request.param == "encrypted")
    theirs.settimeout(LONG_S)
    with ours, theirs:
        yield ours, theirs


plain = pytest.mark.parametrize("pair", ["plain"], indirect=True)


def all_of(source: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size and (piece := source.recv(size)):
        found += piece
    return bytes(found)


@pytest.mark.parametrize(
    ("timeout_s", "way"), [(None, "send"), (None, "sendall"), (LONG_S, "sendall")]
)
def test_all_of_what_does_not_fit_arrives_once_and_its_wait_is_seen(
    work: Any, pair: Pair, when_waiting: When, timeout_s: float | None, way: str
) -> None:
    ours, theirs = pair
    ours.settimeout(timeout_s)
    tapped, out = work.tap(ours), list[bytes]()
    when_waiting(lambda: out.append(all_of(theirs, len(MUCH))))
    assert getattr(tapped, way)(MUCH) == (len(MUCH) if way == "send" else None)
    while not out:
        time.sleep(0.001)
    assert out == [MUCH]
    found = work.ends["tail"]
    assert (found.items, found.bytes, found.waiting) == (1, len(MUCH), 0)
    assert found.blocked_ns >= 20_000_000


@pytest.mark.parametrize("timeout_s", MODES)
def test_what_is_there_or_fits_does_not_wait(
    work: Any, pair: Pair, timeout_s: float | None
) -> None:
    ours, theirs = pair
    ours.settimeout(timeout_s)
    tapped = work.tap(ours)
    pieces = [b"one", MUCH[:40_000], memoryview(b""), b"two"]
    for each in pieces:
        tapped.sendall(each)
    assert tapped.send(b"three") == 5
    assert all_of(theirs, 40_011) == b"".join(pieces) + b"three"
    theirs.sendall(b"fourfivesix")
    buffer = bytearray(9)
    assert (tapped.recv(4), tapped.recv_into(buffer, 4), tapped.recv_into(buffer)) == (
        b"four",
        4,
        3,
    )
    assert buffer[:4] == b"sixe"
    assert work.items == {"tail": 4, "head": 3}
    assert work.told("bytes") == {"tail": 40_011, "head": 11}
    assert work.told("blocked_events") == {"tail": 0, "head": 0}


@plain
def test_flags_mean_what_they_did(work: Any, pair: Pair) -> None:
    ours, theirs = pair
    tapped = work.tap(ours)
    with pytest.raises(BlockingIOError):
        tapped.recv(1, socket.MSG_DONTWAIT)
    theirs.send(b"one")
    assert tapped.recv(9, socket.MSG_PEEK) == b"one"
    assert work.items == {}
    timer = threading.Timer(0.02, theirs.send, (b"two",))
    timer.start()
    assert tapped.recv(6, socket.MSG_WAITALL) == b"onetwo"
    timer.join()
    assert work.items == {"head": 1}
    with pytest.raises(BlockingIOError):
        [tapped.send(MUCH, socket.MSG_DONTWAIT) for _ in range(99)]
    assert work.ends["tail"].blocked_events == 0


def test_the_end_of_the_stream_is_no_item(work: Any, pair: Pair) -> None:
    ours, theirs = pair
    tapped = work.tap(ours)
    unwrap = getattr(theirs, "unwrap", lambda: theirs)
    closing = threading.Thread(target=lambda: unwrap().close())
    closing.start()
    assert tapped.recv(9) == b""
    assert not any(work.items.values())
    if hasattr(tapped, "unwrap"):
        tapped.unwrap().close()
    closing.join()


def test_a_connection_that_breaks_while_the_rest_is_sent_is_told_the_next_time(
    work: Any, pair: Pair, when_waiting: When
) -> None:
    ours, theirs = pair
    tapped = work.tap(ours)
    when_waiting(theirs.close)
    sent = tapped.send(MUCH)
    assert 0 < sent < len(MUCH)
    assert (work.ends["tail"].bytes, work.waiting["tail"]) == (sent, 0)
    for use in (tapped.send, tapped.sendall):
        with pytest.raises(OSError):  # noqa: PT011  # which one depends on how far it came
            use(MUCH)


class InFragments(socket.socket):
    """Sends a fragment at a time, as encryption does that agreed upon short ones."""

    def pending(self) -> int:
        return 0

    def send(self, data: Any, flags: int = 0) -> int:
        return super().send(memoryview(data)[:512], flags)


@pytest.mark.parametrize("flags", [0, socket.MSG_DONTWAIT])
def test_bytes_arrive_in_order_from_a_source_that_sends_a_part_of_each_piece(
    work: Any, flags: int
) -> None:
    ours, theirs = socket.socketpair()
    content, sent = bytes(each // 256 % 251 for each in range(50_000)), 0
    with InFragments(fileno=ours.detach()) as source, theirs:
        tapped = work.tap(source)
        while sent < len(content):
            sent += tapped.send(content[sent:], flags)
        assert all_of(theirs, sent) == content
    assert work.told("bytes") == {"tail": sent}


@plain
def test_the_rest_of_the_socket_is_there(work: Any, pair: Pair) -> None:
    ours, theirs = pair
    with work.tap(ours) as tapped:
        assert tapped.fileno() == ours.fileno()
        tapped.settimeout(2.0)
        assert ours.gettimeout() == 2.0
        with tapped.makefile("rwb") as file:
            file.write(b"one\n")
            file.flush()
            assert theirs.recv(9) == b"one\n"
            theirs.sendall(b"two\n")
            assert file.readline() == b"two\n"
        assert work.items == {}
    assert ours.fileno() == -1
    with pytest.raises(OSError, match="descriptor"):
        tapped.recv(1)


NONE = np.ones((0, 3))
SENDABLE = [array("d", [1, 2]), np.ones((2, 3)), np.ones(2, complex), np.ones(2, ">f8"), NONE]


@plain
@pytest.mark.parametrize("data", SENDABLE, ids=range(5))
@pytest.mark.parametrize("way", ["send", "sendall"])
def test_whatever_can_be_sent_as_bytes_is(work: Any, pair: Pair, data: Any, way: str) -> None:
    ours, theirs = pair
    size = memoryview(data).nbytes
    for each in (ours, work.tap(ours)):
        assert getattr(each, way)(data) == (size if way == "send" else None)
        assert all_of(theirs, size) == bytes(data)


def fed(content: bytes, *, limit: int = 99, ended: bool = True) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=limit)
    reader.feed_data(content)
    if ended:
        reader.feed_eof()
    return reader


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (lambda reader: reader.read(3), b"one"),
        (lambda reader: reader.read(), b"one\ntwo\n"),
        (lambda reader: reader.readline(), b"one\n"),
        (lambda reader: reader.readexactly(5), b"one\nt"),
        (lambda reader: reader.readuntil(b"w"), b"one\ntw"),
        (lambda reader: reader.readuntil(separator=b"n"), b"on"),
    ],
    ids=["read", "read all", "readline", "readexactly", "readuntil", "separator"],
)
def test_each_way_to_read_a_stream_counts_its_bytes(
    work: Any, read: Callable[[Any], Awaitable[bytes]], found: bytes
) -> None:
    async def main() -> bytes:
        return await read(work.tap(fed(b"one\ntwo\n")))

    assert asyncio.run(main()) == found
    assert (work.items, work.told("bytes")) == ({"head": 1}, {"head": len(found)})
    assert work.told("blocked_events") == {"head": 0}


def test_what_ends_too_early_is_said_as_before_and_what_is_stopped_leaves_what_came(
    work: Any,
) -> None:
    async def main() -> bytes:
        for name, wanted in (("readexactly", 5), ("readuntil", b"x")):
            with pytest.raises(asyncio.IncompleteReadError) as early:
                await getattr(work.tap(fed(b"one")), name)(wanted)
            assert early.value.partial == b"one"
        source = fed(b"on", limit=1, ended=False)
        reader = work.tap(source)
        with pytest.raises(asyncio.LimitOverrunError):
            await reader.readuntil(b"x")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readexactly(3), 0.001)
        source.feed_data(b"e")
        found: bytes = await reader.readexactly(3)
        return found

    assert asyncio.run(main()) == b"one"
    found = work.ends["head"]
    assert (found.items, found.bytes, found.blocked_events, found.waiting) == (1, 3, 1, 0)


def test_lines_are_iterated_over_and_the_end_is_no_item(work: Any) -> None:
    async def main() -> list[bytes]:
        reader = work.tap(fed(b"one\ntwo"))
        lines = [each async for each in reader]
        assert await reader.read() == b""
        assert reader.at_eof()
        return lines

    assert asyncio.run(main()) == [b"one\n", b"two"]
    assert (work.items, work.told("bytes")) == ({"head": 2}, {"head": 7})


def test_what_is_written_counts_and_draining_at_once_is_no_wait(work: Any) -> None:
    async def main() -> bytes:
        sender, receiver = socket.socketpair()
        _, source = await asyncio.open_connection(sock=sender)
        writer = work.tap(source)
        for each in (b"one", memoryview(b"two"), b""):
            writer.write(each)
        writer.writelines(each for each in (b"three", b"four"))
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        with receiver:
            return receiver.recv(99)

    assert asyncio.run(main()) == b"onetwothreefour"
    found = work.ends["tail"]
    assert (found.items, found.bytes, found.blocked_events) == (3, 15, 0)
