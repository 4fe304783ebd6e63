"""The distribution of the peak, given trials, and how long trials last."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from benchrigor.errors import InvalidInput
from benchrigor.stats import plan_runlength
from benchrigor.workbench.planning import peaks
from benchrigor.workbench.planning.peaks import CLOSED_LOOP, peak_posterior

LOADS = np.array([20.0, 80.0, 150.0, 165.0, 172.0, 178.0, 185.0, 260.0])


def responses(capacity: float, limit_s: float = 0.04) -> np.ndarray:
    """Mean responses over the limit of a server that serves so many a second (M/M/1)."""
    spare = capacity - LOADS
    return np.where(spare > 0.0, 1.0 / np.maximum(spare, 1e-3), 1000.0) / limit_s


def posterior(
    load: np.ndarray, ratio: np.ndarray, *, scale: float = 1.0, lasted_s: float = 60.0, **rest: Any
) -> Any:
    ends = {"low": 5 * scale, "high": 1000 * scale, **rest}
    return peak_posterior(load, ratio, np.full(load.size, lasted_s), **ends)


def test_the_peak_of_a_known_server_is_found():
    found = posterior(LOADS, responses(200.0))
    low, value, high = (found.quantile(q) for q in (0.025, 0.5, 0.975))
    assert low < 175.0 < high
    assert value == pytest.approx(175.0, rel=0.01)
    # By 1/R = A - B load the response grows by load / (capacity - load) per cent with each.
    assert found.slope == pytest.approx(7.0, rel=0.4)


@settings(max_examples=10)
@given(
    st.floats(min_value=1e-3, max_value=1e5),
    st.permutations(range(LOADS.size)),
    st.floats(min_value=1.05, max_value=3.0),
)
def test_neither_the_unit_nor_the_order_matters_and_slower_responses_mean_a_lower_peak(
    scale: float, order: list[int], slower: float
):
    ratio = responses(200.0)
    one, other = posterior(LOADS, ratio), posterior(LOADS * scale, ratio, scale=scale)
    for q in (0.025, 0.5, 0.975):
        assert other.quantile(q) == pytest.approx(one.quantile(q) * scale, rel=1e-3)
    other = posterior(LOADS[order], ratio[order])
    assert other.quantile(0.5) == pytest.approx(one.quantile(0.5), rel=1e-3)
    assert other.residuals == pytest.approx(one.residuals[order], abs=0.02)
    assert posterior(LOADS, ratio * slower).quantile(0.5) < one.quantile(0.5)


def test_a_crash_tells_only_that_the_peak_is_below():
    """The curve goes on to 175, and the server breaks down from 172 on."""
    found = posterior(LOADS, np.where(LOADS > 170.0, math.inf, responses(200.0)))
    assert 160.0 < found.quantile(0.5) < found.quantile(0.975) < 178.0


def test_a_peak_that_is_known_to_a_thousandth_is_not_missed_between_the_points_of_the_grid():
    """A steep curve, and trials far apart: the range is 1000 times as wide as the interval."""
    load = np.array([50.0, 200.0, 800.0, 3200.0, 968.9, 940.1, 980.9, 790.4, 927.0])
    left = 985.6 - load
    ratio = np.where(left > 0.0, 1.0 / np.maximum(left, 1e-3), 500.0) / 0.04
    found = posterior(load, ratio, lasted_s=30.0, low=12.5, high=12_800.0)
    assert found.quantile(0.5) == pytest.approx(960.6, rel=0.005)
    assert found.quantile(0.975) / found.quantile(0.025) < 1.05


def test_users_who_wait_have_no_pole():
    """Above the capacity the response of a closed loop grows as the users do: R = N/X - Z."""
    load = np.array([20.0, 40.0, 70.0, 85.0, 95.0, 110.0, 130.0, 180.0])
    ratio = np.maximum(load / 50.0 - 1.0, 0.05)  # 1 at 100 users
    found = posterior(load, ratio, high=720.0, curves=CLOSED_LOOP)
    assert found.method == CLOSED_LOOP.method
    assert found.quantile(0.025) < 100.0 < found.quantile(0.975)
    assert found.slope == pytest.approx(2.0, rel=0.25)


def test_the_interval_of_many_long_trials_is_that_of_a_dense_grid(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(20351)
    load = np.concatenate([[50.0, 200.0, 800.0], 175.0 * np.exp(rng.normal(0.0, 0.02, 40))])
    ratio = np.where(load < 200.0, 1.0 / np.maximum(200.0 - load, 1e-9) / 0.04, 500.0)
    ratio *= np.exp(rng.normal(0.0, 0.02, load.size))

    def found() -> Any:
        return posterior(load, ratio, lasted_s=300.0, low=12.5, high=3200.0)

    ours = found()
    monkeypatch.setattr(peaks, "_EVENLY", 1500)
    dense = found()
    for q in (0.025, 0.5, 0.975):
        assert abs(math.log(ours.quantile(q) / dense.quantile(q))) < 0.05 * dense.sd


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
