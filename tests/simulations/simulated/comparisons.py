"""Families of comparisons with known ratios."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchrigor.model import Verdict
from benchrigor.stats import compare, rank
from benchrigor.stats.comparison.two_sample import family_of

DECIDED = (Verdict.BETTER, Verdict.WORSE)


Runs = list[list[float]]


def runs(rng: np.random.Generator, mean: float, sd: float = 0.01, n: int = 10) -> Runs:
    return [[float(level)] for level in mean * rng.normal(1.0, sd, n)]


def family(rng: np.random.Generator, ratios: Mapping[str, float]) -> Any:
    return family_of_pairs(
        {name: (runs(rng, 1.0), runs(rng, each)) for name, each in ratios.items()}
    )


def family_of_pairs(
    pairs: Mapping[str, tuple[Any, Any]], *, rate: float = 0.05, **options: Any
) -> Any:
    """Compare baseline and candidate of each pair, and judge them together."""
    found = {name: compare(*pair, **options) for name, pair in pairs.items()}
    return family_of(found, rate=rate)


def invocations(levels: np.ndarray) -> Runs:
    """Return invocations of one reading each."""
    return [[float(level)] for level in levels]


def places(results: Mapping[str, Runs], direction: str = "lower") -> dict[str, int]:
    return {each.name: each.place for each in rank(results, direction=direction)}
