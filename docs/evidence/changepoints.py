"""What finding change points costs, and how right `detect_changes` and `find_stable_phase` are.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/changepoints.py [--quick] [--seed N] [--only a,b]

Every draw is default_rng([seed, section, row, run]).
"""

from __future__ import annotations

import math
import statistics
import tracemalloc
from functools import partial
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

import benchrigor as br
from benchrigor.model.analysis import ChangePoints, PhaseReason
from benchrigor.stats import detect_changes, find_stable_phase
from shared.running import Bar, Run, Script, by_turns, tally, wilson
from shared.series import (
    CHANGES,
    MARGIN,
    NOISES,
    STABLE,
    STAIRCASES,
    STEPS,
    covering,
    margin_f1,
    matched,
    three_phases,
    two_shifts,
)

script = Script(__doc__)
SEED = 20261127
SPEED, ALARMS, ACCURACY, MANY, LETTER = 1, 3, 4, 5, 7
SIZES = {1_000: 301, 10_000: 151, 100_000: 51, 1_000_000: 21}
"""Calls of each number of readings."""


@script.section("What finding change points costs", seed=SEED)
def speed(run: Run) -> None:
    """Print the time over the time of sorting the same readings, and the memory."""
    run.heading("n", "ms", "over numpy.sort", "bar", "memory per reading", "bar")
    spent = {}
    for row, (n, most) in enumerate(SIZES.items()):
        series = three_phases(run.rng(SPEED, row, 0), n)
        calls = most // (4 if run.quick else 1)
        ours, sort = by_turns(calls, partial(detect_changes, series), partial(np.sort, series))
        spent[n] = ours
        limit = {1_000: 5e-3, 10_000: 60.0 * sort, 100_000: 20.0 * sort}.get(n, 8.0 * sort)
        if sort < 12e-3 and n == max(SIZES):  # a processor that sorts with vectors
            limit = max(limit, 0.15)
        verdict = run.bar(f"time of {n:,}", ours, "<=", limit)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        detect_changes(series)
        peak = (tracemalloc.get_traced_memory()[1] - before) / n
        tracemalloc.stop()
        memory = run.bar(f"bytes per reading of {n:,}", peak, "<=", 32) if n >= 100_000 else "none"
        times = f"{ours / sort:.1f}"
        run.row(f"{n:,}", f"{1e3 * ours:.3g}", times, verdict, f"{peak:.1f} bytes", memory)
    growth = spent[1_000_000] / spent[100_000]
    run.say(f"Ten times 100,000: {growth:.1f} x, {run.bar('growth', growth, '<=', 13.0)}")


def raises_alarm(seed: int, row: int, noise: str, n: int, number: int) -> bool:
    """Whether a series without change is said to change."""
    rng = np.random.default_rng([seed, ALARMS, row, number])
    return bool(detect_changes(NOISES[noise](rng, n)).indices)


@script.section("Series without change that are said to change", seed=SEED)
def alarms(run: Run) -> None:
    """Print false alarms by noise and length, and over the lengths."""
    runs, lengths = run.runs(1_000, 100), (200, 1_000, 10_000)
    run.heading("noise", *(f"n = {n:,}" for n in lengths), "pooled", "bar")
    for row, noise in enumerate(NOISES):
        cells = [
            tally(run.repeated(partial(raises_alarm, run.seed, 3 * row + at, noise, n), runs))
            for at, n in enumerate(lengths)
        ]
        judged = cells[1:] if noise == "AR(1) 0.9" else cells
        pooled = cells[0]._replace(
            hits=sum(row.hits for row in judged), trials=sum(row.trials for row in judged)
        )
        most = {"AR(1) 0.5": 0.05, "AR(1) 0.9": 0.10}.get(noise, 0.02)
        verdict = run.judged(f"alarms, {noise}", Bar(0.0, most), pooled)
        if most == 0.02:
            for n, cell in zip(lengths, cells, strict=True):
                run.judged(f"alarms, {noise}, n = {n:,}", Bar(0.0, 0.035), cell)
        run.row(noise, *cells, pooled, verdict)


class Score(NamedTuple):
    """How well the steps of one series were found."""

    f1: float
    covering: float
    is_stable: bool
    is_refused: bool
    """For want of effective readings."""
    error: float
    """Of the mean of the stable phase, against the mean of the readings truly stable."""


