"""What is found: false alarms, accuracy, many changes, trends.

Every run has a generator of its own, default_rng([seed, section, row, run]), so that the figures
do not depend on how many processes share the work. Shares come with their 95 % Wilson interval
and meet a bar that the interval reaches.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import NamedTuple, TypeVar

import numpy as np
from changepoint_series import (
    CHANGES,
    MARGIN,
    NOISES,
    STABLE,
    STAIRCASES,
    STEPS,
    Floats,
    covering,
    margin_f1,
    matched,
    two_shifts,
)
from machine import wilson

from benchrigor.model import ChangePoints, PhaseReason
from benchrigor.stats import detect_changes, find_stable_phase

__all__ = ["Score", "accuracy", "alarms", "exact", "many", "score", "share", "shifts", "trends"]

ALARMS, ACCURACY, MANY = 3, 4, 5
LENGTHS = (200, 1_000, 10_000)
POOLED = {"AR(1) 0.5": 0.05, "AR(1) 0.9": 0.10}
"""Bars on the share of series with a false alarm; 0.02 for the others, 0.035 in any cell."""
SCORED = {
    "normal": (0.95, 0.01),
    "lognormal": (0.95, 0.01),
    "bimodal": (0.95, 0.01),
    "Student t2": (0.95, 0.02),
    "AR(1) 0.5": (0.90, 0.03),
    "AR(1) 0.9": (0.0, math.inf),
}
"""Bars on F1 and covering, and on the median error of the stable phase's mean."""
CLIMBS = [(levels, noise) for levels in STAIRCASES for noise in ("normal", "lognormal")]
MOST_POINTS = 100

Result = TypeVar("Result")


def verdict(met: bool) -> str:
    """Return how a bar is printed."""
    return "met" if met else "MISSED"


def share(hits: int, trials: int) -> str:
    """Return a share and its Wilson interval."""
    low, high = wilson(hits, trials)
    return f"{hits / trials:.3f} [{low:.3f}, {high:.3f}]"


@cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(os.cpu_count())


