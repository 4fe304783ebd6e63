"""Which event a thread is in, so that the time of inner events can be taken off the outer one's.

A coroutine or generator that is itself timed has a nest of its own, which its thread has while it
runs a step of it. So what other tasks do meanwhile is not taken for a part of it.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from typing import TypeAlias

from benchrigor.instrument.probing.probe_cell import Cell

Now: TypeAlias = Callable[[], int]


class Nest:
    """Events of one thread or task that are within each other.

    Attributes
    ----------
    top
        Where the innermost one counts.
    alone
        Whether no other task can be there.
    free
        A context of `Probe.again` that was left and can be used again, with the next one.
    """

    __slots__ = ("alone", "free", "top")

    def __init__(self, top: Cell | None = None, *, alone: bool = False) -> None:
        self.top, self.alone, self.free = top, alone, None


class Clock:
    """A clock of probes; events nest by clock, for times of different ones do not subtract.

    Attributes
    ----------
    now
        Returns its nanoseconds.
    times
        An iterator over what `now` returns, without end: nothing equals what is not a number.
    local
        Holds the nest of the calling thread.
    """

    def __init__(self, now: Now) -> None:
        self.now, self.local = now, threading.local()
        self.times: Iterator[int] = iter(now, math.nan)


CLOCKS = {"wall": Clock(time.perf_counter_ns), "cpu": Clock(time.thread_time_ns)}


def new_nest(local: threading.local) -> Nest:
    """Give the calling thread its nest."""
    nest = local.nest = Nest()
    return nest


def nest_of_caller(local: threading.local) -> Nest:
    """Return the nest for a block of the function two frames up.

    A coroutine that nobody times shares its thread's nest with other tasks, which run while it
    waits. Its block has a nest apart: it is in no other event, and none is in it.
    """
    nest: Nest = local.nest
    kind = sys._getframe(2).f_code.co_flags  # noqa: SLF001  # inspect.stack takes a thousand times as long
    return Nest() if kind & (CO_COROUTINE | CO_ASYNC_GENERATOR) and not nest.alone else nest
