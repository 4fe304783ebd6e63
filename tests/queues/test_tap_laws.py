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
from typing import Any

import pytest

from benchrigor.queues import Counts, Tap

ITEMS = [f"item {index:02}".encode() for index in range(40)]
DELAY_S, DELAY_NS = 0.05, 50_000_000
SOON_S, LATE_S = 0.02, 30.0
MUCH = bytes(1 << 20)

Wrap = Callable[[Any], Any]
Probe = Callable[[], object]
Raised = list[str]


def batched(items: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(items[::2], items[1::2], strict=True))


def raised(call: Callable[[], object]) -> str:
    try:
        call()
    except BaseException as error:  # noqa: BLE001  # whatever it is
        return type(error).__name__
    return ""


async def raised_by(work: Awaitable[object]) -> str:
    try:
        await work
    except BaseException as error:  # noqa: BLE001  # whatever it is
        return type(error).__name__
    return ""


def beside(*calls: Callable[[], object]) -> threading.Thread:
    """Call something in another thread."""

    def run() -> None:
        for each in calls:
            each()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


async def begun(work: Awaitable[Any]) -> asyncio.Future[Any]:
    """Return the task of something that has come to where it waits."""
    task = asyncio.ensure_future(work)
    for _ in range(9):
        await asyncio.sleep(0)
    return task


class Played:
    """A kind of source, as the laws play it."""

    in_order = True
    """Whether items keep their order while both ends are busy."""
    has_queue = True
    """Whether items can lie between the ends, so that nobody need wait."""
    fills = True
    """Whether the producer ever has to wait."""

    def passing(self, wrap: Wrap) -> list[Any]:
        """Put all items in, then take all out; return them."""
        raise NotImplementedError

    def streaming(self, wrap: Wrap) -> list[Any]:
        """Put items in at one end while they are taken out at the other; return them."""
        return self.passing(wrap)

    def starving(self, wrap: Wrap, probe: Probe) -> None:
        """Let the consumer wait for an item until `probe` returns."""
        raise NotImplementedError

    def stuffing(self, wrap: Wrap, probe: Probe) -> None:
        """Let the producer wait for room until `probe` returns."""
        raise NotImplementedError

    def refusing(self, wrap: Wrap) -> Raised:
        """Do what fails; return what was raised."""
        raise NotImplementedError


class Threaded(Played):
    """Anything with ``get`` and ``put``, used by threads."""

    def __init__(
        self, make: Callable[[int], Any], *, in_order: bool = True, fills: bool = True
    ) -> None:
        self.make, self.in_order, self.fills = make, in_order, fills

    def settle(self, source: Any) -> None:
        """Return when what was put in can be taken out."""

    def passing(self, wrap: Wrap) -> list[Any]:
        source = self.make(0)
        tapped = wrap(source)
        for each in ITEMS:
            tapped.put(each)
        out = []
        for _ in ITEMS:
            self.settle(source)
            out.append(tapped.get())
        return out

    def streaming(self, wrap: Wrap) -> list[Any]:
        tapped = wrap(self.make(3))
        producer = threading.Thread(target=lambda: [tapped.put(each) for each in ITEMS])
        producer.start()
        out = [tapped.get() for _ in ITEMS]
        producer.join()
        return out

    def starving(self, wrap: Wrap, probe: Probe) -> None:
        tapped = wrap(self.make(0))
        thread = beside(probe, lambda: tapped.put(b"item"))
        assert tapped.get() == b"item"
        thread.join()

    def stuffing(self, wrap: Wrap, probe: Probe) -> None:
        tapped = wrap(self.make(1))
        tapped.put(b"item")
        thread = beside(probe, tapped.get)
        tapped.put(b"item")
        thread.join()

    def refusing(self, wrap: Wrap) -> Raised:
        source = self.make(1)
        tapped = wrap(source)
        found = [
            raised(tapped.get_nowait),
            raised(lambda: tapped.get(False)),
            raised(lambda: tapped.get(timeout=SOON_S)),
            raised(lambda: tapped.get(True, 0)),
            raised(lambda: tapped.get(True, -1)),
            raised(lambda: tapped.get(1, 2, 3)),
        ]
        if self.fills:
            tapped.put(b"item")
            self.settle(source)
            found += [
                raised(lambda: tapped.put_nowait(b"item")),
                raised(lambda: tapped.put(b"item", timeout=SOON_S)),
                raised(lambda: tapped.put(b"item", True, 0)),
                raised(lambda: tapped.put(b"item", True, -1)),
            ]
        return found


