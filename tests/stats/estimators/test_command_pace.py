"""Commands at full pace: what a busy machine adds is taken off, what they do otherwise is kept."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy
from scipy import stats as scipy_stats
from simulated.estimates import within

from benchrigor.model import Estimate, Pace
from benchrigor.stats.figures_at_full_speed import at_full_speed
from benchrigor.stats.pace import Invocations, command_pace
from benchrigor.stats.series.full_speed import Point, Told, slope_of_runs, spread_of, with_spread
from benchrigor.stats.statistic import statistic_for

FULL = {"command": 0.0102, "command cpu": 0.01, "command rest": 0.0002}


def measured(
    rng: np.random.Generator,
    *,
    cpu_s: float,
    idle_s: float = 0.0,
    slower: float = 1.3,
    sensitivity: float = 0.95,
    unseen_s: float = 0.003,
    alike: float = 1.0,
    switches: float | None = None,
    n: int = 200,
    starts: int = 30,
) -> Invocations:
    """Draw a run on a machine so much slower than at full pace, where processes wait unseen.

    Commands wait ``alike`` times as long as starts do.
    """
    pace = slower * np.exp(np.repeat(rng.normal(0.0, 0.05, 10), -(-n // 10))[:n])
    after = np.linspace(1, n, starts).astype(np.int64)

    def noise(size: int) -> np.ndarray:
        return np.exp(rng.normal(-0.005, 0.1, size))

    def unseen(size: int) -> np.ndarray:
        return FULL["command rest"] + rng.exponential(unseen_s, size)

    cpu, waited = cpu_s * pace**sensitivity * noise(n), rng.exponential(0.2 * cpu_s, n)
    of_starts = FULL["command cpu"] * pace[after - 1] * noise(starts)
    rest = unseen(starts)
    return Invocations(
        wall=cpu + waited + alike * unseen(n) + idle_s,
        cpu=cpu,
        waited=waited,
        switches=np.full(n, switches or (1.0 if idle_s == 0.0 else 2.0)),
        starts={"command": of_starts + rest, "command cpu": of_starts, "command rest": rest},
        after=after,
    )


def pace_of(found: Invocations, **options: Any) -> Pace:
    pace = command_pace(found, FULL, float(found.wall.mean()), version=1, **options)
    assert pace is not None
    return pace


def at_full(found: Invocations, **options: Any) -> Estimate:
    return at_full_speed(within(float(found.wall.mean())), pace_of(found, **options))


@pytest.mark.parametrize("cpu_s", [0.002, 0.02, 0.5])
def test_intervals_hold_the_time_at_full_pace_on_machines_of_any_pace(cpu_s: float) -> None:
    runs, hits = 300, 0
    for seed in range(runs):
        rng = np.random.default_rng([18, seed])
        own = rng.normal(0.95, 0.15)
        of_run = float(np.exp(rng.normal(0.0, 0.02)))
        slower, unseen_s = rng.uniform(1.0, 1.6), rng.choice([0.0003, 0.003, 0.01])
        options = {"slower": slower, "sensitivity": own, "unseen_s": unseen_s}
        found = at_full(measured(rng, cpu_s=cpu_s * of_run, **options))
        hits += found.low <= cpu_s + FULL["command rest"] <= found.high
    assert hits >= scipy.stats.binom.ppf(0.001, runs, 0.95)


def test_a_sleep_is_not_shorter_for_the_neighbours_of_few_starts() -> None:
    """The kernel may count a part of a sleep as delay; of starts four are few to tell the least."""
    rest = np.full(45, 0.0506)
    rest[[3, 20]] = 0.0401, 0.046
    cpu, starts = np.full(45, 0.0018), np.array([0.0005, 0.0006, 0.0043, 0.0081])
    found = Invocations(
        wall=rest + cpu,
        cpu=cpu,
        waited=np.zeros(45),
        switches=np.full(45, 2.0),
        starts={"command": starts + 0.02, "command cpu": np.full(4, 0.013), "command rest": starts},
        after=np.array([1, 15, 30, 45]),
    )
    assert at_full(found).value > 0.05


def test_commands_whose_threads_had_work_at_once_have_no_figure() -> None:
    """Of 180 ms on two processors beside others it was 75 ms, and less than 90 is impossible."""
    alone = measured(np.random.default_rng(4), cpu_s=0.18, slower=1.2, unseen_s=0.0003)
    assert pace_of(alone).factor < 1.0
    n = alone.wall.size
    parallel = replace(alone, wall=np.full(n, 0.135), waited=np.full(n, 0.045))
    waiting = replace(alone, together=0.1 * alone.wall)
    for found in (parallel, waiting):
        assert command_pace(found, FULL, float(found.wall.mean()), version=1) is None
    assert pace_of(replace(alone, together=0.01 * alone.wall)) == pace_of(alone)


def test_a_quantile_is_that_of_commands_that_sleep_for_various_times() -> None:
    rng = np.random.default_rng(9)
    found = measured(rng, cpu_s=0.002, idle_s=0.001, slower=1.0, unseen_s=0.0001)
    found = replace(found, wall=found.wall + rng.uniform(0.0, 0.1, found.wall.size))
    pace = command_pace(found, FULL, 1.0, version=1, statistic=statistic_for("p90"))
    assert pace is not None
    assert pace.factor == pytest.approx(0.093, rel=0.05)


# --- The width of headlines, with a known spread between runs, and how levels follow full speed.


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
    # Runs of one evening do not narrow what is assumed of all.
    assert with_spread(figure(), (0.0, 11.0)).standard_error == figure().standard_error


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
