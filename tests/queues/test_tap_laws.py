"""Laws of a tap, over every kind of source that can be tapped.

Each kind is played twice, as it is and tapped: what comes out and what is raised must be the same,
and what was counted must be what passed.
"""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import queue
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.queues.sockets import connected

from benchrigor.queues import Counts, Tap

ITEMS = [f"item {index:02}".encode() for index in range(40)]
DELAY_S, DELAY_NS = 0.05, 50_000_000
SOON_S, LATE_S = 0.02, 30.0
MUCH = bytes(1 << 20)

Wrap = Callable[[Any], Any]
Ends = tuple[Callable[[Any], object], Callable[[int], Any]]
"""What puts an item in, and what takes one out, of so many bytes."""
Attempts = list[Callable[[], object]]


def raised(call: Callable[..., object], *given: object) -> str:
    try:
        call(*given)
    except BaseException as error:  # noqa: BLE001  # whatever it is
        return type(error).__name__
    return ""


def beside(*calls: Callable[[], object]) -> threading.Thread:
    """Call something in another thread."""
    thread = threading.Thread(target=lambda: [each() for each in calls])
    thread.start()
    return thread


class Played:
    """A kind of source, as the laws play it: anything with ``get`` and ``put``."""

    def __init__(
        self,
        make: Callable[[Any], Any],
        *,
        in_order: bool = True,
        has_queue: bool = True,
        counts_bytes: bool = False,
        grows: bool = False,
        too_much: list[bytes] | None = None,
    ) -> None:
        self.make = make
        self.grows = grows  # whether its bound can be moved
        self.in_order = in_order  # whether items keep their order while both ends are busy
        self.counts_bytes = counts_bytes  # whether it does so by itself
        self.has_queue = has_queue  # whether items can lie between the ends
        self.too_much = (
            [b"item"] * 2 if too_much is None else too_much
        )  # so that its producer waits

    @contextmanager
    def ends(self, wrap: Wrap, size: int) -> Iterator[Ends]:
        """Return both ends of a source that takes so many items; 0 for any number."""
        tapped = wrap(self.make(size))
        yield tapped.put, lambda _: tapped.get()

    def attempts(self, tapped: Any, source: Any) -> Attempts:
        """Return what fails, one after the other."""
        full = [lambda: tapped.put(b"item"), lambda: self.settle(source)]
        full += [lambda: tapped.put_nowait(b"item"), lambda: tapped.put(b"item", timeout=SOON_S)]
        full += [lambda: tapped.put(b"item", True, 0), lambda: tapped.put(b"item", True, -1)]
        return [
            tapped.get_nowait,
            lambda: tapped.get(False),
            lambda: tapped.get(timeout=SOON_S),
            lambda: tapped.get(True, 0),
            lambda: tapped.get(True, -5.0),
            lambda: tapped.get(1, 2, 3),
            *(full if self.too_much else []),
        ]

    def settle(self, source: Any) -> None:
        """Return when what was put in can be taken out."""

    def passing(self, wrap: Wrap) -> list[Any]:
        """Put all items in, then take all out; return them."""
        with self.ends(wrap, 0) as (put, get):
            for each in ITEMS:
                put(each)
            return [get(len(each)) for each in ITEMS]

    def streaming(self, wrap: Wrap) -> list[Any]:
        """Put items in at one end while they are taken out at the other; return them."""
        with self.ends(wrap, 3) as (put, get):
            producer = beside(*(functools.partial(put, each) for each in ITEMS))
            out = [get(len(each)) for each in ITEMS]
            producer.join()
        return out

    def starving(self, wrap: Wrap, probe: Callable[[], object]) -> None:
        """Let the consumer wait for an item until `probe` returns."""
        with self.ends(wrap, 3) as (put, get):
            thread = beside(probe, lambda: put(b"item"))
            assert get(4) == b"item"
            thread.join()

    def stuffing(self, wrap: Wrap, probe: Callable[[], object]) -> None:
        """Let the producer wait for room until `probe` returns."""
        with self.ends(wrap, 1) as (put, get):
            thread = beside(probe, *(functools.partial(get, len(each)) for each in self.too_much))
            for each in self.too_much:
                put(each)
            thread.join()

    def refusing(self, wrap: Wrap) -> list[str]:
        """Do what fails; return what was raised."""
        source = self.make(1)
        return [raised(each) for each in self.attempts(wrap(source), source)]


