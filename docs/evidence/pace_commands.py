"""The spread between runs of commands, and how much of it a reference command explains.

Six commands, one of which sleeps, in windows of 8 s in random order: idle, beside one and three
busy processes, and beside bursts of them. In turn with the command two references are run, more
often than a session does: a bare start of the interpreter, and `true`; every fourth start counts,
about 5 % of the time.
The truth of a window is the mean level of the other windows of its command, under all conditions.

    python docs/evidence/pace_commands.py record FOLDER     # 13 minutes
    python docs/evidence/pace_commands.py FOLDER            # prints results/pace_commands.txt
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import math
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from machine import describe, wilson

from benchrigor.clocks import WallClock
from benchrigor.machine.run_delay import RunDelay
from benchrigor.model import Estimate, RoundPlan, Verdict
from benchrigor.model.pace import COMMAND, COMMAND_CPU, COMMAND_REST
from benchrigor.stats import compare
from benchrigor.stats.estimators.command_pace import Invocations, command_pace
from benchrigor.stats.estimators.pace import Sensitivity, at_full_speed, common_sensitivity
from benchrigor.testing import cpu_hog
from benchrigor.workloads import CommandWorkload, RoundRecorder
from benchrigor.workloads.processes.worker import Reference

THIN = 4  # every fourth start counts
WINDOW_S, WINDOWS = 8.0, 4  # windows of each command under each condition
EVERY_S = 0.06  # from one pair of references to the next
CONDITIONS = ("idle", "one", "three", "bursts")
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
        "sleep": ["sleep", "0.01"],
    }


@contextlib.contextmanager
def beside(condition: str, seed: int) -> Iterator[None]:
    """Keep processors busy as a condition says."""
    if condition != "bursts":
        with (
            cpu_hog({"one": 1, "three": 3}[condition])
            if condition != "idle"
            else (contextlib.nullcontext())
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
    rng, loop = random.Random(18), Reference(clock.now_ns)
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
                window = one_window(made, name, loop, meter)
            whole = {"command": name, "condition": condition, "rows": window}
            with gzip.open(path, "wt") as file:
                json.dump(whole, file)
            print(index, name, condition, len(window), flush=True)


def one_window(
    made: dict[str, CommandWorkload],
    name: str,
    loop: Reference,
    meter: RunDelay,
) -> list[tuple[str | float, ...]]:
    """Return what was run.

    Its name, when, its wall time, delay, processor time, the loop, the delay of this process, and
    how often it gave a processor up by itself.
    """
    rows: list[tuple[str | float, ...]] = []
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
            switches = float(found.facts["voluntary_switches"] or 0.0)
            times = (at_s, found.readings["time"], waited_s, cpu_s, loop_s, parent_s)
            rows.append((each, *times, switches))
        if len(turn) > 1:
            due_s = time.perf_counter() - began + EVERY_S
    return rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """One window: the columns of its command and of every fourth start, by name."""

    command: str
    condition: str
    found: Invocations


def read(folder: Path) -> list[Window]:
    """Read all windows."""
    windows = []
    for path in sorted(folder.glob("*.json.gz")):
        with gzip.open(path, "rt") as file:
            whole = json.load(file)
        rows = {
            name: np.array([each[1:] for each in whole["rows"] if each[0] == name]).T
            for name in (whole["command"], "START")
        }
        at_s, wall, waited, cpu, _, _, switches = rows[whole["command"]]
        start_at_s, *start = rows["START"][:, ::THIN]
        start_wall, start_waited, start_cpu = start[:3]
        found = Invocations(
            wall=wall,
            cpu=cpu,
            waited=waited,
            switches=switches,
            starts={
                COMMAND: start_wall,
                COMMAND_CPU: start_cpu,
                COMMAND_REST: np.maximum(start_wall - start_cpu - start_waited, 1e-6),
            },
            after=np.searchsorted(at_s, start_at_s),
        )
        windows.append(Window(command=whole["command"], condition=whole["condition"], found=found))
    return windows


def judge(windows: list[Window]) -> Iterator[str]:
    """Yield the tables."""
    full_s = {
        kind: min(float(np.quantile(each.found.starts[kind], 0.1)) for each in windows)
        for kind in (COMMAND, COMMAND_CPU, COMMAND_REST)
    }
    names = sorted({each.command for each in windows})
    estimates = [at_full(each.found, full_s) for each in windows]
    levels = {
        "wall time, mean": [each.found.wall.mean() for each in windows],
        "wall time, median": [np.median(each.found.wall) for each in windows],
        "wall time, least": [each.found.wall.min() for each in windows],
        "without delay, mean": [(each.found.wall - each.found.waited).mean() for each in windows],
        "over that of starts": [
            each.found.wall.mean() / each.found.starts[COMMAND].mean() for each in windows
        ],
        "processor time, mean": [each.found.cpu.mean() for each in windows],
        "at full pace": [each.value for each in estimates],
    }
    yield f"{len(windows)} windows; sd of the log level between windows of a command, %"
    yield row("", [*names, "median"])
    mine = [np.array([each.command == name for each in windows]) for name in names]
    for title, values in levels.items():
        spread = [100.0 * float(np.log(np.array(values)[each]).std(ddof=1)) for each in mine]
        yield row(title, [f"{each:.1f}" for each in (*spread, np.median(spread))])
    yield "mean wall time, then time at full pace, ms"
    for condition in CONDITIONS:
        here = np.array([each.condition == condition for each in windows])
        for title in ("wall time, mean", "at full pace"):
            of_windows = np.array(levels[title])
            cells = [f"{1e3 * of_windows[here & each].mean():.2f}" for each in mine]
            yield row(f"{condition}: {title}", cells)
    logs = np.log(levels["at full pace"])
    hits = [
        math.log(estimate.low) <= logs[same & (np.arange(logs.size) != k)].mean()
        and logs[same & (np.arange(logs.size) != k)].mean() <= math.log(estimate.high)
        for k, (estimate, window) in enumerate(zip(estimates, windows, strict=True))
        for same in (mine[names.index(window.command)],)
    ]
    low, high = wilson(sum(hits), len(hits))
    width = 100.0 * float(np.median([each.relative_half_width for each in estimates]))
    yield f"95% intervals that hold the level of the other windows: {np.mean(hits):.3f}"
    yield f"[{low:.3f}, {high:.3f}], median half-width {width:.1f} %"
    yield from pairs(windows, full_s)


def pairs(windows: list[Window], full_s: dict[str, float]) -> Iterator[str]:
    """Yield how often two windows of a command are called different, as `compare_runs` does it."""
    for planted in (1.0, 1.2):
        verdicts = [
            compared(one.found, longer(two.found, planted), full_s)
            for one, two in itertools.combinations(windows, 2)
            if one.command == two.command
        ]
        different = sum(each in (Verdict.BETTER, Verdict.WORSE) for each in verdicts)
        low, high = wilson(different, len(verdicts))
        yield (
            f"{len(verdicts)} pairs of windows, one with {planted:g} times the work: called "
            f"different {different / len(verdicts):.3f} [{max(low, 0.0):.3f}, {high:.3f}]"
        )


def longer(found: Invocations, by: float) -> Invocations:
    """Return a window of a command with so many times the work."""
    return replace(found, wall=by * found.wall, cpu=by * found.cpu, waited=by * found.waited)


def compared(one: Invocations, two: Invocations, full_s: dict[str, float]) -> Verdict:
    """Compare two windows with one sensitivity for both, at a margin of 1 %."""
    paces = [command_pace(each, full_s, 1.0, version=1) for each in (one, two)]
    assert paces[0] is not None
    assert paces[1] is not None
    known = common_sensitivity(paces[0], paces[1])
    assert known is not None
    return compare(*(at_full(each, full_s, known) for each in (one, two))).verdict


def at_full(
    found: Invocations,
    full_s: dict[str, float],
    sensitivity: Sensitivity | None = None,
) -> Estimate:
    """Estimate the mean of a window at full pace."""
    value = float(found.wall.mean())
    pace = command_pace(found, full_s, value, version=1, sensitivity=sensitivity)
    assert pace is not None
    n = found.wall.size
    measured = Estimate(
        value=value,
        low=value,
        high=value,
        confidence=0.95,
        n=n,
        n_effective=float(n),
        method="",
        standard_error=0.0,
        degrees_of_freedom=n - 1.0,
    )
    return at_full_speed(measured, pace)


def row(title: str, cells: list[str]) -> str:
    """Return one row of a table."""
    return f"{title:30s}" + "".join(f"{each:>9s}" for each in cells)


if __name__ == "__main__":
    print(describe())
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]))
    else:
        print("\n".join(judge(read(Path(sys.argv[1])))))
