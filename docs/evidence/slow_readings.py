"""What sessions of slow readings stop at, and how often they call a target wrongly out of reach.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/slow_readings.py [--quick] [--seed N] [--only a,b]

Every draw is default_rng([seed, row, repetition]); the level of every process is 1, the target 2 %,
the budget ten seconds, and every reading takes the time of its row.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row
from front_door import print_sections

import benchrigor as br
from benchrigor.model import Floats
from benchrigor.session import Engine

__all__ = ["reach", "stops"]

SECTIONS = {
    "stops": ("Sessions of readings of 20 ms", "slow_readings"),
    "reach": ("Targets that cannot be reached", "slow_readings"),
}
TARGET, BUDGET_S = 0.02, 10.0
STOPS = (
    *((name, cv) for name in ("independent", "AR(1) 0.5", "AR(1) 0.9") for cv in (0.004, 0.015)),
    *((name, cv) for name in ("two modes", "modes that switch") for cv in (0.004, 0.015)),
    *((f"warm-up {size:g}, {length:g} readings", 0.015) for size, length in ((0.02, 30.0),)),
    *((f"warm-up {size:g}, {length:g} readings", 0.015) for size, length in ((0.02, 100.0),)),
    ("warm-up 0.1, 100 readings", 0.015),
)
REACH = (
    *(("independent", cv, 0.002) for cv in (0.4, 0.55, 0.65, 0.8)),
    *(("AR(1) 0.9", cv, 0.002) for cv in (0.1, 0.15, 0.2)),
    ("modes that switch", 0.2, 0.002),
    *(("independent", cv, 0.02) for cv in (0.05, 0.1, 0.2)),
    *(("independent", cv, 0.1) for cv in (0.01, 0.02, 0.05)),
    ("independent", 0.01, 0.5),
)


class Ended(NamedTuple):
    """How a session ended."""

    n: int
    satisfied: bool
    error: float
    half_width: float
    said_at: float  # seconds, NaN if it never called the target out of reach
    reachable: float  # half-width that it predicted then


def drawn(name: str, cv: float, rng: np.random.Generator, n: int) -> Floats:
    """Return readings of a process."""
    noise = rng.normal(size=n)
    if name.startswith("AR(1)"):
        phi = float(name.split()[1])
        for index in range(1, n):
            noise[index] = phi * noise[index - 1] + math.sqrt(1.0 - phi**2) * noise[index]
    elif "modes" in name:
        chance = 0.5 if name.startswith("two") else 0.05
        side = 2.0 * ((np.cumsum(rng.random(n) < chance) + rng.integers(2)) % 2) - 1.0
        noise = side + 0.1 * noise
    series: Floats = 1.0 + cv * noise
    if name.startswith("warm-up"):
        size, length = (float(word) for word in name.replace(",", "").split()[1:3])
        series += size * np.exp(-np.arange(n) / length)
    return series


def session(seed: int, index: int, case: tuple[str, float, float], repetition: int) -> Ended:
    """Run one session, a second at least."""
    name, cv, reading_s = case
    n = math.ceil(1.2 * BUDGET_S / reading_s)
    series = drawn(name, cv, np.random.default_rng([seed, index, repetition]), n)
    engine = Engine(br.Options(target=TARGET, budget_s=BUDGET_S), seed=repetition)
    engine.min_seconds = 1.0
    taken, said_at, reachable = 0, math.nan, math.nan
    while (plan := engine.ask()) is not None:
        values = series[taken : taken + plan.readings]
        taken += values.size
        elapsed_ns = round(values.size * reading_s * 1e9)
        engine.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"reading": values}))
        progress = engine.progress
        if progress and progress.decision is None and progress.reachable and math.isnan(said_at):
            said_at, reachable = progress.elapsed_s, progress.reachable
    known, decision = engine.result().estimate(), engine.decision
    return Ended(
        taken,
        decision is not None and decision.satisfied,
        math.inf if known is None else abs(known.value - 1.0),
        math.nan if known is None else known.half_width,
        said_at,
        reachable,
    )


def stops(setting: Setting) -> None:
    """Print where sessions stop, and how many of those that stop early hold the level."""
    runs = setting.runs(400, 40)
    print(f"{runs} sessions a row. Early: satisfied before 500 readings.\n")
    heading(["process", "cv", "early", "median n", "coverage", "off by more than 2 %"])
    for index, (name, cv) in enumerate(STOPS):
        run = partial(session, setting.seed, index, (name, cv, 0.02))
        early = [each for each in setting.repeated(run, runs) if each.satisfied and each.n < 500]
        cells = ["-"] * 3
        if early:
            held = np.mean([each.error <= each.half_width for each in early])
            off = np.mean([each.error > TARGET for each in early])
            cells = [f"{np.median([each.n for each in early]):.0f}", f"{held:.3f}", f"{off:.3f}"]
        row(name, cv, f"{len(early) / runs:.2f}", *cells)


def reach(setting: Setting) -> None:
    """Print how often sessions call the target out of reach, and how often wrongly."""
    runs = setting.runs(200, 20)
    print(f"{runs} sessions a row. Bar: wrong in at most 5 %.\n")
    columns = ["process", "cv", "reading", "satisfied", "said", "by 3 s", "wrongly", "predicted"]
    heading([*columns, "bar"])
    for index, case in enumerate(REACH):
        run = partial(session, setting.seed, 100 + index, case)
        ended = setting.repeated(run, runs)
        said = [each for each in ended if not math.isnan(each.said_at)]
        wrongly = sum(each.satisfied for each in said) / runs
        ratios = [each.reachable / each.half_width for each in said if each.reachable < math.inf]
        row(
            case[0],
            case[1],
            f"{1e3 * case[2]:g} ms",
            f"{np.mean([each.satisfied for each in ended]):.2f}",
            f"{len(said) / runs:.2f}",
            f"{np.mean([each.said_at <= 3.0 for each in ended]):.2f}",
            f"{wrongly:.3f}",
            f"{np.median(ratios):.2f}" if ratios else "-",
            setting.verdict(f"{case}", wrongly <= 0.05),
        )


if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20261203))