class Fed(Played):
    """A queue of `multiprocessing`, whose feeder thread takes its time."""

    def settle(self, source: Any) -> None:
        assert source._reader.poll(10.0)  # noqa: SLF001  # of the standard library

    @contextmanager
    def ends(self, wrap: Wrap, size: int) -> Iterator[Ends]:
        source = self.make(size)
        tapped = wrap(source)

        def get(_: int) -> Any:
            if not size:
                self.settle(source)
            return tapped.get()

        yield tapped.put, get

    def attempts(self, tapped: Any, source: Any) -> Attempts:
        found = [*super().attempts(tapped, source), tapped.get, lambda: tapped.get(timeout=1e8)]
        return [*found, tapped.close, tapped.get, tapped.get_nowait, lambda: tapped.put(1)]


class Piped(Played):
    """A `multiprocessing.SimpleQueue`: what a pipe holds is its only bound."""

    def attempts(self, tapped: Any, source: Any) -> Attempts:
        return [lambda: tapped.put(threading.Lock()), lambda: tapped.get(1, 2, 3)]


class InLoop(Played):
    """What is used in a loop of `asyncio`, which runs in a thread of its own."""

    @contextmanager
    def loop(self) -> Iterator[Callable[[Awaitable[Any]], Any]]:
        """Return what awaits something in the loop."""
        loop = asyncio.new_event_loop()
        thread = beside(loop.run_forever)

        async def wait(work: Awaitable[Any]) -> Any:
            return await work

        try:
            yield lambda work: asyncio.run_coroutine_threadsafe(wait(work), loop).result(LATE_S)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    @contextmanager
    def ends(self, wrap: Wrap, size: int) -> Iterator[Ends]:
        tapped = wrap(self.make(size))
        with self.loop() as run:
            yield lambda item: run(tapped.put(item)), lambda _: run(tapped.get())

    def refusing(self, wrap: Wrap) -> list[str]:
        with self.loop() as run:
            return [
                raised(lambda work: run(work()), each) for each in self.awaited(wrap(self.make(1)))
            ]

    def awaited(self, tapped: Any) -> list[Callable[[], Awaitable[Any]]]:
        """Return what fails when it is awaited."""

        async def at_once(call: Callable[[], object]) -> object:
            return call()

        async def cancelled() -> None:
            getter = asyncio.ensure_future(tapped.get())
            await asyncio.sleep(0)
            getter.cancel()
            await getter

        return [
            lambda: at_once(tapped.get_nowait),
            lambda: asyncio.wait_for(tapped.get(), SOON_S),
            cancelled,
            lambda: tapped.put(b"item"),
            lambda: at_once(lambda: tapped.put_nowait(b"item")),
            lambda: asyncio.wait_for(tapped.put(b"item"), SOON_S),
        ]


class Streams(InLoop):
    """The two ends of a connection, as `asyncio` has them."""

    @contextmanager
    def connection(self, wrap: Wrap, run: Any) -> Iterator[tuple[Any, Any]]:
        sender, receiver = socket.socketpair()
        (_, writer), (reader, other) = (
            run(asyncio.open_connection(sock=each)) for each in (sender, receiver)
        )
        try:
            yield wrap(writer), wrap(reader)
        finally:

            async def close() -> None:
                for each in (writer, other):
                    each.close()

            run(close())
            run(asyncio.sleep(0))

    @contextmanager
    def ends(self, wrap: Wrap, size: int) -> Iterator[Ends]:
        with self.loop() as run, self.connection(wrap, run) as (writer, reader):

            async def write(item: bytes) -> None:
                writer.write(item)
                await writer.drain()

            async def read(size: int) -> bytes:
                found: bytes = await reader.readexactly(size)
                return found

            yield lambda item: run(write(item)), lambda size: run(read(size))

    def refusing(self, wrap: Wrap) -> list[str]:
        with self.loop() as run, self.connection(wrap, run) as (writer, reader):

            async def write(item: Any) -> None:
                writer.write(item)
                await asyncio.wait_for(writer.drain(), SOON_S)

            return [
                raised(lambda: run(asyncio.wait_for(reader.read(9), SOON_S))),
                raised(lambda: run(reader.readexactly(-1))),
                raised(lambda: run(asyncio.wait_for(reader.readexactly(9), SOON_S))),
                *(raised(lambda item: run(write(item)), each) for each in (MUCH, "text")),
            ]


