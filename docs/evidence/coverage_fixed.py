"""How often `estimate_mean` holds the truth at n = 1000, beside the arithmetic of others."""

from __future__ import annotations

from functools import partial

import coverage_rivals as rivals
import numpy as np
from coverage_processes import ROWS, ZOO, Group
from coverage_tables import Bar, Interval, Setting, heading, interval, of, row, tally

import benchrigor as br
from benchrigor.stats import estimate_mean

__all__ = ["fixed", "levels"]

FIXED, LEVELS = 11, 12
N = 1_000
METHODS = ("no trim", "trim", "plain t", "merging", "bootstrap")
QUICK = (
    "iid normal",
    "lognormal 1",
    "Pareto 2.5",
    "AR(1) 0.9",
    "negative moving average",
    "M/M/1 at 0.8",
    "iid, exp",
    "iid, step and cool-down",
    "lognormal 0.5, step",
    "AR(1) 0.5, exp",
    "coarse clock",
)
LEVEL_ROWS = ("iid normal", "AR(1) 0.5", "AR(1) 0.9")
LEVEL_BARS = {0.8: Bar(0.77, 0.83), 0.99: Bar(0.975), 0.999: None}

STATIONARY, WARM = Bar(0.93, 0.97), Bar(0.92)
SPECIAL: dict[str, tuple[Bar | None, Bar | None]] = {
    "AR(1) 0.99": (Bar(0.90, may_refuse=True), Bar(0.90, may_refuse=True)),
    "M/M/1 at 0.8": (Bar(0.90), Bar(0.85)),
    "M/M/1 from empty": (None, Bar(0.80, may_refuse=True)),
}
"""Bars without and with trimming where they are not those of the group."""


def bars(name: str) -> tuple[Bar | None, Bar | None]:
    """Return the bars of a process without and with trimming."""
    group = ZOO[name].group
    if name in SPECIAL:
        return SPECIAL[name]
    if group is Group.PERIODIC:
        return None, None
    if group in (Group.WARM, Group.OWN_WARM):
        return None, WARM
    return STATIONARY, STATIONARY


def ours(series: rivals.Floats, truth: float, confidence: float, *, trim: bool) -> Interval | None:
    """Return the interval of `estimate_mean`; None when it refuses."""
    try:
        return of(estimate_mean(series, confidence=confidence, trim=trim), truth)
    except br.NotEstimable:
        return None


def intervals(seed: int, name: str, repetition: int) -> tuple[Interval | None, ...]:
    """Return the intervals of all methods on one series."""
    process = ZOO[name]
    series = process.draw(np.random.default_rng([seed, FIXED, ROWS[name], repetition]), N)
    truth = process.mean
    merged = rivals.merging(series)
    rng = np.random.default_rng([seed, FIXED, ROWS[name], repetition, 1])
    return (
        ours(series, truth, 0.95, trim=False),
        ours(series, truth, 0.95, trim=True),
        interval(*rivals.plain_t(series), truth),
        None if merged is None else interval(*merged, truth),
        interval(*rivals.bootstrap(rng, series), truth),
    )


def fixed(setting: Setting) -> None:
    """Print one table per group of processes."""
    runs = setting.runs(1_000, 200)
    print(f"{runs} series of {N} readings a row; in brackets the half-width in % of the truth.")
    for group in Group:
        names = [name for name in ZOO if ZOO[name].group is group]
        names = [name for name in names if not setting.quick or name in QUICK]
        if not names:
            continue
        print(f"\n{group}:\n")
        heading(["process", "no trim", "bar", "trim", "bar", *METHODS[2:]])
        for name in names:
            found = setting.repeated(partial(intervals, setting.seed, name), runs)
            plain, trimmed, *others = map(tally, zip(*found, strict=True))
            untrimmed_bar, trimmed_bar = bars(name)
            row(
                name,
                plain.cell(wilson_too=True),
                setting.judged(f"{name}, no trim", untrimmed_bar, plain),
                trimmed.cell(wilson_too=True),
                setting.judged(f"{name}, trim", trimmed_bar, trimmed),
                *(each.cell() for each in others),
            )


def at_level(
    seed: int, name: str, level: float, repetition: int
) -> tuple[Interval | None, Interval | None]:
    """Return both intervals of one series at a level."""
    process = ZOO[name]
    series = process.draw(np.random.default_rng([seed, LEVELS, ROWS[name], repetition]), N)
    return (
        ours(series, process.mean, level, trim=False),
        ours(series, process.mean, level, trim=True),
    )


def levels(setting: Setting) -> None:
    """Print coverage at other levels than 95 %."""
    runs = setting.runs(1_000, 200)
    print(f"{runs} series of {N} readings a row, the same for every level.\n")
    heading(["process", "level", "no trim", "bar", "trim", "bar"])
    for name in LEVEL_ROWS:
        for level, bar in LEVEL_BARS.items():
            if setting.quick and (name != "AR(1) 0.5" or bar is None):
                continue
            found = setting.repeated(partial(at_level, setting.seed, name, level), runs)
            plain, trimmed = map(tally, zip(*found, strict=True))
            row(
                name,
                level,
                plain.cell(wilson_too=True),
                setting.judged(f"{name} at {level}, no trim", bar, plain),
                trimmed.cell(wilson_too=True),
                setting.judged(f"{name} at {level}, trim", bar, trimmed),
            )
