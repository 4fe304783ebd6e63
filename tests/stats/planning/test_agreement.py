import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.estimates import mean_of
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from benchrigor.model import Analysis, Decision, Estimate, Metric, Options, RunRecord, StopReason
from benchrigor.model.analysis import Kind
from benchrigor.model.run import Provenance
from benchrigor.model.track_record import Standing
from benchrigor.stats import estimate_mean
from benchrigor.stats.planning.agreement import pair_runs, track_record, track_records

TIME = Metric(name="time", unit="s")


def make(value: float, error: float = 1.0) -> Estimate:
    return mean_of(51, value=value, error=error)


def test_a_pair_holds_just_when_welchs_test_does_not_reject() -> None:
    rng = np.random.default_rng(22)
    verdicts = set()
    for _ in range(200):
        one, two = rng.normal(0.0, 1.0, 8), rng.normal(1.5, 3.0, 15)
        found = track_record([(estimate_mean(one), estimate_mean(two))])
        test = CompareMeans(DescrStatsW(two), DescrStatsW(one))
        low, high = test.tconfint_diff(usevar="unequal")
        assert found.held == int(low <= 0.0 <= high)
        verdicts.add(found.held)
    assert verdicts == {0, 1}


@pytest.mark.parametrize(("held", "missed"), [(218, 22), (1, 0), (0, 3), (10, 10)])
def test_the_interval_of_the_share_is_wilsons(held: int, missed: int) -> None:
    pairs = [(make(0.0), make(0.0))] * held + [(make(0.0), make(9.0))] * missed
    found = track_record(pairs)
    low, high = proportion_confint(held, held + missed, method="wilson")
    assert (found.held, found.pairs) == (held, held + missed)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(
    ("held", "pairs"), [(1, 1), (1, 2), (0, 1), (0, 2), (17, 20), (16, 20), (71, 71), (80, 80)]
)
def test_the_claim_stands_unless_the_binomial_test_rejects_it(held: int, pairs: int) -> None:
    found = track_record(
        [(make(0.0), make(0.0))] * held + [(make(0.0), make(9.0))] * (pairs - held)
    )
    less = scipy_stats.binomtest(held, pairs, 0.95, alternative="less").pvalue
    more = scipy_stats.binomtest(held, pairs, 0.95, alternative="greater").pvalue
    expected = Standing.LESS if less < 0.025 else Standing.AS_CLAIMED
    assert found.standing is (Standing.MORE if more < 0.025 else expected)


def test_an_estimate_without_a_standard_error_counts_by_its_interval() -> None:
    edge = 1.96 * math.sqrt(2.0)
    bare = [replace(make(value), standard_error=None) for value in (0.0, edge, 1.1 * edge)]
    assert track_record([(bare[0], bare[1]), (bare[0], bare[2])]).held == 1


def test_of_an_asymmetric_interval_the_end_towards_the_other_run_counts() -> None:
    earlier = replace(make(11.0, error=0.2), low=10.88, high=11.69)

    def held(later: float, *, swapped: bool = False) -> bool:
        pair = earlier, make(later, error=1e-9)
        return track_record([pair[::-1] if swapped else pair]).held == 1

    for later in (11.68, 11.38, 10.89):  # printed as within
        assert held(later)
        assert held(later, swapped=True)
    for later in (11.70, 10.87):
        assert not held(later)
        assert not held(later, swapped=True)


def test_intervals_without_width_hold_only_what_is_the_same() -> None:
    exact = [make(value, error=0.0) for value in (1.0, 2.0)]
    found = track_record([(exact[0], exact[0]), (exact[0], exact[1])] * 20)
    assert (found.held, found.pairs) == (20, 40)
    assert found.widening is None


def test_intervals_widened_by_the_widening_would_have_held() -> None:
    values = np.random.default_rng(24).normal(0.0, 3.0, (100, 2))
    found = track_record([(make(one), make(two)) for one, two in values])
    assert found.widening is not None
    wide = found.widening * (1.0 + 1e-9)
    again = track_record([(make(one, wide), make(two, wide)) for one, two in values])
    assert found.held < again.held == 95


