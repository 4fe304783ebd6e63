"""False discoveries are rare."""

import numpy as np
from scipy import stats as scipy_stats
from simulated.comparisons import DECIDED, family, places, runs


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


def test_the_summary_is_the_geometric_mean_with_its_own_interval() -> None:
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(200):
        summary = family(rng, {"a": 0.5, "b": 1.0, "c": 3.0}).summary
        assert summary is not None
        held += summary.low <= 1.5 ** (1 / 3) <= summary.high
    assert held >= scipy_stats.binom.ppf(0.001, 200, 0.95)


def test_equal_results_are_seldom_told_apart() -> None:
    rng = np.random.default_rng(11)
    split = sum(
        max(places({str(i): runs(rng, 1.0) for i in range(6)}).values()) > 1 for _ in range(200)
    )
    assert split <= scipy_stats.binom.ppf(0.999, 200, 0.05)
