"""How often `estimate_mean` holds the truth at n = 1000 and less, beside what others compute."""

from __future__ import annotations

from functools import partial

import coverage_rivals as rivals
import numpy as np
from coverage_processes import ROWS, ZOO, Draw, Group
from coverage_tables import Bar, Interval, Setting, heading, interval, of, row, tally

import benchrigor as br
from benchrigor.stats import estimate_level, estimate_mean, fit_level

__all__ = ["fixed", "levels", "small"]

FIXED, LEVELS, SMALL = 11, 12, 13
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
SMALL_LEVELS = (0.8, 0.9, 0.95, 0.99)
SIZES = (5, 10, 29, 30, 31, 37, 45, 60, 100, 300, 1_000)
QUICK_SIZES = (29, 30, 60)
SMALL_ROWS: dict[str, Draw] = {
    "normal": lambda rng, n: 1.0 + 0.1 * rng.normal(size=n),
    "uniform": lambda rng, n: 2.0 * rng.uniform(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal 1": lambda rng, n: rng.lognormal(-0.5, 1.0, n),
    "AR(1) 0.3": lambda rng, n: 1.0 + 0.1 * autoregressive(rng, n, 0.3),
    "AR(1) 0.5": lambda rng, n: 1.0 + 0.1 * autoregressive(rng, n, 0.5),
    "AR(1) 0.8": lambda rng, n: 1.0 + 0.1 * autoregressive(rng, n, 0.8),
    "AR(1) 0.9": lambda rng, n: 1.0 + 0.1 * autoregressive(rng, n, 0.9),
}
"""Processes with mean 1."""
MARGINS = {0.8: 0.015, 0.9: 0.0125, 0.95: 0.01, 0.99: 0.005}
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


def intervals(seed: int, name: str, repetition: int) -> tuple[Interval | None, Interval | None]:
    """Return our intervals of one series, without and with trimming."""
    series, truth = drawn(seed, name, repetition)
    return ours(series, truth, 0.95, trim=False), ours(series, truth, 0.95, trim=True)


def beside(seed: int, name: str, repetition: int) -> tuple[Interval | None, ...]:
    """Return the intervals of the other methods on the same series."""
    series, truth = drawn(seed, name, repetition)
    merged = rivals.merging(series)
    rng = np.random.default_rng([seed, FIXED, ROWS[name], repetition, 1])
    return (
        interval(*rivals.plain_t(series), truth),
        None if merged is None else interval(*merged, truth),
        interval(*rivals.bootstrap(rng, series), truth),
    )


def drawn(seed: int, name: str, repetition: int) -> tuple[rivals.Floats, float]:
    """Return a series and its true mean."""
    process = ZOO[name]
    return process.draw(
        np.random.default_rng([seed, FIXED, ROWS[name], repetition]), N
    ), process.mean


def fixed(setting: Setting) -> None:
    """Print one table per group of processes."""
    runs, other_runs = setting.runs(1_000, 100), setting.runs(1_000, 2)
    print(f"{runs} series of {N} readings a row; in brackets the half-width in % of the truth.")
    if other_runs < runs:
        print(f"The other methods, which no bar judges, have the first {other_runs} of them.")
    for group in Group:
        names = [name for name in ZOO if ZOO[name].group is group]
        names = [name for name in names if not setting.quick or name in QUICK]
        if not names:
            continue
        print(f"\n{group}:\n")
        heading(["process", "no trim", "bar", "trim", "bar", *METHODS[2:]])
        for name in names:
            found = setting.repeated(partial(intervals, setting.seed, name), runs)
            plain, trimmed = map(tally, zip(*found, strict=True))
            other = setting.repeated(partial(beside, setting.seed, name), other_runs)
            others = map(tally, zip(*other, strict=True))
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
    runs = setting.runs(1_000, 100)
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


def autoregressive(rng: np.random.Generator, n: int, phi: float) -> rivals.Floats:
    """Draw a stationary AR(1) series of variance 1."""
    series = rng.normal(size=n)
    series[1:] *= (1.0 - phi * phi) ** 0.5
    for index in range(1, n):
        series[index] += phi * series[index - 1]
    return series


def at_size(seed: int, name: str, n: int, repetition: int) -> tuple[Interval, ...]:
    """Return the interval of one series at each level, and that of plain t."""
    place = list(SMALL_ROWS).index(name)
    series = SMALL_ROWS[name](np.random.default_rng([seed, SMALL, place, n, repetition]), n)
    fit = fit_level(series)
    estimates = (estimate_level(fit, level, positive=True) for level in SMALL_LEVELS)
    return (*(of(each, 1.0) for each in estimates), interval(*rivals.plain_t(series), 1.0))


def small_bars(name: str, n: int, plain: float) -> dict[float, Bar]:
    """Return the bar of each level: nominal coverage, or what t reaches where that is less."""
    if name in ("normal", "uniform"):
        return {level: Bar(level - margin, level + margin) for level, margin in MARGINS.items()}
    if name.startswith("AR(1)"):
        return {0.95: Bar(0.94)} if n >= 100 else {}
    return {0.95: Bar(min(plain, 0.94) - 0.005)}


def small(setting: Setting) -> None:
    """Print coverage around 30 readings, from which on autocorrelation is estimated."""
    runs = setting.runs(5_000, 500)
    print(f"{runs} series a row, the same for every level; in brackets the half-width in %.\n")
    heading(["process", "n", *map(str, SMALL_LEVELS), "bars", "plain t at 0.95"])
    for name in SMALL_ROWS:
        for n in SIZES:
            if setting.quick and (name not in ("normal", "AR(1) 0.5") or n not in QUICK_SIZES):
                continue
            found = setting.repeated(partial(at_size, setting.seed, name, n), runs)
            *ours_at, plain = map(tally, zip(*found, strict=True))
            verdicts = [
                setting.judged(f"{name}, n = {n}, at {level}", bar, each)
                for level, each in zip(SMALL_LEVELS, ours_at, strict=True)
                if (bar := small_bars(name, n, plain.share).get(level)) is not None
            ]
            missed = [verdict for verdict in verdicts if not verdict.endswith("met")]
            verdict = "; ".join(missed) or ("all met" if verdicts else "none")
            row(name, n, *(each.cell() for each in ours_at), verdict, plain.cell())