class Iterated(Played):
    """Anything that can be iterated over."""

    def __init__(self, make: Callable[[Callable[[], Iterator[Any]]], Any]) -> None:
        super().__init__(make, has_queue=False)

    def read(self, tapped: Any) -> Iterator[Any]:
        return iter(tapped)

    def passing(self, wrap: Wrap) -> list[Any]:
        return list(self.read(wrap(self.make(lambda: iter(ITEMS)))))

    streaming = passing

    def starving(self, wrap: Wrap, probe: Callable[[], object]) -> None:
        def slow() -> Iterator[Any]:
            probe()
            yield b"item"

        assert list(self.read(wrap(self.make(slow)))) == [b"item"]

    def stuffing(self, wrap: Wrap, probe: Callable[[], object]) -> None:
        for _ in self.read(wrap(self.make(lambda: iter([b"item"])))):
            probe()

    def refusing(self, wrap: Wrap) -> list[str]:
        def failing() -> Iterator[Any]:
            yield b"item"
            raise KeyError("no more")

        iterator = self.read(wrap(self.make(failing)))
        return [raised(lambda: next(iterator)) for _ in range(4)]


class AsyncIterated(Iterated):
    """Anything that can be iterated over asynchronously, in a loop of its own."""

    def read(self, tapped: Any) -> Iterator[Any]:
        iterator = aiter(tapped)
        with asyncio.Runner() as runner:
            while True:
                try:
                    yield runner.run(self.fetch(iterator))
                except StopAsyncIteration:
                    return

    async def fetch(self, iterator: AsyncIterator[Any]) -> Any:
        return await anext(iterator)

    def refusing(self, wrap: Wrap) -> list[str]:
        async def cancelled() -> None:
            iterator = aiter(wrap(self.make(lambda: iter(ITEMS))))
            fetching = asyncio.ensure_future(self.fetch(iterator))
            await asyncio.sleep(0)
            fetching.cancel()
            await fetching

        return [*super().refusing(wrap), raised(lambda: asyncio.run(cancelled()))]


class Passes:
    """An iterable that is no iterator."""

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        return self.make()


class AsyncPasses:
    """The same for ``async for``."""

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self.make = make

    async def __aiter__(self) -> AsyncIterator[Any]:
        for each in self.make():
            await asyncio.sleep(0)
            yield each


class Sockets(Played):
    """A pair of connected sockets."""

    def __init__(self, timeout_s: float | None, *, encrypted: bool = False) -> None:
        super().__init__(lambda _: None, counts_bytes=True, too_much=[] if encrypted else [MUCH])
        self.timeout_s, self.encrypted = timeout_s, encrypted

    @contextmanager
    def pair(self, wrap: Wrap) -> Iterator[tuple[Any, Any]]:
        sender, receiver = connected(encrypted=self.encrypted)
        for each in (sender, receiver):
            each.settimeout(self.timeout_s)
        with wrap(sender) as ours, wrap(receiver) as theirs:
            yield ours, theirs

    @contextmanager
    def ends(self, wrap: Wrap, size: int) -> Iterator[Ends]:
        with self.pair(wrap) as (sender, receiver):

            def get(size: int) -> bytes:
                buffer = bytearray(size)
                left = memoryview(buffer)
                while left:
                    left = left[receiver.recv_into(left) :]
                return bytes(buffer)

            yield sender.sendall, get

    def refusing(self, wrap: Wrap) -> list[str]:
        unsendable = ["text", None, 3, *([] if self.encrypted else [memoryview(b"item")[::2]])]
        with self.pair(wrap) as (sender, receiver):
            ways = (sender.send, sender.sendall)
            found = [raised(way, each) for way in ways for each in unsendable]
            receiver.settimeout(SOON_S)
            found += [raised(lambda: receiver.recv(9))]
            for each in (sender, receiver):
                each.setblocking(False)
            found += [raised(lambda: receiver.recv(9))]
            found += [raised(lambda: sender.sendall(MUCH)), raised(lambda: sender.send(MUCH))]
            if not self.encrypted:  # of which a part may be on its way
                sender.settimeout(SOON_S)
                found += [raised(lambda: sender.send(b"item"))]
                receiver.close()
                sender.setblocking(True)
                found += [raised(lambda: receiver.recv(9)), raised(lambda: sender.send(b"item"))]
        return found


