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
    """Nested events of one thread or task.

    Attributes
    ----------
    top
        The cell of the innermost event.
    alone
        Whether no other task can share the nest.
    free
        Linked list of contexts of `Probe.again` that were left and can be used again.
    """

    __slots__ = ("alone", "free", "top")

    def __init__(self, top: Cell | None = None, *, alone: bool = False) -> None:
        self.top, self.alone, self.free = top, alone, None


class Clock:
    """A clock of probes; events nest by clock, for times of different clocks do not subtract.

    Attributes
    ----------
    now
        Returns its nanoseconds.
    times
        An endless iterator over the times from `now`: it would end at NaN, which equals no time.
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

    A coroutine without a probe shares its thread's nest with other tasks, which run while it
    waits. So its block gets a separate nest: it does not nest with other events.
    """
    nest: Nest = local.nest
    kind = sys._getframe(2).f_code.co_flags  # noqa: SLF001  # inspect.stack takes a thousand times as long
    return Nest() if kind & (CO_COROUTINE | CO_ASYNC_GENERATOR) and not nest.alone else nest
