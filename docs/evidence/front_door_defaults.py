"""What a run with defaults costs, and how long its line is."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from coverage_tables import Setting, heading, row
from front_door_work import FUNCTIONS, long

from benchrigor.storage import Journal

__all__ = ["defaults"]

MEDIAN_S, MOST_S, COLUMNS = 6.0, 12.0, 100
HERE = Path(__file__).parent
MEASURE = """
import sys
import benchrigor as br, front_door_work
print(br.measure(getattr(front_door_work, sys.argv[1])))
"""


class Run(NamedTuple):
    """How long a run took with all that is around it, and its line."""

    took_s: float
    call_s: float
    line: str
    reason: str = ""


def defaults(setting: Setting) -> None:
    """Print time and line of default runs in one process and in fresh ones."""
    heading(["function", "door", "took", "line", "ended"])
    names = [each.__name__ for each in FUNCTIONS]
    doors = {"measure": measure, "run": run}
    times, widths, late = [], [], []
    for name in names[:: 4 if setting.quick else 1]:
        for door, function in doors.items():
            found = function(name)
            row(name, door, f"{found.took_s:.1f} s", found.line, found.reason)
            times.append(found.took_s)
            widths.append(len(found.line))
            if found.took_s > MOST_S + found.call_s:
                late.append(f"{name} by {door}")
    middle = statistics.median(times)
    verdict = setting.verdict("median time", middle <= MEDIAN_S)
    print(f"\nmedian time of {len(times)} default runs: {middle:.1f} of {MEDIAN_S:g} s: {verdict}")
    verdict = setting.verdict("longest time", not late)
    print(f"longer than {MOST_S:g} s and a call: {late or 'none'}: {verdict}")
    verdict = setting.verdict("columns", max(widths) <= COLUMNS)
    print(f"longest line: {max(widths)} of {COLUMNS} characters: {verdict}")


def measure(name: str) -> Run:
    """Measure in a script."""
    began = time.perf_counter()
    printed = _printed([sys.executable, "-c", MEASURE, name])
    took_s = time.perf_counter() - began
    return Run(took_s, _call_s(name), printed.strip())


def run(name: str) -> Run:
    """Measure on the command line."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "runs.sqlite"
        argv = [sys.executable, "-m", "benchrigor", "run", "--store", str(store)]
        began = time.perf_counter()
        _printed([*argv, f"front_door_work:{name}"])
        took_s = time.perf_counter() - began
        journal = Journal(store)
        record = journal.load(str(journal.runs()[0]["run_id"]))
    reason = "" if record.decision is None else str(record.decision.reason)
    return Run(took_s, _call_s(name), str(record), reason)


def _call_s(name: str) -> float:
    """Return about how long the longest call takes."""
    return 4.0 if name == long.__name__ else 0.1


def _printed(argv: Sequence[str]) -> str:
    unset = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONDONTWRITEBYTECODE")  # users set none
    env = {name: text for name, text in os.environ.items() if name not in unset}
    done = subprocess.run(argv, cwd=HERE, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3, 4):
        raise RuntimeError(done.stderr)
    return done.stdout
