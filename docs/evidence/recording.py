"""What recording costs: `CallableWorkload` against a loop written by hand.

An empty function, one call per reading, 100,000 readings. The bar: at most 1.3 times the
processor time of a loop with the same call, two reads of `perf_counter_ns` and a list append
(minimum of 9 alternations). Run it with ``python docs/evidence/recording.py``.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable

import numpy as np
from machine import describe

from benchrigor.clocks import WallClock
from benchrigor.model import RoundPlan
from benchrigor.workloads.callable import CallableWorkload
from benchrigor.workloads.recorder import RoundRecorder

READINGS = 100_000
ALTERNATIONS = 9
BAR = 1.3


def empty() -> None:
    """Do nothing."""


def by_hand() -> list[int]:
    """Time an empty function as a careful hand would, the clock bound to a local name."""
    now = time.perf_counter_ns
    readings = []
    for _ in range(READINGS):
        start = now()
        empty()
        stop = now()
        readings.append(stop - start)
    return readings


def recorded() -> None:
    """Do the same with a fresh workload, first call and judging of the clock included."""
    plan, recorder = RoundPlan(index=0, readings=READINGS), RoundRecorder()
    CallableWorkload(empty, clock=WallClock(), inner=1).run(plan, recorder)
    finished = recorder.finish(plan, elapsed_ns=0)
    assert finished.unit_readings["time"].size == READINGS


def alternated(*contestants: Callable[[], object]) -> list[float]:
    """Return the least processor time of each contestant, in milliseconds."""
    best = [float("inf")] * len(contestants)
    for _ in range(ALTERNATIONS):
        for index, contestant in enumerate(contestants):
            start = time.process_time_ns()
            contestant()
            best[index] = min(best[index], (time.process_time_ns() - start) / 1e6)
    return best


def main() -> None:
    """Measure and print."""
    print(describe())
    print(f"processor time, minimum of {ALTERNATIONS} alternations, {READINGS} readings\n")
    hand, workload = alternated(by_hand, recorded)
    ratio = workload / hand
    print(f"by hand           {hand:7.2f} ms")
    print(f"CallableWorkload  {workload:7.2f} ms  {ratio:.3f} times")
    print(f"bar {BAR}: {'met' if ratio <= BAR else 'MISSED'}\n")

    whole = by_hand()
    counted, through_array, plain = alternated(
        lambda: np.fromiter(whole, dtype=np.int64, count=len(whole)) / 1e9,
        lambda: np.frombuffer(array("q", whole), dtype=np.int64) / 1e9,
        lambda: np.array(whole, dtype=np.float64) / 1e9,
    )
    print("from a list of whole nanoseconds to seconds")
    print(f"np.fromiter(list) {counted:7.2f} ms  (in use)")
    print(f"array('q', list)  {through_array:7.2f} ms")
    print(f"np.array(list)    {plain:7.2f} ms")


if __name__ == "__main__":
    main()
