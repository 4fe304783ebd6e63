"""What finding change points costs: at once, and as readings arrive.

Nothing here runs in parallel. Each time is the median of calls by turns with what it is compared
to, so that a change of the machine's speed meets both.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from changepoint_quality import verdict
from changepoint_series import ADVERSE, NOISES, STEPS, Floats, three_phases

from benchrigor.model import ChangePoints, StablePhase
from benchrigor.stats import ChangeDetector, detect_changes, find_stable_phase

__all__ = ["adversity", "equality", "memory", "speed", "stepwise", "updates"]

SPEED, UPDATES = 1, 2
SIZES = (1_000, 10_000, 100_000, 1_000_000)
CALLS = {1_000: 301, 10_000: 151, 100_000: 51, 1_000_000: 21}
RATIOS = {10_000: 60.0, 100_000: 20.0, 1_000_000: 8.0}
STEP = 100
EQUAL_TO = ("normal", "lognormal", "bimodal", "Student t2", "coarse ticks", "AR(1) 0.5")


def by_turns(calls: int, *functions: Callable[[], object]) -> list[float]:
    """Return the median duration of each function in seconds, warm, called by turns."""
    for function in functions:
        function()
    durations = np.empty((calls, len(functions)))
    for row in durations:
        for column, function in enumerate(functions):
            start = time.perf_counter()
            function()
            row[column] = time.perf_counter() - start
    return [float(each) for each in np.median(durations, axis=0)]


def speed(seed: int, *, quick: bool) -> None:
    """Print the time of `detect_changes` over that of sorting the same readings."""
    print("| n | detect_changes | numpy.sort | ratio | bar | |")
    print("| --- | --- | --- | --- | --- | --- |")
    times = {}
    for row, n in enumerate(SIZES):
        series = three_phases(np.random.default_rng([seed, SPEED, row, 0]), n)
        calls = CALLS[n] // (4 if quick else 1)
        ours, sort = by_turns(calls, partial(detect_changes, series), partial(np.sort, series))
        times[n] = ours
        if n not in RATIOS:
            bar, met = "5 ms", ours <= 5e-3
        else:
            bar, met = f"{RATIOS[n]:.0f} x", ours <= RATIOS[n] * sort
        if n == SIZES[-1]:
            vectorised = sort < 12e-3
            bar += " or 150 ms where sort takes less than 12 ms"
            met = met or (vectorised and ours <= 0.15)
        print(
            f"| {n:,} | {ours * 1e3:.3g} ms | {sort * 1e3:.3g} ms | {ours / sort:.1f} x "
            f"| {bar} | {verdict(met)} |"
        )
    growth = times[1_000_000] / times[100_000]
    print(f"\nTen times the readings, from 100,000: {growth:.1f} x the time, bar 13 x: ", end="")
    print(verdict(growth <= 13.0))


def memory(seed: int) -> None:
    """Print the peak of what is allocated, by Python and numpy, beyond the input."""
    print("| n | peak beyond the input | per reading | bar | |")
    print("| --- | --- | --- | --- | --- |")
    for row, n in enumerate(SIZES):
        series = three_phases(np.random.default_rng([seed, SPEED, row, 0]), n)
        detect_changes(series)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        detect_changes(series)
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        bar = f"32 bytes | {verdict(peak <= 32 * n)}" if n >= 100_000 else "none: fixed costs |"
        print(f"| {n:,} | {peak / 2**20:.2f} MiB | {peak / n:.1f} bytes | {bar} |")


def adversity(seed: int, *, quick: bool) -> None:
    """Print the times of inputs made to be slow, over that of three phases."""
    print(f"| n | three phases | {' | '.join(ADVERSE)} | bar 3 x |")
    print(f"| --- | --- | {'--- | ' * len(ADVERSE)}--- |")
    for row, n in enumerate(SIZES):
        rng = np.random.default_rng([seed, SPEED, row, 1])
        usual = three_phases(rng, n)
        ratios, base = [], 0.0
        for draw in ADVERSE.values():
            series = draw(rng, n)
            calls = max(3, CALLS[n] // (16 if quick else 4))
            base, slow = by_turns(
                calls, partial(detect_changes, usual), partial(detect_changes, series)
            )
            ratios.append(slow / base)
        cells = " | ".join(f"{each:.2f} x" for each in ratios)
        print(f"| {n:,} | {base * 1e3:.3g} ms | {cells} | {verdict(max(ratios) <= 3.0)} |")


def updates(seed: int, *, quick: bool) -> None:
    """Print the time of appending 100 readings and asking for the change points."""
    print("| readings before | median | 95 % of updates | slowest | bar | |")
    print("| --- | --- | --- | --- | --- | --- |")
    medians = {}
    for row, n in enumerate(SIZES):
        spent = np.concatenate([_appended(seed, row, run, n) for run in range(2 if quick else 20)])
        medians[n] = median = float(np.median(spent))
        bar, met = "none", ""
        if n == SIZES[-1]:
            bar = "1 ms, and 3 x its value at 1,000"
            met = verdict(median <= 1e-3 and median <= 3.0 * medians[1_000])
        high, most = np.quantile(spent, 0.95), spent.max()
        print(
            f"| {n:,} | {median * 1e6:.0f} us | {high * 1e6:.0f} us | {most * 1e3:.2f} ms "
            f"| {bar} | {met} |"
        )
    print(f"\nFrom 1,000 to 1,000,000: {medians[1_000_000] / medians[1_000]:.2f} x the median.")


def _appended(seed: int, row: int, run: int, n: int) -> Floats:
    """Return the durations of nine updates behind the first n readings.

    Nine, so that the first thousand has not doubled by the end.
    """
    series = three_phases(np.random.default_rng([seed, UPDATES, row, run]), n + 9 * STEP)
    detector = ChangeDetector()
    detector.append(series[:n])
    detector.change_points()
    spent = np.empty(9)
    for at in range(spent.size):
        batch = series[n + at * STEP :][:STEP]
        start = time.perf_counter()
        detector.append(batch)
        detector.change_points()
        spent[at] = time.perf_counter() - start
    return spent


def stepwise(seed: int, *, quick: bool) -> None:
    """Print how long 10,000 updates to a million readings take."""
    steps = 500 if quick else 10_000
    series = three_phases(np.random.default_rng([seed, UPDATES, 9, 0]), steps * STEP)
    detector, spent = ChangeDetector(), np.empty(steps)
    for at, batch in enumerate(series.reshape(steps, STEP)):
        start = time.perf_counter()
        detector.append(batch)
        detector.change_points()
        spent[at] = time.perf_counter() - start
    total, bar = float(spent.sum()), 15.0 * steps / 10_000
    print(
        f"{steps:,} updates of {STEP} readings to {series.size:,}: {total:.2f} s, slowest "
        f"{spent.max() * 1e3:.1f} ms; bar {bar:.3g} s: {verdict(total <= bar)}"
    )
    print(f"Change points at the end: {detector.change_points().indices}")


class Compared(NamedTuple):
    """How appending in batches compares to other ways to the same readings."""

    as_appended_at_once: bool
    as_detected: bool
    """The change points are those of `detect_changes`."""
    same_phase: bool
    """So is the stable phase, within 1 % of n, or there is none in both."""


def equality(seed: int, *, quick: bool) -> None:
    """Print how often appending in random batches comes to the same as all readings at once."""
    series = 4 if quick else 40
    print(
        "| noise | comparisons | as appended at once | as detect_changes "
        "| else the same stable phase | neither | |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row, noise in enumerate(EQUAL_TO):
        found = [each for run in range(series) for each in _compared(seed, 10 + row, run, noise)]
        appended = sum(each.as_appended_at_once for each in found)
        detected = sum(each.as_detected for each in found)
        alike = sum(each.same_phase and not each.as_detected for each in found)
        neither = len(found) - detected - alike
        met = appended == len(found) and neither == 0
        print(
            f"| {noise} | {len(found)} | {appended} | {detected} | {alike} | {neither} "
            f"| {verdict(met)} |"
        )


def _compared(seed: int, row: int, run: int, noise: str) -> list[Compared]:
    """Append some 50 batches of different sizes, and compare after each tenth."""
    rng = np.random.default_rng([seed, UPDATES, row, run])
    stretch = int(rng.choice([1, 5, 30]))
    series = STEPS.repeat(stretch) + NOISES[noise](rng, STEPS.size * stretch)
    sizes = np.exp(rng.uniform(0.0, np.log(2_000.0), 50)) * series.size / 13_000
    stops = np.unique(np.clip(np.cumsum(np.ceil(sizes)), 20, series.size).astype(np.int64))
    told, found = ChangeDetector(), []
    for batch, (start, stop) in enumerate(pairwise([0, *stops.tolist()])):
        told.append(series[start:stop])
        points = told.change_points()
        if batch % 10 == 9 or stop == stops[-1]:
            at_once, detected = ChangeDetector(), detect_changes(series[:stop])
            at_once.append(series[:stop])
            found.append(
                Compared(
                    as_appended_at_once=at_once.change_points().indices == points.indices,
                    as_detected=detected.indices == points.indices,
                    same_phase=_alike(series[:stop], detected, points),
                )
            )
    return found


def _alike(series: Floats, one: ChangePoints, other: ChangePoints) -> bool:
    """Whether the stable phases that follow have the same borders within 1 % of n, or are none."""
    first, second = (_borders(series, each) for each in (one, other))
    if first is None or second is None:
        return first is second
    return max(abs(a - b) for a, b in zip(first, second, strict=True)) <= 0.01 * series.size


def _borders(series: Floats, points: ChangePoints) -> tuple[int, int] | None:
    phase: StablePhase = find_stable_phase(series, change_points=points, materiality=0.0)
    return None if phase.start is None or phase.stop is None else (phase.start, phase.stop)
