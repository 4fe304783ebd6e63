"""The light of commands beside processes that keep the processors busy, against what was lost.

Each command computes until its threads have used a given processor time, and prints how long it
took beyond that, and in all: what it lost. Hogs run beside it. A row is one session of
`benchrigor run`'s workload; the truth is the sum of what was lost over the sum of the time taken.

A row passes if the light's total is within 5 points of the truth and, above 15 % of truth, not
green; grey is a miss, but for commands of many short processes. Make sure that the machine does
nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from coverage_tables import Setting, heading, row

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.machine import RunDelay
from benchrigor.model import Interference, Light
from benchrigor.workloads import CommandWorkload, Pick

__all__ = ["light"]

WITHIN, NEVER_GREEN = 5.0, 15.0
HOGS = (0, 1, 2, 4)

# A hash of 16 MB takes about 10 ms and leaves the other threads of the interpreter alone.
_SPIN = """
import hashlib, subprocess, sys, threading, time
DATA = bytes(1 << 24)
def spin(cpu_s):
    began, used = time.perf_counter(), time.thread_time()
    while time.thread_time() - used < cpu_s:
        hashlib.sha256(DATA)
    took, ran = time.perf_counter() - began, time.thread_time() - used
    print(f"lost {took - ran:.9f} took {took:.9f}", flush=True)
"""
_CHILD = f"subprocess.run([sys.executable, '-S', '-c', {_SPIN + 'spin(%s)'!r}], check=True)"
KINDS = {
    "one process": _SPIN + "spin(0.6)",
    "a child": _SPIN + _CHILD % "0.6",
    "three children in turn": _SPIN + f"for _ in range(3): {_CHILD % '0.3'}",
    "two threads": _SPIN
    + "both = [threading.Thread(target=spin, args=(0.6,)) for _ in range(2)]\n"
    + "[each.start() for each in both]; [each.join() for each in both]",
}
"""Programs by name; each prints what it lost, thread by thread."""
SHELL = (
    "i=0; while [ $i -lt 300 ]; do head -c 500000 /dev/zero | cksum >/dev/null; i=$((i+1)); done"
)


class Row(NamedTuple):
    """A session: what was lost in truth, in per cent of the time, and what its light says."""

    hogs: int
    kind: str
    truth: float
    found: Interference

    @property
    def is_right(self) -> bool:
        """Whether the light tells what was lost."""
        near = abs(self.found.total_percent - self.truth) <= WITHIN
        hidden = self.truth > NEVER_GREEN and self.found.light is Light.GREEN
        return near and not hidden and self.found.light is not Light.UNKNOWN


def light_of_command(argv: list[str], rounds: int, picks: tuple[str, ...] = ()) -> br.RunRecord:
    """Run a command so often, and return the record."""
    clock = WallClock()
    workload = CommandWorkload(
        argv,
        picks=[Pick.parse(each, unit_readings=True) for each in picks],
        clock=clock,
        meter=RunDelay(),
    )
    options = br.Options(
        max_rounds=rounds,
        target=1e-6,
        budget_s=600.0,
        rounds="restarted" if picks else "continuous",
    )
    return br.Session(options, name="command", seed=1).run(workload)


@contextmanager
def hogs(n: int) -> Iterator[None]:
    """Keep processors busy, each from a session of its own as a command has one.

    Linux shares processors among sessions first: those of `cpu_hog` count as one with this script.
    """
    argv = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    running = [subprocess.Popen(argv, start_new_session=True) for _ in range(n)]
    try:
        time.sleep(0.2)
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def rows(rounds: int) -> Iterator[Row]:
    """Yield one row after another."""
    picks = ("lost:s=regex:lost ([0-9.]+)", "took:s=regex:took ([0-9.]+)")
    for n in HOGS:
        for kind, code in KINDS.items():
            with hogs(n):
                record = light_of_command([sys.executable, "-S", "-c", code], rounds, picks)
            lost, took = (float(record.readings(name).sum()) for name in ("lost", "took"))
            assert record.interference is not None  # delay was measured
            yield Row(n, kind, 100.0 * lost / took, record.interference)


def light(setting: Setting) -> None:
    """Print the light of commands beside their truth."""
    rounds = 3 if setting.quick else 10
    print(f"{rounds} rounds each, on {os.cpu_count()} processors.\n")
    heading(["hogs", "command", "lost in truth", "total", "measured", "known", "light", "bar"])
    for each in rows(rounds):
        found = each.found
        shares = (each.truth, found.total_percent, found.measured_percent, found.known_percent)
        shown = (f"{share:.1f}%" for share in shares)
        verdict = setting.verdict(f"{each.hogs} hogs, {each.kind}", each.is_right)
        row(each.hogs, each.kind, *shown, found.light, f"within {WITHIN:g} points: {verdict}")
    with hogs(2):
        short = light_of_command(["sh", "-c", SHELL], rounds).interference
    assert short is not None  # delay was measured
    shown = (
        f"{share:.1f}%"
        for share in (short.total_percent, short.measured_percent, short.known_percent)
    )
    verdict = setting.verdict("short children", short.light is not Light.GREEN)
    row(2, "600 short children", "", *shown, short.light, f"may be unknown: {verdict}")
