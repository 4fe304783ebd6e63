"""What growth of duration with work is called, and how often a straight line is called bent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
from coverage_tables import Setting, heading, row
from machine import wilson
from wps_coverage import chosen, outcomes
from wps_processes import Floats, bisecting

import benchrigor as br
from benchrigor.model import Code
from benchrigor.stats import fit_wps

__all__ = ["growth"]

GROWTH = 75
ROUNDS = 40
NOISE = 0.01
FACTORS = (100.0, 1000.0)
LEVEL = 0.01
"""Of the test whether the line is bent."""
GROWTHS: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
    "linear": ("linear", lambda work: work),
    "n log n": ("n log n", lambda work: work * np.log2(1.0 + work)),
    "quadratic": ("quadratic", np.square),
    "square root": ("other", np.sqrt),
}
"""The name that should be found, and the durations, of which the largest is made 2 s."""
ROWS = [(name, factor) for name in GROWTHS for factor in FACTORS]


def named(seed: int, name: str, factor: float, repetition: int) -> tuple[str, bool]:
    """Return the name of the growth of one set of rounds, and whether it is said to be bent."""
    rng = np.random.default_rng([seed, GROWTH, ROWS.index((name, factor)), repetition])
    work = 1.0 + (factor - 1.0) * bisecting(ROUNDS)
    duration_s = GROWTHS[name][1](work)
    duration_s *= 2.0 / duration_s.max() * (1.0 + NOISE * rng.standard_normal(ROUNDS))
    try:
        fit = fit_wps(work, duration_s)
    except br.NotEstimable:
        return "refused", False
    return fit.shape or "none", any(each.code is Code.NOT_LINEAR for each in fit.notices)


def growth(setting: Setting) -> None:
    """Print both tables; names have no bar."""
    runs = setting.runs(200, 5)
    print(
        f"{runs} sets of {ROUNDS} rounds a row, {NOISE:.0%} noise, amounts from 1 on in bisecting"
    )
    print("order, overhead 0.\n")
    heading(["durations", "largest / smallest", "named so", "named otherwise", "said to be bent"])
    for name, factor in ROWS:
        found = setting.repeated(partial(named, setting.seed, name, factor), runs)
        names = Counter(each for each, _ in found)
        right = names.pop(GROWTHS[name][0], 0)
        row(
            name,
            f"{factor:.0f}",
            f"{right / runs:.0%}",
            ", ".join(f"{each} {count / runs:.0%}" for each, count in names.most_common()),
            f"{sum(bent for _, bent in found) / runs:.0%}",
        )
    alarms(setting)


def alarms(setting: Setting) -> None:
    """Print how often sessions of the section on coverage said that a straight line is bent."""
    print(f"\nFalse alarms of `not-linear` (a test at {LEVEL:.0%}) in the sessions above, and the")
    print("share named otherwise than linear. No bar but twice the level for independent noise.\n")
    heading(["workload", "noise", "said to be bent", "bar", "not linear by name"])
    for case, noise in chosen(setting):
        has_bar = noise in ("additive", "multiplicative")
        if setting.quick and not has_bar:
            continue
        found = outcomes(setting, case, noise)
        bent = sum(each.bent for each in found)
        low, high = wilson(bent, len(found))
        verdict = "none"
        if has_bar:
            met = setting.at_most(f"{case}, {noise}, bent", 2 * LEVEL, bent, len(found))
            verdict = f"<= {2 * LEVEL:.0%}: {met}"
        other = sum(each.shape not in ("linear", None) for each in found)
        row(
            case,
            noise,
            f"{bent / len(found):.3f} [{low:.3f}, {high:.3f}]",
            verdict,
            f"{other / len(found):.1%}",
        )
