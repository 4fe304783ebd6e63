"""Record delay and reference of the segments of a round."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import sub

import numpy as np

from benchrigor.clocks import cpu_ns_with_children, processors
from benchrigor.model import Code, Delays, Notice, References
from benchrigor.model.pace import INTERPRETER
from benchrigor.model.series import Floats, Ints
from benchrigor.protocols import Recorder
from benchrigor.stats.series.undisturbed import STOPPED, stops_in
from benchrigor.workloads.processes import own_signals
from benchrigor.workloads.processes.worker import SegmentTimer

# Share of the wall time that others may use without being the measured work, such as progress.
_MOST_ELSEWHERE = 0.1
_LEAST_STOP_S = 1e-3  # a shorter stop is not reported
_NEGLIGIBLE = 0.01  # share of the wall time; siblings that ran less caused no run delay


class ReadingDelays(SegmentTimer):
    """Records the measurements of a `SegmentTimer` in a round.

    Delay by other programs is separated from delay by other threads of the process, see
    `delay_by_others`. If those threads did most of the work, a Notice replaces the delays.
    """

    by_turns = False  # whether another process was timed between segments
    _busy_s: Floats | None = None  # by segment of the reported round

    def _cpu_ns(self) -> int:
        return cpu_ns_with_children()  # finer than what every interpreter has

    def report(self, recorder: Recorder, used_ns: Sequence[int] | None = None) -> None:
        """Record the delays of a round, or a Notice if other threads did most of the work.

        ``used_ns`` is the processor time of the thread and of all others, and the wall time; None
        takes all three since the round began.
        """
        now_ns = self.spent_ns()
        used_ns = used_ns or [*map(sub, now_ns, self.used_ns or now_ns)]
        self._busy_s = self._with_others(used_ns[1]) if self.is_busy_known else None
        if self.references:
            stops, times_ns = zip(*self.references, strict=True)
            seconds = {INTERPRETER: [ns / 1e9 for ns in times_ns]}
            busy = None
            if self._busy_s is not None:
                so_far_s = np.cumsum(self._busy_s)[np.searchsorted(self.stops, stops)]
                busy = np.diff(so_far_s, prepend=0.0)
            recorder.references(References(stops=stops, seconds=seconds, busy=busy))
        if self.is_metered:
            self._report_delays(recorder, used_ns)
        self.clear()

    def _stopped_between(self) -> Floats:
        """Return the time for which the process was stopped between segments.

        It lengthens no reading, but a run that lost time should say so. With turns it is unknown,
        since the other process ran between segments.
        """
        if self.by_turns:
            return np.zeros(len(self.stops))
        durations_ns = np.array(self.durations_ns, dtype=np.float64)
        ended_ns = np.array(self.began_ns) + durations_ns
        between_s = np.append(np.maximum(self.began_ns[1:] - ended_ns[:-1], 0.0), 0.0) / 1e9
        return stops_in(between_s, np.full(between_s.size, np.inf))

    def _stopped_inside(self) -> Floats:
        """Return the time for which a signal stopped the process, by segment."""
        if self._busy_s is None:
            return np.zeros(len(self.stops))
        duration_s, delay_s = np.array(self.durations_ns) / 1e9, np.array(self.delays_ns) / 1e9
        return stopped_inside(self.began_ns, duration_s - delay_s - self._busy_s)

    def _with_others(self, others_ns: int) -> Floats:
        """Return processor time by segment, including other threads and children.

        Their time is known only for the whole round. They ran while this thread did not, so it is
        divided among the segments in proportion to the time in which this thread did not run.
        """
        busy_ns = np.array(self.busy_ns, dtype=np.float64)
        free_ns = np.maximum(np.subtract(self.durations_ns, busy_ns) - self.delays_ns, 0.0)
        share = min(others_ns / max(free_ns.sum(), 1.0), 1.0)
        busy_s: Floats = np.maximum(busy_ns + share * free_ns, 0.0) / 1e9
        return busy_s

    def _report_delays(self, recorder: Recorder, used_ns: Sequence[int]) -> None:
        """Record the delays; the bounds of what other programs caused hold for the whole round."""
        own_ns, others_ns, wall_ns = used_ns
        if others_ns > _MOST_ELSEWHERE * wall_ns:
            recorder.fact("other_cpu_s", others_ns / 1e9)
        if others_ns > max(own_ns, _MOST_ELSEWHERE * wall_ns):
            figures = {"own_cpu_s": own_ns / 1e9, "other_cpu_s": others_ns / 1e9}
            recorder.notice(Notice.of(Code.DELAY_NOT_MEASURED, **figures))
            return
        delay_s, duration_s = np.array(self.delays_ns) / 1e9, np.array(self.durations_ns) / 1e9
        whole_ns = sum(self.delays_ns)
        bounds = delay_by_others(whole_ns, own_ns, others_ns, wall_ns, processors())
        least, most, whole = (part_ns / max(whole_ns, 1) for part_ns in (*bounds, whole_ns))
        by_others, known, own = delay_s, None, None
        if least != whole:
            known = np.maximum(1.0 - (most - least) * delay_s / np.maximum(duration_s, 1e-9), 0.0)
            by_others, own = least * delay_s, (whole - least) * delay_s
        between_s, seconds = self._stopped_between(), {"run queue": by_others}
        if (stopped_s := between_s + self._stopped_inside()).any():
            seconds[STOPPED] = stopped_s
            duration_s = between_s + duration_s
        recorder.delays(
            Delays(
                stops=self.stops,
                seconds=seconds,
                duration_s=duration_s,
                known=known,
                own=own,
                busy=self._busy_s,
            )
        )

    def starts_ns(self, readings_s: Floats, done: int) -> Ints:
        """Return the start times of readings with these durations, after ``done`` others.

        Within a segment, a reading is assumed to begin at the end of the one before it.
        """
        first = bisect_right(self.stops, done)
        begun = np.array([done, *self.stops[first:-1]]) - done
        lasting_ns = np.rint(readings_s * 1e9).astype(np.int64)
        before_ns = np.cumsum(lasting_ns) - lasting_ns
        shifts_ns = np.array(self.began_ns[first:]) - before_ns[begun]
        starts: Ints = before_ns + np.repeat(shifts_ns, np.diff(begun, append=readings_s.size))
        return starts


def stopped_inside(began_ns: Sequence[int], rest_s: Floats) -> Floats:
    """Return the time for which a signal stopped the process, by segment.

    A segment in which the process was continued has more time that is neither work nor delay than
    the others; the difference is the stop.
    """
    stopped_s = np.zeros(rest_s.size)
    for moment_ns in own_signals.continued_ns:
        place = bisect_right(began_ns, moment_ns) - 1
        usual_s = float(np.median(np.delete(rest_s, place))) if rest_s.size > 1 else 0.0
        if place >= 0 and rest_s[place] - usual_s > _LEAST_STOP_S:
            stopped_s[place] = rest_s[place] - usual_s
    return stopped_s


def delay_by_others(
    delay_ns: int, own_ns: int, siblings_ns: int, wall_ns: int, processors: int
) -> tuple[int, int]:
    """Return bounds of the run delay that other programs caused a thread: minimum and maximum.

    While a thread waits, something else has its processor. Its siblings, the threads and children
    of the same process, ran for ``siblings_ns`` in the same wall time, so they had that processor
    for no longer. Other programs caused the rest of the delay: the minimum. Other programs could
    run only in the time that the process left of all processors: the maximum. The bounds assume
    no particular scheduler. (The counts are per round: they cost two system calls, and do not show
    when siblings ran. Children that were not waited for count as other programs. Siblings that are
    bound to other processors count as if they were not.)
    """
    if siblings_ns <= _NEGLIGIBLE * wall_ns:
        return delay_ns, delay_ns
    least = max(delay_ns - siblings_ns, 0)
    left_ns = max(processors * wall_ns - own_ns - siblings_ns, 0)
    return least, max(least, min(delay_ns, left_ns))
