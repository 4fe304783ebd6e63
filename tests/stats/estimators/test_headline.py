"""The quiet pace, and the width of headlines, with a known spread between runs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.estimates import within

from benchrigor.model import Pace, QuietPace
from benchrigor.stats.estimators.headline import (
    ABOVE_FULL,
    ABOVE_FULL_SD,
    ASSUMED,
    SD_OF_QUIET_RUN,
    Told,
    at_quiet,
    between_runs,
    common_quiet,
    from_full_pace,
    is_quiet,
    one_of_each_cluster,
    quiet_of_references,
    quiet_of_runs,
    spread_of,
    widening,
    with_spread,
)
from benchrigor.stats.estimators.pace import SENSITIVITY
from benchrigor.stats.series.interval import student_t

S0 = 0.015
PACE = Pace(
    full_s={"interpreter": 4e-6},
    version=1,
    mean=1.0,
    slowest=1.0,
    fastest=1.0,
    blocks=9,
    ratio=1.0,
    sensitivity=1.0,
    sensitivity_sd=0.1,
    factor=1.0,
    error=0.01,
    between=0.015,
)


def runs(log_values):
    return [Told(log_value=value, variance=S0**2) for value in log_values]


def figure(value=1.0, error=S0):
    return replace(within(value), standard_error=value * error, degrees_of_freedom=1e6)


def test_five_quiet_runs_tell_the_quiet_pace():
    medians = [4.0e-6, 4.1e-6, 4.2e-6, 4.0e-6, 4.6e-6]
    assert quiet_of_runs({}) is None
    assert quiet_of_runs({"interpreter": medians[:4]}) is None
    quiet = quiet_of_runs({"interpreter": medians, "command cpu": medians[:2]})
    assert quiet.seconds == {"interpreter": 4.1e-6}
    assert quiet.runs == 5
    assert quiet.sd == pytest.approx(np.log(medians).std(ddof=1) / math.sqrt(5.0))


@pytest.mark.parametrize(("busy", "is_speed"), [(1.0, False), (0.03, False), (1.0, True)])
def test_only_the_share_of_work_is_moved_from_full_to_quiet_pace(busy, is_speed):
    """A sleep was 4 % longer in a comparison than in its own report."""
    quiet = QuietPace(seconds={"interpreter": 4.4e-6}, sd=0.01, runs=9)
    moved = from_full_pace(figure(), replace(PACE, busy=busy), quiet, is_speed=is_speed)
    expected = 1.1 ** (SENSITIVITY * busy)
    assert moved.value == pytest.approx(1.0 / expected if is_speed else expected)


def test_until_then_a_quiet_run_shows_it_by_its_median_and_a_busy_one_by_full_pace():
    times = {"interpreter": np.array([4e-6, 5e-6, 9e-6])}
    full_s = {"interpreter": 4.0e-6}
    quiet = quiet_of_references(times, full_s, delay=0.001)
    assert quiet == QuietPace(seconds={"interpreter": 5.0e-6}, sd=SD_OF_QUIET_RUN)
    busy = quiet_of_references(times, full_s, delay=0.3)
    assert busy.seconds["interpreter"] == pytest.approx(4.0e-6 * math.exp(ABOVE_FULL))
    assert busy.sd == ABOVE_FULL_SD
    near = quiet_of_references(times, {"interpreter": 4.9e-6}, delay=0.3)
    assert near.seconds == {"interpreter": 5.0e-6}


def test_commands_that_wait_far_longer_than_at_full_pace_are_of_a_busy_machine():
    """The kernel counts no delay while it starts a process."""
    full_s = {"command": 0.012, "command cpu": 0.010, "command rest": 0.0003}
    for rest_s, expected in ((0.0006, True), (0.02, False)):
        medians = {"command": 0.013 + rest_s, "command cpu": 0.0125, "command rest": rest_s}
        assert is_quiet(medians, full_s, delay=0.005) is expected
        times = {kind: np.full(9, each) for kind, each in medians.items()}
        shown = quiet_of_references(times, full_s, delay=0.005)
        assert (shown.seconds == medians) is expected
    assert not is_quiet({"interpreter": 4e-6}, {"interpreter": 4e-6}, delay=0.02)


def test_runs_have_the_quiet_pace_that_most_quiet_runs_show_else_the_fastest():
    slow, fast = (QuietPace(seconds={"interpreter": each}, sd=0.01) for each in (5e-6, 4e-6))
    assert common_quiet([slow, fast]) == replace(fast, sd=0.0)
    shown = replace(slow, runs=7)
    assert common_quiet([fast, shown]) == replace(shown, sd=0.0)


def test_a_headline_moves_to_another_quiet_pace_by_its_sensitivity():
    quiet, other = (QuietPace(seconds={"interpreter": each}, sd=0.0) for each in (4e-6, 5e-6))
    pace = replace(PACE, sensitivity=0.5, quiet=quiet)
    found = at_quiet(figure(), pace, other)
    assert found.value == pytest.approx(1.25**0.5)
    assert found.relative_half_width == pytest.approx(figure().relative_half_width)
    assert at_quiet(found, replace(pace, quiet=other), quiet).value == pytest.approx(1.0)
    assert at_quiet(figure(), PACE, other) == figure()
    both = replace(other, seconds={**other.seconds, "command": 0.02, "command cpu": 0.01})
    assert at_quiet(figure(), pace, both) == found  # stored with the pace of commands, too


def test_processes_show_a_part_of_the_spread_themselves():
    quiet = QuietPace(seconds={}, sd=0.0)
    assert between_runs(quiet, processes=True) < between_runs(quiet, processes=False)
    unsure = replace(quiet, sd=0.02)
    assert between_runs(unsure, processes=True) > between_runs(quiet, processes=True)


def test_the_variance_is_that_assumed_pooled_with_that_of_groups():
    first, second = np.array([0.0, 0.01, -0.02]), np.array([0.3, 0.31])
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in (first, second))
    spread = spread_of([runs(first), runs(second), runs([7.0])])
    assert spread == pytest.approx((squares / S0**2, 3.0))
    pooled = (ASSUMED * S0**2 + squares) / (ASSUMED + 3.0)
    narrowed = with_spread(figure(), spread)
    assert narrowed.standard_error == pytest.approx(math.sqrt(pooled))
    assert narrowed.degrees_of_freedom == ASSUMED + 3.0
    reach = math.log(narrowed.high / narrowed.value)
    assert reach == pytest.approx(student_t(8.0, 0.95) * math.sqrt(pooled))


def test_runs_of_the_same_ten_minutes_count_as_one():
    assert one_of_each_cluster([]) == []
    assert one_of_each_cluster([60.0 * number for number in range(9)]) == [8]
    hour = one_of_each_cluster([60.0 * number for number in range(60)])
    assert hour == [59, 49, 39, 29, 19, 9]


def test_runs_of_larger_error_tell_less_of_the_mean():
    steady = runs([0.0, 0.0])
    wild = Told(log_value=1.0, variance=100.0)
    squares, freedom = spread_of([[*steady, wild]])
    assert freedom == 2.0
    assert squares < 0.02


def test_what_a_figure_had_of_the_spread_is_replaced():
    spread = 30.0, 10.0
    once = with_spread(figure(), spread)
    again = with_spread(with_spread(figure()), spread, widening())
    assert again.standard_error == pytest.approx(once.standard_error)
    assert with_spread(once, spread, widening(spread)).high == pytest.approx(once.high)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_interval_has_the_scale_of_the_value(scale):
    found, unit = with_spread(figure(scale)), with_spread(figure())
    assert found.low / scale == pytest.approx(unit.low)
    assert found.high / scale == pytest.approx(unit.high)


def test_a_figure_without_error_keeps_its_interval():
    constant = replace(within(1.0), low=1.0, high=1.0, standard_error=0.0, degrees_of_freedom=9.0)
    assert (with_spread(constant).low, with_spread(constant).high) == (1.0, 1.0)


@pytest.mark.parametrize("others", [0, 3, 9, 29])
def test_intervals_hold_the_level_as_often_as_they_claim(others):
    """Where the spread is drawn as the assumption has it, whatever is stored."""
    rng, trials, held = np.random.default_rng(20271126 + others), 2_000, 0
    for _ in range(trials):
        spread = S0 * math.sqrt(ASSUMED / rng.chisquare(ASSUMED))
        own, *stored = rng.normal(0.0, spread, 1 + others)
        found = with_spread(figure(math.exp(own)), spread_of([runs(stored)]))
        held += found.low <= 1.0 <= found.high
    least, most = scipy_stats.binom.ppf([0.001, 0.999], trials, 0.95)
    assert least <= held <= most


def test_the_interval_narrows_with_use_where_runs_agree_and_widens_where_they_do_not():
    rng = np.random.default_rng(1)

    def half_width(spread, count):
        told = spread_of([runs(rng.normal(0.0, spread, count))])
        return with_spread(figure(), told).relative_half_width

    alone = with_spread(figure()).relative_half_width
    assert half_width(0.005, 10) < 0.65 * alone
    assert half_width(0.1, 10) > 1.5 * alone
