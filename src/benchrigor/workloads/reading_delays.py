"""What readings lost to others, measured between them, about two milliseconds at a time."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from operator import sub

from benchrigor.model import Code, Notice
from benchrigor.protocols import DelayMeter, Recorder

try:
    from resource import RUSAGE_CHILDREN, getrusage
except ImportError:  # Windows
    getrusage = None  # type: ignore[assignment]

__all__ = ["Stretches"]

_SHORTEST_NS = 2_000_000
"""Asking the kernel takes a microsecond or two, and a preemption lasts about as long as this."""
_TRIED = 16
"""Stretches after which their length is judged; again whenever there are four times as many.
It stays what it was where that is near enough: only like ones can be compared."""
_BY_THE_WAY = 0.1
"""Share of the time that others may use without being what is measured: showing progress, say."""


class Stretches:
    """Measures the delay of readings while they are taken, outside of what is timed.

    Readings are counted into stretches of about equally many, lasting one to four milliseconds or
    a single reading: then stretches can be compared with each other, and each delay stands beside
    the readings that it befell.

    Parameters
    ----------
    meter
        Tells what the thread has lost so far.

    Examples
    --------
    >>> class Meter:
    ...     def delay_ns(self):
    ...         return 0
    >>> stretches, elapsed_ns = Stretches(Meter()), []
    >>> stretches.expect(500_000)
    >>> taken = stretches.begin(elapsed_ns, done=0, readings=20)
    >>> for _ in range(20):
    ...     taken(500_000)
    >>> len(elapsed_ns), stretches.stops
    (20, [4, 8, 12, 16, 20])
    """

    def __init__(self, meter: DelayMeter) -> None:
        self.stops: list[int] = []
        self.delays_ns: list[int] = []
        self._meter = meter
        self._since_ns: int | None = None
        self._lost_ns = 0
        self._length = 1
        self._closed = 0
        self._judged_at = _TRIED
        self._used = _used_ns()

    def expect(self, typical_ns: float) -> None:
        """Choose how many readings a stretch shall hold, from how long one takes."""
        self._length = max(1, math.ceil(_SHORTEST_NS / max(typical_ns, 1)))

    def begin(self, elapsed_ns: list[int], *, done: int, readings: int) -> Callable[[int], None]:
        """Return what takes the next readings: it appends them, and measures between them.

        Parameters
        ----------
        elapsed_ns
            Receives the readings, in nanoseconds.
        done
            Readings of the round before these.
        readings
            How many there will be, at most.
        """
        append, close = elapsed_ns.append, self._close
        left = self._next(readings)
        self.resume()

        def taken(reading_ns: int) -> None:
            nonlocal left
            append(reading_ns)
            left -= 1
            if not left:
                close(elapsed_ns, done)
                left = self._next(readings - len(elapsed_ns))

        return taken

    def resume(self) -> None:
        """Count from here on."""
        self._since_ns = self._meter.delay_ns()

    def pause(self) -> None:
        """Count up to here; what is lost before the next `resume` befalls no reading."""
        if self._since_ns is not None:
            self._lost_ns += max(self._meter.delay_ns() - self._since_ns, 0)
            self._since_ns = None

    def report(self, recorder: Recorder, readings: int) -> None:
        """Hand over the stretches of a round, the last one however short, and forget them.

        Where others did most of the work, what this thread lost does not speak for it: a Notice
        says so instead.

        Parameters
        ----------
        recorder
            Receives them.
        readings
            Readings of the round.
        """
        if readings > (self.stops[-1] if self.stops else 0):
            self.pause()
            self._keep(readings)
        used = _used_ns()
        own_ns, others_ns, wall_ns = map(sub, used, self._used)
        if others_ns > max(own_ns, _BY_THE_WAY * wall_ns):
            recorder.notice(_elsewhere(own_ns, others_ns))
        else:
            recorder.delays(self.stops, [each / 1e9 for each in self.delays_ns])
        self.stops, self.delays_ns, self._used = [], [], used

    def _next(self, readings: int) -> int:
        """Return how many of the readings to come the next stretch holds: about as many as all."""
        return readings // max(1, round(readings / self._length))

    def _close(self, elapsed_ns: list[int], done: int) -> None:
        """End a stretch."""
        if self._since_ns is not None:
            self.pause()
            self.resume()
        self._keep(done + len(elapsed_ns))
        self._closed += 1
        if self._closed >= self._judged_at:
            self._judged_at *= 4
            before = self._length
            self.expect(statistics.median(elapsed_ns[-_TRIED * before :]))
            if before <= 2 * self._length <= 4 * before:
                self._length = before

    def _keep(self, stop: int) -> None:
        self.stops.append(stop)
        self.delays_ns.append(self._lost_ns)
        self._lost_ns = 0


def _used_ns() -> tuple[int, int, int]:
    """Return the processor time of this thread, of all others and children waited for, and now."""
    own_ns, all_ns = time.thread_time_ns(), time.process_time_ns()
    if getrusage is not None:
        used = getrusage(RUSAGE_CHILDREN)
        all_ns += round((used.ru_utime + used.ru_stime) * 1e9)
    return own_ns, all_ns - own_ns, time.monotonic_ns()


def _elsewhere(own_ns: int, others_ns: int) -> Notice:
    return Notice.warning(
        Code.DELAY_NOT_MEASURED,
        "Most processor time was used by other threads or processes: what they lost to others "
        "is not measured.",
        own_cpu_s=own_ns / 1e9,
        other_cpu_s=others_ns / 1e9,
    )
