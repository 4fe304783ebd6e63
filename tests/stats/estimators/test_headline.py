"""The width of headlines, with a known spread between runs, and how levels follow full speed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.estimates import within

from benchrigor.stats.estimators.headline import (
    Point,
    Told,
    slope_of_runs,
    spread_of,
    widening,
    with_spread,
)

S0 = 0.015
NONE = (0.0, 0.0)  # no run is stored


def runs(log_values):
    return [Told(log_value=value, variance=S0**2) for value in log_values]


def figure(value=1.0, error=S0):
    return replace(within(value), standard_error=value * error, degrees_of_freedom=5.0)


def test_the_variance_is_that_assumed_pooled_with_that_of_groups():
    first, second = np.array([0.0, 0.01, -0.02]), np.array([0.3, 0.31])
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in (first, second))
    spread = spread_of([runs(first), runs(second), runs([7.0])])
    assert spread == pytest.approx((squares / S0**2, 3.0))
    first, second = 3.0 * first, 3.0 * second
    squares *= 9.0
    spread = spread_of([runs(first), runs(second)])
    pooled = (5.0 * S0**2 + squares) / (5.0 + 3.0)
    narrowed = with_spread(figure(), spread)
    assert narrowed.standard_error == pytest.approx(math.sqrt(pooled))
    assert narrowed.degrees_of_freedom == 5.0 + 3.0
    reach = math.log(narrowed.high / narrowed.value)
    assert reach == pytest.approx(scipy_stats.t.ppf(0.975, 8.0) * math.sqrt(pooled))


def test_a_figure_without_error_keeps_its_interval():
    constant = replace(within(1.0), low=1.0, high=1.0, standard_error=0.0, degrees_of_freedom=9.0)
    assert (with_spread(constant, NONE).low, with_spread(constant, NONE).high) == (1.0, 1.0)


@pytest.mark.parametrize("others", [0, 3, 9, 29])
def test_intervals_hold_the_level_as_often_as_they_claim(others):
    """Where the spread is drawn as the assumption has it, whatever is stored."""
    rng, trials, held = np.random.default_rng(20271126 + others), 2_000, 0
    for _ in range(trials):
        spread = S0 * math.sqrt(5.0 / rng.chisquare(5.0))
        own, *stored = rng.normal(0.0, spread, 1 + others)
        found = with_spread(figure(math.exp(own)), spread_of([runs(stored)]))
        held += found.low <= 1.0 <= found.high
    least, _ = scipy_stats.binom.ppf([0.001, 0.999], trials, 0.95)
    assert least <= held


def test_runs_of_one_evening_do_not_narrow_what_is_assumed_of_all():
    assert widening((0.0, 11.0)) == 1.0
    assert widening((50.0, 11.0)) == pytest.approx(math.sqrt(55.0 / 16.0))


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_levels_of_runs_at_several_speeds_show_how_the_work_follows_them(slope):
    """Two versions of the work, one of which takes a third longer."""
    rng, groups = np.random.default_rng(5), []
    for level in (0.0, 0.3):
        away = np.repeat([0.0, 0.5], 10)
        values = level + slope * away + rng.normal(0.0, S0, 20)
        groups.append([Point(x, y, S0**2) for x, y in zip(away, values, strict=True)])
    mean, sd = slope_of_runs(groups, (0.84, 0.28), own=0.2)
    assert mean == pytest.approx(slope, abs=0.05)
    assert 0.2 / 2.0 < sd < 0.28


def test_without_runs_at_several_speeds_the_prior_stands():
    one = [Point(0.2, 0.0, S0**2)]
    for groups in ([], [one], [one, one]):
        assert slope_of_runs(groups, (0.84, 0.28), own=0.2) == (0.84, 0.28)
    assert slope_of_runs([[*one, Point(0.0, 0.0, S0**2)]], (0.0, 0.0), own=0.0) == (0.0, 0.0)
