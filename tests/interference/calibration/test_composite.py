"""Intervals of composite profiles cover the undisturbed program."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.programs import CLASSES_S, SHARES, N, disturbed, program

from benchrigor.interference import composite_profile

pytestmark = pytest.mark.slow


def test_the_interval_covers_the_undisturbed_program() -> None:
    rng = np.random.default_rng(1)
    truth = N * float(CLASSES_S @ SHARES)
    values, held, held_of_group = [], 0, 0
    for _ in range(150):
        kinds = program(rng)
        found = composite_profile(
            [disturbed(rng, kinds, level) for level in rng.normal(1.0, 0.01, 8)]
        )
        values.append(found.duration.value)
        held += found.duration.low <= truth <= found.duration.high
        group = found.groups[0].duration
        assert group is not None
        held_of_group += group.low <= 0.2 <= group.high
    # 133 of 150: fewer have probability 0.0005 at a true 0.95, and 0.88 at 0.85.
    assert min(held, held_of_group) >= scipy_stats.binom.ppf(1e-3, 150, 0.95)
    assert held < 150
    assert np.mean(values) == pytest.approx(truth, rel=0.005)
