"""How long trials are to be, and how many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from benchrigor.errors import InvalidInput
from benchrigor.workbench.arithmetic.run_length import plan_runlength

MEANS = {60: [36.0, 45.0, 38.0, 42.0], 180: [39.0, 41.0, 40.5, 38.5], 600: [39.9, 40.1, 40.0]}


def test_the_number_of_trials_is_the_least_whose_interval_is_narrow_enough():
    plan = plan_runlength(MEANS, 0.05)
    for each in plan.lengths:
        assert each.trials is not None
        half = [
            student.ppf(0.975, t - 1) * each.variation / np.sqrt(t)
            for t in (each.trials - 1, each.trials)
            if t > 1
        ]
        assert half[-1] <= 0.05
        assert each.trials == 2 or half[0] > 0.05


def test_the_cheapest_depends_on_what_a_trial_costs_beside():
    assert plan_runlength(MEANS, 0.1).lengths[0].trials == 7
    without, with_setup = (plan_runlength(MEANS, 0.1, setup_s=s).best for s in (0.0, 10_000.0))
    assert without.cost_s == min(60 * 7, 180 * without.trials) or without.duration_s == 180
    assert with_setup.trials == 2
    assert "cheapest" in str(plan_runlength(MEANS, 0.1))


@given(st.floats(min_value=1e-3, max_value=1e3))
def test_the_unit_of_responses_does_not_matter(scale: float):
    scaled = {length: np.array(means) * scale for length, means in MEANS.items()}
    assert [each.trials for each in plan_runlength(scaled, 0.07).lengths] == [
        each.trials for each in plan_runlength(MEANS, 0.07).lengths
    ]


def test_what_no_number_of_trials_reaches_has_none():
    plan = plan_runlength({10: [1.0, 100.0]}, 0.001)
    assert plan.best is None
    assert plan.lengths[0].trials is None
    assert "-" in str(plan)


@pytest.mark.parametrize(
    ("pilots", "accuracy", "said"),
    [
        ({}, 0.1, "pilots is empty"),
        ({60: [1.0]}, 0.1, "expected two at least"),
        ({60: [0.0, 0.0]}, 0.1, "expected one above 0"),
        ({-1: [1.0, 2.0]}, 0.1, "a duration is -1"),
        ({60: [1.0, 2.0]}, 10, "accuracy is 10"),
    ],
)
def test_what_is_wrong_is_named(pilots: dict[float, list[float]], accuracy: float, said: str):
    with pytest.raises(InvalidInput, match=said):
        plan_runlength(pilots, accuracy)
