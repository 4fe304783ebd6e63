"""Streams of asyncio: bytes as they are, and waits only where a stream had to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from benchrigor.queues import Counts, Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.source_kinds import tap_source


def counts(page: Page, name: str) -> Counts:
    (cell,) = (each for each in page.cells() if each.name == f"work.{name}")
    return cell.read()


def fed(content: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(content)
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
def test_each_way_to_read_counts_its_bytes(
    page: Page,
    head: Writer,
    tail: Writer,
    read: Callable[[Any], Awaitable[bytes]],
    found: bytes,
) -> None:
    async def main() -> bytes:
        return await read(tap_source(fed(b"one\ntwo\n"), head, tail).queue)

    assert asyncio.run(main()) == found
    assert (counts(page, "head").items, counts(page, "head").bytes) == (1, len(found))
    assert counts(page, "head").blocked_events == 0


def test_lines_are_iterated_over(page: Page, head: Writer, tail: Writer) -> None:
    async def main() -> list[bytes]:
        return [each async for each in tap_source(fed(b"one\ntwo"), head, tail).queue]

    assert asyncio.run(main()) == [b"one\n", b"two"]
    assert (counts(page, "head").items, counts(page, "head").bytes) == (2, 7)


def test_the_end_is_no_item_and_what_is_missing_is_said(
    page: Page, head: Writer, tail: Writer
) -> None:
    async def main() -> None:
        reader = tap_source(fed(b"one"), head, tail).queue
        with pytest.raises(asyncio.IncompleteReadError):
            await reader.readexactly(5)
        assert await reader.read() == b""
        assert reader.at_eof()

    asyncio.run(main())
    assert page.cells() == ()


def test_what_ends_too_early_or_is_too_long_is_said_as_before(
    page: Page, head: Writer, tail: Writer
) -> None:
    async def main() -> list[tuple[type[BaseException], object]]:
        found = []
        for wrap in (lambda source: source, lambda source: tap_source(source, head, tail).queue):
            for read in (
                lambda reader: reader.readexactly(5),
                lambda reader: reader.readuntil(b"x"),
            ):
                with pytest.raises(asyncio.IncompleteReadError) as early:
                    await read(wrap(fed(b"one")))
                found.append((early.type, early.value.partial))
            narrow = asyncio.StreamReader(limit=4)
            narrow.feed_data(b"one two\n")
            with pytest.raises(asyncio.LimitOverrunError) as long:
                await wrap(narrow).readuntil(b"\n")
            assert await wrap(narrow).readexactly(8) == b"one two\n"
            found.append((long.type, long.value.consumed))
        return found

    found = asyncio.run(main())
    assert found[:3] == found[3:]
    assert (counts(page, "head").items, counts(page, "head").bytes) == (1, 8)


def test_a_reader_that_is_stopped_leaves_what_came(page: Page, head: Writer, tail: Writer) -> None:
    async def main() -> bytes:
        source = asyncio.StreamReader()
        reader = tap_source(source, head, tail).queue
        source.feed_data(b"on")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await reader.readexactly(3)
        source.feed_data(b"e")
        found: bytes = await reader.readexactly(3)
        return found

    assert asyncio.run(main()) == b"one"
    found = counts(page, "head")
    assert (found.items, found.bytes, found.blocked_events, found.waiting) == (1, 3, 1, 0)


def test_what_is_written_counts_and_draining_at_once_is_no_wait(
    page: Page, head: Writer, tail: Writer
) -> None:
    async def main() -> bytes:
        sender, receiver = socket.socketpair()
        _, source = await asyncio.open_connection(sock=sender)
        writer = tap_source(source, head, tail).queue
        writer.write(b"one")
        writer.write(memoryview(b"two"))
        writer.write(b"")
        writer.writelines(each for each in (b"three", b"four"))
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        with receiver:
            return receiver.recv(99)

    assert asyncio.run(main()) == b"onetwothreefour"
    found = counts(page, "tail")
    assert (found.items, found.bytes, found.blocked_events) == (3, 15, 0)
