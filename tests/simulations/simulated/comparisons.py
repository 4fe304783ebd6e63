"""Families of comparisons with known ratios."""

from collections.abc import Mapping

import numpy as np

from benchrigor.model import Family, Verdict
from benchrigor.stats.comparison.multiple_testing import compare_family

DECIDED = (Verdict.BETTER, Verdict.WORSE)


Runs = list[list[float]]


def runs(rng: np.random.Generator, mean: float, sd: float = 0.01, n: int = 10) -> Runs:
    return [[float(level)] for level in mean * rng.normal(1.0, sd, n)]


def family(rng: np.random.Generator, ratios: Mapping[str, float]) -> Family:
    return compare_family(
        {name: (runs(rng, 1.0), runs(rng, each)) for name, each in ratios.items()}
    )
