"""A map of a real server, killed once and taken up again, against theory (M/M/c)."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coverage_tables import Setting
from scipy.optimize import brentq

from benchrigor.storage import Journal

__all__ = ["real"]

ROOT = Path(__file__).parents[2]
MEAN_S, LIMIT_S = {"small": 0.008, "large": 0.012}, 0.3
MAP = """
[factors.workers]
levels = [1, 2, 3, 4]
scale = "log2"
[factors.page]
levels = ["small", "large"]
workload = true
[design]
samples = 6
[server]
start = "{python} examples/map_server.py --port 8322 --workers {{workers}}"
port = 8322
[response.peak]
url = "http://127.0.0.1:8322/{{page}}"
mean = "300ms"
min_load = 20
max_load = 800
budget = "{budget}"
"""
TOO_FAR = 0.15
KILLED_S, QUICK_KILLED_S = 90.0, 15.0


def real(setting: Setting) -> None:
    """Print what a map of the examples' server predicts of all configurations, and what is true."""
    text = MAP.format(python=sys.executable, budget="20s" if setting.quick else "60s")
    with TemporaryDirectory() as name:
        file, journal = Path(name) / "map.toml", Path(name) / "runs.sqlite"
        file.write_text(text)
        begun_s = time.monotonic()
        before = trials_until_killed(file, journal, QUICK_KILLED_S if setting.quick else KILLED_S)
        whole = next(run for run in Journal(journal).runs() if "of map" not in run["name"])
        words = ["resume", whole["run_id"], "--json", "--store", str(journal)]
        done = benchrigor(words, stdout=subprocess.PIPE, text=True)
        told = json.loads(done.communicate()[0])
        took_s = time.monotonic() - begun_s
        after = trials_of(journal)
    measured = [tuple(each["sample"]["point"].values()) for each in told["samples"]]
    errors = {}
    print("| workers | page | measured | predicted | true peak | error |")
    print("| --- | --- | --- | --- | --- | --- |")
    for each in told["responses"]["peak"]["predictions"]:
        workers, page = point = tuple(each["point"].values())
        found, true = each["estimate"], peak(int(workers), page)
        error = found["value"] / true - 1.0
        shown = f"{found['value']:.0f} [{found['low']:.0f}, {found['high']:.0f}]"
        is_measured = point in measured
        print(f"| {workers} | {page} | {is_measured} | {shown} | {true:.0f} | {error:+.1%} |")
        if not is_measured:
            errors[point] = abs(error)
    repeated = sum(after[run] < n for run, n in before.items())
    goes_on = setting.verdict("no trial repeated", repeated == 0 and bool(before))
    print(f"\n{took_s:.0f} s in all; killed with {sum(before.values())} trials finished, ", end="")
    print(f"all of which counted after it was taken up again: {goes_on}")
    near = setting.verdict("configurations left out", max(errors.values()) <= TOO_FAR)
    print(f"left out: {len(errors)}, at most {max(errors.values()):.1%} off, bar 15 %: {near}")


def trials_until_killed(file: Path, journal: Path, seconds: float) -> dict[str, int]:
    """Begin a map, kill it, and return how many trials each of its searches had finished."""
    words = ["map", str(file), "--store", str(journal)]
    with benchrigor(words, stdout=subprocess.DEVNULL) as running:
        time.sleep(seconds)
        running.send_signal(signal.SIGKILL)
    time.sleep(1.0)  # for the server to be gone
    return trials_of(journal)


def trials_of(journal: Path) -> dict[str, int]:
    """Return how many trials each search has."""
    runs = Journal(journal).runs()
    return {run["run_id"]: run["rounds"] for run in runs if "of map" in run["name"]}


def benchrigor(words: list[str], **given: Any) -> subprocess.Popen[Any]:
    """Start the command line where the example's server is found."""
    return subprocess.Popen([sys.executable, "-m", "benchrigor", *words], cwd=ROOT, **given)


def peak(workers: int, page: str) -> float:
    """Return the load at which the mean response of M/M/c is at the limit (Erlang C)."""
    rate = 1.0 / MEAN_S[page]

    def over(load: float) -> float:
        offered = load / rate
        idle = sum(offered**k / math.factorial(k) for k in range(workers))
        waits = offered**workers / math.factorial(workers) / (1.0 - offered / workers)
        return waits / (idle + waits) / (workers * rate - load) + MEAN_S[page] - LIMIT_S

    return float(brentq(over, 1e-6, workers * rate * (1.0 - 1e-9)))
