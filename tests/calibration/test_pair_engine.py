"""Sessions that compare the same with itself seldom find a difference."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import signal
from scipy import stats as scipy_stats

from benchrigor.model import Comparison, Decision, Floats, StopReason, Verdict
from benchrigor.session.pairs.pair_engine import PairEngine

pytestmark = pytest.mark.slow


def told(
    engine: PairEngine,
    old: Floats,
    new: Floats,
    *,
    pair_ns: int = 1_000,
    after: Callable[[Decision], object] = lambda _: None,
) -> Comparison:
    """Tell an engine the pairs of two series until it has enough."""
    done = 0
    while (plan := engine.ask()) is not None:
        part = slice(done, done + plan.pairs)
        after(engine.tell(plan, old[part], new[part], plan.pairs * pair_ns))
        done += plan.pairs
    return engine.result()


def test_comparisons_of_the_same_are_seldom_told_apart() -> None:
    """Autocorrelated noise, the stopping rule at work, the classical test: 5% at most."""
    runs, false, held = 120, 0, 0
    for seed in range(runs):
        shocks = np.random.default_rng(seed).normal(0.0, 0.02 * math.sqrt(0.75), (2, 3_000))
        old, new = 1.0 + signal.lfilter([1.0], [1.0, -0.5], shocks)
        found = told(PairEngine(margin=0.0, seed=seed), old, new)
        assert found.reason is StopReason.SATISFIED
        assert found.ratio is not None
        false += found.verdict is not Verdict.UNDECIDED
        held += found.ratio.low <= 1.0 <= found.ratio.high
    assert false <= scipy_stats.binom.ppf(0.999, runs, 0.05)
    assert held >= scipy_stats.binom.ppf(0.001, runs, 0.95)
