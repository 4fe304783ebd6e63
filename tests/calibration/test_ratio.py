"""Sessions that compare the same with itself seldom find a difference."""

import math

import numpy as np
from scipy import signal
from scipy import stats as scipy_stats
from tests.session.pairs.turns import both, comparing

from benchrigor.model import Comparison, StopReason, Verdict
from benchrigor.session.engine import Engine, Taken
from benchrigor.session.pairs.ratio import Ratio


def compare_series(engine: Engine[Ratio], old: np.ndarray, new: np.ndarray) -> Comparison:
    """Tell an engine the pairs of two series until it has enough."""
    done = 0
    while (turn := engine.ask()) is not None:
        plan = turn.plan
        part = slice(done, done + plan.readings)
        rounds = [both(plan, old[part], new[part])]
        engine.tell(Taken(plan=plan, rounds=rounds, elapsed_ns=1_000))
        done += plan.readings
    found: Comparison = engine.result()
    return found


def test_comparisons_of_the_same_are_seldom_told_apart() -> None:
    """Autocorrelated noise, the stopping rule at work, the classical test: 5% at most."""
    runs, false, held = 30, 0, 0
    for seed in range(runs):
        shocks = np.random.default_rng(seed).normal(0.0, 0.02 * math.sqrt(0.75), (2, 3_000))
        old, new = 1.0 + signal.lfilter([1.0], [1.0, -0.5], shocks)
        found = compare_series(comparing(margin=0.0, seed=seed), old, new)
        assert found.reason is StopReason.SATISFIED
        assert found.ratio is not None
        false += found.verdict is not Verdict.UNDECIDED
        held += found.ratio.low <= 1.0 <= found.ratio.high
    assert false <= scipy_stats.binom.ppf(0.999, runs, 0.05)
    assert held >= scipy_stats.binom.ppf(0.001, runs, 0.95)
