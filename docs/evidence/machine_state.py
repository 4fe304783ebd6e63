"""What it costs to read the state of the machine: status, short and full, capabilities, health.

    python docs/evidence/machine_state.py

A status is read once a second, so that caches are as cold as in use; processor time is that of the
thread, wall time includes what the kernel and others took. Processor time of children (smartctl) is
not counted, their wall time is.

In sessions each reading before or after a round is timed, whatever the length of rounds, and what
loading takes before round 0.

Bars: a full status once a second takes at most .5 % of a core, a short one at most 5 ms; in
sessions 5 ms each, and 1 % of the time.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from machine import describe

from benchrigor.machine import Alarms, StatusReader, capabilities, health
from benchrigor.model import Options, Status
from benchrigor.session import Session


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


def in_session(**options: Any) -> tuple[list[float], float, int]:
    """Return milliseconds of each reading of a session, their share of its time, and its rounds."""
    took_ms, read = [], StatusReader.read

    def timed(reader: StatusReader) -> Status:
        began_ns = time.perf_counter_ns()
        status = read(reader)
        took_ms.append((time.perf_counter_ns() - began_ns) / 1e6)
        return status

    StatusReader.read = timed  # type: ignore[assignment, method-assign]
    began_s = time.perf_counter()
    try:
        asked = Options(budget_s=10.0, target=None, **options)
        record = Session(asked, seed=1).run(lambda: sum(range(1000)))
    finally:
        StatusReader.read = read  # type: ignore[method-assign]
    share = sum(took_ms) / 1e3 / (time.perf_counter() - began_s)
    return took_ms, share, len(record.rounds)


def loading_ms() -> float:
    """Return the milliseconds that a fresh process takes to load what a watched session needs."""
    code = (
        "import time, benchrigor.session.session; began = time.perf_counter()\n"
        "from benchrigor.machine.states.status_readers import StatusReader\n"
        "StatusReader(short=True).read(); print((time.perf_counter() - began) * 1e3)"
    )
    done = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(9)
    ]
    return statistics.median(float(each.stdout) for each in done)


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
    print("\n| session | rounds | readings | ms, median | greatest | of the time | bar |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    sessions: dict[str, dict[str, Any]] = {
        "as it comes": {},
        "rounds of 1 ms": {"readings_per_round": 10},
    }
    for name, options in sessions.items():
        took_ms, share, rounds = in_session(**options)
        met = "met" if statistics.median(took_ms) <= 5.0 and share <= 0.01 else "MISSED"
        print(
            f"| {name} | {rounds} | {len(took_ms)} | {statistics.median(took_ms):.2f} "
            f"| {max(took_ms):.2f} | {share:.2%} | {met} |"
        )
    print(f"\nLoaded before round 0 in {loading_ms():.1f} ms.")
    for name, state in (("status", status), ("health", health())):
        print(f"\n{name} by sampler, ms of wall time, one reading:")
        print(", ".join(f"{each} {cost_s * 1e3:.2f}" for each, cost_s in state.cost_s.items()))


if __name__ == "__main__":
    main()
