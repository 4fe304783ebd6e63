"""Records the readings of a round, in chunks, with delay and reference of its segments."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.clocks import processors
from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Delays, Notice, References, Round, RoundPlan
from benchrigor.model.machine import INTERPRETER
from benchrigor.model.readings import as_clock_times
from benchrigor.model.series import Floats, Ints, as_series
from benchrigor.protocols import Recorder
from benchrigor.stats.series.undisturbed import STOPPED, stops_in
from benchrigor.workloads.processes import own_signals


class RoundRecorder:
    """Receives what one round gives and makes a Round of it.

    Chunks are checked when they arrive and concatenated once, at the end; InvalidInput names the
    first item that is not a finite number.

    Examples
    --------
    >>> from benchrigor.model import RoundPlan
    >>> recorder = RoundRecorder()
    >>> recorder.unit_readings("time", [0.25, 0.5])
    >>> recorder.unit_readings("time", [0.5])
    >>> recorder.reading("throughput", 2.4)
    >>> finished = recorder.finish(RoundPlan(index=0), elapsed_ns=1_250_000_000)
    >>> finished.unit_readings["time"], finished.readings
    (array([0.25, 0.5 , 0.5 ]), {'throughput': 2.4})
    """

    def __init__(self) -> None:
        self._chunks: dict[str, list[Floats]] = {}
        self._readings: dict[str, float] = {}
        self._weights: dict[str, float] = {}
        self._facts: dict[str, str | float | bool | None] = {}
        self._notices: dict[tuple[Code, object], Notice] = {}
        self._starts: list[Ints] = []
        self._measured: dict[str, list[Any]] = {}
        self._cut = False

    def unit_readings(self, metric: str, values: npt.ArrayLike) -> None:
        """Add readings of successive units of work, shape (n,), in the metric's unit."""
        series = as_series(values, name=f"unit readings of {metric!r}")
        self._chunks.setdefault(metric, []).append(series)

    def reading(self, metric: str, value: float, *, weight: float | None = None) -> None:
        """Give the single reading of the whole round; ``weight`` is its weight in the mean."""
        if metric in self._readings:
            raise InvalidInput(
                f"a second reading of {metric!r}, {value!r}, expected one per round; "
                "give several as unit readings"
            )
        (self._readings[metric],) = as_series([value], name=f"reading of {metric!r}").tolist()
        if weight is not None:
            self._weights[metric] = weight

    def delays(self, values: Delays | Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> None:
        """Give measured delays as `Round` has them; plain seconds of readings also in chunks."""
        self._measure("delays", values)

    def starts_ns(self, values: npt.ArrayLike) -> None:
        """Add the start times of n further unit readings, shape (n,), in nanoseconds of a clock."""
        self._starts.append(as_clock_times(values))

    def references(self, values: References | Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> None:
        """Give times of fixed work as `Round` has them; plain seconds also in chunks."""
        self._measure("references", values)

    def _measure(self, what: str, values: Any) -> None:
        """Keep values that are given once, or a chunk of plain seconds."""
        if isinstance(values, Mapping):
            values = {
                name: as_series(value, name=f"{what}[{name!r}]") for name, value in values.items()
            }
        elif not isinstance(values, Delays | References):
            values = as_series(values, name=what)
        parts = self._measured.setdefault(what, [])
        if parts and not all(isinstance(chunk, np.ndarray) for chunk in (parts[0], values)):
            raise InvalidInput(
                f"{what} are given again, expected once in a round, or plain seconds in chunks"
            )
        parts.append(values)

    def fact(self, name: str, value: str | float | bool | None) -> None:
        """State how the measuring was done; the last value of a name counts."""
        self._facts[name] = value

    def notice(self, notice: Notice) -> None:
        """Keep a Notice, the first per code and metric."""
        self._notices.setdefault((notice.code, notice.evidence.get("metric")), notice)

    def cut(self) -> None:
        """State that the round was ended before its work was done."""
        self._cut = True

    def finish(self, plan: RoundPlan, elapsed_ns: int, *, ran_ns: int | None = None) -> Round:
        """Return the round with all that was recorded.

        Parameters
        ----------
        plan
            The plan that was carried out.
        elapsed_ns
            Wall time of the whole round, in nanoseconds.
        ran_ns
            Wall time of the workload alone; None if it is not known.
        """
        measured: dict[str, Any] = {
            name: np.concatenate(parts) if len(parts) > 1 else parts[0]
            for name, parts in self._measured.items()
        }
        return Round(
            plan=plan,
            elapsed_ns=elapsed_ns,
            ran_ns=ran_ns,
            unit_readings={name: np.concatenate(rows) for name, rows in self._chunks.items()},
            readings=self._readings,
            facts=dict(self._facts),
            notices=tuple(self._notices.values()),
            starts_ns=np.concatenate(self._starts) if self._starts else None,
            **measured,
            weights=self._weights,
            cut=self._cut,
        )


# Share of the wall time that others may use without being the measured work, such as progress.
_MOST_ELSEWHERE = 0.1
_LEAST_STOP_S = 1e-3  # a shorter stop is not reported
_NEGLIGIBLE = 0.01  # share of the wall time; siblings that ran less caused no run delay


class Segments:
    """What a `SegmentTimer` measured between the readings of a round, to be recorded.

    Delay by other programs is separated from delay by other threads of the process, see
    `delay_by_others`. If those threads did most of the work, a Notice replaces the delays.

    Parameters
    ----------
    segments, references
        As of the timer, one after the other.
    used_ns
        Processor time of the thread and of all others, and the wall time, since the round began.
    is_metered, is_busy_known
        As of the timer.
    by_turns
        Whether another process was timed between segments.
    """

    def __init__(
        self,
        segments: npt.ArrayLike,
        references: npt.ArrayLike,
        used_ns: npt.ArrayLike,
        *,
        is_metered: bool,
        is_busy_known: bool = True,
        by_turns: bool = False,
    ) -> None:
        columns = np.array(segments, dtype=np.int64).reshape(-1, 5).T
        self._stops, self._began_ns, self._delays_ns, self._durations_ns, self._busy_ns = columns
        self._references = np.array(references, dtype=np.int64).reshape(-1, 2).T
        self._used_ns = np.array(used_ns, dtype=np.int64).tolist()
        self._is_metered, self._by_turns = is_metered, by_turns
        self._busy_s = self._with_others(self._used_ns[1]) if is_busy_known else None

    def report(self, recorder: Recorder, lasting_s: Floats | None = None) -> None:
        """Record references, delays, and the starts of readings of these durations, if given."""
        stops, times_ns = self._references
        if stops.size:
            busy = None
            if self._busy_s is not None:
                so_far_s = np.cumsum(self._busy_s)[np.searchsorted(self._stops, stops)]
                busy = np.diff(so_far_s, prepend=0.0)
            seconds = {INTERPRETER: times_ns / 1e9}
            recorder.references(References(stops=stops, seconds=seconds, busy=busy))
        if self._is_metered:
            self._report_delays(recorder)
        if lasting_s is not None:
            recorder.starts_ns(self._starts_ns(lasting_s))

    def _stopped_between(self) -> Floats:
        """Return the time for which the process was stopped between segments.

        It lengthens no reading, but a run that lost time should say so. With turns it is unknown,
        since the other process ran between segments.
        """
        if self._by_turns:
            return np.zeros(self._stops.size)
        ended_ns = self._began_ns + self._durations_ns
        between_s = np.append(np.maximum(self._began_ns[1:] - ended_ns[:-1], 0.0), 0.0) / 1e9
        return stops_in(between_s, np.full(between_s.size, np.inf))

    def _stopped_inside(self) -> Floats:
        """Return the time for which a signal stopped the process, by segment."""
        if self._busy_s is None:
            return np.zeros(self._stops.size)
        working_s = (self._durations_ns - self._delays_ns) / 1e9
        return stopped_inside(self._began_ns.tolist(), working_s - self._busy_s)

    def _with_others(self, others_ns: int) -> Floats:
        """Return processor time by segment, including other threads and children.

        Their time is known only for the whole round. They ran while this thread did not, so it is
        divided among the segments in proportion to the time in which this thread did not run.
        """
        free_ns = np.maximum(self._durations_ns - self._busy_ns - self._delays_ns, 0.0)
        share = min(others_ns / max(free_ns.sum(), 1.0), 1.0)
        busy_s: Floats = np.maximum(self._busy_ns + share * free_ns, 0.0) / 1e9
        return busy_s

    def _report_delays(self, recorder: Recorder) -> None:
        """Record the delays; the bounds of what other programs caused hold for the whole round."""
        own_ns, others_ns, wall_ns = self._used_ns
        if others_ns > _MOST_ELSEWHERE * wall_ns:
            recorder.fact("other_cpu_s", others_ns / 1e9)
        if others_ns > max(own_ns, _MOST_ELSEWHERE * wall_ns):
            figures = {"own_cpu_s": own_ns / 1e9, "other_cpu_s": others_ns / 1e9}
            recorder.notice(Notice.of(Code.DELAY_NOT_MEASURED, **figures))
            return
        delay_s, duration_s = self._delays_ns / 1e9, self._durations_ns / 1e9
        whole_ns = int(self._delays_ns.sum())
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
                stops=self._stops,
                seconds=seconds,
                duration_s=duration_s,
                known=known,
                own=own,
                busy=self._busy_s,
            )
        )

    def _starts_ns(self, lasting_s: Floats) -> Ints:
        """Return the start times of readings.

        Within a segment, a reading is assumed to begin at the end of the one before it.
        """
        begun = np.append(0, self._stops[:-1])
        lasting_ns = np.rint(lasting_s * 1e9).astype(np.int64)
        before_ns = np.cumsum(lasting_ns) - lasting_ns
        shifts_ns = self._began_ns - before_ns[begun]
        starts: Ints = before_ns + np.repeat(shifts_ns, np.diff(begun, append=lasting_s.size))
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
