"""Intervals of composite profiles cover the undisturbed program."""

from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from benchrigor.model import SegmentProfile
from benchrigor.stats import composite_profile

pytestmark = pytest.mark.slow

CLASSES_S = np.array([0.01, 0.02, 0.05, 0.2])
SHARES = [0.4, 0.3, 0.2, 0.1]
N = 200


def program(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the class of each segment, the same in all runs."""
    return rng.permutation(np.repeat(np.arange(4), (N * np.array(SHARES)).astype(int)))


def disturbed(
    rng: np.random.Generator, kinds: Any, level: float = 1.0, lost: float = 0.5, hit: float = 0.2
) -> SegmentProfile:
    """Run a program that loses up to a share ``lost`` of its time in a share ``hit`` of it."""
    clean = CLASSES_S[kinds] * level * rng.normal(1.0, 0.01, kinds.size)
    struck = rng.random(kinds.size) < rng.uniform(0.05, max(hit, 0.05))
    delay = struck * rng.exponential(1.0, kinds.size)
    delay *= rng.uniform(0.0, lost) * clean.sum() / max(delay.sum(), 1e-9)
    return SegmentProfile(
        duration_s=clean + delay,
        computation={"flops": 1e9 * CLASSES_S[kinds] * rng.normal(1.0, 0.003, kinds.size)},
        nominal={"writes": (kinds == 3).astype(int)},
    )


def test_the_interval_covers_the_undisturbed_program() -> None:
    rng = np.random.default_rng(1)
    truth = N * float(CLASSES_S @ SHARES)
    values, held, held_of_group = [], 0, 0
    for _ in range(300):
        kinds = program(rng)
        found = composite_profile(
            [disturbed(rng, kinds, level) for level in rng.normal(1.0, 0.01, 8)]
        )
        values.append(found.duration.value)
        held += found.duration.low <= truth <= found.duration.high
        group = found.groups[0].duration
        assert group is not None
        held_of_group += group.low <= 0.2 <= group.high
    # 272 of 300: fewer have probability 0.0006 at a true 0.95, and 0.91 at 0.88.
    assert min(held, held_of_group) >= scipy_stats.binom.ppf(1e-3, 300, 0.95)
    assert held <= 298
    assert np.mean(values) == pytest.approx(truth, rel=0.005)