class AsyncAlike:
    """No queue of the standard library, but used like one."""

    def __init__(self, maxsize: int) -> None:
        inner: asyncio.Queue[Any] = asyncio.Queue(maxsize)
        self.inner, self.put_nowait, self.get_nowait = inner, inner.put_nowait, inner.get_nowait

    async def put(self, item: Any) -> None:
        await self.inner.put(item)

    async def get(self) -> Any:
        return await self.inner.get()


MANAGER = functools.cache(multiprocessing.get_context("spawn").Manager)
SPAWN = multiprocessing.get_context("spawn")
# Of which a pipe takes each whole or not at all.
PIPEFULS = [bytes(4_000)] * 40
KINDS: dict[str, Played] = {
    "Queue": Played(queue.Queue, grows=True),
    "LifoQueue": Played(queue.LifoQueue, in_order=False, grows=True),
    "PriorityQueue": Played(queue.PriorityQueue, in_order=False, grows=True),
    "SimpleQueue": Played(lambda _: queue.SimpleQueue(), too_much=[]),
    "multiprocessing Queue": Fed(SPAWN.Queue),
    "multiprocessing JoinableQueue": Fed(SPAWN.JoinableQueue),
    "multiprocessing SimpleQueue": Piped(lambda _: SPAWN.SimpleQueue(), too_much=PIPEFULS),
    "managed Queue": Played(lambda size: MANAGER().Queue(size)),
    "asyncio Queue": InLoop(asyncio.Queue, grows=True),
    "asyncio LifoQueue": InLoop(asyncio.LifoQueue, in_order=False, grows=True),
    "asyncio PriorityQueue": InLoop(asyncio.PriorityQueue, in_order=False, grows=True),
    "async alike": InLoop(AsyncAlike),
    "iterator": Iterated(lambda make: make()),
    "iterable": Iterated(Passes),
    "async iterator": AsyncIterated(lambda make: aiter(AsyncPasses(make))),
    "async iterable": AsyncIterated(AsyncPasses),
    "blocking sockets": Sockets(None),
    "sockets with a timeout": Sockets(30.0),
    "encrypted sockets": Sockets(None, encrypted=True),
    "encrypted sockets with a timeout": Sockets(30.0, encrypted=True),
    "asyncio streams": Streams(lambda _: None, counts_bytes=True, too_much=[MUCH]),
}


class Taps:
    """Taps whatever it is called with, and reads all that was tapped."""

    def __init__(self) -> None:
        self.made: list[Tap] = []

    def __call__(self, source: Any, **options: Any) -> Any:
        self.made.append(Tap(source, name="work", **options))
        return self.made[-1].queue

    def heads(self) -> list[Counts]:
        return [counts for tap in self.made for counts in tap.head.read()]

    def tails(self) -> list[Counts]:
        return [counts for tap in self.made for counts in tap.tail.read()]


def named(fits: Callable[[Played], bool]) -> list[Any]:
    return [pytest.param(kind, id=name) for name, kind in KINDS.items() if fits(kind)]


@pytest.fixture(params=named(lambda _: True))
def kind(request: pytest.FixtureRequest) -> Played:
    played: Played = request.param
    return played


@pytest.fixture
def taps() -> Iterator[Taps]:
    made = Taps()
    yield made
    for tap in made.made:
        tap.close()


@pytest.fixture(autouse=True, scope="module")
def _manager_ends() -> Iterator[None]:
    yield
    if MANAGER.cache_info().currsize:
        MANAGER().shutdown()
        MANAGER.cache_clear()  # more of these tests may come to this process later


def as_it_is(source: Any) -> Any:
    return source


def test_what_comes_out_is_what_comes_out_untapped(kind: Played, taps: Taps) -> None:
    assert kind.passing(taps) == kind.passing(as_it_is)


def test_nothing_is_lost_while_both_ends_are_busy(kind: Played, taps: Taps) -> None:
    out = kind.streaming(taps)
    assert sorted(out) == ITEMS
    if kind.in_order:
        assert out == ITEMS
    assert sum(each.items for each in taps.heads()) == len(ITEMS)
    assert sum(each.items for each in taps.tails()) == len(ITEMS)


