"""The clock of the system and the cost of reading it; processors and room of this process."""

from __future__ import annotations

import mmap
import os
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise, repeat, starmap

from benchrigor.errors import ClockFailed, WorkloadFailed
from benchrigor.protocols import Clock

try:
    from resource import RLIM_INFINITY, RLIMIT_AS, RUSAGE_CHILDREN, getrlimit, getrusage
except ImportError:  # Windows
    getrusage = None  # type: ignore[assignment]

_READS_PER_BATCH = 1_000
# About a second of reading: even a clock that ticks 64 times a second has moved long before.
MOST_BATCHES = 10_000
_COST_BATCHES = 16
_PAIRS_PER_BATCH = 64
_LIBRARY, _ITS_THREAD = 48, 40  # MB of addresses: measured 43 and 40
_MOST_THREADS = 64


class WallClock:
    """Elapsed real time, `time.perf_counter_ns`: the C function itself, for the sake of hot loops.

    Examples
    --------
    >>> clock = WallClock()
    >>> start = clock.now_ns()
    >>> clock.sleep_ns(1_000)
    >>> clock.now_ns() - start >= 1_000
    True
    """

    now_ns = staticmethod(time.perf_counter_ns)

    def __init__(self) -> None:
        self.resolution_ns = measured_resolution_ns(self.now_ns)

    def sleep_ns(self, duration_ns: int) -> None:
        """Wait for at least ``duration_ns``."""
        time.sleep(duration_ns / 1e9)


def measured_resolution_ns(now_ns: Callable[[], int]) -> int:
    """Return the smallest step that a clock is seen to make, in nanoseconds.

    The resolution that the system states (`time.get_clock_info`) is often finer than any two reads
    can show.
    """
    for _ in range(MOST_BATCHES):
        # Without a step of Python in between, which takes longer than many a clock's step.
        reads = list(starmap(now_ns, repeat((), _READS_PER_BATCH)))
        steps = {after - before for before, after in pairwise(reads)}
        if min(steps) < 0:
            raise ClockFailed(
                f"the clock went backwards by {-min(steps)} ns between two reads, "
                "expected one that never goes back; use a monotonic clock"
            )
        if max(steps) > 0:
            return min(steps - {0})
    raise ClockFailed(
        f"the clock stood still at {reads[-1]} ns over {MOST_BATCHES * _READS_PER_BATCH} reads, "
        "expected it to move; use another clock"
    )


def clock_cost_ns(clock: Clock) -> float:
    """Return what timing adds to a reading: two reads of the clock around an empty body, in ns.

    Median of means over batches: the means see below the clock's resolution, and the median
    leaves out batches that the system interrupted.
    """
    now = clock.now_ns

    def mean_of_batch() -> float:
        total = 0
        for _ in repeat(None, _PAIRS_PER_BATCH):
            start = now()
            total += now() - start
        return total / _PAIRS_PER_BATCH

    return statistics.median(mean_of_batch() for _ in repeat(None, _COST_BATCHES))


def cpu_ns_with_children() -> int:
    """Return the processor time of this process and of the children that it has waited for."""
    used_ns = time.process_time_ns()
    if getrusage is not None:
        children = getrusage(RUSAGE_CHILDREN)
        used_ns += round(1e9 * (children.ru_utime + children.ru_stime))
    return used_ns


def processors() -> int:
    """Return how many processors the calling thread may run on; if no system says, all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_room() -> None:
    """Raise WorkloadFailed without room for libraries of numpy and scipy that are yet to be loaded.

    That of numpy would end the process, that of scipy would try again for ever.
    """
    to_load = {"numpy", "scipy.special"} - {*sys.modules}
    if not to_load or not sys.platform.startswith("linux"):  # others have no such limit
        return
    if getrlimit(RLIMIT_AS)[0] == RLIM_INFINITY:
        return
    asked = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    threads = min(int(asked) if asked.isdecimal() else _MOST_THREADS, processors(), _MOST_THREADS)
    room_mb = len(to_load) * (_LIBRARY + max(threads, 1) * _ITS_THREAD)
    try:
        mmap.mmap(-1, room_mb << 20, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ).close()
    except OSError:
        raise WorkloadFailed(
            f"no memory is left for numpy and scipy: found less than {room_mb} MB of addresses, "
            "expected as much for their libraries: raise the limit (ulimit -v), or have the "
            "measured code not lower it"
        ) from None
