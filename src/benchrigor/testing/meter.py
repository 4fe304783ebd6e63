"""A meter of delay that loses time only when it is told to."""

from __future__ import annotations

from benchrigor.testing.clock import FakeClock

__all__ = ["FakeMeter"]


class FakeMeter:
    """Tells a test's own delay, and lets it pass on a clock; a `protocols.DelayMeter`.

    Parameters
    ----------
    clock
        Moves on by whatever is lost.

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
        self._lost_ns = 0

    def lose(self, delay_ns: int) -> None:
        """Wait for a processor for so long."""
        self._lost_ns += delay_ns
        self._clock.advance(delay_ns)

    def delay_ns(self) -> int:
        """Return all that was lost so far."""
        return self._lost_ns

    def delay_of(self, pid: int) -> int | None:  # noqa: ARG002  # as the protocol has it
        """Return the same for any process."""
        return self._lost_ns
