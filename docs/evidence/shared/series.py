"""The series with known changes that the evidence on change points is about, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

__all__ = [
    "CHANGES",
    "MARGIN",
    "NOISES",
    "STABLE",
    "STAIRCASES",
    "STEPS",
    "covering",
    "margin_f1",
    "matched",
    "three_phases",
    "two_shifts",
]

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

STEPS = np.repeat([4.0, 1.5, 0.0, -2.0], [40, 50, 450, 60])
"""Levels of 600 readings: a warm-up of two steps, a stable phase, a cool-down."""
CHANGES, STABLE, MARGIN = (40, 90, 540), slice(90, 540), 12


def _ar1(phi: float) -> Callable[[Rng, int], Floats]:
    gain = np.sqrt(1.0 - phi * phi)

    def draw(rng: Rng, n: int) -> Floats:
        noise: Floats = lfilter([gain], [1.0, -phi], rng.normal(size=n + 300))
        return noise[300:]

    return draw


NOISES: dict[str, Callable[[Rng, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: rng.lognormal(0.0, 0.8, n) / 1.3039,
    "bimodal": lambda rng, n: (3.0 * (rng.random(n) < 0.3) + rng.normal(0.0, 0.5, n)) / 1.4629,
    "Student t2": lambda rng, n: rng.standard_t(2, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "coarse ticks": lambda rng, n: np.round(rng.normal(0.0, 0.8, n)),
    "AR(1) 0.5": _ar1(0.5),
    "AR(1) 0.9": _ar1(0.9),
}
"""Noise without change. Standard deviation 1; t2 and Cauchy: scale 1; ticks: about a tick."""


def three_phases(rng: Rng, n: int) -> Floats:
    """Return a tenth of warm-up, three quarters of stable readings, then a cool-down."""
    levels = np.repeat([5.0, 1.0, 3.0], [n // 10, n - n // 10 - n * 3 // 20, n * 3 // 20])
    return levels + NOISES["lognormal"](rng, n)


def _apart(rng: Rng, steps: int) -> Floats:
    levels = [0.0]
    while len(levels) < steps:
        level = rng.uniform(-10.0, 10.0)
        if abs(level - levels[-1]) >= 2.0:
            levels.append(level)
    return np.array(levels)


STAIRCASES: dict[str, Callable[[Rng, int], Floats]] = {
    "by turns": lambda _, steps: np.resize([0.0, 2.0], steps),
    "walking": lambda rng, steps: np.cumsum(_jumps(rng, steps)),
    "independent": _apart,
}
"""Levels, each 2 or more from the one before."""


def _jumps(rng: Rng, count: int) -> Floats:
    return rng.choice([-1.0, 1.0], count) * rng.uniform(2.0, 4.0, count)


def two_shifts(rng: Rng, noise: str) -> tuple[Floats, tuple[int, int]]:
    """Return 160 to 400 readings with two shifts of 2 to 4 sd, and where they are.

    All three segments hold at least 20 readings.
    """
    n = int(rng.integers(160, 401))
    first = int(rng.integers(20, n - 39))
    second = int(rng.integers(first + 20, n - 19))
    levels = np.concatenate(([0.0], np.cumsum(_jumps(rng, 2))))
    steps = levels.repeat([first, second - first, n - second])
    return steps + NOISES[noise](rng, n), (first, second)


def matched(found: Sequence[int], true: Sequence[int], margin: int) -> int:
    """Return how many true points have a found one of their own within the margin.

    Both ascending: matching each with the first that is near enough leaves most for the others.
    """
    hits, left = 0, iter(found)
    at = next(left, None)
    for point in true:
        while at is not None and at < point - margin:
            at = next(left, None)
        if at is not None and at <= point + margin:
            hits, at = hits + 1, next(left, None)
    return hits


def margin_f1(found: Sequence[int], true: Sequence[int], margin: int) -> float:
    """Return the harmonic mean of precision and recall, index 0 counted as found and true.

    As van den Burg & Williams (2020) define it: with hits h, 2h / (found + true).
    """
    marked, truth = [0, *found], [0, *true]
    return 2.0 * matched(marked, truth, margin) / (len(marked) + len(truth))


def covering(found: Sequence[int], true: Sequence[int], n: int) -> float:
    """Return the mean overlap of the true segments with their best found ones, by length.

    Overlap is Jaccard's (van den Burg & Williams 2020).
    """
    segments = list(pairwise((0, *found, n)))
    total = 0.0
    for start, stop in pairwise((0, *true, n)):
        shares = (
            max(0, min(stop, b) - max(start, a)) / (max(stop, b) - min(start, a))
            for a, b in segments
        )
        total += (stop - start) * max(shares)
    return total / n