class Fed(Threaded):
    """A queue of `multiprocessing`, whose feeder thread takes its time."""

    def settle(self, source: Any) -> None:
        assert source._reader.poll(10.0)  # noqa: SLF001  # of the standard library


class Piped(Fed):
    """A `multiprocessing.SimpleQueue`: what a pipe holds is its only bound."""

    def streaming(self, wrap: Wrap) -> list[Any]:
        return self.passing(wrap)

    def stuffing(self, wrap: Wrap, probe: Probe) -> None:
        tapped = wrap(self.make(0))

        def drain() -> None:
            probe()
            while tapped.get():
                pass

        consumer = beside(drain)
        for _ in range(40):
            tapped.put(bytes(4_000))  # which a pipe takes whole or not at all
        tapped.put(b"")
        consumer.join()

    def refusing(self, wrap: Wrap) -> Raised:
        tapped = wrap(self.make(0))
        return [raised(lambda: tapped.put(threading.Lock())), raised(lambda: tapped.get(1, 2, 3))]


class Awaited(Played):
    """Anything whose ``get`` and ``put`` are coroutines."""

    def __init__(self, make: Callable[[int], Any], *, in_order: bool = True) -> None:
        self.make, self.in_order = make, in_order

    def passing(self, wrap: Wrap) -> list[Any]:
        async def main() -> list[Any]:
            tapped = wrap(self.make(0))
            for one, other in batched(ITEMS):
                await tapped.put(one)
                tapped.put_nowait(other)
            both = [(await tapped.get(), tapped.get_nowait()) for _ in batched(ITEMS)]
            return [each for pair in both for each in pair]

        return asyncio.run(main())

    def streaming(self, wrap: Wrap) -> list[Any]:
        async def main() -> list[Any]:
            tapped = wrap(self.make(3))

            async def produce() -> None:
                for each in ITEMS:
                    await tapped.put(each)

            producer = asyncio.create_task(produce())
            out = [await tapped.get() for _ in ITEMS]
            await producer
            return out

        return asyncio.run(main())

    def starving(self, wrap: Wrap, probe: Probe) -> None:
        async def main() -> None:
            tapped = wrap(self.make(0))
            getter = await begun(tapped.get())
            probe()
            await tapped.put(b"item")
            assert await getter == b"item"

        asyncio.run(main())

    def stuffing(self, wrap: Wrap, probe: Probe) -> None:
        async def main() -> None:
            tapped = wrap(self.make(1))
            await tapped.put(b"item")
            putter = await begun(tapped.put(b"item"))
            probe()
            await tapped.get()
            await putter

        asyncio.run(main())

    def refusing(self, wrap: Wrap) -> Raised:
        async def main() -> Raised:
            tapped = wrap(self.make(1))
            found = [raised(tapped.get_nowait)]
            found += [await raised_by(asyncio.wait_for(tapped.get(), SOON_S))]
            getter = await begun(tapped.get())
            getter.cancel()
            found += [await raised_by(getter)]
            await tapped.put(b"item")
            found += [raised(lambda: tapped.put_nowait(b"item"))]
            found += [await raised_by(asyncio.wait_for(tapped.put(b"item"), SOON_S))]
            return found

        return asyncio.run(main())


