"""How often `estimate_quantile` holds the true quantile at n = 1000."""

from __future__ import annotations

from functools import partial

import numpy as np
from coverage_processes import ROWS, ZOO
from coverage_tables import Bar, Interval, Setting, heading, of, row, tally

import benchrigor as br
from benchrigor.stats import estimate_quantile

__all__ = ["quantiles"]

QUANTILES = 31
N = 1_000
LEVELS = (0.5, 0.1, 0.9, 0.99)
NAMES = (
    "iid normal",
    "AR(1) 0.5",
    "AR(1) 0.9",
    "lognormal 1",
    "bimodal iid",
    "bimodal switching",
    "lognormal of AR(1) 0.9",
)
BEYOND = ("lognormal of AR(1) 0.9",)
QUICK = ("iid normal", "AR(1) 0.9", "bimodal iid")


def bar(name: str, q: float) -> Bar | None:
    """Return the bar of a row."""
    if name in BEYOND:
        return None
    if q in (0.5, 0.1):
        return Bar(0.92, 0.98)
    return Bar(0.92) if (name, q) == ("iid normal", 0.99) else None


def intervals(seed: int, name: str, repetition: int) -> tuple[Interval | None, ...]:
    """Return the intervals of all quantiles of one series; None where one is refused."""
    process = ZOO[name]
    assert process.quantile is not None
    series = process.draw(np.random.default_rng([seed, QUANTILES, ROWS[name], repetition]), N)
    found: list[Interval | None] = []
    for q in LEVELS:
        try:
            found.append(of(estimate_quantile(series, q), process.quantile(q)))
        except br.NotEstimable:
            found.append(None)
    return tuple(found)


def quantiles(setting: Setting) -> None:
    """Print coverage by process and quantile."""
    runs = setting.runs(1_000, 200)
    print(f"{runs} series of {N} readings a row; in brackets the half-width in % of the truth.\n")
    heading(["process", *(word for q in LEVELS for word in (f"p{100 * q:.0f}", "bar"))])
    for name in NAMES:
        if setting.quick and name not in QUICK:
            continue
        found = setting.repeated(partial(intervals, setting.seed, name), runs)
        cells = []
        for q, each in zip(LEVELS, zip(*found, strict=True), strict=True):
            counted = tally(each)
            cells += [
                counted.cell(wilson_too=True),
                setting.judged(f"{name}, p{100 * q:.0f}", bar(name, q), counted),
            ]
        row(name, *cells)