def test_names_are_told_apart_the_worst_first() -> None:
    good, bad = (make(0.0), make(0.1)), (make(0.0), make(9.0))
    found = track_record([good, bad, good, good], names=["a", "b", "b", "a"])
    assert [(each.name, each.held, each.pairs) for each in found.by_name] == [
        ("b", 1, 2),
        ("a", 2, 2),
    ]


def run(minute: int, value: float = 1.0, **given: Any) -> RunRecord:
    """A stored run that reached its target."""
    where = Provenance(
        host=given.pop("host", "here"),
        system="",
        cpu="",
        cores=1,
        python=given.pop("python", "CPython 3.12"),
        packages={},
        commit=given.pop("commit", None),
        capabilities=(),
        started_at=f"2026-01-01T00:{minute:02}:00+00:00",
    )
    metric = given.pop("metric", TIME)
    estimate = given.pop("estimate", make(value))
    reason = given.pop("reason", StopReason.SATISFIED)
    record = RunRecord(
        name="sort",
        options=Options(),
        metrics=(metric,),
        seed=1,
        rounds=(),
        analyses=(Analysis(metric=metric, kind=Kind.UNIT_READINGS, n=51, estimate=estimate),),
        decision=Decision(stop=True, reason=reason),
        provenance=where,
        run_id=f"run-{minute}",
        subject={"kind": "function", "name": "sort"},
    )
    return replace(record, **given)


def test_runs_are_paired_in_order_of_time_each_once() -> None:
    runs = [run(minute, float(minute)) for minute in range(5)]
    found = pair_runs([runs[3], runs[0], runs[4], runs[2], runs[1]])
    assert [(each.earlier_id, each.later_id) for each in found] == [
        ("run-0", "run-1"),
        ("run-2", "run-3"),
    ]
    assert [(each.earlier.value, each.later.value) for each in found] == [(0.0, 1.0), (2.0, 3.0)]
    assert {(each.name, each.host) for each in found} == {("sort", "here")}


@pytest.mark.parametrize(
    "other",
    [
        {"name": "parse"},
        {"subject": {"kind": "function", "name": "other.sort"}},
        {"host": "elsewhere"},
        {"python": "PyPy 3.11"},
        {"commit": "3f2a"},
        {"metric": Metric(name="rate", unit="1/s")},
        {"metric": Metric(name="time", unit="s", averaging="harmonic")},
        {"options": Options(rounds="restarted")},
        {"options": Options(statistic="median")},
        {"options": Options(method="subsessions")},
        {"options": Options(work=3.0)},
        {"estimate": replace(make(1.0), confidence=0.9)},
        {"estimate": None},
        {"reason": StopReason.TIME_BUDGET},
        {"decision": None},
        {"provenance": None},
        {"analyses": ()},
    ],
    ids=str,
)
def test_only_complete_runs_of_the_same_thing_are_paired(
    other: dict[str, Any],
) -> None:
    assert pair_runs([run(0), run(1, **other)]) == ()
    assert len(pair_runs([run(0), run(1, **other), run(2)])) == 1


def test_a_run_whose_target_is_out_of_reach_counts() -> None:
    assert len(pair_runs([run(0), run(1, reason=StopReason.OUT_OF_REACH)])) == 1


def test_each_machine_and_each_confidence_has_a_record_of_its_own() -> None:
    sure = {"estimate": replace(make(1.0), confidence=0.99)}
    runs = [run(minute) for minute in range(6)]
    runs += [run(minute, host="elsewhere") for minute in range(4)]
    runs += [run(minute, **sure) for minute in range(2)]
    found = track_records(pair_runs(runs))
    assert [(each.host, each.confidence, each.pairs) for each in found] == [
        ("here", 0.95, 3),
        ("elsewhere", 0.95, 2),
        ("here", 0.99, 1),
    ]
    assert [each.by_name[0].name for each in found] == ["sort"] * 3
    assert track_records([]) == ()
