"""A run that is compared with an earlier one stops when their ratio is known, whatever it is."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from simulated.paced import paced_round, told

import benchrigor as br
from benchrigor.session.pairs.against import Against
from benchrigor.testing import FakeClock, SyntheticWorkload


def workload(clock: FakeClock, mean: float, seed: int) -> SyntheticWorkload:
    return SyntheticWorkload(mean=mean, cv=0.1, seed=seed, clock=clock)


@cache
def baseline() -> br.RunRecord:
    clock = FakeClock()
    options = br.Options(target=0.002, budget_s=100.0)
    return br.Session(options, seed=1, clock=clock).run(workload(clock, 0.001, 1))


@cache
def run_against(target: float, *, mean: float = 0.001) -> tuple[br.RunRecord, Against]:
    clock = FakeClock()
    against = Against(baseline(), target)
    session = against.begin(br.Options(target=None, budget_s=100.0), seed=2, clock=clock)
    return session.run(workload(clock, mean, 2)), against


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.02, 0.004])
def test_it_stops_on_the_half_width_of_the_ratio(target: float) -> None:
    record, against = run_against(target)
    assert record.decision is not None
    assert record.decision.satisfied
    assert against.ratio is not None
    assert against.ratio.relative_half_width <= target
    assert against.ratio.value == pytest.approx(1.0, abs=1.5 * target)
    assert against.compare().ratio == against.ratio


@pytest.mark.slow
def test_a_narrower_ratio_takes_more_readings() -> None:
    wide, narrow = (run_against(target)[0].readings().size for target in (0.02, 0.004))
    assert narrow > 2 * wide


@pytest.mark.slow
def test_it_does_not_stop_because_a_verdict_appeared() -> None:
    like, slower = (run_against(0.004, mean=mean)[0] for mean in (0.001, 0.003))
    assert slower.readings().size >= like.readings().size / 2


@pytest.mark.slow
def test_a_ratio_that_is_never_known_so_well_ends_when_the_baseline_limits_it() -> None:
    record, against = run_against(1e-6)
    assert record.decision is not None
    assert record.decision.reason is br.StopReason.OUT_OF_REACH
    assert against.ratio is not None


def paced_against(target: float, statistic: str = "mean") -> tuple[br.RunRecord, Against]:
    """Run on a machine that changes its pace, after a run that knew its own."""
    options = br.Options(target=None, statistic=statistic, max_rounds=5)
    against = Against(told(1, options=options), target)
    options = replace(options, target_given=True, budget_s=math.inf, max_rounds=100)
    session, rng = against.begin(options, seed=2), np.random.default_rng(2)
    while (plan := session.ask()) is not None:
        session.tell(paced_round(plan, rng, slow_share=0.5))
    return session.result(), against


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["mean", "p10"])
def test_it_ends_where_further_readings_cannot_tell_more(statistic: str) -> None:
    record, against = paced_against(0.02, statistic=statistic)
    assert record.decision.reason is br.StopReason.OUT_OF_REACH
    assert len(record.rounds) < 50
    assert against.told is not None
    assert against.told in record.session_notices
    best = against.told.evidence["half_width"]
    assert 0.05 < best < 0.08  # two components of 2 %
    assert against.ratio.relative_half_width == pytest.approx(best, rel=0.15)


@pytest.mark.slow
def test_a_target_within_reach_is_met_without_a_word() -> None:
    record, against = paced_against(0.15)
    assert record.decision.satisfied
    assert against.told is None


@pytest.mark.slow
def test_it_cannot_compare_before_there_is_a_session() -> None:
    with pytest.raises(TypeError, match="before begin"):
        Against(baseline(), 0.01).compare()
