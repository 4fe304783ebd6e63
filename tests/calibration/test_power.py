"""Planned sizes reach the power, and intervals hold what they claim."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import signal
from scipy import stats as scipy_stats
from simulated.estimates import mean_of

from benchrigor.model import Estimate, Verdict
from benchrigor.stats import compare, estimate_mean
from benchrigor.stats.planning import plan_sizes, track_record


def found_in(rng: np.random.Generator, n: int, change: float, margin: float) -> bool:
    baseline, candidate = rng.normal(1.0, 0.1, n), rng.normal(1.0 + change, 0.1, n)
    test = scipy_stats.ttest_ind(candidate, (1.0 + margin) * baseline, equal_var=False)
    return bool(test.statistic > 0.0 and test.pvalue < 0.05)


@pytest.mark.parametrize(
    ("change", "margin", "power"), [(0.03, 0.0, 0.8), (0.03, 0.01, 0.9), (0.25, 0.05, 0.8)]
)
def test_the_planned_size_reaches_the_power(change: float, margin: float, power: float) -> None:
    found = plan_sizes(mean_of(n=500), change=change, margin=margin, power=power)
    rng = np.random.default_rng(11)
    seen = sum(found_in(rng, found.n, change, margin) for _ in range(500))
    exact = plan_sizes(mean_of(n=found.n), change=change, margin=margin, power=power).power_now
    assert power <= exact < power + 0.1
    low, high = scipy_stats.binom.interval(0.999, 500, exact)
    assert low <= seen <= high


def test_the_size_planned_from_a_pilot_reaches_the_power_of_the_comparison() -> None:
    rng = np.random.default_rng(12)

    def series(n: int, mean: float) -> np.ndarray:
        shocks = 0.05 * math.sqrt(1.0 - 0.7**2) * rng.normal(size=n + 100)
        return np.asarray(mean + signal.lfilter([1.0], [1.0, -0.7], shocks)[100:])

    def seen() -> bool:
        n = plan_sizes(estimate_mean(series(1_000, 1.0)), change=0.03, margin=0.01).n
        found = compare(series(n, 1.0), series(n, 1.03), margin=0.01)
        return found.verdict is Verdict.WORSE

    # The pilot's own error, above or below, costs and gives a little power.
    low, high = scipy_stats.binom.interval(0.999, 150, 0.8)
    assert low <= sum(seen() for _ in range(150)) <= high


def test_the_range_of_sizes_holds_the_true_one() -> None:
    truth = plan_sizes(mean_of(sd=0.1, n=100_000), change=0.03).n
    rng = np.random.default_rng(13)
    held = 0
    for _ in range(400):
        pilot = replace(mean_of(sd=float(rng.normal(1.0, 0.1, 20).std(ddof=1)), n=20))
        found = plan_sizes(pilot, change=0.03)
        held += found.n_low <= truth <= found.n_high
    low, high = scipy_stats.binom.interval(0.999, 400, 0.95)
    assert low <= held <= high


def test_intervals_of_autocorrelated_readings_hold_no_less_often() -> None:
    rng = np.random.default_rng(25)

    def run() -> Estimate:
        shocks = rng.normal(size=700)
        return estimate_mean(20.0 + signal.lfilter([1.0], [1.0, -0.8], shocks)[100:])

    found = track_record([(run(), run()) for _ in range(300)])
    assert found.held >= scipy_stats.binom.ppf(0.0005, 300, 0.95)
    assert found.standing != "less than claimed"


def test_intervals_of_skewed_readings_hold_as_often_as_they_claim() -> None:
    rng = np.random.default_rng(26)
    pairs = [
        (estimate_mean(rng.lognormal(size=500)), estimate_mean(rng.lognormal(size=500)))
        for _ in range(500)
    ]
    lower, upper = np.array([(one.value - one.low, one.high - one.value) for one, _ in pairs]).T
    assert np.mean(upper / lower) > 1.1
    low, high = scipy_stats.binom.interval(0.999, 500, 0.95)
    assert low <= track_record(pairs).held <= high


Pairs = Sequence[tuple[Estimate, Estimate]]


def pairs_of_runs(between: float, count: int = 500) -> Pairs:
    """Pairs of runs with a standard error of 0.2, and levels that far apart."""
    rng = np.random.default_rng(21)
    found = [
        estimate_mean(rng.normal(rng.normal(20.0, between), 1.0, 25)) for _ in range(2 * count)
    ]
    return list(zip(found[::2], found[1::2], strict=True))


def test_honest_intervals_hold_as_often_as_they_claim() -> None:
    found = track_record(pairs_of_runs(0.0))
    low, high = scipy_stats.binom.interval(0.999, 500, 0.95)
    assert low <= found.held <= high
    assert found.standing == "as claimed"
    assert found.widening == pytest.approx(1.0, rel=0.15)


def test_runs_that_differ_by_more_than_one_can_see_show() -> None:
    found = track_record(pairs_of_runs(0.2))
    # Levels vary as much as the errors: differences are sqrt(2) times as large.
    reach = scipy_stats.t.isf(0.025, 48) / math.sqrt(2.0)
    low, high = scipy_stats.binom.interval(0.999, 500, 1.0 - 2.0 * scipy_stats.t.sf(reach, 48))
    assert low <= found.held <= high
    assert found.standing == "less than claimed"
    assert found.widening == pytest.approx(math.sqrt(2.0), rel=0.15)
