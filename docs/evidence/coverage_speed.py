"""What one `estimate_mean` costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from changepoint_series import three_phases
from coverage_processes import ZOO, Floats
from coverage_tables import Setting, heading, row

from benchrigor.stats import estimate_mean

__all__ = ["speed"]

SPEED = 61
CALLS = {1_000: 201, 1_000_000: 9}
MOST_S = 2e-3
RATIOS = {False: 3.0, True: 8.0}
"""Bars at a million readings, over `numpy.sort`, by whether trimming is on."""


def series(seed: int, name: str, n: int) -> Floats:
    """Return readings to be judged."""
    rng = np.random.default_rng([seed, SPEED, n])
    return three_phases(rng, n) if name == "three phases" else ZOO[name].draw(rng, n)


NAMES = ("iid normal", "AR(1) 0.9", "lognormal 1", "three phases")


def by_turns(calls: int, *functions: Callable[[], object]) -> list[float]:
    """Return the least duration of each function in seconds, warm, called by turns."""
    least = [float("inf")] * len(functions)
    for _ in range(calls + 1):
        for index, function in enumerate(functions):
            start = time.perf_counter()
            function()
            least[index] = min(least[index], time.perf_counter() - start)
    return least


def speed(setting: Setting) -> None:
    """Print the times, and those over sorting the same readings."""
    # A busy machine may take twice as long: quick runs tell a change of order only.
    slack = 2.0 if setting.quick else 1.0
    print("Least of several calls by turns.\n")
    heading(["n", "series", "no trim", "bar", "trim", "bar", "numpy.sort"])
    for n, calls in CALLS.items():
        for name in NAMES:
            values = series(setting.seed, name, n)
            plain, trimmed, sort = by_turns(
                max(3, calls // (4 if setting.quick else 1)),
                partial(estimate_mean, values),
                partial(estimate_mean, values, trim=True),
                partial(np.sort, values),
            )
            cells = []
            for trim, spent in ((False, plain), (True, trimmed)):
                bar, met = "2 ms", spent <= slack * MOST_S
                if n > min(CALLS):
                    bar, met = f"{RATIOS[trim]:.0f} x", spent <= slack * RATIOS[trim] * sort
                judged = n > min(CALLS) or not trim
                verdict = setting.verdict(f"{name}, {n = :,}, {trim = }", met) if judged else ""
                cells += [
                    f"{spent * 1e3:.3g} ms, {spent / sort:.1f} x",
                    f"{bar}: {verdict}" if judged else "none",
                ]
            row(f"{n:,}", name, *cells, f"{sort * 1e3:.3g} ms")
