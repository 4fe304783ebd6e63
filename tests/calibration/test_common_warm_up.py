"""Steady invocations are seldom cut or refused."""

import numpy as np

from benchrigor.stats.phases.rounds_cut import common_phases
from benchrigor.stats.phases.stable_phase import Search

N = 200
INDEX = np.arange(N)
STEP = 0.5 * (INDEX < 30)


def test_false_cuts_are_rare() -> None:
    rng = np.random.default_rng(10)
    noise = {
        "normal": lambda: rng.normal(1.0, 0.05, N),
        "skewed": lambda: rng.lognormal(0.0, 1.0, N),
        "a coarse clock": lambda: rng.integers(0, 2, N).astype(float),
    }
    for draw in noise.values():
        found = [common_phases([draw() for _ in range(5)], Search())[0] for _ in range(100)]
        # Of 100 at 5 % and 1 % more than 13 are false with probability 0.003.
        assert sum(phase.n < N for phase in found) <= 13


def test_steady_invocations_are_seldom_refused() -> None:
    rng = np.random.default_rng(15)
    refused = 0
    for _ in range(150):
        invocations = [rng.normal(level, 0.05, N) + STEP for level in rng.normal(1.0, 0.02, 10)]
        refused += common_phases(invocations, Search())[0].start is None
    # Of 150 at 1 % more than 6 are refused with probability 0.001.
    assert refused <= 6
