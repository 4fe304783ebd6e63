"""What runs and comparisons are worth on a machine of changing pace, and how soon they are over.

    python docs/evidence/machines.py [--quick] [--seed N] [--only light,threads]

Everything is real and on this machine: make sure that it does nothing else.
"""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from unittest.mock import patch

import numpy as np

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.machine import Alarms, StatusReader, capabilities, health
from benchrigor.machine.delays import RunDelay
from benchrigor.model import Status
from benchrigor.model.segments import Light
from benchrigor.testing import cpu_hog
from benchrigor.workloads import CommandWorkload, Pick
from shared.running import Bar, Run, Script, tally

script = Script(__doc__)
CONDITIONS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "idle": nullcontext,
    "one hog": partial(cpu_hog, 1),
    "two hogs": partial(cpu_hog, 2),
    "bursts": partial(cpu_hog, 2, bursts_s=(0.2, 5.0)),
}
ROWS = [{"id": index, "name": str(index) * 3, "tags": [index] * 5} for index in range(5)]
NUMBERS = [random.Random(1).random() for _ in range(400)]
BLOCK = bytes(range(256)) * 64


def loop() -> int:
    """Compute by byte code."""
    total = 0
    for index in range(300):
        total += index * index % 7
    return total


FUNCTIONS: dict[str, Callable[[], object]] = {
    "empty": int,
    "loop": loop,
    "dumps": lambda: json.dumps(ROWS),
    "sorted": lambda: sorted(NUMBERS),
    "sha256": lambda: hashlib.sha256(BLOCK).digest(),
    "objects": lambda: [[index] for index in range(500)],
    "copy 4 MB": lambda: bytearray(4_000_000)[:],
    "sleep 2 ms": lambda: time.sleep(0.002),
}


def default_run(name: str, path: Path) -> None:
    """Measure a function with defaults, in a process of its own, and save the record."""
    br.measure(FUNCTIONS[name], name=name).save(path)


def longer(record: br.RunRecord, by: float) -> br.RunRecord:
    """Return a run with readings that took longer by a factor, at the same references."""
    rounds = tuple(
        replace(done, unit_readings={n: by * values for n, values in done.unit_readings.items()})
        for done in record.rounds
    )
    return replace(record, rounds=rounds)


def record_runs(
    run: Run, names: Sequence[str], folder: Path
) -> tuple[dict[str, list[br.RunRecord]], float]:
    """Return default runs by function, over all conditions in random order, and the longest."""
    cells = [*product(names, CONDITIONS, range(run.runs(10, 1)))]
    random.Random(run.seed).shuffle(cells)
    found: dict[str, list[br.RunRecord]] = {name: [] for name in names}
    longest, context = 0.0, multiprocessing.get_context("spawn")
    # Full speed is the fastest level of this recording.
    with patch.dict(os.environ, XDG_DATA_HOME=str(folder)):
        for number, (name, condition, _) in enumerate(cells):
            path = folder / f"{number}.json"
            process = context.Process(target=default_run, args=(name, path))
            with CONDITIONS[condition]():
                start = time.perf_counter()
                process.start()
                process.join()
                longest = max(longest, time.perf_counter() - start)
            found[name].append(br.RunRecord.load(path))
    return found, longest


