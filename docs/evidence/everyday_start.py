"""What one start of an `InterpreterWorkload` costs above the bare interpreter, and what it loads.

CPU time (user + system) of whole interpreters, with the same variables, in turn; the function does
nothing, and one reading of it is wanted, without the reference and with it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from coverage_tables import Setting
from imports import HEAVY

from benchrigor.model import RoundPlan
from benchrigor.workloads import InterpreterWorkload, RoundRecorder
from benchrigor.workloads.interpreter import INHERITED

__all__ = ["start"]

MOST_MS = 15.0
JOB = """
import sys

def nothing():
    pass

def told():
    with open("loaded", "w") as file:
        file.write(" ".join(sys.modules))
"""


def cpu_ms(run: Callable[[], object]) -> float:
    """Return the CPU time of the processes that a call starts, in ms."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def started(workload: InterpreterWorkload, index: int) -> None:
    """Carry out a round of one reading."""
    workload.run(RoundPlan(index=index, readings=1, seed=index), RoundRecorder())


def start(setting: Setting) -> None:
    """Print CPU time above the bare interpreter, and which heavy modules the worker has."""
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    with TemporaryDirectory() as folder:
        (Path(folder) / "everyday_job.py").write_text(JOB)
        plain, paced = (InterpreterWorkload("everyday_job:nothing", cwd=folder) for _ in range(2))
        paced.take_turns()
        cases: dict[str, Callable[[int], object]] = {
            "bare": lambda _: subprocess.run(
                [sys.executable, "-c", "pass"], check=True, env=environment, cwd=folder
            ),
            "a start": lambda index: started(plain, index),
            "a start with the reference": lambda index: started(paced, index),
        }
        rng = np.random.default_rng([setting.seed, 0])
        found: dict[str, list[float]] = {name: [] for name in cases}
        for index in range(setting.runs(100, 20)):
            for name in rng.permutation(list(cases)):
                found[name].append(cpu_ms(lambda name=name, index=index: cases[name](index)))  # type: ignore[misc]
        bare = float(np.median(found["bare"]))
        print(f"bare interpreter: {bare:.1f} ms, median of {len(found['bare'])}")
        for name in ("a start", "a start with the reference"):
            above = float(np.median(found[name])) - bare
            least = min(found[name]) - min(found["bare"])
            verdict = setting.verdict(name, above <= MOST_MS)
            print(
                f"{name}: {above:.1f} ms above it (of the fastest {least:.1f}), "
                f"at most {MOST_MS:g}: {verdict}"
            )
        started(InterpreterWorkload("everyday_job:told", cwd=folder), 0)
        loaded = (Path(folder) / "loaded").read_text().split()
    heavy = [name for name in (*HEAVY, "benchrigor") if name in loaded]
    verdict = setting.verdict("nothing heavy is loaded", not heavy)
    print(f"{len(loaded)} modules loaded, heavy: {heavy}: {verdict}")
