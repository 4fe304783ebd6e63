"""What is measured between readings, about every two milliseconds: delay, and the reference."""

from __future__ import annotations

import math
import statistics
import time
from bisect import bisect_right
from collections.abc import Callable
from operator import sub

import numpy as np

from benchrigor.clocks import cpu_ns_with_children, processors
from benchrigor.model import Code, Delays, Notice, References
from benchrigor.model.interference import DELAY_ELSEWHERE
from benchrigor.model.pace import INTERPRETER
from benchrigor.model.series import Floats, Ints
from benchrigor.protocols import DelayMeter, Recorder
from benchrigor.workloads.reference import Reference

# Asking the kernel takes a microsecond or two, and a preemption lasts about as long as this.
GROUP_NS = 500_000
# Segments after which their length is adjusted; again whenever there are four times as many. It
# stays as it is where that is near enough: only segments of equal length can be compared.
_TRIED = 16
# Share of the wall time that others may use without being the measured work, such as progress.
_MOST_ELSEWHERE = 0.1
_NEGLIGIBLE = 0.01  # and without being asked what they made the measured thread wait


class ReadingDelays:
    """Measures the delay of readings while they are taken, and the reference in turn with them.

    Both happen outside of what is timed. Either may be missing.

    Segments of about equally many readings last one to four milliseconds, or a single reading.
    What other threads of the process may have made it wait is told apart, see `delay_by_others`;
    where they did most of the work, no delay is told.
    """

    def __init__(
        self,
        meter: DelayMeter | None,
        now_ns: Callable[[], int],
        reference: Reference | None = None,
    ) -> None:
        self.reference = reference
        self.stops: list[int] = []
        self._starts_ns: list[int] = []  # of the segments
        self._references: list[tuple[int, int]] = []  # times, each after so many readings
        self._now_ns = now_ns
        self.delays_ns: list[int] = []
        self.durations_ns: list[int] = []
        self._elapsed_ns: list[int] = []  # of the readings under way
        self._kept = 0  # how many of them are in a segment
        self._delay_so_far_ns: Callable[[], int] = _nothing if meter is None else meter.delay_ns
        self._is_metered = meter is not None
        self._since_ns: int | None = None
        self._paused_ns = 0
        self._began_ns: int | None = None  # the segment under way
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
        self._began_ns = None
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
        if self._began_ns is None:
            self._began_ns = self._now_ns()
        self._since_ns = self._delay_so_far_ns()

    def pause(self) -> None:
        """Count up to here; delay before the next `resume` counts for no reading."""
        if self._since_ns is not None:
            self._paused_ns = self._delay_so_far_ns()
            self._delay_ns += max(self._paused_ns - self._since_ns, 0)
            self._since_ns = None

    def forget(self, readings: int) -> None:
        """Forget what was measured after so many readings of the round."""
        kept = bisect_right(self.stops, readings)
        del self.stops[kept:], self.delays_ns[kept:], self.durations_ns[kept:]
        del self._starts_ns[kept:]
        self._references = [each for each in self._references if each[0] <= readings]
        if not kept:
            self._used_ns = None

    def close(self, readings: int) -> None:
        """End the segment under way, if there is one, after so many readings of the round."""
        if readings > (self.stops[-1] if self.stops else 0):
            self.pause()
            self._keep(readings)

    def report(self, recorder: Recorder) -> None:
        """Record the delays of a round, or a Notice where others did most of the work."""
        if self._references:
            stops, times_ns = zip(*self._references, strict=True)
            seconds = {INTERPRETER: [each / 1e9 for each in times_ns]}
            recorder.references(References(stops=stops, seconds=seconds))
        if self._is_metered:
            self._report_delays(recorder)
        self.stops, self.delays_ns, self.durations_ns, self._used_ns = [], [], [], None
        self._starts_ns, self._references = [], []

    def _report_delays(self, recorder: Recorder) -> None:
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

    def _record(self, recorder: Recorder, least: float, most: float, whole: float) -> None:
        """Record the delays, of which so large a share is by others at least, and at most."""
        delay_s, duration_s = (
            [each / 1e9 for each in column] for column in (self.delays_ns, self.durations_ns)
        )
        by_others, known, own = delay_s, None, None
        if least != whole:
            pairs = zip(delay_s, duration_s, strict=True)
            known = [max(1.0 - (most - least) * each / max(of, 1e-9), 0.0) for each, of in pairs]
            by_others, own = (
                [share * each for each in delay_s] for share in (least, whole - least)
            )
        seconds = {"run queue": by_others}
        recorder.delays(
            Delays(stops=self.stops, seconds=seconds, duration_s=duration_s, known=known, own=own)
        )

    def _next_length(self, readings: int) -> int:
        """Return the length of the next of equal segments of the readings to come."""
        return readings // max(1, round(readings / self._length))

    def _close(self, elapsed_ns: list[int], done: int) -> None:
        """End a segment."""
        is_running = self._since_ns is not None
        if is_running:
            self.pause()
        self._keep(done + len(elapsed_ns))
        time_ns, before_ns = self._reference_ns(is_running)
        if is_running:
            self.resume()
        if time_ns and (self._since_ns if is_running else self._delay_so_far_ns()) == before_ns:
            self._references.append((self.stops[-1], time_ns))
        self._closed += 1
        if self._closed >= self._adjusted_at:
            self._adjusted_at *= 4
            before = self._length
            self.expect(statistics.median(elapsed_ns[-_TRIED * before :]))
            if before <= 2 * self._length <= 4 * before:
                self._length = before

    def _reference_ns(self, is_paused: bool) -> tuple[int, int]:
        """Measure the reference if it is due, else 0; and tell the delay until before it."""
        reference = self.reference
        if reference is None or not reference.is_due(self._now_ns()):
            return 0, 0
        before_ns = self._paused_ns if is_paused else self._delay_so_far_ns()
        return reference.measure(self.durations_ns[-1]), before_ns

    def starts_ns(self, readings_s: Floats, done: int) -> Ints:
        """Return when readings began that took so long, after so many others of the round.

        Within a segment as if each began where the one before it ended.
        """
        first = bisect_right(self.stops, done)
        begun = np.array([done, *self.stops[first:-1]]) - done
        lasting_ns = np.rint(readings_s * 1e9).astype(np.int64)
        before_ns = np.cumsum(lasting_ns) - lasting_ns
        shifts_ns = np.array(self._starts_ns[first:]) - before_ns[begun]
        starts: Ints = before_ns + np.repeat(shifts_ns, np.diff(begun, append=readings_s.size))
        return starts

    def _keep(self, stop: int) -> None:
        self.stops.append(stop)
        self._starts_ns.append(self._began_ns or 0)
        self._began_ns = None
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


def _nothing() -> int:
    return 0


def _used_ns() -> tuple[int, int, int]:
    """Return the processor time of this thread, of all others and children, and wall time."""
    own_ns = time.thread_time_ns()
    return own_ns, cpu_ns_with_children() - own_ns, time.monotonic_ns()
