"""How often the intervals of whole sessions contain the truth.

Each repetition is a session driven by ask and tell on a synthetic workload whose truth is known:
trimming and the stopping rule are on, the target is 5 %, the budget 40,000 readings. Printed per
row: the share of sessions whose interval holds the truth, with its 95 % Wilson interval; sessions
without a number (counted as misses); the median half-width over that of an oracle that knows the
long-run variance and takes all n readings for stable; the median n.

    python docs/evidence/coverage.py [repetitions] [block ...]

Bars: coverage 0.92 to 0.98 (reached by the Wilson interval), median ratio at most 1.5.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from machine import describe, wilson

import benchrigor as br
from benchrigor.testing import ExponentialWarmUp, SyntheticWorkload

TARGET, BUDGET, Z = 0.05, 40_000, 1.959964
PROCESSES: dict[str, dict[str, Any]] = {
    "iid normal": {"noise": "normal", "cv": 0.15},
    "AR(1) 0.5": {"noise": "normal", "cv": 0.15, "phi": 0.5},
    "AR(1) 0.9": {"noise": "normal", "cv": 0.15, "phi": 0.9},
    "lognormal": {"noise": "lognormal", "cv": 0.5},
}
WARM_UPS = {
    "none": None,
    # 75 readings are 15 % of the 500 at which a session first looks; three time constants.
    "x2, over 75 readings": ExponentialWarmUp(amplitude=1.0, time_constant=25.0),
    "+15 %, over 225 readings": ExponentialWarmUp(amplitude=0.15, time_constant=75.0),
    # Beyond the bar: a transient still visible over 30 % and 60 % of the first look.
    "x2, over 150 readings": ExponentialWarmUp(amplitude=1.0, time_constant=50.0),
    "x2, over 300 readings": ExponentialWarmUp(amplitude=1.0, time_constant=100.0),
}


def session(process: str, warm_up: str, seed: tuple[int, int]) -> tuple[bool, float, int] | None:
    """Run one session; return whether its interval holds the truth, its ratio, and its n."""
    number = int(np.random.SeedSequence(seed).generate_state(1)[0])
    workload = SyntheticWorkload(warm_up=WARM_UPS[warm_up], seed=number, **PROCESSES[process])
    options = br.Options(target=TARGET, budget_readings=BUDGET, budget_s=float("inf"))
    running = br.Session(options, seed=number)
    while (plan := running.ask()) is not None:
        values = workload.draw(plan)
        elapsed_ns = int(values.sum() * 1e6)
        running.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    record = running.result()
    found, n = record.estimate(), record.readings().size
    if found is None:
        return None
    oracle = Z * float(np.sqrt(workload.long_run_variance / n))
    return found.low <= workload.truth <= found.high, found.half_width / oracle, n


def main(repetitions: int = 600, blocks: tuple[int, ...] = (1, 2)) -> None:
    """Print the table."""
    print(describe())
    print(f"{repetitions} sessions per row, target {TARGET:.0%}, seeds (block, 0..)\n")
    print("| process | warm-up | block | coverage [Wilson] | no number | ratio | median n | bar |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(2) as pool:
        for process in PROCESSES:
            for warm_up in WARM_UPS:
                for block in blocks:
                    seeds = [(block, repetition) for repetition in range(repetitions)]
                    found = list(pool.map(partial(session, process, warm_up), seeds, chunksize=10))
                    print(row(process, warm_up, block, found), flush=True)


def row(process: str, warm_up: str, block: int, found: list[tuple[bool, float, int] | None]) -> str:
    """Format one row."""
    known = [each for each in found if each is not None]
    hits = sum(each[0] for each in known)
    low, high = wilson(hits, len(found))
    ratio = float(np.median([each[1] for each in known]))
    n = float(np.median([each[2] for each in known]))
    met = low <= 0.98 and high >= 0.92 and ratio <= 1.5
    return (
        f"| {process} | {warm_up} | {block} | {hits / len(found):.3f} [{low:.3f}, {high:.3f}] "
        f"| {len(found) - len(known)} | {ratio:.2f} | {n:.0f} | {'met' if met else 'MISSED'} |"
    )


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    main(*([arguments[0], tuple(arguments[1:]) or (1, 2)] if arguments else []))  # type: ignore[arg-type]
