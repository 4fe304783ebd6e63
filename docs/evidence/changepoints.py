"""What `detect_changes` and `find_stable_phase` cost, and how right they are.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/changepoints.py [section ...] [--quick] [--seed N]

Sections: speed, updates, alarms, accuracy, many, published, rivals; or all, which with --quick
leaves out the rivals. Those need `pip install ruptures` and, for two that pin an old numpy but run
with any, `pip install --no-deps signal-processing-algorithms more-itertools structlog
apache-otava`; what is missing is said to be. All draws derive from the seed.
"""

from __future__ import annotations

import argparse
import os
import time

import changepoint_published as published
import changepoint_quality as quality
import changepoint_rivals as rivals
import changepoint_times as times
import numpy as np
from machine import describe

SECTIONS = ("speed", "updates", "alarms", "accuracy", "many", "published", "rivals")


def printed(section: str, seed: int, *, quick: bool) -> None:
    """Print the tables of one section."""
    if section == "speed":
        times.speed(seed, quick=quick)
        print("\nMemory:\n")
        times.memory(seed)
        print("\nInputs made to be slow, time over that of three phases:\n")
        times.adversity(seed, quick=quick)
    elif section == "updates":
        times.updates(seed, quick=quick)
        print()
        times.stepwise(seed, quick=quick)
        print("\nAppended in random batches, against all readings at once:\n")
        times.equality(seed, quick=quick)
    elif section == "alarms":
        quality.alarms(seed, quick=quick)
    elif section == "accuracy":
        quality.accuracy(seed, quick=quick)
        print()
        quality.exact(seed)
    elif section == "many":
        quality.many(seed, quick=quick)
        print("\nTrends:\n")
        quality.trends(seed, quick=quick)
        print("\nTwo shifts in 160 to 400 readings:\n")
        quality.shifts(seed, quick=quick)
    elif section == "published":
        published.to_the_letter(seed, quick=quick)
        print("\nTime:\n")
        published.cost(seed, quick=quick)
    else:
        rivals.compare(seed)


def threads() -> str:
    """Say how many threads the linear algebra may use, and what sorting may use."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    allowed = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    return f"threads of the linear algebra: {allowed}; SIMD beyond {simd['baseline'][-1]}: " + (
        ", ".join(simd["found"]) or "none"
    )


def main() -> None:
    """Print the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, "all"], default="all")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=20261127)
    options = parser.parse_args()
    asked = options.sections
    if "all" in asked:
        asked = SECTIONS[:-1] if options.quick else SECTIONS
    print(describe())
    print(f"{threads()}; seed {options.seed}{', quick' if options.quick else ''}")
    for section in asked:
        print(f"\n## {section}\n", flush=True)
        start = time.perf_counter()
        printed(section, options.seed, quick=options.quick)
        print(f"\n{section}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