class Iterated(Played):
    """Anything that can be iterated over."""

    has_queue = False

    def __init__(self, make: Callable[[Callable[[], Iterator[Any]]], Any]) -> None:
        self.make = make

    def passing(self, wrap: Wrap) -> list[Any]:
        return list(wrap(self.make(lambda: iter(ITEMS))))

    def starving(self, wrap: Wrap, probe: Probe) -> None:
        def slow() -> Iterator[Any]:
            probe()
            yield b"item"

        for _ in wrap(self.make(slow)):
            pass

    def stuffing(self, wrap: Wrap, probe: Probe) -> None:
        for _ in wrap(self.make(lambda: iter([b"item"]))):
            probe()

    def refusing(self, wrap: Wrap) -> Raised:
        def failing() -> Iterator[Any]:
            yield b"item"
            raise KeyError("no more")

        iterator = iter(wrap(self.make(failing)))
        return [raised(lambda: next(iterator)) for _ in range(4)]


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


class AsyncIterated(Iterated):
    """Anything that can be iterated over asynchronously, in a loop of its own."""

    def bridge(self, wrap: Wrap) -> Wrap:
        def bridged(source: Any) -> Iterator[Any]:
            iterator = aiter(wrap(source))
            with asyncio.Runner() as runner:
                while True:
                    try:
                        yield runner.run(self.fetch(iterator))
                    except StopAsyncIteration:
                        return

        return bridged

    async def fetch(self, iterator: AsyncIterator[Any]) -> Any:
        return await anext(iterator)

    def passing(self, wrap: Wrap) -> list[Any]:
        return super().passing(self.bridge(wrap))

    def starving(self, wrap: Wrap, probe: Probe) -> None:
        super().starving(self.bridge(wrap), probe)

    def stuffing(self, wrap: Wrap, probe: Probe) -> None:
        super().stuffing(self.bridge(wrap), probe)

    def refusing(self, wrap: Wrap) -> Raised:
        async def cancelled() -> str:
            iterator = aiter(wrap(self.make(lambda: iter(ITEMS))))
            fetching = asyncio.ensure_future(self.fetch(iterator))
            await asyncio.sleep(0)
            fetching.cancel()
            return await raised_by(fetching)

        return [*super().refusing(self.bridge(wrap)), asyncio.run(cancelled())]


