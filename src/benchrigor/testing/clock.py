"""A clock that moves only on request."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class FakeClock:
    """A clock without time of its own, so that hours of measuring pass in milliseconds.

    Parameters
    ----------
    start_ns
        The first time that it shows.
    resolution_ns
        The clock shows whole multiples of it.
    cost_ns
        How far each read moves the clock.
    script
        The times that it shows first, in any case; it may go backwards or stand still.
        After the last of them the clock goes on from there.

    Examples
    --------
    >>> clock = FakeClock(cost_ns=1)
    >>> clock.sleep_ns(500)
    >>> clock.now_ns(), clock.now_ns()
    (500, 501)
    >>> broken = FakeClock(script=[100, 90])
    >>> broken.now_ns(), broken.now_ns(), broken.now_ns()
    (100, 90, 90)
    """

    def __init__(
        self,
        start_ns: int = 0,
        resolution_ns: int = 1,
        cost_ns: int = 0,
        *,
        script: Iterable[int] = (),
    ) -> None:
        self.resolution_ns = resolution_ns
        self._cost_ns = cost_ns
        self._time_ns = start_ns
        self._script = deque(script)

    def now_ns(self) -> int:
        """Return the time shown, and move on by the cost of a read."""
        if self._script:
            self._time_ns = self._script.popleft()
            return self._time_ns
        shown = self._time_ns - self._time_ns % self.resolution_ns
        self._time_ns += self._cost_ns
        return shown

    def advance(self, duration_ns: int) -> None:
        """Move by ``duration_ns``; a negative duration moves back, which no clock should."""
        self._time_ns += duration_ns

    def sleep_ns(self, duration_ns: int) -> None:
        """Move by ``duration_ns`` without waiting."""
        self.advance(duration_ns)
