"""What it costs to read the state of the machine: status, short and full, capabilities, health.

    python docs/evidence/machine_state.py

A status is read once a second, so that caches are as cold as in use; processor time is that of the
thread, wall time includes what the kernel and others took. Processor time of children (smartctl) is
not counted, their wall time is.

Bars: a full status once a second takes at most .5 % of a core, a short one at most 5 ms.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from machine import describe

from benchrigor.instrument import Alarms, StatusReader, capabilities, health
from benchrigor.model import Status


def costs(
    read: Callable[[], object], times: int, pause_s: float
) -> tuple[list[float], list[float]]:
    """Return milliseconds of processor and of wall time of each call, the first one left out."""
    cpu_ms, wall_ms = [], []
    for _ in range(times + 1):
        time.sleep(pause_s)
        cpu_ns, wall_ns = time.thread_time_ns(), time.perf_counter_ns()
        read()
        cpu_ms.append((time.thread_time_ns() - cpu_ns) / 1e6)
        wall_ms.append((time.perf_counter_ns() - wall_ns) / 1e6)
    return cpu_ms[1:], wall_ms[1:]


def row(name: str, cpu_ms: list[float], wall_ms: list[float], verdict: str) -> str:
    """Return a line of the table."""
    return (
        f"| {name} | {statistics.median(cpu_ms):.2f} | {statistics.mean(cpu_ms):.2f} "
        f"| {statistics.median(wall_ms):.2f} | {max(wall_ms):.2f} | {verdict} |"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=30)
    times = parser.parse_args().times
    print(describe(), "\n")
    reader, short, alarms = StatusReader(), StatusReader(short=True), Alarms()
    print("| | cpu ms, median | mean | wall ms, median | greatest | bar |")
    print("| --- | --- | --- | --- | --- | --- |")
    cpu_ms, wall_ms = costs(reader.read, times, 1.0)
    share = statistics.mean(cpu_ms) / 1e3
    met = "met" if share <= 0.005 else "MISSED"
    print(
        row("status, full, once a second", cpu_ms, wall_ms, f"{share:.2%} of .5 % of a core: {met}")
    )
    cpu_ms, wall_ms = costs(short.read, times, 1.0)
    met = "met" if statistics.median(wall_ms) <= 5.0 else "MISSED"
    print(row("status, short, once a second", cpu_ms, wall_ms, f"5 ms: {met}"))
    status: Status = reader.read()
    now_s = iter(range(10_000))
    rows: dict[str, Callable[[], object]] = {
        "alarms told a full status": lambda: alarms.tell(status, next(now_s)),
        "capabilities in full": lambda: capabilities(full=True),
        "capabilities": capabilities,
        "health": health,
    }
    for name, read in rows.items():
        print(row(name, *costs(read, min(times, 10), 0.2), ""))
    for name, state in (("status", status), ("health", health())):
        print(f"\n{name} by sampler, ms of wall time, one reading:")
        print(", ".join(f"{each} {cost_s * 1e3:.2f}" for each, cost_s in state.cost_s.items()))


if __name__ == "__main__":
    main()
