"""What timing a reference in turn does to the readings, and what share of the time it takes.

    python docs/evidence/reference_cost.py

Rounds of twenty milliseconds with and without the reference follow each other, the first of two
drawn each time; the ratio of their undisturbed means is compared in pairs. The delay of the thread
is read between segments either way.
"""

from __future__ import annotations

import argparse
import math
import random
import time

import numpy as np
from pace_workloads import make

from benchrigor.clocks import WallClock
from benchrigor.machine import RunDelay
from benchrigor.model import Round, RoundPlan
from benchrigor.stats.series.undisturbed import groups_of
from benchrigor.workloads import CallableWorkload, RoundRecorder

SEED = 20270307
NAMES = (
    *("json dumps", "sort", "sqlite", "re", "dict", "objects", "pickle", "format", "zlib"),
    *("matmul", "copy 200 KB", "large dict"),
)
BAR = 0.005


def undisturbed_mean(finished: Round) -> float:
    """Return the mean of the readings during which no delay was measured; nan without any."""
    values = finished.unit_readings["time"]
    groups = groups_of(finished.delays, values)
    kept = values[~np.repeat(groups.are_hit, groups.sizes)]
    return float(kept.mean()) if kept.size else math.nan


def ratios_of(name: str, pairs: int, rng: random.Random) -> tuple[list[float], float]:
    """Return the logarithms of with over without, and the share of the time for the reference."""
    clock = WallClock()
    meter, func = RunDelay(), make(name)
    workloads = {
        is_on: CallableWorkload(func, clock=clock, meter=meter if meter.available else None)
        for is_on in (False, True)
    }
    workloads[True].take_turns()
    index, found, spent_s, in_reference_s = 0, [], 0.0, 0.0
    for pair in range(pairs + 3):
        means = {}
        for is_on in rng.sample([False, True], 2):
            recorder = RoundRecorder()
            plan = RoundPlan(index=index, readings=1_000_000, seconds=0.02)
            began = time.perf_counter()
            workloads[is_on].run(plan, recorder)
            took_s, index = time.perf_counter() - began, index + 1
            finished = recorder.finish(plan, elapsed_ns=0)
            means[is_on] = undisturbed_mean(finished)
            if is_on and finished.references is not None:
                spent_s += took_s
                in_reference_s += 2.0 * float(finished.references.seconds["interpreter"].sum())
        ratio = math.log(means[True] / means[False])
        if pair >= 3 and math.isfinite(ratio):
            found.append(ratio)
    return found, in_reference_s / spent_s


def main() -> None:
    """Print a row for each workload, and whether the bar is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    given = parser.parse_args()
    rng = random.Random(SEED)
    print(f"{given.pairs} pairs of 20 ms, seed {SEED}; with over without, 95 % interval")
    centres = []
    for name in NAMES:
        ratios, share = ratios_of(name, given.pairs, rng)
        # Trimmed: the pace changes between the two rounds of a pair, either way alike.
        cut = len(ratios) // 10
        kept = np.sort(ratios)[cut : len(ratios) - cut]
        error = 1.96 * float(kept.std(ddof=1)) / math.sqrt(kept.size)
        centres.append(float(kept.mean()))
        print(f"{name:14}{100 * kept.mean():+6.2f} % ± {100 * error:.2f}, {share:.1%} of the time")
    middle = float(np.median(centres))
    verdict = "met" if abs(middle) <= BAR else "missed"
    print(f"median over workloads {100 * middle:+.2f} %, bar {BAR:.1%}: {verdict}")


if __name__ == "__main__":
    main()
