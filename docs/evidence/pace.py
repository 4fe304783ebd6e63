"""How sensitive work of many kinds is to the pace of the machine, and what a reference corrects.

    python docs/evidence/pace.py record runs.jsonl     (15 minutes; goes on where it was stopped)
    python docs/evidence/pace.py figures runs.jsonl

A run of three seconds of each of 48 workloads, each in a process of its own, beside nothing, one,
two or four processes that keep a processor busy, two that do so in bursts of 0.2 to 5 s, and one
that copies memory, in an order drawn from the seed. The constants of
`benchrigor.stats.estimators.pace` are the figures of the second command.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
from machine import describe
from pace_workloads import INTERPRETER, WORKLOADS, make

import benchrigor as br
from benchrigor.model import Floats
from benchrigor.testing import cpu_hog, memory_hog

SEED = 20270306
_NORMAL = 1.96
Run = dict[str, Any]

CONDITIONS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "idle": nullcontext,
    "one hog": partial(cpu_hog, 1),
    "two hogs": partial(cpu_hog, 2),
    "four hogs": partial(cpu_hog, 4),
    "bursts": partial(cpu_hog, 2, bursts_s=(0.2, 5.0)),
    "memory": memory_hog,
}


def measure(name: str, seconds: float) -> Run:
    """Measure a workload, and return what the figures need."""
    record = br.measure(make(name), name=name, target=1e-6, budget_s=seconds)
    analysis, full = record.analysis(), record.at_full_pace()
    if analysis is None or analysis.estimate is None or analysis.pace is None or full is None:
        return {"name": name, "refused": [each.code for each in record.notices]}
    pace, lost = analysis.pace, record.interference
    return {
        "name": name,
        "here": analysis.estimate.value,
        "wall": float(record.readings().mean()),
        "full": [full.value, full.low, full.high],
        "full_s": pace.full_s["interpreter"],
        "pace": pace.mean,
        "sensitivity": [pace.sensitivity, pace.sensitivity_sd],
        "between": pace.between,
        "lost": 0.0 if lost is None else lost.total_percent,
    }


def record(path: Path, *, runs: int, seconds: float) -> None:
    """Make the runs that the file does not hold yet."""
    cells = [
        (name, condition)
        for index in range(runs)
        for name in WORKLOADS
        for condition in [random.Random(f"{SEED} {name}").sample([*CONDITIONS], 6)[index % 6]]
    ]
    random.Random(SEED).shuffle(cells)
    done = len(path.read_text().splitlines()) if path.exists() else 0
    environment = os.environ | {"XDG_DATA_HOME": str(path.with_suffix(".data").absolute())}
    for index, (name, condition) in enumerate(cells[done:], done):
        with CONDITIONS[condition]():
            argv = [sys.executable, __file__, "one", name, "--seconds", str(seconds)]
            done_run = subprocess.run(argv, env=environment, check=True, capture_output=True)
        run = {"condition": condition, "at": time.time(), **json.loads(done_run.stdout)}
        with path.open("a") as file:
            file.write(json.dumps(run) + "\n")
        print(f"{index + 1} of {len(cells)}: {name}, {condition}", flush=True)


def figures(path: Path) -> None:
    """Print what the constants are made of, and how far apart runs are."""
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    refused = [each for each in runs if "full" not in each]
    runs = [each for each in runs if "full" in each]
    best = min(each["full_s"] for each in runs)
    print(describe())
    print(f"{len(runs)} runs, {len(refused)} without a figure at full pace; full pace {best:.3g} s")
    by_name: dict[str, list[Run]] = defaultdict(list)
    for each in runs:
        each["scale"] = (best / each["full_s"]) ** each["sensitivity"][0]
        by_name[each["name"]].append(each)
    for kind, names in (
        ("of the interpreter", [*INTERPRETER]),
        ("others", [each for each in WORKLOADS if each not in INTERPRETER]),
    ):
        _print_kind(kind, {name: by_name[name] for name in names if len(by_name[name]) > 1})


def _print_kind(kind: str, by_name: dict[str, list[Run]]) -> None:
    told = [
        [each["sensitivity"][0] for each in group if each["sensitivity"][1] < 0.15]
        for group in by_name.values()
    ]
    means = [float(np.mean(each)) for each in told if each]
    within = [value - np.mean(each) for each in told if len(each) > 1 for value in each]
    print(f"\n{kind}: {len(by_name)} workloads")
    print(f"  sensitivity {np.mean(means):.2f}, sd between workloads {np.std(means):.2f}, ", end="")
    print(f"between runs of one {np.std(within):.3f}")
    held, widths = 0, []
    errors: dict[str, list[float]] = defaultdict(list)
    told_apart: list[tuple[Floats, Floats]] = []
    for group in by_name.values():
        levels = [math.log(each["full"][0] * each["scale"]) for each in group]
        for index, each in enumerate(group):
            others = float(np.mean(np.delete(levels, index)))
            low, high = (math.log(end * each["scale"]) for end in each["full"][1:])
            held += low <= others <= high
            widths.append((high - low) / 2.0)
        own = [math.log(each["full"][2] / each["full"][1]) / (2.0 * _NORMAL) for each in group]
        beside = np.maximum(np.square(own) - np.square([each["between"] for each in group]), 0.0)
        told_apart.append((np.array(levels), beside))
        shrink = math.sqrt((len(group) - 1) / len(group))
        for figure, values in (
            ("at full pace", levels),
            ("undisturbed", [math.log(each["here"]) for each in group]),
            ("all readings", [math.log(each["wall"]) for each in group]),
        ):
            errors[figure] += list((np.array(values) - np.mean(values)) / shrink)
    print(f"  intervals at full pace hold the mean of the others {held / len(widths):.3f} ", end="")
    print(f"of {len(widths)}, median half-width {np.median(widths):.1%}")
    print(f"  sd between runs beyond what they tell of themselves: {_between(told_apart):.1%}")
    for figure, values in errors.items():
        robust = float(np.median(np.abs(values))) / 0.6745
        print(f"  spread between runs, {figure}: {robust:.1%} (sd {np.std(values):.1%})")


def _between(groups: list[tuple[Floats, Floats]]) -> float:
    """Return the most likely sd between runs beside the variances given, by restricted likelihood.

    Harville (1977), Maximum likelihood approaches to variance component estimation.
    """

    def surprise(sd: float) -> float:
        total = 0.0
        for levels, beside in groups:
            weights = 1.0 / (beside + sd * sd)
            mean = (weights * levels).sum() / weights.sum()
            total += (weights * (levels - mean) ** 2 - np.log(weights)).sum() + math.log(
                weights.sum()
            )
        return total

    return float(scipy.optimize.minimize_scalar(surprise, bounds=(1e-4, 0.5), method="bounded").x)


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["record", "figures", "one"])
    parser.add_argument("subject")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    if given.command == "one":
        print(json.dumps(measure(given.subject, given.seconds)))
    elif given.command == "record":
        record(Path(given.subject), runs=given.runs, seconds=given.seconds)
    else:
        figures(Path(given.subject))


if __name__ == "__main__":
    main()
