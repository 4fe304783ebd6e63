"""Processes that store rounds are killed: whether one is lost, stored twice, or stuck.

Each trial starts one of the modes and kills it, one of its processes, or all at a random moment. A
round counts as reported when `Journal.append` has returned: nobody sees it earlier.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from coverage_tables import Setting, heading, row
from trust_trials import done_trials, ended_run, processes_of, start

from benchrigor.errors import BenchrigorError
from benchrigor.session import Session
from benchrigor.storage import Journal
from benchrigor.workbench.peak_run import KIND

REPORTING = """
import os, sys
from benchrigor.storage import Journal
append = Journal.append
def reported(self, run_id, finished):
    append(self, run_id, finished)
    with open("reported", "ab", 0) as file:
        file.write(f"{run_id} {finished.plan.index}\\n".encode())
Journal.append = reported
if sys.argv[1] == "python":
    import runpy
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
elif sys.argv[1] == "pytest":
    import pytest
    sys.exit(pytest.main(sys.argv[2:]))
else:
    from benchrigor.cli import main
    main()
"""
JOB = """
import asyncio, time
async def request():
    await asyncio.sleep(0.001)
def work():
    time.sleep(0.003)
def other():
    time.sleep(0.004)
def test_work(bench):
    bench(work)
    bench.compare(work, other)
"""
PYTHON = """
import benchrigor as br
from job import other, work
br.measure_many({"work": work, "other": other}, store="runs.sqlite", budget_s=30, target=1e-6)
"""
ENDLESS = ("--budget", "30", "--target", "1e-6")
SIDES = ("--budget", "30", "--target", "1e-6")
MODES = {
    "function": ("run", *ENDLESS, "job:work"),
    "fresh": ("run", "--fresh", *ENDLESS, "job:work"),
    "command": ("run", *ENDLESS, "--", "sleep", "0.01"),
    "timeit": ("timeit", *ENDLESS, "sum(range(99))"),
    "commands": ("commands", *ENDLESS, "sleep 0.01", "sleep 0.02"),
    "ab of functions": ("ab", *SIDES, "job:work", "job:other"),
    "ab of commands": ("ab", *SIDES, "sleep 0.01", "sleep 0.02"),
    "ab of fresh": ("ab", "--fresh", *SIDES, "job:work", "job:other"),
    "peak": ("peak", "--mean", "100ms", "job:request"),
    "pytest": (
        "pytest",
        "-p",
        "no:cacheprovider",
        "--bench-save",
        "it",
        "--bench-budget",
        "30",
        "--bench-target",
        "0.0001%",
        "job.py",
    ),
    "measure_many": ("python", "many.py"),
}
"""Arguments of each mode."""

KINDS = ("itself", "a child", "all")
LIMIT_S = 30.0


def kills(setting: Setting) -> None:
    """Print what was lost, stored twice, or could not be taken up again."""
    per_mode = 1 if setting.quick else -(-(setting.repetitions or 1000) // len(MODES))
    names = [f"{mode}/{index}" for index in range(per_mode) for mode in MODES]
    found = done_trials(setting, "kills", names, lambda name: killed(name, setting.seed))
    heading(["mode", "kills", "rounds reported", "lost", "twice", "not taken up", "left running"])
    for mode in (*MODES, "all"):
        rows = [trial for name, trial in found.items() if mode in {name.partition("/")[0], "all"}]
        total: Counter[str] = Counter()
        for trial in rows:
            total.update({key: value for key, value in trial.items() if isinstance(value, int)})
        faults = [total[key] for key in ("lost", "twice", "stuck", "left")]
        met = setting.verdict(f"kills of {mode}", not any(faults))
        row(mode, len(rows), f"{total['reported']:,}", *faults, met)
    for name, trial in found.items():
        if trial["why"]:
            print(f"\n{name}: {trial['why']}")


def killed(name: str, seed: int) -> dict[str, Any]:
    """Start a mode, kill it, and return what became of its rounds."""
    mode, _, index = name.partition("/")
    rng = np.random.default_rng([seed, [*MODES].index(mode), int(index)])
    kind, delay_s = KINDS[int(rng.integers(len(KINDS)))], float(rng.uniform(0.0, 1.5))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for file, text in (("job.py", JOB), ("many.py", PYTHON), ("reporting.py", REPORTING)):
            (folder / file).write_text(text)
        store = folder / (".benchrigor/it.sqlite" if mode == "pytest" else "runs.sqlite")
        run = start(("reporting.py", *MODES[mode]), folder, {"BENCHRIGOR_STORE": str(store)})
        until = time.monotonic() + LIMIT_S
        while not (folder / "reported").exists() and time.monotonic() < until:
            if run.process.poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(delay_s)
        children = processes_of(run)
        itself = run.process.pid
        ended = run.process.poll()
        victims = {"itself": [itself], "a child": children[:1], "all": [itself, *children]}[kind]
        for number in victims or [itself]:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if kind == "a child":
            time.sleep(0.2)
            run.process.send_signal(signal.SIGTERM)
        _, left = ended_run(run, LIMIT_S)
        # The child of a process that was killed is its own: nobody is left to end a command.
        is_ours = kind == "a child" or mode in {"fresh", "ab of fresh"}
        kept = _kept(folder, store)
        if ended is not None:
            kept["why"] += (
                f" It ended by itself with {ended}: " + (folder / "stderr").read_text()[-300:]
            )
        return {"kind": kind, "left": len(left) * is_ours, **kept}


def _kept(folder: Path, store: Path) -> dict[str, Any]:
    """Compare what was reported with what is stored, and take each run up again."""
    file = folder / "reported"
    reported = set(file.read_text().splitlines()) if file.exists() else set()
    if not store.exists():
        return {"reported": len(reported), "lost": len(reported), "twice": 0, "stuck": 0, "why": ""}
    stored, stuck, why = Counter[str](), 0, ""
    with Journal(store) as journal:
        for listed in journal.runs():
            run_id = listed["run_id"]
            try:
                record = journal.load(run_id)
                stored.update(f"{run_id} {each.plan.index}" for each in record.rounds)
                if record.subject.get("kind") != KIND:
                    Session.resume(journal, run_id)
            except BenchrigorError as error:
                stuck, why = stuck + 1, f"{why} {error}"
    lost = reported - stored.keys()
    twice = sum(n - 1 for n in stored.values())
    return {
        "reported": len(reported),
        "lost": len(lost),
        "twice": twice,
        "stuck": stuck,
        "why": why,
    }
