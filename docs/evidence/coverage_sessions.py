"""How often whole sessions hold the truth when they begin with warm-ups of several lengths.

Printed per row: the share of sessions whose interval holds the truth, with its 95 % Wilson
interval; sessions without a number (counted as misses); the median half-width over that of an
oracle that knows the long-run variance and takes all n readings for stable; the median n. Bars:
coverage 0.92 to 0.98, median ratio at most 1.5. Seeds: (1, 0..) and (2, 0..), whatever the run's.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from coverage_tables import Setting, heading, row
from machine import wilson

import benchrigor as br
from benchrigor.testing import ExponentialWarmUp, SyntheticWorkload

__all__ = ["sessions"]

TARGET, BUDGET, Z = 0.05, 40_000, 1.959964
BLOCKS = (1, 2)
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
    "+15%, over 225 readings": ExponentialWarmUp(amplitude=0.15, time_constant=75.0),
    # Beyond the bar: a transient still visible over 30 % and 60 % of the first look.
    "x2, over 150 readings": ExponentialWarmUp(amplitude=1.0, time_constant=50.0),
    "x2, over 300 readings": ExponentialWarmUp(amplitude=1.0, time_constant=100.0),
}
BEYOND = ("x2, over 150 readings", "x2, over 300 readings")
QUICK = ("AR(1) 0.5",)

Held = tuple[bool, float, int]


def session(process: str, warm_up: str, block: int, repetition: int) -> Held | None:
    """Run one session; return whether its interval holds the truth, its ratio, and its n."""
    number = int(np.random.SeedSequence((block, repetition)).generate_state(1)[0])
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


def sessions(setting: Setting) -> None:
    """Print the table."""
    runs = setting.runs(600, 60)
    print(f"{runs} sessions a row, target {TARGET:.0%}, budget {BUDGET:,}, seeds (block, 0..).\n")
    heading(["process", "warm-up", "block", "coverage", "no number", "ratio", "median n", "bar"])
    for process in PROCESSES:
        for warm_up in WARM_UPS:
            if setting.quick and (process not in QUICK or warm_up in BEYOND):
                continue
            for block in BLOCKS[:1] if setting.quick else BLOCKS:
                found = setting.repeated(partial(session, process, warm_up, block), runs)
                _print(setting, process, warm_up, block, found)


def _print(
    setting: Setting, process: str, warm_up: str, block: int, found: list[Held | None]
) -> None:
    known = [each for each in found if each is not None]
    hits = sum(each[0] for each in known)
    low, high = wilson(hits, len(found))
    ratio, n = (float(np.median([each[i] for each in known])) for i in (1, 2))
    widest, highest = wilson(hits, len(found), setting.z)
    met = widest <= 0.98 and highest >= 0.92 and ratio <= 1.5
    verdict = "beyond"
    if warm_up not in BEYOND:
        verdict = setting.verdict(f"{process}, {warm_up}, block {block}", met)
    row(
        process,
        warm_up,
        block,
        f"{hits / len(found):.3f} [{low:.3f}, {high:.3f}]",
        len(found) - len(known),
        f"{ratio:.2f}",
        f"{n:.0f}",
        verdict,
    )
