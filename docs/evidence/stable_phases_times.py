"""How long an analysis takes, whatever the number of phases, and how long default runs take."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from coverage_tables import Setting, heading, row

import benchrigor as br

__all__ = ["starts", "times"]

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

MOST_S = 3.0


def steps(rng: Rng, n: int, phases: int) -> Floats:
    """Return levels at random, each for as long."""
    return np.repeat(rng.uniform(1.0, 2.0, phases), n // phases)


def bursts(rng: Rng, n: int, phases: int) -> Floats:
    """Return one level, and bursts at twice that."""
    levels = np.ones(n)
    for start in rng.integers(0, n, phases):
        levels[start : start + 100] = 2.0
    return levels


def ramps(rng: Rng, n: int, phases: int) -> Floats:
    """Return a saw."""
    return 1.0 + rng.uniform(0.5, 1.0) * np.tile(np.arange(n // phases) / (n // phases), phases)


def alternating(_: Rng, n: int, phases: int) -> Floats:
    """Return two levels in turn."""
    return np.tile(np.repeat([1.0, 1.3], n // phases), phases // 2)


def falling(_: Rng, n: int, phases: int) -> Floats:
    """Return ever smaller steps down, as of a long warm-up."""
    return 1.0 + np.repeat(1.0 / (1.0 + np.arange(phases)), n // phases)


SHAPES: dict[str, Callable[[Rng, int, int], Floats]] = {
    "random steps": steps,
    "bursts": bursts,
    "ramps": ramps,
    "alternating": alternating,
    "a falling staircase": falling,
}


def analysis_s(series: Floats) -> float:
    """Return the seconds that the estimate of a series takes."""
    start = time.perf_counter()
    with suppress(br.NotEstimable):
        br.stats.estimate_mean(series, trim=True)
    return time.perf_counter() - start


def times(setting: Setting) -> None:
    """Print the seconds of an analysis of a million readings."""
    n = 100_000 if setting.quick else 1_000_000
    print(f"Series of {n:,} readings with noise of 1 %.\n")
    heading(["shape", "phases", "seconds"])
    for index, (name, shape) in enumerate(SHAPES.items()):
        for phases in (10, 1_000, 20_000):
            rng = np.random.default_rng([setting.seed, 4, index, phases])
            levels = shape(rng, n, phases)
            took = analysis_s(levels * rng.normal(1.0, 0.01, levels.size))
            met = setting.verdict(f"{name}, {phases}", took <= MOST_S)
            row(name, phases, f"{took:.2f}, at most {MOST_S:g}: {met}")


class SlowStart:
    """A function whose first calls are slow: they sleep, miss a cache, or run code not compiled."""

    def __init__(self, kind: str, calls: int) -> None:
        self.kind, self.left, self.longest_s = kind, calls, 0.0
        self._cached = lru_cache(maxsize=None)(lambda number: sum(range(20_000 + number)))

    def __call__(self) -> object:
        """Return something, slowly at first."""
        began, self.left = time.perf_counter(), self.left - 1
        if self.kind == "cache":
            found: object = self._cached(max(self.left, 0))
        else:
            found = sum(range(2_000))
            if self.left >= 0 and self.kind == "sleep":
                time.sleep(0.002)
            elif self.left >= 0:
                found = [sum(range(2_000)) for _ in range(20)]
        self.longest_s = max(self.longest_s, time.perf_counter() - began)
        return found


def starts(setting: Setting) -> None:
    """Print how long default runs of functions with a slow start take."""
    budget_s, runs = br.Options().budget_s, setting.runs(100, 3)
    rng, took, late = np.random.default_rng([setting.seed, 7]), [], 0
    for number in range(runs):
        kind = ("sleep", "cache", "compile")[number % 3]
        func = SlowStart(kind, int(np.exp(rng.uniform(0.0, np.log(2_000)))))
        began = time.perf_counter()
        readings = br.measure(func).readings().size
        took.append(time.perf_counter() - began)
        if took[-1] > budget_s + func.longest_s + MOST_S:
            late += 1
            print(f"Late: {took[-1]:.1f} s, {kind}, {readings:,} readings")
    median, longest = float(np.median(took)), max(took)
    print(
        f"{runs} runs with 1 to 2,000 slow calls first: median {median:.1f} s, at most "
        f"{longest:.1f} s, later than the budget, one call and {MOST_S:g} s: {late}: "
        f"{setting.verdict('starts', late == 0)}"
    )