def repeated(run: Callable[[int], Result], runs: int) -> list[Result]:
    """Return the results of run 0, 1, ... , from as many processes as there are cores."""
    return list(_pool().map(run, range(runs), chunksize=max(1, runs // 40)))


def alarmed(seed: int, row: int, noise: str, n: int, run: int) -> bool:
    """Whether a series without change is said to change."""
    rng = np.random.default_rng([seed, ALARMS, row, run])
    return bool(detect_changes(NOISES[noise](rng, n)).indices)


def alarms(seed: int, *, quick: bool) -> None:
    """Print how often series without change are said to change."""
    runs = 100 if quick else 1_000
    print(f"| noise | {' | '.join(f'n = {n:,}' for n in LENGTHS)} | pooled | bar | |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row, noise in enumerate(NOISES):
        counts = [
            sum(repeated(partial(alarmed, seed, 3 * row + column, noise, n), runs))
            for column, n in enumerate(LENGTHS)
        ]
        cells = " | ".join(share(each, runs) for each in counts)
        judged = counts[1:] if noise == "AR(1) 0.9" else counts
        bar, pooled = POOLED.get(noise, 0.02), (sum(judged), runs * len(judged))
        met = wilson(*pooled)[0] <= bar
        label = f"{bar:.0%}" + (" from n = 1,000" if noise == "AR(1) 0.9" else "")
        if noise not in POOLED:
            met = met and all(wilson(each, runs)[0] <= 0.035 for each in counts)
            label += ", 3.5 % in a cell"
        print(f"| {noise} | {cells} | {share(*pooled)} | {label} | {verdict(met)} |", flush=True)


class Score(NamedTuple):
    """How well the steps of one series were found."""

    f1: float
    covering: float
    stable: bool
    """Whether there is a stable phase."""
    refused: bool
    """Whether it is missing for want of effective readings."""
    error: float
    """Of the mean of the stable phase, against the mean of the readings truly stable."""


def score(series: Floats, points: ChangePoints) -> Score:
    """Compare change points of noise on `STEPS` with the truth.

    The stable phase is found with materiality 0: levels around 0 have no relative differences.
    """
    phase = find_stable_phase(series, change_points=points, materiality=0.0)
    stable = phase.start is not None
    error = math.inf
    if stable:
        kept = series[phase.start : phase.stop]
        error = abs(float(kept.mean() - series[STABLE].mean()))
    return Score(
        f1=margin_f1(points.indices, CHANGES, MARGIN),
        covering=covering(points.indices, CHANGES, points.n),
        stable=stable,
        refused=phase.reason is PhaseReason.FEW_EFFECTIVE,
        error=error,
    )


def stepped(seed: int, row: int, noise: str, run: int) -> Floats:
    """Return the steps under noise."""
    return STEPS + NOISES[noise](np.random.default_rng([seed, ACCURACY, row, run]), STEPS.size)


def scored(seed: int, row: int, noise: str, run: int) -> Score:
    """Score `detect_changes` on one series."""
    series = stepped(seed, row, noise, run)
    return score(series, detect_changes(series))


def accuracy(seed: int, *, quick: bool) -> None:
    """Print how well the steps of 600 readings are found."""
    runs = 60 if quick else 500
    print(
        "| noise | F1 | covering | stable phase | or too few effective readings "
        "| median error | 90 % of errors | bars | |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for row, (noise, (least, most)) in enumerate(SCORED.items()):
        found = repeated(partial(scored, seed, row, noise), runs)
        f1 = float(np.mean([each.f1 for each in found]))
        covered = float(np.mean([each.covering for each in found]))
        stable = sum(each.stable for each in found)
        refused = sum(each.refused for each in found)
        middle, high = np.quantile(
            [each.error for each in found], [0.5, 0.9], method="inverted_cdf"
        )
        free = noise == "AR(1) 0.9"
        counted = stable + refused if free else stable
        met = min(f1, covered) >= least and wilson(counted, runs)[1] >= 0.98 and middle <= most
        bars = "either: 0.98" if free else f"{least:.2f}, {least:.2f}, 0.98, {most}"
        print(
            f"| {noise} | {f1:.3f} | {covered:.3f} | {share(stable, runs)} | {refused / runs:.3f} "
            f"| {middle:.4f} | {high:.4f} | {bars} | {verdict(bool(met))} |",
            flush=True,
        )


def exact(seed: int) -> None:
    """Print where 30 low, 130 high, 30 low readings are cut."""
    noise = np.random.default_rng([seed, ACCURACY, 99, 0]).normal(size=190)
    for sd in (0.0, 0.02, 0.1):
        series = np.repeat([0.0, 1.0, 0.0], [30, 130, 30]) + sd * noise
        found = list(detect_changes(series).indices)
        print(f"30 low, 130 high, 30 low, noise {sd:.0%} of the step: {found}, ", end="")
        print(f"bar [30, 160]: {verdict(found == [30, 160])}")


def climbed(seed: int, row: int, steps: int, run: int) -> tuple[int, int]:
    """Return how many of the steps of 1000 readings are found within 10, and all points found."""
    rng = np.random.default_rng([seed, MANY, row, run])
    levels, noise = CLIMBS[row]
    series = STAIRCASES[levels](rng, steps).repeat(1_000) + NOISES[noise](rng, 1_000 * steps)
    found = detect_changes(series).indices
    return matched(found, range(1_000, series.size, 1_000), 10), len(found)


def many(seed: int, *, quick: bool) -> None:
    """Print how many of 1000 steps are found."""
    steps, runs = (150, 2) if quick else (1_000, 10)
    print(f"{runs} series of {steps:,} steps of 1,000 readings a row.\n")
    print("| levels | noise | found within 10 | fewest in a series | points found / true | bar | |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row, (levels, noise) in enumerate(CLIMBS):
        found = repeated(partial(climbed, seed, row, steps), runs)
        true, hits = steps - 1, [each[0] for each in found]
        points = sum(each[1] for each in found) / (runs * true)
        met = wilson(sum(hits), runs * true)[1] >= 0.95
        print(
            f"| {levels} | {noise} | {share(sum(hits), runs * true)} | {min(hits) / true:.3f} "
            f"| {points:.3f} | 0.95 | {verdict(met)} |",
            flush=True,
        )


def climbing(seed: int, row: int, shape: str, n: int) -> Floats:
    """Return sorted readings, or a ramp of 5 sd under noise."""
    noise = NOISES["lognormal"](np.random.default_rng([seed, MANY, 20 + row, 0]), n)
    return np.sort(noise) if shape == "sorted" else 10.0 + np.linspace(0.0, 5.0, n) + noise


def trends(seed: int, *, quick: bool) -> None:
    """Print what becomes of trends."""
    print(f"| series | n | change points, bar {MOST_POINTS} | verdict, bar: trend | |")
    print("| --- | --- | --- | --- | --- |")
    sizes = (1_000, 10_000, 100_000, *(() if quick else (1_000_000,)))
    rows = [(shape, n) for shape in ("sorted", "slow ramp") for n in sizes]
    for row, (shape, n) in enumerate(rows):
        phase = find_stable_phase(climbing(seed, row, shape, n))
        points = len(phase.change_points.indices)
        met = points <= MOST_POINTS and "trend" in phase.reason
        print(f"| {shape} | {n:,} | {points} | {phase.reason} | {verdict(met)} |")


def parted(seed: int, row: int, noise: str, run: int) -> tuple[bool, bool]:
    """Whether two shifts are found within 10, and whether nothing else is."""
    series, true = two_shifts(np.random.default_rng([seed, MANY, 40 + row, run]), noise)
    found: Sequence[int] = detect_changes(series).indices
    return matched(found, true, 10) == 2, len(found) <= 2


def shifts(seed: int, *, quick: bool) -> None:
    """Print how often two shifts in a short series are both found."""
    runs = 60 if quick else 200
    print("| noise | both found within 10 | nothing else found | bar | |")
    print("| --- | --- | --- | --- | --- |")
    for row, noise in enumerate(("normal", "lognormal", "bimodal", "Student t2", "AR(1) 0.5")):
        found = repeated(partial(parted, seed, row, noise), runs)
        both, clean = (sum(each[i] for each in found) for i in (0, 1))
        judged = row < 3
        bar = f"0.95 | {verdict(wilson(both, runs)[1] >= 0.95)}" if judged else "none |"
        print(f"| {noise} | {share(both, runs)} | {share(clean, runs)} | {bar} |")
