"""What taps give to a program in place of a source that cannot count by itself."""

from __future__ import annotations

import _socket
import select
import time
import types
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from queue import Empty, Full
from typing import Any, Self, TypeVar

from benchrigor.queues.cells import Cell
from benchrigor.queues.writers import Writer

_T = TypeVar("_T")
_PAUSE_S = 1e-3


class Wrapper:
    """Stands in for a source, which provides all other methods, uncounted."""

    is_local = False  # whether the source belongs to this process, and cannot be sent to another
    counts_bytes = False  # as they pass, so that nobody needs to give the size of an item

    def __init__(self, source: Any, head: Writer, tail: Writer) -> None:
        self._source = source
        self._head = head
        self._tail = tail

    def __getattr__(self, name: str) -> Any:
        # Protocols that go by special names are of the class; asking the source would mislead.
        if name.startswith("__") or name == "_source":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._source, name)

    def __setattr__(self, name: str, value: object) -> None:
        # What belongs to the source is set there; our own names begin with an underscore.
        own = name.startswith("_") or hasattr(type(self), name)
        (super().__setattr__ if own else partial(setattr, self._source))(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._source, self._head, self._tail)

    def __repr__(self) -> str:
        return f"<tapped {self._source!r}>"


# --- Queues with the ``get`` and ``put`` of `queue.Queue`, which can be asked not to wait: those of
# `multiprocessing` and its managers, and of other packages. Only an attempt that found the queue
# empty or full reads a clock.


class PolledQueue(Wrapper):
    """Stands in for a queue that raises `queue.Empty` and `queue.Full` when asked not to block."""

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an item, as the source does."""
        if block and (timeout is None or timeout > 0):
            try:
                self._source.put(item, False)
            except Full:
                pass
            else:
                self._tail.count(item)
                return
            with self._tail.waiting():
                self._source.put(item, True, timeout)
        else:
            self._source.put(item, block, timeout)
        self._tail.count(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Get an item, as the source does."""
        if block and (timeout is None or timeout > 0):
            try:
                item = self._source.get(False)
            except Empty:
                pass
            else:
                self._head.count(item)
                return item
            # Outside of the handler, so that another Empty does not seem to come of the first.
            with self._head.waiting():
                item = self._source.get(True, timeout)
        else:
            item = self._source.get(block, timeout)
        self._head.count(item)
        return item

    def put_nowait(self, item: Any) -> None:
        """Put an item if there is room."""
        self.put(item, False)

    def get_nowait(self) -> Any:
        """Get an item if there is one."""
        return self.get(False)


class LocalQueue(PolledQueue):
    """Stands in for a `queue.SimpleQueue`."""

    is_local = True


