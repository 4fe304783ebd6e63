"""Statistics by their names: what they are of plain readings, and what has no interval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

import benchrigor as br
from benchrigor.stats.statistic import statistic_for
from benchrigor.testing import FakeClock, SyntheticWorkload

READINGS = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=60).map(np.array)
PERCENTAGES = st.integers(1, 49)


@given(READINGS, PERCENTAGES)
def test_a_trimmed_mean_is_that_of_scipy(readings, percentage):
    found = statistic_for(f"trimmed {percentage}%").value_of(readings)
    assert found == pytest.approx(scipy_stats.trim_mean(readings, percentage / 100.0))


def measured(statistic):
    clock = FakeClock()
    session = br.Session(br.Options(statistic=statistic, budget_s=2.0), seed=1, clock=clock)
    return session.run(SyntheticWorkload(mean=1e-3, seed=1, clock=clock))


def test_a_minimum_is_shown_and_has_no_interval():
    record = measured("min")
    assert record.estimate() is None
    assert record.headline() is None
    assert record.analysis().observed.least == record.readings().min()
    assert [notice.code for notice in record.analysis().notices] == ["no-interval"]
    assert record.selection().counts.sum() == record.readings().size


@pytest.mark.parametrize("paired", [False, True])
def test_minima_are_compared_with_nothing(paired):
    with pytest.raises(br.InvalidInput, match="has no interval"):
        br.stats.compare([1.0, 1.1, 1.2], [1.0, 1.2, 1.1], statistic="min", paired=paired)


def test_a_trimmed_mean_of_outcomes_is_refused():
    outcomes = [1.0] * 60 + [0.0] * 4
    with pytest.raises(br.NotEstimable, match="outcomes"):
        br.stats.compare(outcomes, outcomes, statistic="trimmed 10%")


def test_one_reading_is_left_of_any_trimming():
    trimmed = statistic_for("trimmed 49.999999999%").value_of
    assert trimmed(np.arange(10.0)) == pytest.approx(4.5)
    assert trimmed(np.array([2.0])) == 2.0


def test_ratios_of_trimmed_means_of_pairs_are_covered():
    size, hits = 40, 0
    for repetition in range(100):
        rng = np.random.default_rng([54, repetition])
        old, new = rng.lognormal(0.0, 0.3, size) * rng.lognormal(0.0, 0.1, (2, size))
        ratio = br.stats.compare(old, new, statistic="trimmed 45%", paired=True).ratio
        hits += ratio.low <= 1.0 <= ratio.high
    assert hits >= 89  # chance at a coverage of 0.95: 0.01


def test_a_session_refuses_a_trimmed_mean_of_outcomes_and_takes_their_mean():
    outcomes = (np.arange(600) % 20 > 0).astype(float)
    for statistic, codes in (("trimmed 10%", ["no-interval"]), ("mean", [])):
        session = br.Session(br.Options(statistic=statistic, max_rounds=1), seed=1)
        given = {"elapsed_ns": 10**9, "unit_readings": {"passed": outcomes}}
        session.tell(br.Round(plan=session.ask(), **given))
        analysis = session.result().analysis()
        assert (analysis.estimate is None) == bool(codes)
        assert [notice.code for notice in analysis.notices if notice.code in codes] == codes
