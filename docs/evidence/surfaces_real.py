"""Maps of a real server, killed once and taken up again, or slow, against theory (M/M/c)."""

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

__all__ = ["real", "slow"]

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
start = "{python} examples/map_server.py --port 8322 --workers {{workers}} --slower {slower}"
port = 8322
[response.peak]
url = "http://127.0.0.1:8322/{{page}}"
mean = "300ms"
min_load = {least}
max_load = 800
budget = "{budget}"
"""
TOO_FAR, SLOWER = 0.15, 3.0
KILLED_S, QUICK_KILLED_S = 90.0, 15.0


def real(setting: Setting) -> None:
    """Print what a map of the examples' server predicts of all configurations, and what is true."""
    budget = "20s" if setting.quick else "60s"
    text = MAP.format(python=sys.executable, budget=budget, slower=1, least=20)
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
    errors = _errors(told, 1.0)
    repeated = sum(after[run] < n for run, n in before.items())
    goes_on = setting.verdict("no trial repeated", repeated == 0 and bool(before))
    print(f"\n{took_s:.0f} s in all; killed with {sum(before.values())} trials finished, ", end="")
    print(f"all of which counted after it was taken up again: {goes_on}")
    near = setting.verdict("configurations left out", max(errors.values()) <= TOO_FAR)
    print(f"left out: {len(errors)}, at most {max(errors.values()):.1%} off, bar 15 %: {near}")


def slow(setting: Setting) -> None:
    """Print a map of the same server, three times slower: peaks of 24 to 163, 50 s a sample."""
    budget = "20s" if setting.quick else "50s"
    with TemporaryDirectory() as name:
        file, journal = Path(name) / "map.toml", Path(name) / "runs.sqlite"
        file.write_text(MAP.format(python=sys.executable, budget=budget, slower=SLOWER, least=5))
        words = ["map", str(file), "--json", "--store", str(journal)]
        done = benchrigor(words, stdout=subprocess.PIPE, text=True)
        told = json.loads(done.communicate()[0])
    errors = _errors(told, SLOWER)
    lost = sum(not each["estimates"] for each in told["samples"])
    none = setting.verdict("no sample of a slow server lost", lost == 0)
    print(f"\n{lost} of {len(told['samples'])} samples without a number: {none}")
    near = setting.verdict("slow, left out", max(errors.values()) <= TOO_FAR)
    print(f"left out: {len(errors)}, at most {max(errors.values()):.1%} off, bar 15 %: {near}")


def _errors(told: dict[str, Any], slower: float) -> dict[tuple[Any, ...], float]:
    """Print all predictions of a map; return the errors of configurations left out."""
    measured = [tuple(each["sample"]["point"].values()) for each in told["samples"]]
    errors = {}
    print("| workers | page | measured | predicted | true peak | error |")
    print("| --- | --- | --- | --- | --- | --- |")
    for each in told["responses"]["peak"]["predictions"]:
        workers, page = point = tuple(each["point"].values())
        found, true = each["estimate"], peak(int(workers), page, slower)
        error = found["value"] / true - 1.0
        shown = f"{found['value']:.0f} [{found['low']:.0f}, {found['high']:.0f}]"
        is_measured = point in measured
        print(f"| {workers} | {page} | {is_measured} | {shown} | {true:.0f} | {error:+.1%} |")
        if not is_measured:
            errors[point] = abs(error)
    return errors


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


def peak(workers: int, page: str, slower: float) -> float:
    """Return the load at which the mean response of M/M/c is at the limit (Erlang C)."""
    mean_s = slower * MEAN_S[page]
    rate = 1.0 / mean_s

    def over(load: float) -> float:
        offered = load / rate
        idle = sum(offered**k / math.factorial(k) for k in range(workers))
        waits = offered**workers / math.factorial(workers) / (1.0 - offered / workers)
        return waits / (idle + waits) / (workers * rate - load) + mean_s - LIMIT_S

    return float(brentq(over, 1e-6, workers * rate * (1.0 - 1e-9)))