class FedQueue(PolledQueue):
    """Stands in for a `multiprocessing.Queue`, which a thread of its own feeds through a pipe.

    A wait ends when the pipe has something to read, so that receiving and unpickling is none. If
    another consumer was quicker, another wait begins, with a pause. The thread hides how long the
    pipe makes a producer wait.
    """

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Get an item, as the source does."""
        if not block or (timeout is not None and timeout <= 0):
            return super().get(block, timeout)
        until_s = None if timeout is None else time.monotonic() + timeout
        left_s, is_first = timeout, True
        while left_s is None or left_s > 0:
            try:
                return super().get(False)
            except Empty:
                pass
            with self._head.waiting():
                if not is_first:
                    time.sleep(_PAUSE_S)
                _is_ready(self._source._reader, select.POLLIN, left_s)  # noqa: SLF001  # no public way
            is_first = False
            left_s = None if until_s is None else until_s - time.monotonic()
        return super().get(False)


class PipeQueue(Wrapper):
    """Stands in for a `multiprocessing.SimpleQueue`: its methods always wait.

    It asks whether the pipe has something to read, or room; another process may be quicker then,
    and a message of more than `select.PIPE_BUF` bytes may wait for more room: both unseen. An item
    that was waited for is also received and unpickled within the wait.
    """

    def get(self) -> Any:
        """Get an item, as the source does."""
        with self._head.waiting() if self._source.empty() else nullcontext():
            item = self._source.get()
        self._head.count(item)
        return item

    def put(self, obj: Any) -> None:
        """Put an item, as the source does."""
        # There is no public way to know whether a pipe has room.
        has_room = _is_ready(self._source._writer, select.POLLOUT)  # noqa: SLF001
        with nullcontext() if has_room else self._tail.waiting():
            self._source.put(obj)
        self._tail.count(obj)


def _is_ready(pipe: Any, event: int, limit_s: float | None = 0.0) -> bool:
    """Wait until a pipe can be read or written, for that long; None for ever."""
    poll = select.poll()
    poll.register(pipe.fileno(), event)
    return bool(poll.poll(None if limit_s is None else limit_s * 1e3))


# --- Queues with coroutines ``get`` and ``put``, and the streams of `asyncio`.


@types.coroutine
def time_wait(work: Awaitable[_T], writer: Writer) -> Generator[Any, Any, _T]:
    """Await something; the time from its first suspension to its end is a wait."""
    begun: Cell | None = None
    steps: Any = work.__await__()
    step: Any = steps.send
    given: Any = None
    try:
        while True:
            wanted = step(given)
            begun = begun or writer.begin_wait()
            try:
                given = yield wanted
                step = steps.send
            except BaseException as error:  # noqa: BLE001  # the coroutine gets any error
                given, step = error, steps.throw
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        if begun is not None:
            writer.end_wait(begun)
        given = None  # a thrown error holds this frame: breaks the cycle between them


class AwaitedQueue(Wrapper):
    """Stands in for a queue with coroutines ``get`` and ``put``."""

    async def put(self, *args: Any, **options: Any) -> Any:
        """Put an item, as the source does."""
        done = await time_wait(self._source.put(*args, **options), self._tail)
        self._tail.count(*args[:1] or [*options.values()][:1])
        return done

    async def get(self, *args: Any, **options: Any) -> Any:
        """Get an item, as the source does."""
        item = await time_wait(self._source.get(*args, **options), self._head)
        self._head.count(item)
        return item

    def put_nowait(self, *args: Any, **options: Any) -> Any:
        """Put an item if there is room."""
        done = self._source.put_nowait(*args, **options)
        self._tail.count(*args[:1] or [*options.values()][:1])
        return done

    def get_nowait(self, *args: Any, **options: Any) -> Any:
        """Get an item if there is one."""
        item = self._source.get_nowait(*args, **options)
        self._head.count(item)
        return item


def _reading(name: str) -> Any:
    """Return a method that reads as the source does, times its wait and counts the bytes."""

    async def read(self: Wrapper, *args: Any, **options: Any) -> bytes:
        data: bytes = await time_wait(getattr(self._source, name)(*args, **options), self._head)
        self._head.count_bytes(len(data))
        return data

    return read


class StreamHead(Wrapper):
    """Stands in for a `asyncio.StreamReader`, which is the head of a queue."""

    counts_bytes = True
    read, readline = _reading("read"), _reading("readline")
    readexactly, readuntil = _reading("readexactly"), _reading("readuntil")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        line: bytes = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line


class StreamTail(Wrapper):
    """Stands in for a `asyncio.StreamWriter`, the tail of a queue; draining is its wait."""

    counts_bytes = True

    def write(self, data: Any) -> None:
        """Write, and count the bytes."""
        self._source.write(data)
        self._tail.count_bytes(memoryview(data).nbytes)

    def writelines(self, data: Iterable[Any]) -> None:
        """Write pieces, and count their bytes together."""
        pieces = list(data)
        self._source.writelines(pieces)
        self._tail.count_bytes(sum(memoryview(piece).nbytes for piece in pieces))

    async def drain(self) -> None:
        """Wait for room, as the source does."""
        await time_wait(self._source.drain(), self._tail)


# --- Iterables: the consumer waits while an item is fetched, the producer in between. Either the
# producer works or the consumer does, never both at once. So an item makes both ends wait once, and
# reads the clock twice.


class _Turns:
    """Turns of one iteration: the producer's while an item is fetched, else the consumer's."""

    def __init__(self, head: Writer, tail: Writer) -> None:
        self._head, self._tail, self._now_ns = head, tail, head.now_ns
        self._idle: Cell | None = None

    def begin(self) -> Cell:
        """Give the producer its turn; return the cell that `end` takes."""
        at_ns = self._now_ns()
        self._end_idle(at_ns)
        begun = self._head.cell or self._head.claim()
        begun.begin_wait(at_ns)
        return begun

    def end(self, begun: Cell, came: bool, item: Any) -> None:
        """Take it back; without an item the producer waits no more."""
        at_ns = self._now_ns()
        if begun is self._head.cell:
            begun.end_wait(at_ns)
        if came:
            self._idle = tail = self._tail.cell or self._tail.claim()
            self._head.count(item)
            self._tail.count(item)
            tail.begin_wait(at_ns)

    def stop(self) -> None:
        """Let the producer wait no longer."""
        if self._idle is not None:
            self._end_idle(self._now_ns())

    def _end_idle(self, at_ns: int) -> None:
        idle, self._idle = self._idle, None
        # Else the wait ended when the cell was closed, or belongs to a parent process.
        if idle is not None and idle is self._tail.cell:
            idle.end_wait(at_ns)


class _OnePass(Wrapper):
    def __init__(self, source: Any, head: Writer, tail: Writer) -> None:
        super().__init__(source, head, tail)
        self._turns = _Turns(head, tail)

    def __del__(self) -> None:
        self._turns.stop()


class Pass(_OnePass):
    """An iterator; ``send`` and ``throw`` of a generator are neither timed nor counted."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        came, item, begun = False, None, self._turns.begin()
        try:
            item = next(self._source)
            came = True
        finally:
            self._turns.end(begun, came, item)
        return item

    def close(self) -> None:
        """Close the source, if it can be closed."""
        self._turns.stop()
        if hasattr(self._source, "close"):
            self._source.close()


