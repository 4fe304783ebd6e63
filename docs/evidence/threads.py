"""Whether figures of commands of several threads are possible, and their ranking right.

Programs of two and of four threads hash buffers, which releases the lock of the interpreter. Each
has 1.35 times the work of the one before, so that their order by wall time on an idle machine is
known from how they are made. Beside them a pipeline of two processes is measured, and not ranked.
``benchrigor commands`` measures all, alone and beside a process that keeps a processor busy; every
second run compares with a baseline.

    python docs/evidence/threads.py            # 20 minutes; prints results/threads.txt
    python docs/evidence/threads.py --quick
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from click.testing import CliRunner
from machine import describe

from benchrigor.cli import main
from benchrigor.clocks import processors
from benchrigor.testing import cpu_hog

RUNS, BUDGET_S = 20, 5.0
HASH = """
import hashlib, sys, threading
def work(n, data=bytes(1 << 20)):
    found = hashlib.sha256()
    for _ in range(n): found.update(data)
threads = int(sys.argv[1])
made = [threading.Thread(target=work, args=(int(sys.argv[2]) // threads,)) for _ in range(threads)]
for each in made: each.start()
for each in made: each.join()
"""
SIZES = ((2, 120), (4, 164), (2, 220), (4, 296))  # threads, MiB; in the order of their times
PIPELINE = "head -c 60000000 /dev/zero | gzip -1 | cksum"


class Judged(NamedTuple):
    """What one run gave: whether figures are possible, and those ranked or compared rightly."""

    least: float  # wall time over processor time by processors, of all commands
    at_full_pace: int  # commands that have a figure at full pace
    is_ordered: bool


def programs() -> dict[str, str]:
    """Return the commands by what they are, in the order of their times, the pipeline last."""
    python = shlex.join([sys.executable, "-I", "-S", "-c", HASH])
    made = {f"{threads} threads": f"{python} {threads} {size}" for threads, size in SIZES[:2]}
    made |= {f"{threads} threads, more": f"{python} {threads} {n}" for threads, n in SIZES[2:]}
    return {**made, "pipeline": shlex.join(["sh", "-c", PIPELINE])}


def judge(seed: int, budget_s: float) -> Judged:
    """Run the verb once, by turns as a ranking and as a comparison with the first."""
    named = programs()
    words = ["commands", *named.values(), "--no-store", "--json", "--seed", str(seed)]
    words += ["--budget", str(budget_s), *(["--baseline", "1"] if seed % 2 else [])]
    found = json.loads(CliRunner().invoke(main, words).stdout)
    runs = {name: found["commands"][argv]["run"] for name, argv in named.items()}
    analyses = {name: _by_metric(run) for name, run in runs.items()}
    least = min(_possible(each) for each in analyses.values())
    paced = sum(each["time"].get("at_full_pace") is not None for each in analyses.values())
    hashing = list(named.values())[:-1]
    if seed % 2:
        compared = found["family"]["comparisons"]
        ratios = [1.0, *(compared[each]["ratio"]["value"] for each in hashing[1:])]
        return Judged(least, paced, ratios == sorted(ratios))
    order = [each["name"] for each in found["places"] if each["name"] in hashing]
    return Judged(least, paced, order == hashing)


def _by_metric(run: Mapping[str, Any]) -> dict[str, Any]:
    return {each["metric"]["name"]: each for each in run["analyses"]}


def _possible(analyses: Mapping[str, Any]) -> float:
    """Return the least figure of a command over its processor time by the processors."""
    spent = sum(analyses[name]["estimate"]["value"] for name in ("user_time", "system_time"))
    figures = [analyses["time"][name] for name in ("estimate", "at_full_pace")]
    least: float = min((each["value"] for each in figures if each), default=float("inf"))
    return least / float(spent / processors())


def evidence(*, runs: int, budget_s: float) -> None:
    """Print the table."""
    print(describe())
    print(
        f"\n{runs} runs of {len(SIZES) + 1} commands each, {budget_s:g} s a command. Figures: the "
        "least of all runs, over\nthe processor time by the processors; 1 is the least possible."
    )
    print("\n| beside | least figure | figures at full pace | runs in the right order |")
    print("| --- | --- | --- | --- |")
    for hogs in (0, 1):
        with cpu_hog(hogs) if hogs else contextlib.nullcontext():
            found = [judge(seed, budget_s) for seed in range(runs)]
        least = min(each.least for each in found)
        cells = (f"{least:.2f}", sum(each.at_full_pace for each in found))
        right = sum(each.is_ordered for each in found)
        beside = "a busy process" if hogs else "nothing of ours"
        print("|", " | ".join(map(str, (beside, *cells, f"{right} of {runs}"))), "|", flush=True)


if __name__ == "__main__":
    quick = "--quick" in sys.argv[1:]
    evidence(runs=2 if quick else RUNS, budget_s=2.0 if quick else BUDGET_S)
