"""False discoveries are rare."""

import numpy as np
import pytest
from simulated.comparisons import DECIDED, family

pytestmark = pytest.mark.slow


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
