"""False discoveries are rare."""

from collections.abc import Mapping

import numpy as np
import pytest

from benchrigor.model import Family, Verdict
from benchrigor.stats.comparison.multiple_testing import compare_family

pytestmark = pytest.mark.slow

DECIDED = (Verdict.BETTER, Verdict.WORSE)
Runs = list[list[float]]


def runs(rng: np.random.Generator, mean: float, sd: float = 0.01, n: int = 10) -> Runs:
    return [[float(level)] for level in mean * rng.normal(1.0, sd, n)]


def family(rng: np.random.Generator, ratios: Mapping[str, float]) -> Family:
    return compare_family(
        {name: (runs(rng, 1.0), runs(rng, each)) for name, each in ratios.items()}
    )


def test_false_discoveries_are_rare() -> None:
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(60):
        # On the very edge of the margin false verdicts are as frequent as they get.
        ratios = {f"true{i}": 1.05 for i in range(5)} | {f"edge{i}": 1.01 for i in range(15)}
        verdicts = family(rng, ratios).verdicts
        made = [name for name, each in verdicts.items() if each in DECIDED]
        assert {name for name in ratios if name.startswith("true")} <= set(made)
        shares.append(sum(name.startswith("edge") for name in made) / len(made))
    assert float(np.mean(shares)) < 0.05
