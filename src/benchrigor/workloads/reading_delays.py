"""Measured delay of readings, read between them about every two milliseconds."""

from __future__ import annotations

import math
import statistics
import time
from bisect import bisect_right
from collections.abc import Callable
from operator import sub

from benchrigor.clocks import cpu_ns_with_children, processors
from benchrigor.model import Code, Notice
from benchrigor.model.interference import DELAY_ELSEWHERE
from benchrigor.protocols import DelayMeter, Recorder

# Asking the kernel takes a microsecond or two, and a preemption lasts about as long as this.
GROUP_NS = 2_000_000
# Segments after which their length is adjusted; again whenever there are four times as many. It
# stays as it is where that is near enough: only segments of equal length can be compared.
_TRIED = 16
# Share of the wall time that others may use without being the measured work, such as progress.
_MOST_ELSEWHERE = 0.1
_NEGLIGIBLE = 0.01  # and without being asked what they made the measured thread wait


class ReadingDelays:
    """Measures the delay of readings while they are taken, outside of what is timed.

    Segments of about equally many readings last one to four milliseconds, or a single reading.
    What other threads of the process may have made it wait is told apart, see `delay_by_others`;
    where they did most of the work, no delay is told.
    """

    def __init__(self, meter: DelayMeter) -> None:
        self.stops: list[int] = []
        self.delays_ns: list[int] = []
        self.durations_ns: list[int] = []
        self._elapsed_ns: list[int] = []  # of the readings under way
        self._kept = 0  # how many of them are in a segment
        self._meter = meter
        self._since_ns: int | None = None
        self._delay_ns = 0
        self._length = 1
        self._closed = 0
        self._adjusted_at = _TRIED
        self._used_ns: tuple[int, int, int] | None = None

    def expect(self, typical_ns: float) -> None:
        """Choose how many readings a segment holds, from how long one takes."""
        self._length = max(1, math.ceil(GROUP_NS / max(typical_ns, 1)))

    def begin(self, elapsed_ns: list[int], *, done: int, readings: int) -> Callable[[int], None]:
        """Return a function that appends a reading, and measures delay between them.

        The round has so many readings done before, and at most so many to come.
        """
        append, close = elapsed_ns.append, self._close
        self._elapsed_ns, self._kept = elapsed_ns, 0
        left = self._next_length(readings)
        self.resume()

        def take(reading_ns: int) -> None:
            nonlocal left
            append(reading_ns)
            left -= 1
            if not left:
                close(elapsed_ns, done)
                left = self._next_length(readings - len(elapsed_ns))

        return take

    def resume(self) -> None:
        """Count from here on."""
        if self._used_ns is None:
            self._used_ns = _used_ns()
        self._since_ns = self._meter.delay_ns()

    def pause(self) -> None:
        """Count up to here; delay before the next `resume` counts for no reading."""
        if self._since_ns is not None:
            self._delay_ns += max(self._meter.delay_ns() - self._since_ns, 0)
            self._since_ns = None

    def forget(self, readings: int) -> None:
        """Forget what was measured after so many readings of the round."""
        kept = bisect_right(self.stops, readings)
        del self.stops[kept:], self.delays_ns[kept:], self.durations_ns[kept:]
        if not kept:
            self._used_ns = None

    def close(self, readings: int) -> None:
        """End the segment under way, if there is one, after so many readings of the round."""
        if readings > (self.stops[-1] if self.stops else 0):
            self.pause()
            self._keep(readings)

    def report(self, recorder: Recorder) -> None:
        """Record the delays of a round, or a Notice where others did most of the work."""
        used_ns = _used_ns()
        own_ns, others_ns, wall_ns = map(sub, used_ns, self._used_ns or used_ns)
        if others_ns > max(own_ns, _MOST_ELSEWHERE * wall_ns):
            recorder.notice(
                Notice.warning(
                    Code.DELAY_NOT_MEASURED,
                    DELAY_ELSEWHERE,
                    own_cpu_s=own_ns / 1e9,
                    other_cpu_s=others_ns / 1e9,
                )
            )
        else:
            delay_ns = sum(self.delays_ns)
            bounds = delay_by_others(delay_ns, own_ns, others_ns, wall_ns, processors())
            self._record(recorder, *(each / max(delay_ns, 1) for each in (*bounds, delay_ns)))
        self.stops, self.delays_ns, self.durations_ns, self._used_ns = [], [], [], None

    def _record(self, recorder: Recorder, least: float, most: float, whole: float) -> None:
        """Record the delays, of which so large a share is by others at least, and at most."""
        delay_s, duration_s = (
            [each / 1e9 for each in column] for column in (self.delays_ns, self.durations_ns)
        )
        if least == whole:
            recorder.delays(self.stops, delay_s, duration_s)
            return
        pairs = zip(delay_s, duration_s, strict=True)
        known = [max(1.0 - (most - least) * each / max(of, 1e-9), 0.0) for each, of in pairs]
        by_others, own = ([share * each for each in delay_s] for share in (least, whole - least))
        recorder.delays(self.stops, by_others, duration_s, known, own)

    def _next_length(self, readings: int) -> int:
        """Return the length of the next of equal segments of the readings to come."""
        return readings // max(1, round(readings / self._length))

    def _close(self, elapsed_ns: list[int], done: int) -> None:
        """End a segment."""
        if self._since_ns is not None:
            self.pause()
            self.resume()
        self._keep(done + len(elapsed_ns))
        self._closed += 1
        if self._closed >= self._adjusted_at:
            self._adjusted_at *= 4
            before = self._length
            self.expect(statistics.median(elapsed_ns[-_TRIED * before :]))
            if before <= 2 * self._length <= 4 * before:
                self._length = before

    def _keep(self, stop: int) -> None:
        self.stops.append(stop)
        self.delays_ns.append(self._delay_ns)
        self.durations_ns.append(sum(self._elapsed_ns[self._kept :]))
        self._delay_ns, self._kept = 0, len(self._elapsed_ns)


def delay_by_others(
    delay_ns: int, own_ns: int, siblings_ns: int, wall_ns: int, processors: int
) -> tuple[int, int]:
    """Return how much of a thread's run delay other programs caused, at least and at most.

    A thread that waits leaves its processor to somebody. Its siblings, threads and children of the
    same process that ran for ``siblings_ns`` in the same wall time, had that processor for no
    longer than they ran: the rest of the delay is by others. And others ran for no longer than the
    process left of all processors, so that they caused no more than that. Both are bounds, and
    nothing is assumed about the scheduler; between them nobody knows. (Counted per round: that
    costs two calls of the system, and tells nothing of when siblings ran. Children that have not
    been waited for count as others, siblings that are bound to other processors as if they were
    not.)
    """
    if siblings_ns <= _NEGLIGIBLE * wall_ns:
        return delay_ns, delay_ns
    least = max(delay_ns - siblings_ns, 0)
    left_ns = max(processors * wall_ns - own_ns - siblings_ns, 0)
    return least, max(least, min(delay_ns, left_ns))


def _used_ns() -> tuple[int, int, int]:
    """Return the processor time of this thread, of all others and children, and wall time."""
    own_ns = time.thread_time_ns()
    return own_ns, cpu_ns_with_children() - own_ns, time.monotonic_ns()
