"""How far apart are runs of commands, and how much of that does a reference command explain?

Five commands, in windows of 8 s in random order, idle, beside one and two busy processes, and beside
bursts of one. In each window two references are run in turn with the command, more often than a
session does: a bare start of the interpreter, and `true`; and the loop of `workloads.reference`
before each. A window's truth is the mean level of the other windows of its command.

    python docs/evidence/pace_commands.py record FOLDER     # eleven minutes
    python docs/evidence/pace_commands.py FOLDER            # what stands in results/pace_commands.txt
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from machine import describe

from benchrigor.clocks import WallClock
from benchrigor.instrument.run_delay import RunDelay
from benchrigor.model import RoundPlan
from benchrigor.testing import cpu_hog
from benchrigor.workloads import CommandWorkload, RoundRecorder
from benchrigor.workloads.reference import Reference

WINDOW_S, WINDOWS = 8.0, 4  # windows of each command under each condition
EVERY_S = 0.06  # from one pair of references to the next
CONDITIONS = ("idle", "one", "two", "bursts")
START = [sys.executable, "-I", "-S", "-c", ""]


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands by name."""
    text = folder / "text"
    text.write_bytes(b"".join(b"%d lines of it\n" % (each * each) for each in range(12_000)))
    return {
        "true": ["true"],
        "pass": [sys.executable, "-c", "pass"],
        "json": [sys.executable, "-c", "import json"],
        "gzip": ["gzip", "-c", str(text)],
        "git": ["git", "--version"],
    }


@contextlib.contextmanager
def beside(condition: str, seed: int) -> Iterator[None]:
    """Keep processors busy as a condition says."""
    if condition != "bursts":
        with cpu_hog({"one": 1, "two": 2}[condition]) if condition != "idle" else (
            contextlib.nullcontext()
        ):
            yield
        return
    over, rng = threading.Event(), random.Random(seed)

    def burst() -> None:
        while not over.wait(rng.uniform(0.2, 2.0)):
            with cpu_hog(rng.choice((1, 2))):
                over.wait(rng.uniform(0.2, 2.0))

    thread = threading.Thread(target=burst)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def record(folder: Path) -> None:
    """Record all windows."""
    clock, meter = WallClock(), RunDelay()
    rng, loop = random.Random(18), Reference(clock)
    with tempfile.TemporaryDirectory() as scratch:
        named = commands(Path(scratch))
        made = {
            name: CommandWorkload(argv, clock=clock, meter=meter)
            for name, argv in {**named, "START": START, "TRUE": ["true"]}.items()
        }
        turns = [(name, each) for each in CONDITIONS for name in named for _ in range(WINDOWS)]
        rng.shuffle(turns)
        for index, (name, condition) in enumerate(turns):
            path = folder / f"{index:03d}.json.gz"
            if path.exists():
                continue
            with beside(condition, index):
                window = one_window(made, name, clock, loop, meter)
            whole = {"command": name, "condition": condition, "rows": window}
            with gzip.open(path, "wt") as file:
                json.dump(whole, file)
            print(index, name, condition, len(window), flush=True)  # noqa: T201


def one_window(
    made: dict[str, CommandWorkload],
    name: str,
    clock: WallClock,
    loop: Reference,
    meter: RunDelay,
) -> list[tuple[str, float, float, float, float, float, float]]:
    """Return what was run.

    Its name, when, its wall time, delay, processor time, the loop, and the delay of this process.
    """
    rows = []
    began, due_s = time.perf_counter(), 0.0
    while (now_s := time.perf_counter() - began) < WINDOW_S:
        turn = [name]
        if now_s >= due_s:
            turn = ["START", "TRUE", name]
        for each in turn:
            loop_s = loop.measure(0) / 1e9
            recorder = RoundRecorder()
            at_s = time.perf_counter() - began
            before_ns = meter.delay_ns()
            made[each].run(RoundPlan(index=0), recorder)
            parent_s = (meter.delay_ns() - before_ns) / 1e9
            found = recorder.finish(RoundPlan(index=0), elapsed_ns=0)
            waited_s = float(found.delays.seconds["run queue"][0]) if found.delays else 0.0
            cpu_s = float(found.facts["cpu_s"] or 0.0)
            rows.append((each, at_s, found.readings["time"], waited_s, cpu_s, loop_s, parent_s))
        if len(turn) > 1:
            due_s = time.perf_counter() - began + EVERY_S
    return rows


if __name__ == "__main__":
    print(describe())  # noqa: T201
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]))