@script.section("Default runs, idle and next to hogs and bursts", seed=20271207, quick=False)
def defaults(run: Run) -> None:
    """Print how many intervals hold the median of the function's other runs, and stored pairs."""
    names = ("loop", "sorted") if run.quick else tuple(FUNCTIONS)
    run.heading("function", "runs", "held", "median half-width", "sd between runs")
    every, widths, spreads = list[bool](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as place:
        found, longest = record_runs(run, names, Path(place))
        for name, records in found.items():
            known = [each for record in records if (each := record.estimate()) is not None]
            values = np.array([record.value for record in known])
            held = [
                record.low <= float(np.median(np.delete(values, at))) <= record.high
                for at, record in enumerate(known)
            ] + [False] * (len(records) - len(known))
            width = statistics.median(record.relative_half_width for record in known)
            spreads.append(float(values.std(ddof=1) / values.mean()))
            every, widths = every + held, widths + [record.relative_half_width for record in known]
            shown = f"{sum(held)} of {len(records)}"
            run.row(name, len(records), shown, f"{width:.1%}", f"{spreads[-1]:.1%}")
        pairs = [pair for records in found.values() for pair in combinations(records, 2)]
        chosen = random.Random(run.seed).sample(pairs, min(100, len(pairs)))
        same = [br.compare_runs(one, two).verdict for one, two in chosen]
        more = [br.compare_runs(one, longer(two, 1.2)).verdict for one, two in chosen]
    run.share("held", Bar(0.93), every)
    run.say(f"median half-width {run.bar('half-width', statistics.median(widths), '<=', 0.07)}")
    run.say(f"sd between runs {run.bar('sd', statistics.median(spreads), '<=', 0.04)}")
    run.say(f"longest {longest:.1f} s, start included: {run.bar('longest', longest, '<=', 13.0)}")
    differ = [verdict in (br.Verdict.BETTER, br.Verdict.WORSE) for verdict in same]
    run.share("stored, same code different", Bar(0.0, 0.02), differ)
    slower = [verdict == "worse" for verdict in more]
    run.share("stored, 1.2 times the work found", Bar(0.75), slower)


JOB = """
import sys
def work(steps):
    total = 0
    for step in range(steps):
        total += step * step
    return total
def old(): return work(3_000)
def new(): return work(3_150)
def twice(): return work(6_000)
if __name__ == "__main__":
    work(int(sys.argv[1]))
"""


@script.section("Two in turn, each comparison a process of its own", seed=20310211, quick=False)
def comparisons(run: Run) -> None:
    """Print verdicts of `ab` on the same code, on 5 % more work within a minute, and on twice."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "job.py")
        path.write_text(JOB)
        old, more = (f"{sys.executable} -I -S {path} {n}" for n in (1_500_000, 1_583_333))
        cases: dict[str, tuple[tuple[str, ...], ...]] = {
            "same": (("job:old",) * 2, ("--fresh", "job:old", "job:old"), (old, old)),
            "5 % more": (("job:old", "job:new"), ("--fresh", "job:old", "job:new"), (old, more)),
            "twice": (("job:old", "job:twice"),),
        }
        for what, kinds in cases.items():
            told: list[str] = []
            for (row, words), number in product(enumerate(kinds), range(run.runs(16, 1))):
                budget = "60" if what == "5 % more" else "10"
                asked = [
                    "--json",
                    "--no-store",
                    "--budget",
                    budget,
                    "--seed",
                    f"{100 * row + number}",
                ]
                argv = [sys.executable, "-m", "benchrigor", "ab", *asked, *words]
                done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
                told.append(json.loads(done.stdout)["comparison"]["verdict"])
            hits = tally(
                line in (("worse", "better") if what == "same" else ("worse",)) for line in told
            )
            bar = {"same": Bar(0.0, 0.05), "5 % more": Bar(0.9), "twice": Bar(0.98)}[what]
            run.say(f"{what}: {hits}, {run.judged(what, bar, hits)}")


# --- commands

# A hash of 16 MB takes about 10 ms and leaves the other threads of the interpreter alone.
SPIN = """
import hashlib, subprocess, sys, threading, time
DATA = bytes(1 << 24)
def spin(cpu_s):
    began, used = time.perf_counter(), time.thread_time()
    while time.thread_time() - used < cpu_s:
        hashlib.sha256(DATA)
    took, ran = time.perf_counter() - began, time.thread_time() - used
    print(f"lost {took - ran:.9f} took {took:.9f}", flush=True)
"""
CHILD = f"subprocess.run([sys.executable, '-S', '-c', {SPIN + 'spin(%s)'!r}], check=True)"
SPINNING = {
    "one process": SPIN + "spin(0.6)",
    "a child": SPIN + CHILD % "0.6",
    "three children in turn": SPIN + f"for _ in range(3): {CHILD % '0.3'}",
    "two threads": SPIN
    + "both = [threading.Thread(target=spin, args=(0.6,)) for _ in range(2)]\n"
    + "[each.start() for each in both]; [each.join() for each in both]",
}
"""Programs by name; each prints its lost time, thread by thread."""


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
        for process in running:
            process.kill()
            process.wait()


@script.section(
    "The light of commands next to processes that keep processors busy", seed=1, quick=False
)
def light(run: Run) -> None:
    """Print the lost time, as the command knows it, next to the light."""
    picks = ("lost:s=regex:lost ([0-9.]+)", "took:s=regex:took ([0-9.]+)")
    run.heading("hogs", "command", "lost", "told", "light", "bar")
    for n, (kind, code) in product((0, 2) if run.quick else (0, 1, 2, 4), SPINNING.items()):
        workload = CommandWorkload(
            [sys.executable, "-S", "-c", code],
            picks=[Pick.parse(pick, unit_readings=True) for pick in picks],
            clock=WallClock(),
            meter=RunDelay(),
        )
        options = br.Options(
            max_rounds=run.runs(10, 2), target=1e-6, budget_s=600.0, rounds="restarted"
        )
        with hogs(n):
            record = br.Session(options, name="command", seed=1).run(workload)
        lost, took = (float(record.readings(name).sum()) for name in ("lost", "took"))
        found, truth = record.interference, 100.0 * lost / took
        assert found is not None  # delay was measured
        off, name = abs(found.total_percent - truth), f"{n} hogs, {kind}"
        is_hidden = found.light is Light.UNKNOWN or (truth > 15.0 and found.light is Light.GREEN)
        verdict = run.bar(name, math.inf if is_hidden else off, "<=", 5.0)
        run.row(n, kind, f"{truth:.1f}%", f"{found.total_percent:.1f}%", found.light, verdict)


IGNORES = "trap '' TERM; while :; do sleep 0.05; done"
# Its work, how it does it, and whether it must be killed.
ENDLESS = (
    ("prints", "i=0; while :; do i=$((i + 1)); echo u $i; sleep 0.02; done", False),
    ("sleeps", "exec sleep 600", False),
    ("ends often: 0.1 s a round", "sleep 0.1", False),
    ("ignores the request", IGNORES, True),
    ("has a child in the background", "sleep 600 & exec sleep 600", False),
    ("has one that ignores the request", f"({IGNORES}) & exec sleep 600", True),
    ("ends, and leaves a child", "sleep 600 & sleep 0.1", False),
)


def left_of(groups: set[int]) -> int:
    """Count the processes of groups that are not dead."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group, _ = stat.read_text(errors="replace").rpartition(")")[2].split(None, 3)
        except OSError:
            continue
        found += int(group) in groups and state not in "ZX"
    return found


