"""Amounts of work, and durations that grow with them in known ways."""

import math
from collections.abc import Callable

import numpy as np


def bisecting(n: int) -> np.ndarray:
    """1/2, 1/4, 3/4, 1/8, ...: the bits of a counter, mirrored at the point."""
    return np.array([int(f"{each:b}"[::-1], 2) / 2 ** len(f"{each:b}") for each in range(1, n + 1)])


def slow(rng: np.random.Generator, n: int) -> np.ndarray:
    """An autoregressive series, 0.7 of order 1, of variance 1."""
    series = [rng.normal()]
    for each in rng.normal(0.0, math.sqrt(1.0 - 0.7**2), n - 1):
        series.append(0.7 * series[-1] + each)
    return np.array(series)


def ramp(seed: int, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    work = np.linspace(0.1, 4.0, n)
    return work, 0.3 + work + 0.1 * slow(np.random.default_rng(seed), n)


WORK = 1e6 * np.random.default_rng(0).permutation(np.linspace(1e-3, 1.0, 40))


CURVES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda work: work / 1e6,
    "n log n": lambda work: work * np.log(work) / 1e6 / np.log(1e6),
    "quadratic": lambda work: (work / 1e6) ** 2,
    "root": lambda work: np.sqrt(work / 1e6),
}


EXPONENTS = {"linear": 1.0, "quadratic": 2.0, "root": 0.5}
