"""Sockets with encryption: real ones, which need no certificate, in every mode as they were."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchrigor.queues import Counts, Page
from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.source_kinds import tap_source

MUCH = bytes(range(256)) * 16_384
LONG_S = 120.0
When = Callable[[Callable[[], object]], None]
Pair = tuple[ssl.SSLSocket, ssl.SSLSocket]


def context(protocol: int) -> ssl.SSLContext:
    made = ssl.SSLContext(protocol)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("AECDH-AES128-SHA:@SECLEVEL=0")
    return made


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(LONG_S)
    made: list[ssl.SSLSocket] = []

    def answer() -> None:
        server = context(ssl.PROTOCOL_TLS_SERVER)
        made.append(server.wrap_socket(theirs, server_side=True))

    thread = threading.Thread(target=answer)
    thread.start()
    client = context(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(ours)
    thread.join()
    with client, made[0]:
        yield client, made[0]


def counts(page: Page, name: str) -> Counts:
    (cell,) = (each for each in page.cells() if each.name == f"work.{name}")
    return cell.read()


def all_of(source: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size and (piece := source.recv(size)):
        found += piece
    return bytes(found)


@pytest.mark.parametrize(
    ("timeout_s", "way"), [(None, "send"), (None, "sendall"), (LONG_S, "sendall")]
)
def test_all_of_what_does_not_fit_arrives_once_and_its_wait_is_seen(
    page: Page,
    head: Writer,
    tail: Writer,
    pair: Pair,
    when_waiting: When,
    *,
    timeout_s: float | None,
    way: str,
) -> None:
    ours, theirs = pair
    ours.settimeout(timeout_s)
    tapped = tap_source(ours, head, tail).queue
    out: list[bytes] = []
    when_waiting(lambda: out.append(all_of(theirs, len(MUCH))))
    assert getattr(tapped, way)(MUCH) == (len(MUCH) if way == "send" else None)
    while not out:
        time.sleep(0.001)
    assert out == [MUCH]
    found = counts(page, "tail")
    assert (found.items, found.bytes, found.waiting) == (1, len(MUCH), 0)
    assert found.blocked_ns >= 20_000_000


@pytest.mark.parametrize("timeout_s", [None, LONG_S, 0.0])
def test_what_fits_does_not_wait(
    page: Page, head: Writer, tail: Writer, pair: Pair, timeout_s: float | None
) -> None:
    ours, theirs = pair
    ours.settimeout(timeout_s)
    tapped = tap_source(ours, head, tail).queue
    pieces = [b"one", MUCH[:40_000], b"", b"two"]
    for each in pieces:
        tapped.sendall(each)
    assert tapped.send(b"three") == 5
    sent = b"".join(pieces) + b"three"
    assert all_of(theirs, len(sent)) == sent
    theirs.sendall(b"four")
    assert tapped.recv(2) == b"fo"
    buffer = bytearray(9)
    assert (tapped.recv_into(buffer), bytes(buffer[:2])) == (2, b"ur")
    for name, items, size in (("tail", 4, len(sent)), ("head", 2, 4)):
        found = counts(page, name)
        assert (found.items, found.bytes, found.blocked_events) == (items, size, 0)


def test_who_would_not_wait_is_told_at_once(head: Writer, tail: Writer, pair: Pair) -> None:
    ours, _ = pair
    ours.setblocking(False)
    tapped = tap_source(ours, head, tail).queue
    with pytest.raises(ssl.SSLWantReadError):
        tapped.recv(9)
    with pytest.raises(ssl.SSLWantWriteError):
        tapped.sendall(MUCH)


def test_flags_are_refused_as_before(head: Writer, tail: Writer, pair: Pair) -> None:
    tapped = tap_source(pair[0], head, tail).queue
    for use in (
        lambda: tapped.recv(1, socket.MSG_PEEK),
        lambda: tapped.send(b"item", socket.MSG_DONTWAIT),
        lambda: tapped.sendall(b"item", socket.MSG_DONTWAIT),
    ):
        with pytest.raises(ValueError, match="non-zero flags not allowed"):
            use()


def test_a_connection_that_breaks_while_much_is_sent_is_told(
    page: Page, head: Writer, tail: Writer, pair: Pair, when_waiting: When
) -> None:
    ours, theirs = pair
    tapped = tap_source(ours, head, tail).queue
    when_waiting(theirs.close)
    sent = tapped.send(MUCH)
    assert 0 < sent < len(MUCH)
    found = counts(page, "tail")
    assert (found.bytes, found.waiting) == (sent, 0)
    for use in (tapped.send, tapped.sendall):
        with pytest.raises(OSError):  # noqa: PT011  # which one depends on how far it came
            use(MUCH)


def test_the_end_of_the_stream_is_no_item(
    page: Page, head: Writer, tail: Writer, pair: Pair
) -> None:
    ours, theirs = pair
    closing = threading.Thread(target=lambda: theirs.unwrap().close())
    closing.start()
    tapped: Any = tap_source(ours, head, tail).queue
    assert tapped.recv(9) == b""
    assert all(each.read().items == 0 for each in page.cells())
    tapped.unwrap().close()
    closing.join()