class Sockets(Played):
    """A pair of connected sockets; what one call sends, one call receives."""

    def __init__(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s

    def pair(self, wrap: Wrap) -> tuple[Any, Any]:
        sender, receiver = socket.socketpair()
        for each in (sender, receiver):
            each.settimeout(self.timeout_s)
        return wrap(sender), wrap(receiver)

    def passing(self, wrap: Wrap) -> list[Any]:
        sender, receiver = self.pair(wrap)
        with sender, receiver:
            for one, other in batched(ITEMS):
                assert sender.send(one) == len(one)
                sender.sendall(other)
            out = []
            for one, other in batched(ITEMS):
                buffer = bytearray(len(other))
                out += [receiver.recv(len(one)), buffer]
                assert receiver.recv_into(buffer) == len(other)
            return [bytes(each) for each in out]

    def starving(self, wrap: Wrap, probe: Probe) -> None:
        sender, receiver = self.pair(wrap)
        with sender, receiver:
            thread = beside(probe, lambda: sender.send(b"item"))
            assert receiver.recv(99) == b"item"
            thread.join()

    def stuffing(self, wrap: Wrap, probe: Probe) -> None:
        sender, receiver = self.pair(wrap)
        with sender, receiver:

            def drain() -> None:
                left = len(MUCH)
                while left:
                    left -= len(receiver.recv(1 << 16))

            thread = beside(probe, drain)
            sender.sendall(MUCH)
            thread.join()

    def refusing(self, wrap: Wrap) -> Raised:
        sender, receiver = self.pair(wrap)
        with sender, receiver:
            receiver.settimeout(SOON_S)
            found = [raised(lambda: receiver.recv(9))]
            for each in (sender, receiver):
                each.setblocking(False)
            found += [raised(lambda: receiver.recv(9))]
            found += [raised(lambda: sender.sendall(MUCH))]
            found += [raised(lambda: sender.send(MUCH))]
            sender.settimeout(SOON_S)
            found += [raised(lambda: sender.send(b"item"))]
            receiver.close()
            sender.setblocking(True)
            found += [raised(lambda: receiver.recv(9)), raised(lambda: sender.send(b"item"))]
        return found


class Streams(Played):
    """The two ends of a connection, as `asyncio` has them."""

    async def pair(self, wrap: Wrap) -> tuple[Any, Any]:
        sender, receiver = socket.socketpair()
        _, writer = await asyncio.open_connection(sock=sender)
        reader, other = await asyncio.open_connection(sock=receiver)
        self.close = (writer.close, other.close)
        return wrap(writer), wrap(reader)

    def passing(self, wrap: Wrap) -> list[Any]:
        async def main() -> list[Any]:
            writer, reader = await self.pair(wrap)
            for each in ITEMS:
                writer.write(each)
            await writer.drain()
            while len(reader._buffer) < sum(map(len, ITEMS)):  # noqa: SLF001  # likewise
                await asyncio.sleep(0.001)
            return [await reader.readexactly(len(each)) for each in ITEMS]

        return self.run(main)

    def starving(self, wrap: Wrap, probe: Probe) -> None:
        async def main() -> None:
            writer, reader = await self.pair(wrap)
            reading = await begun(reader.readline())
            probe()
            writer.write(b"item\n")
            assert await reading == b"item\n"

        self.run(main)

    def stuffing(self, wrap: Wrap, probe: Probe) -> None:
        async def main() -> None:
            writer, reader = await self.pair(wrap)
            writer.write(MUCH)
            draining = await begun(writer.drain())
            probe()
            await reader.readexactly(len(MUCH))
            await draining

        self.run(main)

    def refusing(self, wrap: Wrap) -> Raised:
        async def main() -> Raised:
            writer, reader = await self.pair(wrap)
            found = [await raised_by(asyncio.wait_for(reader.read(9), SOON_S))]
            found += [await raised_by(reader.readexactly(-1))]
            writer.write(MUCH)
            found += [await raised_by(asyncio.wait_for(writer.drain(), SOON_S))]
            found += [raised(lambda: writer.write("text"))]
            return found

        return self.run(main)

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        async def closing() -> Any:
            try:
                return await main()
            finally:
                for each in self.close:
                    each()
                await asyncio.sleep(0)

        return asyncio.run(closing())


class Unique(queue.Queue):  # type: ignore[type-arg]
    """A subclass that keeps its items elsewhere."""

    def _init(self, maxsize: int) -> None:
        self.kept: dict[Any, None] = {}

    def _qsize(self) -> int:
        return len(self.kept)

    def _put(self, item: Any) -> None:
        self.kept[item] = None

    def _get(self) -> Any:
        item = next(iter(self.kept))
        del self.kept[item]
        return item


class Alike:
    """No queue of the standard library, but used like one."""

    def __init__(self, maxsize: int) -> None:
        self.inner: queue.Queue[Any] = queue.Queue(maxsize)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        self.inner.put(item, block, timeout)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        return self.inner.get(block, timeout)

    def put_nowait(self, item: Any) -> None:
        self.inner.put_nowait(item)

    def get_nowait(self) -> Any:
        return self.inner.get_nowait()


class AsyncAlike:
    """The same with coroutines."""

    def __init__(self, maxsize: int) -> None:
        inner: asyncio.Queue[Any] = asyncio.Queue(maxsize)
        self.inner, self.put_nowait, self.get_nowait = inner, inner.put_nowait, inner.get_nowait

    async def put(self, item: Any) -> None:
        await self.inner.put(item)

    async def get(self) -> Any:
        return await self.inner.get()


class Managed(Threaded):
    """A queue that lives in a process of its own."""

    def __init__(self) -> None:
        super().__init__(lambda maxsize: self.manager().Queue(maxsize))
        self.manager = functools.cache(multiprocessing.get_context("spawn").Manager)


MANAGED = Managed()
SPAWN = multiprocessing.get_context("spawn")
KINDS: dict[str, Played] = {
    "Queue": Threaded(queue.Queue),
    "LifoQueue": Threaded(queue.LifoQueue, in_order=False),
    "PriorityQueue": Threaded(queue.PriorityQueue, in_order=False),
    "subclass of Queue": Threaded(Unique),
    "SimpleQueue": Threaded(lambda _: queue.SimpleQueue(), fills=False),
    "alike": Threaded(Alike),
    "multiprocessing Queue": Fed(SPAWN.Queue),
    "multiprocessing JoinableQueue": Fed(SPAWN.JoinableQueue),
    "multiprocessing SimpleQueue": Piped(lambda _: SPAWN.SimpleQueue()),
    "managed Queue": MANAGED,
    "asyncio Queue": Awaited(asyncio.Queue),
    "asyncio LifoQueue": Awaited(asyncio.LifoQueue, in_order=False),
    "asyncio PriorityQueue": Awaited(asyncio.PriorityQueue, in_order=False),
    "async alike": Awaited(AsyncAlike),
    "iterator": Iterated(lambda make: make()),
    "iterable": Iterated(Passes),
    "async iterator": AsyncIterated(lambda make: aiter(AsyncPasses(make))),
    "async iterable": AsyncIterated(AsyncPasses),
    "blocking sockets": Sockets(None),
    "sockets with a timeout": Sockets(30.0),
    "asyncio streams": Streams(),
}


class Taps:
    """Taps whatever it is called with, and reads all that was tapped."""

    def __init__(self) -> None:
        self.made: list[Tap] = []

    def __call__(self, source: Any) -> Any:
        self.made.append(Tap(source, name="work"))
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
    if MANAGED.manager.cache_info().currsize:
        MANAGED.manager().shutdown()
        MANAGED.manager.cache_clear()  # more of these tests may come to this process later


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


def test_each_item_is_counted_at_both_ends(kind: Played, taps: Taps) -> None:
    kind.passing(taps)
    for (counts,) in (taps.heads(), taps.tails()):
        assert counts.items == len(ITEMS)
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", named(lambda kind: kind.fills))
def test_a_producer_that_waits_is_seen_while_it_does_and_afterwards(
    kind: Played, taps: Taps
) -> None:
    found: list[Counts] = []
    kind.stuffing(taps, lambda: found.append(waiting(taps.tails)))
    (during,), (after,) = found, taps.tails()
    assert (during.waiting, during.blocked_events) == (1, 1)
    assert after.waiting == 0
    assert after.blocked_ns >= during.blocked_ns >= DELAY_NS


def test_what_is_raised_is_what_is_raised_untapped(kind: Played, taps: Taps) -> None:
    found = kind.refusing(taps)
    assert found == kind.refusing(as_it_is)
    assert any(found)
    assert all(each.waiting == 0 for each in taps.heads() + taps.tails())


@pytest.mark.slow
def test_counters_never_go_back(kind: Played, taps: Taps) -> None:
    done = threading.Event()
    seen: dict[str, list[tuple[int, ...]]] = {}

    def look() -> None:
        while not done.is_set():
            for each in taps.heads() + taps.tails():
                found = (each.items, each.bytes, each.blocked_events, each.blocked_ns)
                seen.setdefault(each.name, []).append(found)

    reader = threading.Thread(target=look)
    reader.start()
    kind.streaming(taps)
    done.set()
    reader.join()
    for found in seen.values():
        for column in zip(*found, strict=True):
            assert list(column) == sorted(column)


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
