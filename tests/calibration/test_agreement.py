"""Intervals of repeated runs agree as often as they claim."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import signal
from scipy import stats as scipy_stats

from benchrigor.model import Estimate
from benchrigor.stats import estimate_mean
from benchrigor.stats.planning.agreement import track_record


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