class AsyncPass(_OnePass):
    """An asynchronous iterator."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        came, item, begun = False, None, self._turns.begin()
        try:
            item = await anext(self._source)
            came = True
        finally:
            self._turns.end(begun, came, item)
        return item

    async def aclose(self) -> None:
        """Close the source, if it can be closed."""
        self._turns.stop()
        if hasattr(self._source, "aclose"):
            await self._source.aclose()


class Passes(Wrapper):
    """An iterable that can be passed through any number of times."""

    def __iter__(self) -> Pass:
        return Pass(iter(self._source), self._head, self._tail)


class SizedPasses(Passes):
    """One that knows its length."""

    def __len__(self) -> int:
        return len(self._source)


class AsyncPasses(Wrapper):
    """An asynchronous iterable."""

    def __aiter__(self) -> AsyncPass:
        return AsyncPass(aiter(self._source), self._head, self._tail)


# --- Sockets: received bytes leave a queue, sent bytes enter one. A call that moves bytes is an
# item, and its bytes are counted. A blocking socket is first asked not to wait; a socket with a
# timeout, or with encryption, is polled before the call.

# As plain numbers, from the part of `socket` that is written in C: to load all of it takes longer
# than to tap a queue, and to test a bit of its enumeration as long as to receive.
_AT_ONCE, _PEEK = int(getattr(_socket, "MSG_DONTWAIT", 0)), _socket.MSG_PEEK

# Most bytes that encryption sends at once; more would wait for room unseen.
_RECORD_BYTES = 1 << 14


class TappedSocket(Wrapper):
    """Counts ``recv``, ``recv_into``, ``send`` and ``sendall``, but no other methods."""

    counts_bytes = True

    def __init__(self, source: Any, head: Writer, tail: Writer) -> None:
        super().__init__(source, head, tail)
        self._encrypted = hasattr(source, "pending")

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Receive as the source does."""
        data: bytes = self._receive(self._source.recv, bufsize, flags)
        self._count_bytes(len(data), flags)
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receive into a buffer as the source does."""
        size: int = self._receive(partial(self._source.recv_into, buffer), nbytes, flags)
        self._count_bytes(size, flags)
        return size

    def send(self, data: Any, flags: int = 0) -> int:
        """Send as the source does."""
        view = _bytes_of(data)
        sent = 0
        for piece in self._pieces(view) if self._source.gettimeout() is None else (view,):
            try:
                taken = self._send(piece, flags)
            except OSError:  # an error after a part was sent comes again the next time
                if not sent:
                    raise
                break
            sent += taken
            if taken < piece.nbytes:
                break
        self._tail.count_bytes(sent)
        return sent

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all as the source does."""
        view = _bytes_of(data)
        if self._source.gettimeout() == 0.0:
            self._source.sendall(view, flags)
        else:
            for piece in self._pieces(view):
                sent = self._sent_at_once(piece, flags) or 0
                if sent < piece.nbytes:
                    with self._tail.waiting():
                        self._source.sendall(piece[sent:], flags)
        self._tail.count_bytes(view.nbytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._source.close()

    def _receive(self, receive: Callable[[int, int], Any], size: int, flags: int) -> Any:
        limit_s = self._source.gettimeout()
        if limit_s is None and not flags and not self._encrypted:
            try:
                return receive(size, _AT_ONCE)
            except BlockingIOError:
                pass
        elif limit_s == 0.0 or flags & _AT_ONCE or self._ready(select.POLLIN):
            return receive(size, flags)
        with self._head.waiting():
            return receive(size, flags)

    def _send(self, view: memoryview[int], flags: int) -> int:
        """Send as the source does: a blocking one sends all, unless it fails midway."""
        sent = self._sent_at_once(view, flags)
        blocks = self._source.gettimeout() is None and not flags & _AT_ONCE
        if sent is None or (blocks and sent < view.nbytes):
            start = sent or 0
            try:
                with self._tail.waiting():
                    return start + int(self._source.send(view[start:], flags))
            except OSError:
                if not start:
                    raise
        return sent or 0

    def _sent_at_once(self, view: memoryview[int], flags: int) -> int | None:
        """Send as much as there is room for; return the number of bytes, None if it would wait."""
        send, limit_s = self._source.send, self._source.gettimeout()
        if limit_s is None and not flags and not self._encrypted:
            try:
                return int(send(view, _AT_ONCE))
            except BlockingIOError:
                return None
        if limit_s == 0.0 or flags & _AT_ONCE or self._ready(select.POLLOUT):
            return int(send(view, flags))
        return None

    def _pieces(self, view: memoryview[int]) -> Iterator[memoryview[int]]:
        size = max(1, view.nbytes)  # an empty view is sent as well
        step = _RECORD_BYTES if self._encrypted else size
        for start in range(0, size, step):
            yield view[start : start + step]

    def _ready(self, event: int) -> bool:
        source = self._source
        received = self._encrypted and event == select.POLLIN and source.pending()
        if source.fileno() < 0 or received:
            return True
        poll = select.poll()
        poll.register(source.fileno(), event)
        return bool(poll.poll(0))

    def _count_bytes(self, size: int, flags: int) -> None:
        # Peeked bytes stay in the socket.
        if not flags & _PEEK:
            self._head.count_bytes(size)


def _bytes_of(data: Any) -> memoryview[int]:
    view = memoryview(data)
    try:
        return view.cast("B")
    except TypeError:  # such as no items in several dimensions, or data in pieces
        if not view.c_contiguous:
            raise BufferError("memoryview: underlying buffer is not C-contiguous") from None
        return memoryview(view.tobytes())
