"""The recording of one thread, boundary by boundary; the part of it that must be fast."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from operator import sub
from pathlib import Path
from typing import Any

from benchrigor.clocks import cpu_ns_with_children
from benchrigor.errors import InvalidInput
from benchrigor.interference.recording.segment_columns import BINS, SegmentColumns
from benchrigor.interference.recording.thread_counters import ThreadCounters
from benchrigor.machine.host_delays import HostDelays, read_pressure
from benchrigor.machine.kernel_files import ROOT, Unavailable

# A boundary takes some 10 microseconds; one that took longer was itself disturbed.
_HELD_UP_NS = 50_000
# The host is read at most once in 10 ms, and for at most a 500th of the time: it takes 20
# microseconds with warm caches, 200 with cold ones, more on machines with many processors.
_HOST_NS, _HOST_MOST_NS, _HOST_SHARE = 10_000_000, 250_000_000, 500


class Recording:
    """The segments between `start` and `stop`, in the thread that called `start`."""

    def __init__(
        self,
        *,
        root: Path = ROOT,
        now_ns: Callable[[], int] = time.perf_counter_ns,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
        all_cpu_ns: Callable[[], int] = cpu_ns_with_children,
    ) -> None:
        self.now_ns = now_ns
        self._cpu_ns, self._all_cpu_ns = cpu_ns, all_cpu_ns
        self._cpus_ns = 0, 0
        self._root = root
        self._counters = ThreadCounters(root=root, cpu_ns=cpu_ns)
        self._host = HostDelays(root=root, cpu_ns=cpu_ns, now_ns=now_ns)
        self._columns = SegmentColumns()
        self._facts: dict[str, str | float] = {"bins": BINS}
        self._thread: int | None = None
        self._open = False
        self._pauses = 0
        self._counts: dict[str, int | float] = {}
        self._base: tuple[int, ...] = ()
        self._began_ns = self._started_ns = self._cost_ns = self._host_due_ns = 0
        self._pressure: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def running(self) -> bool:
        """Whether the calling thread is being recorded."""
        return self._thread == threading.get_native_id()

    def start(self) -> None:
        """Begin to record the calling thread."""
        if self._base:
            raise InvalidInput("this recorder has been entered before, expected a new one")
        self._counters.start()
        try:
            self._host.start()
            self._pressure = self._read_pressure()
            self._cpus_ns = self._cpu_ns(), self._all_cpu_ns()
            self._started_ns = self.now_ns()
            self._host_due_ns = self._started_ns + _HOST_NS
            self._base = self._counters.read()
            self._thread = threading.get_native_id()
            self._resume(self._started_ns)
        except BaseException:
            self._close()
            raise

    def stop(self) -> None:
        """Stop recording."""
        try:
            own_ns = self._cpu_ns() - self._cpus_ns[0]
            all_ns = self._all_cpu_ns() - self._cpus_ns[1]
            self._facts |= {
                "wall_s": (self.now_ns() - self._started_ns) / 1e9,
                "recording_cost_s": self._cost_ns / 1e9,
                "thread_cpu_s": own_ns / 1e9,
                "other_cpu_s": max(0, all_ns - own_ns) / 1e9,
            }
            self._columns.attribute(self._host.read())
        finally:
            self._close()
        after = self._read_pressure()
        for name in self._pressure.keys() & after.keys():
            self._facts[name] = round(after[name] - self._pressure[name], 6)

    def check_place(self) -> None:
        """Raise if no segment can begin or end."""
        thread = threading.get_native_id()
        if thread == self._thread and not self._open and not self._pauses:
            return
        if self._thread is None:
            raise InvalidInput("the recorder is not running, expected `with` around its segments")
        if thread != self._thread:
            raise InvalidInput(
                "a segment in another thread or process than the recorder's, expected a recorder "
                "in each; profiles can be merged"
            )
        place = "a pause" if self._pauses else "another segment"
        raise InvalidInput(f"a segment inside of {place}, expected one after the other")

    def begin(self) -> None:
        """Begin a segment that `finish` will end."""
        came_ns = self.now_ns()
        self.check_place()
        self._open = True
        self._counts = dict.fromkeys(self._counts, 0)
        self._base = self._read()
        self._resume(came_ns)

    def finish(
        self, ended_ns: int, label: str, work: float | None, *, unfinished: bool = False
    ) -> None:
        """End the segment that began at the last boundary, and begin another."""
        self._open = False
        if self._thread is None:  # a loop over `Segments.over` that was left, and closed late
            return
        counters = self._read()
        columns = self._columns
        columns.add(ended_ns - self._began_ns, map(sub, counters, self._base), label, work)
        if self._counts:
            columns.add_counts(self._counts)
        if unfinished:
            columns.mark_unfinished()
        self._base = counters
        is_due = columns.full or ended_ns >= self._host_due_ns
        if is_due:
            self._pack_and_read_host(ended_ns)
        self._resume(ended_ns, again=is_due)

    def count(self, name: str, amount: float) -> None:
        """Add to a nominal feature of the current segment."""
        self._counts[name] = self._counts.get(name, 0) + amount

    def pause(self) -> None:
        """Leave computation and delay out of the segment, until `proceed`."""
        self._pauses += 1
        if self._pauses == 1:
            self._counters.pause()

    def proceed(self) -> None:
        """End a pause."""
        self._pauses -= 1
        if not self._pauses:
            self._counters.proceed()

    def profile(self) -> dict[str, Any]:
        """Return the columns and facts of a `SegmentProfile`."""
        if not len(self):
            raise InvalidInput("no segment was recorded, expected one at least: `segment` or `cut`")
        missing = {**self._counters.missing, **self._host.missing}
        columns = self._columns.profile_columns(self._counters.computation, missing)
        facts = {**missing, **self._facts}
        without = self._columns.without_work
        if 0 < without < len(self):
            facts["work"] = f"{without} of {len(self)} segments have none: left out"
        return {**columns, "facts": facts}

    def _close(self) -> None:
        """Release the thread, in any case."""
        self._thread = None
        try:
            self._counters.close()
        finally:
            self._host.close()

    def _resume(self, came_ns: int, *, again: bool = False) -> None:
        """Return to the program: the next segment begins here."""
        self._counters.exclude_own()
        began_ns = self.now_ns()
        if again or began_ns - came_ns > _HELD_UP_NS:
            # A disturbed boundary is not a part of the next segment.
            self._base = self._read()
            self._counters.exclude_own()
            began_ns = self.now_ns()
        self._cost_ns += began_ns - came_ns
        self._began_ns = began_ns

    def _pack_and_read_host(self, now_ns: int) -> None:
        """Do the work that not every boundary needs."""
        if self._columns.full:
            self._columns.pack()
        if now_ns >= self._host_due_ns:
            began_ns = self.now_ns()
            self._columns.attribute(self._host.read())
            spent_ns = self.now_ns() - began_ns
            self._host_due_ns = now_ns + min(max(_HOST_NS, _HOST_SHARE * spent_ns), _HOST_MOST_NS)

    def _read(self) -> tuple[int, ...]:
        try:
            return self._counters.read()
        except (OSError, ValueError, IndexError) as error:
            self._facts["counters"] = f"could not always be read: {error}"
            return self._base

    def _read_pressure(self) -> dict[str, float]:
        try:
            self._facts["pressure_from"], totals = read_pressure(root=self._root)
        except (Unavailable, OSError, ValueError) as error:
            self._facts["pressure"] = str(error)
            return {}
        return totals
