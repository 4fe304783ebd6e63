"""A meter of delay that a test moves."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from benchrigor.testing.clock import FakeClock


class FakeMeter:
    """Measures the delay that a test adds, while its clock moves on; a `protocols.DelayMeter`.

    Parameters
    ----------
    clock
        Moves on by each delay.

    Examples
    --------
    >>> clock = FakeClock()
    >>> meter = FakeMeter(clock)
    >>> meter.lose(2_000_000)
    >>> meter.delay_ns(), clock.now_ns()
    (2000000, 2000000)
    """

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._delay_ns = 0

    def lose(self, delay_ns: int) -> None:
        """Wait for a processor for that long."""
        self._delay_ns += delay_ns
        self._clock.advance(delay_ns)

    def delay_ns(self) -> int:
        """Return the delay so far."""
        return self._delay_ns

    def wait_for(self, pid: int) -> Callable[[], tuple[int, int]]:
        """Measure the delay that a test adds until the process ends, and know all of its work."""
        before_ns = self._delay_ns
        with suppress(AttributeError, OSError):  # not every system has waitid
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return lambda: (self._delay_ns - before_ns, sys.maxsize)
