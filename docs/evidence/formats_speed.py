"""What files cost on the command line, and metadata a run."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row
from formats_files import suite_of

__all__ = ["metadata", "rows", "suites"]

SUITE, SUITE_S = 200, 5.0
ROWS, ROWS_S, ROWS_GB = 10_000_000, 6.0, 1.2
_FIRST = """
import sys, time
import benchrigor as br
from benchrigor.machine import host
loaded = set()
def work():
    loaded.update({"pyperf", "psutil"} & sys.modules.keys())
br.measure(work, budget_s=0.2)
assert not loaded, loaded
host._environment.cache_clear()
print(host.environment() != {})
"""
_COST = """
import time
import benchrigor as br
br.measure
import benchrigor.session.session
from benchrigor.machine import host
host.provenance()
wall, cpu = time.perf_counter(), time.process_time()
host.environment()
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


class Spent(NamedTuple):
    """What a call of the command line took."""

    seconds: float
    cpu_s: float
    gigabytes: float
    code: int
    said: str


def _spent(*words: str) -> Spent:
    """Run the command line; return wall time, peak memory, exit code and the last line said."""
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "benchrigor", *words], stdout=output, stderr=output
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = output.read().splitlines()
    said = next((each for each in reversed(lines) if each), "")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Spent(seconds, cpu_s, usage.ru_maxrss / 1e6, process.returncode, said[:80])


def metadata(setting: Setting) -> None:
    """Print what the first record of a process pays for the metadata, after its last reading."""
    loaded = subprocess.run(
        [sys.executable, "-c", _FIRST], check=False, capture_output=True, text=True
    )
    met = setting.verdict("nothing is loaded while readings are taken", loaded.returncode == 0)
    print(f"pyperf and psutil are not loaded before the last reading: {met}")
    found = [
        [
            1e3 * float(each)
            for each in subprocess.check_output([sys.executable, "-c", _COST]).split()
        ]
        for _ in range(setting.runs(15, 5))
    ]
    wall, cpu = (statistics.median(each) for each in zip(*found, strict=True))
    print(f"once per process, median of {len(found)}: {cpu:.0f} ms of CPU, {wall:.0f} ms in all")


def suites(setting: Setting) -> None:
    """Print what it takes to compare two suites."""
    size = setting.repetitions or SUITE
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{side}.json") for side in ("old", "new")]
        for side, path in enumerate(paths):
            rng = np.random.default_rng([setting.seed, 3, side])
            levels = 0.01 * rng.lognormal(0.0, 0.01, (size, 20, 1))
            values = levels * rng.lognormal(0.0, 0.01, (size, 20, 3))
            path.write_text(suite_of({f"benchmark {n}": each for n, each in enumerate(values)}))
        calls = [_spent("compare", *map(str, paths)) for _ in range(setting.runs(5, 1))]
    heading(["benchmarks", "s, each call", "of CPU", "peak GB", "exit code", "last line", "bar"])
    seconds = [each.seconds for each in calls]
    last = calls[-1]
    met = min(seconds) <= SUITE_S and last.code in (0, 3, 7)
    shown = ", ".join(f"{each:.1f}" for each in seconds)
    verdict = setting.verdict("two suites", met)
    row(
        size,
        shown,
        f"{last.cpu_s:.1f}",
        f"{last.gigabytes:.2f}",
        last.code,
        last.said,
        f"{SUITE_S:g} s: {verdict}",
    )


def rows(setting: Setting) -> None:
    """Print what it takes to analyse a large file."""
    size = setting.repetitions or (ROWS // 10 if setting.quick else ROWS)
    heading(["file", "rows", "s", "of CPU", "peak GB", "exit code", "bar"])
    for kind, head, line in (("CSV", "time\n", "{:.9g}\n"), ("NDJSON", "", '{{"time": {:.9g}}}\n')):
        rng = np.random.default_rng([setting.seed, 4])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "readings")
            distinct = rng.lognormal(0.0, 0.05, min(size, 1_000_000))
            blocks = [
                "".join(map(line.format, block.tolist()))
                for block in np.array_split(distinct, max(1, distinct.size // 1000))
            ]
            with path.open("w") as file:
                file.write(head)
                for _ in range(size // distinct.size):
                    file.writelines(blocks[each] for each in rng.permutation(len(blocks)))
            call = _spent("analyze", str(path), "--column", "time", "--unit", "s")
        bar = "-"
        if kind == "CSV":
            met = call.code == 0 and call.seconds <= ROWS_S and call.gigabytes <= ROWS_GB
            bar = f"{ROWS_S:g} s, {ROWS_GB:g} GB: {setting.verdict('a large table', met)}"
        row(
            kind,
            f"{size:,}",
            f"{call.seconds:.1f}",
            f"{call.cpu_s:.1f}",
            f"{call.gigabytes:.2f}",
            call.code,
            bar,
        )
