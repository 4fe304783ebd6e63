"""The recording of one thread, boundary by boundary, and its columns, in bounded memory."""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections.abc import Callable, Iterable
from operator import sub
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.clocks import cpu_ns_with_children
from benchrigor.errors import InvalidInput
from benchrigor.interference.profiles import Quantiser
from benchrigor.interference.thread_counters import (
    EVIDENCE,
    FLOATING_POINT,
    NOMINAL,
    ThreadCounters,
)
from benchrigor.machine.delays import HostDelay, HostDelays, attribute_delay, read_pressure
from benchrigor.machine.kernel_files import ROOT, Unavailable

# A boundary takes some 10 microseconds; one that took longer was itself disturbed.
_HELD_UP_NS = 50_000
# The host is read at most once in 10 ms, and for up to a 500th of the time: it takes 20
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


BINS = 256  # distinct values kept per counter (published)
_COUNTERS = ("computation", *NOMINAL, *EVIDENCE)
# Names of nominal features that are not the user's.
RESERVED = frozenset({"label", "unfinished", *NOMINAL})
_WIDTH = 1 + len(_COUNTERS)
# Share of all instructions from which on floating-point operations are the work of a program; an
# interpreter of bytecode takes some 50 instructions per operation.
_MUCH_FLOATING_POINT = 0.05
_WHOLE = 2.0**53  # beyond it a float no longer separates one whole number from the next
_ROWS = 2_048  # quantising this number at once takes about a microsecond per row


class SegmentColumns:
    """Columns that grow by a segment at a time.

    Durations, delays and work stay exact (24 bytes a segment, and 4 for its label); counters are
    quantised (about a byte per value).
    """

    def __init__(self) -> None:
        self._rows = array("q")
        self._counters = {name: Quantiser(BINS) for name in _COUNTERS}
        self._counts: dict[str, Quantiser] = {}
        self._durations_ns = array("q")
        self._run_delays_ns = array("q")
        self._host_delays_ns: dict[str, array[int]] = {}
        self._attributed = 0
        self._works = array("d")
        self._labels: dict[str, int] = {}
        self._label_of = array("L")
        self._unfinished = array("q")

    def __len__(self) -> int:
        return len(self._durations_ns)

    def add(
        self, duration_ns: int, counters: Iterable[int], label: str, work: float | None
    ) -> None:
        """Keep one segment: its wall time, and the growth of the counters."""
        rows = self._rows
        rows.extend(counters)
        self._run_delays_ns.append(rows[-_WIDTH])
        self._durations_ns.append(duration_ns)
        self._works.append(math.nan if work is None else work)
        self._label_of.append(self._labels.setdefault(label, len(self._labels)))

    def add_counts(self, counts: dict[str, int | float]) -> None:
        """Keep the user's counts of the last segment, and set them to 0."""
        for name, amount in counts.items():
            if name not in self._counts:
                self._counts[name] = Quantiser(BINS)
                for _ in range(len(self) - 1):
                    self._counts[name].append(0)
            self._counts[name].append(amount)
            counts[name] = 0

    def mark_unfinished(self) -> None:
        """Mark the last segment as left before its end."""
        self._unfinished.append(len(self) - 1)

    @property
    def full(self) -> bool:
        """Whether it is time to `pack`."""
        return len(self._rows) >= _ROWS * _WIDTH

    def pack(self) -> None:
        """Quantise the counters since the last time."""
        rows = np.frombuffer(self._rows, dtype=np.int64).reshape(-1, _WIDTH)
        if rows.size:
            for counter, column in zip(self._counters.values(), rows.T[1:], strict=True):
                counter.add(column)
        self._rows = array("q")

    def attribute(self, host: HostDelay) -> None:
        """Attribute the host's delay since the last call to the segments since then.

        Throttled time is taken out of their run delay, so that none counts twice.
        """
        first, self._attributed = self._attributed, len(self)
        parts = attribute_delay(host, self._durations_ns[first:], self._run_delays_ns[first:])
        for source, part in parts.items():
            delays = self._host_delays_ns.setdefault(source, array("q"))
            delays.frombytes(bytes(delays.itemsize * (first - len(delays))))
            delays.extend(part)
            if source == "throttled":
                for index, delay_ns in enumerate(part, first):
                    self._run_delays_ns[index] -= delay_ns

    def profile_columns(self, computation: str, missing: Iterable[str]) -> dict[str, Any]:
        """Return the columns of a `SegmentProfile`, without those that are missing."""
        self.pack()
        missing = frozenset(missing)
        counters = {name: counter.values() for name, counter in self._counters.items()}
        computed = counters["computation"] / (1e9 if computation.endswith("_s") else 1.0)
        # A descriptor from elsewhere (a socket, a pipe) shows only when it is closed.
        counters["closes"] = np.maximum(counters["closes"], 0.0)
        evidence = {name: counters[name] for name in EVIDENCE if name not in missing}
        nominal: dict[str, npt.NDArray[Any]] = {}
        if any(self._labels):
            nominal["label"] = np.array(list(self._labels))[np.array(self._label_of)]
        if self._unfinished:
            nominal["unfinished"] = np.zeros(len(self), dtype=np.int64)
            nominal["unfinished"][self._unfinished] = 1
        nominal |= {name: _as_whole(counters[name]) for name in NOMINAL if name not in missing}
        nominal |= {name: _as_whole(counter.values()) for name, counter in self._counts.items()}
        work = {computation: computed}
        instructions = computed.sum() if computation == "instructions" else math.inf
        operated = evidence.get(FLOATING_POINT)
        if operated is not None and operated.sum() >= _MUCH_FLOATING_POINT * instructions:
            work, evidence[computation] = {FLOATING_POINT: evidence.pop(FLOATING_POINT)}, computed
        if not self.without_work:
            evidence |= work
            work = {"work": np.array(self._works)}
        return {
            "duration_s": _seconds(self._durations_ns),
            "computation": work,
            "nominal": nominal,
            "delays": self._delays(missing),
            "evidence": evidence,
        }

    @property
    def without_work(self) -> int:
        """How many segments have no amount of work."""
        return int(np.isnan(np.asarray(self._works)).sum())

    def _delays(self, missing: frozenset[str]) -> dict[str, npt.NDArray[np.float64]]:
        delays = {} if "run queue" in missing else {"run queue": _seconds(self._run_delays_ns)}
        for source, delays_ns in self._host_delays_ns.items():
            delays[source] = np.zeros(len(self))
            delays[source][: len(delays_ns)] = _seconds(delays_ns)
        return delays


def _seconds(nanoseconds: array[int]) -> npt.NDArray[np.float64]:
    return np.array(nanoseconds, dtype=np.float64) / 1e9


def _as_whole(values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Return counts as integers, which are faster to group, if all of them are."""
    whole = (values == np.rint(values)).all() and (np.abs(values) < _WHOLE).all()
    return values.astype(np.int64) if whole else values
