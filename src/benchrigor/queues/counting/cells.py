"""Counters of the ends of queues, in a file that any process may map into its memory.

A program in any language counts by mapping the file (``mmap``, shared) and storing into it. All
words are unsigned, 64 bits wide, in the machine's byte order, and are stored one by one, aligned.
Times are nanoseconds of ``CLOCK_MONOTONIC``, which all processes of a Linux machine share. Reserved
words are 0.

The file begins with a header of 64 bytes, 8 words:

====  ==========  =================================================================
word  name        meaning
====  ==========  =================================================================
0     magic       the 8 bytes ``BRIGCELL``
1     version     1
2     cells       number of cells that the file has room for
3     cell_bytes  128
4     claimed     number of cells in use: the first ones, in the order they were claimed
5     refused     number of claims that failed because no cell was free
6, 7  reserved
====  ==========  =================================================================

Cell k takes the 128 bytes from 64 + 128 k on, 8 words and a name:

====  ==============  ============================================================
word  name            meaning
====  ==============  ============================================================
0     items           that passed
1     bytes           that passed; 0 if they are not counted
2     blocked_events  waits begun
3     blocked_ns      of the waits ended; the rule below adds the others
4     waiting         waits begun and not ended
5     owner           process id << 32, plus the native thread id; 0 for the thread
                      if several write, or if it is unknown
6     closed          1 once counting has ended
7     check           blocked_ns XOR waiting
====  ==============  ============================================================

The name that follows has 64 bytes, UTF-8, filled up with zero bytes. It names the queue and its
end, by convention ``<queue>.head`` (the consumer's) or ``<queue>.tail`` (the producer's). Every
process that uses the end has a cell of this name.

**To claim a cell**: open the file again and take an exclusive ``flock``. If claimed = cells, add 1
to refused and give up; else write name and owner into cell number claimed, and add 1 to claimed.
Unlock. Only one writer at a time writes into a cell: a process, or the one of its threads that
holds the lock under which they count. The counters of a cell never go back.

**To begin a wait** at time t: blocked_events + 1, waiting + 1, blocked_ns - t. To **end** it:
waiting - 1, blocked_ns + t. All modulo 2^64, then check. So the time blocked until now, including
waits under way, is (blocked_ns + waiting * now) modulo 2^64 for any number of waits at once. It is
right without the writer's help while the writer waits, even if the writer is killed.

**To read**: copy the words; if check does not fit, the writer is between two stores: copy again.
A result of 2^63 or more means that a wait has begun since the reader read its clock.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

from benchrigor.model.one_line import OneLine

_BYTES = 64
_MASK, _HALF = (1 << 64) - 1, 1 << 63
_TRIES = 64
# Whether one lock lets only one thread run at a time, as in all builds but free-threaded ones.
_TAKES_TURNS = getattr(sys, "_is_gil_enabled", lambda: True)()

_Method = TypeVar("_Method", bound=Callable[..., Any])


def keep_whole(method: _Method, *, takes_turns: bool = _TAKES_TURNS) -> _Method:
    """Keep other threads out of a method, by the object's ``lock`` if that is needed.

    Threads that take turns change only at calls and in loops: the method has neither.
    """
    if takes_turns:
        return method

    @functools.wraps(method)
    def lock_and_run(self: Any, *args: Any, **options: Any) -> Any:
        with self.lock:
            return method(self, *args, **options)

    return cast("_Method", lock_and_run)


def blocked_until(blocked_ns: Any, waiting: Any, now_ns: Any) -> Any:
    """Return the time blocked until now from the words of cells; unsigned, numbers or arrays."""
    return (blocked_ns + waiting * now_ns) & _MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(OneLine):
    """Counts of one process at one end of a queue, since it began."""

    name: str
    items: int
    bytes: int
    blocked_events: int  # waits begun
    blocked_ns: int  # nanoseconds waited, including waits under way; the sum over all waiters
    waiting: int  # waits under way
    pid: int
    tid: int | None  # native id of the thread that counts; None if several do, or if unknown
    closed: bool  # whether counting has ended


class Cell:
    """The counters of one process at one end of a queue; a page hands them out."""

    __slots__ = (
        "_blocked_ns",
        "_bytes",
        "_events",
        "_items",
        "_seen_ns",
        "_waiting",
        "lock",
        "name",
        "words",
    )

    def __init__(self, words: memoryview[int], name: str) -> None:
        self.words = words
        self.name = name
        self.lock = threading.RLock()
        self._seen_ns = 0
        # Copies of the words: storing takes half the time of reading and storing.
        self._items = self._events = self._blocked_ns = self._waiting = 0
        self._bytes: float = 0  # sizes of items may be means

    @classmethod
    def spare(cls, name: str) -> Self:
        """Return a cell that no other process sees."""
        return cls(memoryview(bytearray(_BYTES)).cast("Q"), name)

    @keep_whole
    def count(self) -> None:
        """Count an item."""
        self._items = items = self._items + 1
        self.words[0] = items

    @keep_whole
    def count_bytes(self, size: float) -> None:
        """Count an item of ``size`` bytes."""
        self._items = items = self._items + 1
        self._bytes = total = self._bytes + size
        self.words[0] = items
        self.words[1] = int(total) & _MASK

    @keep_whole
    def begin_wait(self, at_ns: int) -> None:
        """Begin a wait; any number may be under way."""
        words = self.words
        self._events = events = self._events + 1
        self._blocked_ns = blocked_ns = (self._blocked_ns - at_ns) & _MASK
        self._waiting = waiting = self._waiting + 1
        words[2] = events
        words[3] = blocked_ns
        words[4] = waiting
        words[7] = blocked_ns ^ waiting

    @keep_whole
    def end_wait(self, at_ns: int) -> None:
        """End a wait, if there is one."""
        if self._waiting:
            words = self.words
            self._blocked_ns = blocked_ns = (self._blocked_ns + at_ns) & _MASK
            self._waiting = waiting = self._waiting - 1
            words[3] = blocked_ns
            words[4] = waiting
            words[7] = blocked_ns ^ waiting

    def own(self, thread: int | None) -> None:
        """Note which thread of this process writes; None when several do."""
        known = thread is not None and thread < 1 << 32
        self.words[5] = os.getpid() << 32 | (thread or 0 if known else 0)

    def close(self, at_ns: int) -> None:
        """End all waits, and mark that counting has ended."""
        while self._waiting:
            self.end_wait(at_ns)
        self.words[6] = 1

    def read(self, now_ns: int | None = None) -> Counts:
        """Return the counts, with waits under way until now, or until a given time.

        The blocked time never goes back; a writer that was killed between two stores leaves it.
        """
        last_ns = self._seen_ns
        for _ in range(_TRIES):
            items, size, events, blocked_ns, waiting, owner, closed, check = self.words.tolist()
            if blocked_ns ^ waiting == check:
                now = time.perf_counter_ns() if now_ns is None else now_ns
                gained_ns = (blocked_until(blocked_ns, waiting, now) - last_ns) & _MASK
                # Less than before: a wait began or ended after the clock was read.
                last_ns += gained_ns if gained_ns < _HALF else 0
                break
        self._seen_ns = last_ns
        return Counts(
            name=self.name,
            items=items,
            bytes=size,
            blocked_events=events,
            blocked_ns=last_ns,
            waiting=waiting,
            pid=owner >> 32,
            tid=owner & 0xFFFFFFFF or None,
            closed=bool(closed),
        )
