"""How often `benchrigor ab` calls the same code a change, and finds 5 % more work within 60 s.

Each comparison is a process of its own, with the defaults of `ab`: ten seconds for the same code,
60 s at most where 5 % are planted. A verdict "worse" or "better" on the same code is false; 5 % are
found where the verdict is "worse". A comparison that fails counts against its bar.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from coverage_tables import Bar, Setting, Tally

__all__ = ["ab", "found"]

STEPS, COMMAND_STEPS = 3_000, 1_500_000  # about .2 ms, and .1 s
MORE = 1.05
START = 0.1  # of a command's time, about, that its interpreter takes to start
JOB = """
import sys

def work(steps):
    total = 0
    for step in range(steps):
        total += step * step
    return total

def old():
    return work({old})

def new():
    return work({new})

if __name__ == "__main__":
    work(int(sys.argv[1]))
"""
SAME, PLANTED = Bar(0.0, 0.05), Bar(0.9)
BUDGET_S = {"same": 10, "planted": 60}


def verdict_of(words: Sequence[str], folder: Path, budget_s: int, seed: int) -> str:
    """Return the verdict of a comparison, or how it failed."""
    asked = ["--json", "--no-store", "--budget", str(budget_s), "--seed", str(seed)]
    # Where it runs, and not this script's folder, is what it imports from.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path[1:]))}
    done = subprocess.run(
        [sys.executable, "-m", "benchrigor", "ab", *asked, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return str(json.loads(done.stdout)["comparison"]["verdict"])
    except (ValueError, KeyError):
        return f"exit code {done.returncode}: {done.stderr.strip()[-200:]}"


def made(folder: Path) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Write a module, and commit it twice; return what each kind of comparison is asked for."""

    def git(*words: str) -> None:
        name = ("-c", "user.name=everyday", "-c", "user.email=everyday@localhost")
        subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    path = folder / "everyday_job.py"
    for tag, steps in (("more", round(MORE * STEPS)), ("first", STEPS)):
        path.write_text(JOB.format(old=steps, new=round(MORE * STEPS)))
        git("add", path.name)
        git("commit", "-qm", tag)
        git("tag", tag)
    old, new = (
        f"{sys.executable} -I -S {path} {round(steps)}"
        for steps in (COMMAND_STEPS, COMMAND_STEPS * (1.0 + (MORE - 1.0) / (1.0 - START)))
    )
    functions, work = ("everyday_job:old", "everyday_job:new"), "everyday_job:old"
    return {
        "functions": {"same": (functions[0], functions[0]), "planted": functions},
        "functions, --fresh": {
            "same": ("--fresh", functions[0], functions[0]),
            "planted": ("--fresh", *functions),
        },
        "commands": {"same": (old, old), "planted": (old, new)},
        "revisions": {
            "same": ("--rev", "first", "--rev", "first", work),
            "planted": ("--rev", "first", "--rev", "more", work),
        },
    }


def ab(setting: Setting) -> None:
    """Print how often each kind of comparison calls the same code a change."""
    _print_shares(setting, "same", SAME, setting.runs(50, 3))


def found(setting: Setting) -> None:
    """Print how often each kind of comparison finds 5 % more work."""
    _print_shares(setting, "planted", PLANTED, setting.runs(12, 3))


def _print_shares(setting: Setting, what: str, bar: Bar, runs: int) -> None:
    """Print by kind, and of all, how often the verdict was what the bar is about."""
    hits = done = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        for row, (kind, words) in enumerate(made(folder).items()):
            rng = np.random.default_rng([setting.seed, 1, row, what == "planted"])
            seeds = rng.integers(2**31, size=runs).tolist()
            told = [verdict_of(words[what], folder, BUDGET_S[what], each) for each in seeds]
            failed = [each for each in told if each.startswith("exit code")]
            hit = {"worse"} if what == "planted" else {"worse", "better", *failed}
            of_kind = sum(each in hit for each in told)
            hits, done = hits + of_kind, done + len(told)
            counts = {each: told.count(each) for each in sorted(set(told))}
            print(f"{kind}, {what}: {of_kind} of {len(told)} {counts}", flush=True)
    judged = setting.judged(f"all kinds, {what}", bar, Tally(hits, 0, done, np.nan))
    print(f"all kinds, {what}: {hits} of {done}, {judged}")