def test_each_item_is_counted_at_both_ends_with_its_bytes(kind: Played, taps: Taps) -> None:
    kind.passing(taps if kind.counts_bytes else functools.partial(taps, item_bytes=len))
    for (counts,) in (taps.heads(), taps.tails()):
        assert (counts.items, counts.bytes) == (len(ITEMS), len(b"".join(ITEMS)))
        assert counts.waiting == 0


@pytest.mark.parametrize("kind", named(lambda kind: kind.has_queue))
def test_where_nobody_waits_no_wait_is_counted(kind: Played, taps: Taps) -> None:
    kind.passing(taps)
    for (counts,) in (taps.heads(), taps.tails()):
        assert (counts.blocked_events, counts.blocked_ns) == (0, 0)


def waiting(read: Callable[[], list[Counts]]) -> Counts:
    """Return what is read when somebody has been seen to wait for `DELAY_S`."""
    last_s = time.monotonic() + LATE_S
    while not any(each.waiting for each in read()):
        assert time.monotonic() < last_s, "nobody waits"
        time.sleep(0.001)
    time.sleep(DELAY_S)
    (counts,) = read()
    return counts


def test_a_consumer_that_waits_is_seen_while_it_does_and_afterwards(
    kind: Played, taps: Taps
) -> None:
    found: list[Counts] = []
    kind.starving(taps, lambda: found.append(waiting(taps.heads)))
    (during,), (after,) = found, taps.heads()
    assert (during.waiting, during.blocked_events, during.items) == (1, 1, 0)
    assert (after.waiting, after.items) == (0, 1)
    assert after.blocked_ns >= during.blocked_ns >= DELAY_NS
    if kind.has_queue:
        assert sum(each.blocked_events for each in taps.tails()) == 0


@pytest.mark.parametrize("kind", named(lambda kind: bool(kind.too_much)))
def test_a_producer_that_waits_is_seen_while_it_does_and_afterwards(
    kind: Played, taps: Taps
) -> None:
    found: list[Counts] = []
    kind.stuffing(taps, lambda: found.append(waiting(taps.tails)))
    (during,), (after,) = found, taps.tails()
    assert (during.waiting, during.blocked_events) == (1, 1)
    assert after.waiting == 0
    assert after.blocked_ns >= during.blocked_ns >= DELAY_NS


@pytest.mark.parametrize("kind", named(lambda kind: kind.grows))
def test_a_queue_that_grows_lets_waiting_producers_go_on(kind: Played, taps: Taps) -> None:
    with kind.ends(taps, 1) as (put, get):
        (tap,) = taps.made
        with tap.grown(1):  # before anybody uses it
            assert tap.queue.maxsize == 2
        put(b"item")
        threads = [beside(lambda: put(b"item")) for _ in range(3)]
        while sum(each.waiting for each in taps.tails()) < 3:
            time.sleep(0.001)
        with tap.grown(2):
            while sum(each.waiting for each in taps.tails()) > 1:
                time.sleep(0.001)
            assert (tap.queue.qsize(), tap.queue.maxsize) == (3, 3)
        assert tap.queue.maxsize == 1
        assert [get(4) for _ in range(4)] == [b"item"] * 4
        for each in threads:
            each.join()
    with tap.grown(2):  # and after its loop has ended
        assert tap.queue.maxsize == 3


def test_what_is_raised_is_what_is_raised_untapped(kind: Played, taps: Taps) -> None:
    found = kind.refusing(taps)
    assert found == kind.refusing(as_it_is)
    assert any(found)
    assert all(each.waiting == 0 for each in taps.heads() + taps.tails())


def test_a_closed_tap_lets_everything_pass_and_counts_nothing(kind: Played, taps: Taps) -> None:
    def closed(source: Any) -> Any:
        tapped = taps(source)
        taps.made[-1].close()
        return tapped

    assert kind.passing(closed) == kind.passing(as_it_is)
    assert taps.heads() == taps.tails() == []


def test_a_page_that_is_gone_stops_nobody_and_that_is_said(kind: Played, taps: Taps) -> None:
    def without_page(source: Any) -> Any:
        tapped = taps(source)
        taps.made[-1].page.path.unlink()
        return tapped

    assert kind.passing(without_page) == kind.passing(as_it_is)
    assert taps.heads() == taps.tails() == []
    assert all(str(tap.page.path) in str(tap.failure) for tap in taps.made)
