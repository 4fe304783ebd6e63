"""Whether `detector="edm"` is the published method to the letter, and what it costs.

The reference follows the recursion as it is written down, each median from scratch, and takes the
longest segment if it holds more than half of the readings.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from changepoint_quality import repeated, share, verdict
from changepoint_series import Floats
from scipy.signal import lfilter

import benchrigor as br
from benchrigor.session.replays.recorded_run import record_of_readings

__all__ = ["by_hand", "cost", "phased", "to_the_letter"]

LETTER, COST = 7, 8
SHORTEST, PENALTY = 30, 0.25
LEVEL, MOST_S = 20.0, 10.0


class Compared(NamedTuple):
    """One trace: its autoregression, whether all agree, and the error of the mean."""

    ar: float
    equal: bool
    error: float | None


def by_hand(readings: list[float]) -> tuple[int, int] | None:
    """Return where the dominant segment is, by the recursion; None if there is none."""
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
    segments = list(pairwise(reversed(borders)))
    longest = max(segments, key=lambda segment: segment[1] - segment[0])
    return longest if 2 * (longest[1] - longest[0]) > n else None


def phased(rng: np.random.Generator, n: int, ar: float) -> Floats:
    """Draw a warm-up, a dominant phase of 55 to 90 % at the level, and a cool-down."""
    dominant = int(rng.uniform(0.55, 0.9) * n)
    warm_up = int(rng.uniform(0.0, 1.0) * (n - dominant))
    levels = np.full(n, LEVEL)
    levels[:warm_up] *= rng.uniform(1.05, 2.0)
    levels[warm_up + dominant :] *= rng.uniform(0.8, 1.3)
    sd = rng.uniform(0.01, 0.03) * LEVEL
    noise: Floats = lfilter([np.sqrt(1.0 - ar**2)], [1.0, -ar], rng.normal(size=n + 50))[50:]
    return levels + sd * noise


def compared(seed: int, run: int) -> Compared:
    """Compare the segment and the mean of one trace with those of the reference."""
    ar = 0.4 * (run % 2)
    rng = np.random.default_rng([seed, LETTER, 0, run])
    series = phased(rng, int(rng.integers(120, 301)), ar)
    segment = by_hand(series.tolist())
    phase = br.stats.find_stable_phase(series, detector="edm")
    options, metric = br.Options(detector="edm"), br.Metric(name="time", unit="s")
    of_file = record_of_readings([series], options, metric, name="trace").estimate()
    if segment is None:
        return Compared(ar, phase.start is None and of_file is None, None)
    value = float(series[slice(*segment)].mean())
    mean = br.stats.estimate_mean(series, trim=True, detector="edm")
    equal = (phase.start, phase.stop) == segment and mean.value == value
    equal = equal and of_file is not None and of_file.value == value
    return Compared(ar, equal, abs(value / LEVEL - 1.0))


def to_the_letter(seed: int, *, quick: bool) -> None:
    """Print how many traces give the same segment and mean as the reference."""
    runs = 20 if quick else 200
    results = repeated(partial(compared, seed), runs)
    print("| noise | same segment and mean | bar | a number | its median error | 90% |")
    print("| --- | --- | --- | --- | --- | --- |")
    for ar in (0.0, 0.4):
        rows = [result for result in results if result.ar == ar]
        errors = [row.error for row in rows if row.error is not None]
        middle, high = np.quantile(errors, [0.5, 0.9])
        equal = sum(row.equal for row in rows)
        print(
            f"| AR(1) {ar:g} | {equal} of {len(rows)} | all: {verdict(equal == len(rows))} "
            f"| {share(len(errors), len(rows))} | {middle:.2%} | {high:.2%} |"
        )


def cost(seed: int, *, quick: bool) -> None:
    """Print how long an estimate takes, and its method, by the number of readings."""
    print("| n | estimate | bar | method |")
    print("| --- | --- | --- | --- |")
    for row, n in enumerate((1_000, 5_000, 20_000) if quick else (1_000, 5_000, 20_000, 100_000)):
        rng = np.random.default_rng([seed, COST, row, 0])
        series = np.repeat([1.5, 1.0, 1.2], [n // 10, n - 2 * (n // 10), n // 10])
        series *= rng.normal(1.0, 0.02, n)
        start = time.perf_counter()
        mean = br.stats.estimate_mean(series, trim=True, detector="edm")
        took = time.perf_counter() - start
        bar = f"{MOST_S:g} s: {verdict(took <= MOST_S)}"
        print(f"| {n:,} | {took:.2f} s | {bar} | {mean.method} |", flush=True)
