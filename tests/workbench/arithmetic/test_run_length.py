"""How long trials are to be, and how many: the least whose interval is narrow enough."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from benchrigor.errors import InvalidInput
from benchrigor.stats import plan_runlength

MEANS = {60: [36.0, 45.0, 38.0, 42.0], 180: [39.0, 41.0, 40.5, 38.5], 600: [39.9, 40.1, 40.0]}


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_number_of_trials_is_the_least_whose_interval_is_narrow_enough(scale: float):
    """Whatever the unit of responses."""
    plan = plan_runlength({x: np.multiply(means, scale) for x, means in MEANS.items()}, 0.05)
    for each in plan.lengths:
        trials = np.array([each.trials - 1, each.trials])
        half = student.ppf(0.975, trials - 1) * each.variation / np.sqrt(trials)
        assert half[1] <= 0.05
        assert each.trials == 2 or half[0] > 0.05
    best = min(each.trials * each.duration_s for each in plan.lengths)
    assert plan.best.trials * plan.best.duration_s == best


def test_the_cheapest_depends_on_what_a_trial_costs_beside():
    assert plan_runlength(MEANS, 0.1).lengths[0].trials == 7
    assert plan_runlength(MEANS, 0.1, setup_s=10_000.0).best.trials == 2


def test_what_no_number_of_trials_reaches_has_none():
    plan = plan_runlength({10: [1.0, 100.0]}, 0.001)
    assert (plan.best, plan.lengths[0].trials) == (None, None)
    for wrong in ({}, {60: [1.0]}, {60: [0.0, 0.0]}, {-1: [1.0, 2.0]}):
        with pytest.raises(InvalidInput):
            plan_runlength(wrong, 0.1)
