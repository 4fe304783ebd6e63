"""Comparisons: of readings made before, of pairs measured in turn, of families, and rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

import benchrigor as br
from benchrigor.stats import compare, estimate_invocations, estimate_mean, fit_wps, rank
from benchrigor.stats.comparison.two_sample import family_of
from benchrigor.testing import FakeClock
from fence.cases import case, register
from fence.plain import attempted
from fence.readings import column, correlated, drifting, invocations, skewed, stepping, warming
from fence.telling import Job

MS = 1_000_000
STATISTICS = ("mean", "median", "p90")


def noisy(mean: float, *, seed: int) -> list[np.ndarray]:
    """Draw eight invocations whose levels differ."""
    levels = mean * (1.0 + 0.01 * np.random.default_rng(seed).standard_normal(8))
    return [
        level * warming(300, seed=10 * seed + index, phi=0.3, fading=10.0)
        for index, level in enumerate(levels)
    ]


@case
def compare_single_series() -> object:
    """Holds one process against another, whatever the statistic."""
    old, new = correlated(600, seed=100, phi=0.4), 1.02 * correlated(500, seed=101)
    return {each: compare(old, new, statistic=each) for each in STATISTICS}


@case
def compare_real_series() -> object:
    """Holds a function without and with busy neighbours against each other."""
    quiet, busy = (column("encoding.csv", side) for side in ("quiet", "busy"))
    return {
        f"{statistic}, {'trimmed' if trim else 'whole'}": attempted(
            compare, quiet, busy, statistic=statistic, trim=trim
        )
        for statistic in STATISTICS
        for trim in (False, True)
    }


@case
def compare_invocations() -> object:
    old, new = noisy(1.0, seed=102), noisy(1.03, seed=103)
    return {
        f"{statistic}, {'trimmed' if trim else 'whole'}": attempted(
            compare, old, new, statistic=statistic, trim=trim
        )
        for statistic in STATISTICS
        for trim in (False, True)
    }


@case
def compare_real_invocations() -> object:
    """Holds 12 interpreters of either side against each other, apart and paired."""
    old, new = invocations("baseline"), invocations("candidate")
    return {
        "apart": compare(old, new),
        "apart, trimmed": compare(old, new, trim=True),
        "paired": compare(old, new, paired=True),
        "paired, trimmed": compare(old, new, paired=True, trim=True),
        "median, paired": compare(old, new, statistic="median", paired=True),
        "one against several": compare(old[0], new),
    }


@case
def compare_pairs_of_readings() -> object:
    drift = np.linspace(1.0, 1.3, 800)
    old, new = drift * correlated(800, seed=104), 1.02 * drift * correlated(800, seed=105)
    return {
        f"{statistic}, {'trimmed' if trim else 'whole'}": attempted(
            compare, old, new, statistic=statistic, paired=True, trim=trim
        )
        for statistic in STATISTICS
        for trim in (False, True)
    }


@case
def compare_real_pairs_of_readings() -> object:
    old, new = (column("encoding_pairs.csv", side) for side in ("baseline", "candidate"))
    return {
        "whole": compare(old, new, paired=True),
        "trimmed": attempted(compare, old, new, paired=True, trim=True),
        "median": compare(old, new, paired=True, statistic="median"),
        "p10": compare(old, new, paired=True, statistic="p10"),
        "apart": compare(old, new),
    }


@case
def compare_by_other_rules() -> object:
    """Changes the margin, the confidence and which way is better."""
    old, new = noisy(1.0, seed=106), noisy(1.015, seed=107)
    ways: list[dict[str, Any]] = [
        {"margin": 0.0},
        {"margin": 0.05},
        {"margin": 0.0, "confidence": 0.99},
        {"direction": "higher"},
        {"margin": 0.0, "paired": True},
    ]
    return [compare(old, new, **how) for how in ways]


@case
def compare_what_allows_no_ratio() -> object:
    """Has a baseline around zero, a coarse one, constant ones, and too few readings."""
    series = correlated(300, seed=108)
    sides = {
        "around zero": (series - 1.0, series),
        "candidate around zero": (series, series - 1.0),
        "wide": (skewed(6, seed=109), skewed(6, seed=110)),
        "constant": (np.full(20, 2.0), np.full(20, 3.0)),
        "equal": (np.full(20, 2.0), np.full(20, 2.0)),
        "two": ([1.0, 1.1], [1.2, 1.3]),
        "one": ([1.0], [1.2, 1.3]),
        "drifting": (drifting(600, seed=111), series),
        "times": (series, 3.0 * correlated(300, seed=112)),
    }
    return {
        name: attempted(compare, *both, trim=name == "drifting") for name, both in sides.items()
    }


@case
def compare_estimates_made_before() -> object:
    means = [estimate_mean(correlated(400, seed=seed)) for seed in (113, 114)]
    several = [estimate_invocations(noisy(mean, seed=115)) for mean in (1.0, 1.1)]
    work = np.arange(1.0, 41.0)
    speeds = [
        fit_wps(work, 0.5 + work * correlated(40, seed=seed) / speed).speed
        for seed, speed in ((116, 100.0), (117, 104.0))
    ]
    return {
        "means": compare(*means),
        "invocations": compare(*several),
        "speeds": attempted(compare, *speeds, direction="higher"),
        "different": compare(means[0], several[1]),
    }


@case
def compare_a_family() -> object:
    pairs = {
        f"{100 * change:g}%": (noisy(1.0, seed=120 + i), noisy(1.0 + change, seed=140 + i))
        for i, change in enumerate((0.0, 0.005, 0.02, 0.05, -0.03))
    }
    return {
        "usual": family_of({name: compare(*pair) for name, pair in pairs.items()}),
        "classical": family_of(
            {name: compare(*pair, margin=0.0, statistic="median") for name, pair in pairs.items()},
            rate=0.01,
        ),
    }


@case
def rank_several() -> object:
    results = {f"{mean:g}": noisy(mean, seed=160 + i) for i, mean in enumerate((1.0, 1.3, 1.01))}
    series = {"quick": correlated(300, seed=170), "slow": stepping(300, seed=171, at=0)}
    return {
        "invocations": rank(results),
        "higher is better": attempted(rank, results, direction="higher", trim=True),
        "series": rank(series, statistic="median"),
    }


def in_turn(change: float, *, growth: float = 0.0, cv: float = 0.03, **options: Any) -> object:
    """Measure two functions in turn, of which one takes longer by a share."""
    clock = FakeClock()
    old = Job(clock, MS, seed=180, cv=cv, growth=growth)
    new = Job(clock, MS * (1.0 + change), seed=181, cv=cv, growth=growth)
    return br.measure_pair(old, new, clock=clock, seed=1, **options)


PAIRS: dict[str, dict[str, Any]] = {
    "slower": {"change": 0.03},
    "alike": {"change": 0.0},
    "of_twice_the_time": {"change": 1.0},
    "median": {"change": 0.02, "statistic": "median", "cv": 0.05},
    "p90_in_single_calls": {"change": 0.02, "statistic": "p90", "margin": 0.05, "batch": 1},
    "classical": {"change": 0.002, "margin": 0.0, "cv": 0.1, "budget_s": 60.0},
    "quick": {"change": 0.05, "preset": "quick", "margin": 0.02},
    "drifting": {"change": 0.03, "growth": 0.25},
    "out_of_time": {"change": 0.004, "cv": 0.1, "margin": 0.001, "budget_s": 3.0},
}
for name, how in PAIRS.items():
    register(f"measure_pair_{name}", lambda how=how: in_turn(**how))
