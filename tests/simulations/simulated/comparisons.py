"""Families of comparisons with known ratios."""

from collections.abc import Mapping

import numpy as np

from benchrigor.model import Family, Floats, Verdict
from benchrigor.stats.comparison.multiple_testing import compare_family, rank

DECIDED = (Verdict.BETTER, Verdict.WORSE)


Runs = list[list[float]]


def runs(rng: np.random.Generator, mean: float, sd: float = 0.01, n: int = 10) -> Runs:
    return [[float(level)] for level in mean * rng.normal(1.0, sd, n)]


def family(rng: np.random.Generator, ratios: Mapping[str, float]) -> Family:
    return compare_family(
        {name: (runs(rng, 1.0), runs(rng, each)) for name, each in ratios.items()}
    )


def invocations(levels: Floats) -> Runs:
    """Return invocations of one reading each."""
    return [[float(level)] for level in levels]


def places(results: Mapping[str, Runs], direction: str = "lower") -> dict[str, int]:
    return {each.name: each.place for each in rank(results, direction=direction)}