@script.section("By how much commands pass a budget of 1 s, and what they leave", seed=1)
def budgets(run: Run) -> None:
    """Print both; one that ignores the request to end has a grace of 2 s."""
    run.heading("the command", "passed by at most", "bar", "left", "bar")
    for name, text, is_killed in ENDLESS:
        passed_s, left = 0.0, 0
        for _ in range(run.runs(5, 1)):
            with tempfile.TemporaryDirectory() as folder:
                argv = ["sh", "-c", f"echo $$ >> groups; {text}"]
                workload = CommandWorkload(argv, cwd=folder, clock=WallClock())
                began = time.perf_counter()
                br.Session(br.Options(budget_s=1.0, target=1e-9)).run(workload)
                passed_s = max(passed_s, time.perf_counter() - began - 1.0)
                time.sleep(1.0)
                left += left_of({*map(int, Path(folder, "groups").read_text().split())})
        bar = run.bar(f"budget, {name}", passed_s, "<=", 1.0 + 2.0 * is_killed + run.quick)
        run.row(name, f"{passed_s:.2f} s", bar, left, run.bar(f"left, {name}", left, "==", 0))


# --- the status


@script.section("What it costs to read the state of the machine", seed=1)
def state(run: Run) -> None:
    """Print milliseconds of each reading once a second, and its share of a session."""
    reader, short, alarms = StatusReader(), StatusReader(short=True), Alarms()
    status: Status = reader.read()
    now_s = iter(range(10_000))
    run.heading("what", "ms of processor time", "of wall time")
    spent = {}
    calls: dict[str, Callable[[], object]] = {
        "full": reader.read,
        "short": short.read,
        "alarms": lambda: alarms.tell(status, next(now_s)),
        "capabilities": lambda: capabilities(full=True),
        "health": health,
    }
    for name, read in calls.items():
        rows = []
        for _ in range(run.runs(30, 3) + 1):
            time.sleep(1.0 if name in ("full", "short") else 0.2)
            cpu_ns, wall_ns = time.thread_time_ns(), time.perf_counter_ns()
            read()
            rows.append((time.thread_time_ns() - cpu_ns, time.perf_counter_ns() - wall_ns))
        cpu, wall = np.array(rows[1:]).T / 1e6
        spent[name] = float(cpu.mean()), float(np.median(wall))
        run.row(name, f"{cpu.mean():.2f}", f"{np.median(wall):.2f}")
    run.say(f"\nfull, of a core: {run.bar('full', spent['full'][0] / 1e3, '<=', 0.005)}")
    run.say(f"short, ms: {run.bar('short', spent['short'][1], '<=', 5.0)}")
    took, read_status = list[float](), StatusReader.read

    def timed(self: StatusReader) -> Status:
        began = time.perf_counter()
        found = read_status(self)
        took.append(time.perf_counter() - began)
        return found

    with patch.object(StatusReader, "read", timed):
        began = time.perf_counter()
        br.Session(br.Options(budget_s=10.0, target=None), seed=1).run(lambda: sum(range(1_000)))
        share = sum(took) / (time.perf_counter() - began)
    run.say(f"of a session: {share:.2%}, {run.bar('share', share, '<=', 0.01)}")


if __name__ == "__main__":
    raise SystemExit(script.main())
