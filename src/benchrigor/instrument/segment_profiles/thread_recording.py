"""Records one thread, boundary by boundary; the part of it that must be fast."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from operator import sub
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.instrument.host_delays import HostDelays
from benchrigor.instrument.kernel_files import Unavailable
from benchrigor.instrument.pressure import read_pressure
from benchrigor.instrument.segment_profiles.segment_columns import SegmentColumns
from benchrigor.instrument.segment_profiles.segment_inputs import amount_of, text_of
from benchrigor.instrument.segment_profiles.thread_counters import ThreadCounters

try:
    from resource import RUSAGE_CHILDREN, getrusage
except ImportError:  # Windows
    getrusage = None  # type: ignore[assignment]

__all__ = ["Recording"]

_HELD_NS = 50_000
"""A boundary takes some 10 microseconds; one that took longer was itself held up."""
_HOST_NS, _HOST_MOST_NS, _HOST_SHARE = 10_000_000, 250_000_000, 500
"""The host is read at most once in 10 ms, and for at most a 500th of the time: it takes 20
microseconds where all is in the caches, 200 where nothing is, more where processors are many."""


class Recording:
    """What happens between `start` and `stop`, in the thread that called `start`.

    Parameters
    ----------
    bins
        As `SegmentColumns` has them.
    root
        Folder that holds ``proc`` and ``sys``.
    now_ns, cpu_ns, all_cpu_ns
        Wall time; processor time of the thread; of all threads, and of children waited for.
    """

    def __init__(
        self,
        *,
        bins: int | None = 256,
        root: Path = Path("/"),
        now_ns: Callable[[], int] = time.perf_counter_ns,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
        all_cpu_ns: Callable[[], int] | None = None,
    ) -> None:
        self.now_ns = now_ns
        self._cpu_ns, self._all_cpu_ns = cpu_ns, all_cpu_ns or _all_cpu_ns
        self._cpus_ns = 0, 0
        self._root = root
        self._counters = ThreadCounters(root=root, cpu_ns=cpu_ns)
        self._host = HostDelays(root=root, cpu_ns=cpu_ns, now_ns=now_ns)
        self._columns = SegmentColumns(bins)
        self._facts: dict[str, str | float] = {} if bins is None else {"bins": bins}
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
            self._go_on(self._started_ns)
        except BaseException:
            self._close()
            raise

    def stop(self) -> None:
        """Stop recording."""
        try:
            self._facts["wall_s"] = (self.now_ns() - self._started_ns) / 1e9
            self._facts["recording_cost_s"] = self._cost_ns / 1e9
            own_ns, all_ns = (
                self._cpu_ns() - self._cpus_ns[0],
                self._all_cpu_ns() - self._cpus_ns[1],
            )
            self._facts["thread_cpu_s"] = own_ns / 1e9
            self._facts["other_cpu_s"] = max(0, all_ns - own_ns) / 1e9
            self._columns.charge(self._host.rises())
        finally:
            self._close()
        after = self._read_pressure()
        for name in self._pressure.keys() & after.keys():
            self._facts[name] = round(after[name] - self._pressure[name], 6)

    def check(self, label: str = "", work: float | None = None) -> tuple[str, float | None]:
        """Refuse what cannot be a segment here; return label and work as Python's own."""
        if threading.get_native_id() != self._thread or self._open or self._pauses:
            self._refuse()
        return text_of(label, "label"), None if work is None else amount_of(work, "work")

    def begin(self) -> None:
        """Begin a segment that `finish` will end."""
        came_ns = self.now_ns()
        self.check()
        self._open = True
        self._counts = dict.fromkeys(self._counts, 0)
        self._base = self._read()
        self._go_on(came_ns)

    def finish(
        self, ended_ns: int, label: str, work: float | None, *, unfinished: bool = False
    ) -> None:
        """End the segment that began at the last boundary, and begin another."""
        self._open = False
        if self._thread is None:  # a loop over `Segments.over` that was left, and forgotten late
            return
        counters = self._read()
        columns = self._columns
        columns.add(ended_ns - self._began_ns, map(sub, counters, self._base), label, work)
        if self._counts:
            columns.add_counts(self._counts)
        if unfinished:
            columns.mark_unfinished()
        self._base = counters
        seldom = columns.full or ended_ns >= self._host_due_ns
        if seldom:
            self._seldom(ended_ns)
        self._go_on(ended_ns, again=seldom)

    def count(self, name: str, amount: float) -> None:
        """Add to a nominal feature of the segment under way."""
        amount = amount_of(amount, "amount")
        self._counts[name] = self._counts.get(name, 0) + amount

    def pause(self) -> None:
        """Leave what is computed and waited for out of the segment, until `proceed`."""
        self._pauses += 1
        if self._pauses == 1:
            self._counters.pause()

    def proceed(self) -> None:
        """End a pause."""
        self._pauses -= 1
        if not self._pauses:
            self._counters.proceed()

    def profile(self) -> dict[str, Any]:
        """Return what a `SegmentProfile` needs, but for what it says of program and process."""
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
        """Let go of the thread, whatever happens."""
        self._thread = None
        try:
            self._counters.close()
        finally:
            self._host.close()

    def _refuse(self) -> None:
        if self._thread is None:
            raise InvalidInput("the recorder is not running, expected `with` around its segments")
        if threading.get_native_id() != self._thread:
            raise InvalidInput(
                "a segment in another thread or process than the recorder's, expected a recorder "
                "in each; profiles can be merged"
            )
        place = "a pause" if self._pauses else "another segment"
        raise InvalidInput(f"a segment inside of {place}, expected one after the other")

    def _go_on(self, came_ns: int, *, again: bool = False) -> None:
        """Hand the thread back to the program."""
        self._counters.hand_back()
        began_ns = self.now_ns()
        if again or began_ns - came_ns > _HELD_NS:
            # What happened meanwhile is not the next segment's.
            self._base = self._read()
            self._counters.hand_back()
            began_ns = self.now_ns()
        self._cost_ns += began_ns - came_ns
        self._began_ns = began_ns

    def _seldom(self, now_ns: int) -> None:
        if self._columns.full:
            self._columns.pack()
        if now_ns >= self._host_due_ns:
            began_ns = self.now_ns()
            self._columns.charge(self._host.rises())
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


def _all_cpu_ns() -> int:
    """Return the processor time of this process and of the children it has waited for."""
    used_ns = time.process_time_ns()
    if getrusage is not None:
        children = getrusage(RUSAGE_CHILDREN)
        used_ns += int(1e9 * (children.ru_utime + children.ru_stime))
    return used_ns
