"""How long an analysis takes, whatever the number of phases."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import numpy.typing as npt
from coverage_tables import Setting, heading, row

import benchrigor as br

__all__ = ["times"]

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