def score_of(seed: int, row: int, noise: str, number: int) -> Score:
    """Score `detect_changes` on one series of `STEPS` under noise."""
    rng = np.random.default_rng([seed, ACCURACY, row, number])
    series = STEPS + NOISES[noise](rng, STEPS.size)
    points: ChangePoints = detect_changes(series)
    # Levels around 0 have no relative differences.
    phase = find_stable_phase(series, change_points=points, materiality=0.0)
    error = math.inf
    if phase.start is not None:
        error = abs(float(series[phase.start : phase.stop].mean() - series[STABLE].mean()))
    return Score(
        margin_f1(points.indices, CHANGES, MARGIN),
        covering(points.indices, CHANGES, points.n),
        phase.start is not None,
        phase.reason is PhaseReason.FEW_EFFECTIVE,
        error,
    )


SCORED = {
    "normal": (0.95, 0.01),
    "lognormal": (0.95, 0.01),
    "bimodal": (0.95, 0.01),
    "Student t2": (0.95, 0.02),
    "AR(1) 0.5": (0.90, 0.03),
    "AR(1) 0.9": (0.4, math.inf),
}
"""Bars on F1 and covering, and on the median error of the stable phase's mean."""


@script.section("How well the steps of 600 readings are found", seed=SEED)
def accuracy(run: Run) -> None:
    """Print F1, covering, stable phases and the error of their means."""
    run.heading("noise", "F1, covering", "bar", "stable phase", "bar", "median error", "bar")
    for row, (noise, (least, most)) in enumerate(SCORED.items()):
        found = run.repeated(partial(score_of, run.seed, row, noise), run.runs(500, 60))
        f1, covered = (float(np.mean([score[i] for score in found])) for i in (0, 1))
        refuses = noise == "AR(1) 0.9"
        stable = tally(score.is_stable or (refuses and score.is_refused) for score in found)
        error = float(np.quantile([score.error for score in found], 0.5, method="inverted_cdf"))
        run.row(
            *(noise, f"{f1:.3f}, {covered:.3f}"),
            run.bar(f"F1 and covering, {noise}", min(f1, covered), ">=", least - 0.02 * run.quick),
            *(stable, run.judged(f"stable phase, {noise}", Bar(0.98), stable)),
            *(f"{error:.4f}", run.bar(f"error, {noise}", error, "<=", most)),
        )
    noise_of_all = run.rng(ACCURACY, 99, 0).normal(size=190)
    for sd in (0.0, 0.02, 0.1):
        series = np.repeat([0.0, 1.0, 0.0], [30, 130, 30]) + sd * noise_of_all
        places = list(detect_changes(series).indices)
        verdict = run.verdict(f"exact at {sd}", places, "[30, 160]", met=places == [30, 160])
        run.say(f"30 low, 130 high, 30 low, noise {sd:.0%} of the step: {places}, {verdict}")


CLIMBS = [*product(STAIRCASES, ("normal", "lognormal"))]


def count_steps(seed: int, row: int, steps: int, number: int) -> int:
    """Return how many of the steps of 1,000 readings are found within 10."""
    rng = np.random.default_rng([seed, MANY, row, number])
    levels, noise = CLIMBS[row]
    series = STAIRCASES[levels](rng, steps).repeat(1_000) + NOISES[noise](rng, 1_000 * steps)
    return matched(detect_changes(series).indices, range(1_000, series.size, 1_000), 10)


def finds_both_shifts(seed: int, row: int, noise: str, number: int) -> bool:
    """Whether two shifts are found within 10."""
    series, true = two_shifts(np.random.default_rng([seed, MANY, 40 + row, number]), noise)
    return matched(detect_changes(series).indices, true, 10) == 2


@script.section("Many changes, trends, and two shifts in few readings", seed=SEED)
def many(run: Run) -> None:
    """Print how many of 1,000 steps are found, what becomes of trends, and of two shifts."""
    steps, runs = (150, 2) if run.quick else (1_000, 10)
    run.heading("steps", "found within 10", "bar")
    for row, (levels, noise) in enumerate(CLIMBS):
        hits, trials = (
            sum(run.repeated(partial(count_steps, run.seed, row, steps), runs)),
            steps - 1,
        )
        highest = wilson(hits, runs * trials)[1]
        share = hits / (runs * trials)
        verdict = run.verdict(f"steps {levels}, {noise}", share, ">= 0.95", met=highest >= 0.95)
        run.row(f"{levels}, {noise}", f"{share:.3f}", verdict)
    run.heading("trend", "n", "change points", "bar", "reason", "bar")
    sizes = (1_000, 10_000, 100_000, *(() if run.quick else (1_000_000,)))
    for row, (shape, n) in enumerate(product(("sorted", "slow ramp"), sizes)):
        noisy = NOISES["lognormal"](run.rng(MANY, 20 + row, 0), n)
        climb = np.sort(noisy) if shape == "sorted" else 10.0 + np.linspace(0.0, 5.0, n) + noisy
        phase = find_stable_phase(climb)
        points = len(phase.change_points.indices)
        told = run.verdict(f"{shape}, {n:,}", phase.reason, "trend", met="trend" in phase.reason)
        few = run.bar(f"points of {shape}, {n:,}", points, "<=", 100)
        run.row(shape, f"{n:,}", points, few, phase.reason, told)
    noises = ("normal", "lognormal", "bimodal", "Student t2", "AR(1) 0.5")
    run.shares(
        (
            (
                f"two shifts, {noise}",
                partial(finds_both_shifts, run.seed, row, noise),
                Bar(0.95) if row < 3 else None,
            )
            for row, noise in enumerate(noises)
        ),
        run.runs(200, 60),
        "both found within 10",
    )


SHORTEST, PENALTY, LEVEL = 30, 0.25, 20.0


def by_hand(readings: list[float]) -> tuple[int, int] | None:
    """Return where the dominant segment is by the published recursion, or None.

    Each median is from scratch; the longest segment counts if it holds more than half.
    """
    n = len(readings)
    best, last = [0.0] * (n + 1), [0] * (n + 1)
    for stop in range(2 * SHORTEST, n + 1):
        for split in range(SHORTEST, stop - SHORTEST + 1):
            before = last[split]
            step = statistics.median(readings[before:split])
            step -= statistics.median(readings[split:stop])
            reached = (split - before) * (stop - split) / (stop - before) ** 2 * step**2
            if best[split] + reached > best[stop]:
                best[stop], last[stop] = best[split] + reached, split
        point = last[stop]
        if point and best[stop] - best[point] < PENALTY * best[point]:
            best[stop], last[stop] = best[point], last[point]
    borders = [n]
    while borders[-1]:
        borders.append(last[borders[-1]])
    longest = max(pairwise(reversed(borders)), key=lambda segment: segment[1] - segment[0])
    return longest if 2 * (longest[1] - longest[0]) > n else None


def as_published(seed: int, ar: float, number: int) -> bool:
    """Whether segment and mean of one trace by ``detector="edm"`` are as by the recursion."""
    rng = np.random.default_rng([seed, LETTER, 0, 2 * number + (ar > 0.0)])
    n = int(rng.integers(120, 301))
    dominant = int(rng.uniform(0.55, 0.9) * n)
    warm_up = int(rng.uniform(0.0, 1.0) * (n - dominant))
    levels = np.full(n, LEVEL)
    levels[:warm_up] *= rng.uniform(1.05, 2.0)
    levels[warm_up + dominant :] *= rng.uniform(0.8, 1.3)
    sd = rng.uniform(0.01, 0.03) * LEVEL
    noise = lfilter([np.sqrt(1.0 - ar**2)], [1.0, -ar], rng.normal(size=n + 50))[50:]
    series = levels + sd * noise
    segment, phase = by_hand(series.tolist()), find_stable_phase(series, detector="edm")
    if segment is None:
        return phase.start is None
    mean = br.stats.estimate_mean(series, trim=True, detector="edm")
    value = float(series[slice(*segment)].mean())
    return (phase.start, phase.stop) == segment and mean.value == value


@script.section('Whether detector="edm" is the published method to the letter', seed=SEED)
def published(run: Run) -> None:
    """Print how many traces have the segment and mean of a reference, and what many take."""
    run.shares(
        ((f"AR(1) {ar:g}", partial(as_published, run.seed, ar), Bar(1.0)) for ar in (0.0, 0.4)),
        run.runs(100, 10),
        "the same",
    )
    n = 20_000 if run.quick else 100_000
    series = np.repeat([1.5, 1.0, 1.2], [n // 10, n - 2 * (n // 10), n // 10])
    series *= run.rng(8, 3, 0).normal(1.0, 0.02, n)
    (took,) = by_turns(1, partial(br.stats.estimate_mean, series, trim=True, detector="edm"))
    run.say(f"\n{n:,} readings take {took:.2f} s, {run.bar('estimate, s', took, '<=', 10.0)}")


if __name__ == "__main__":
    raise SystemExit(script.main())
