"""How often pairs of runs agree, and how many readings a change takes."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click.testing
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.estimates import mean_of
from statsmodels.stats.power import TTestIndPower
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

import benchrigor as br
from benchrigor.model import Decision, Estimate, Metric, Options, RunRecord, StopReason
from benchrigor.stats import estimate_mean
from benchrigor.stats.planning import track_record
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, SyntheticWorkload

CLOCK = FakeClock()
RUN = br.Session(Options(budget_s=math.inf, max_rounds=1), name="sort", clock=CLOCK).run(
    SyntheticWorkload(mean=1e-3, cv=0.1, seed=1, clock=CLOCK)
)
Judge = Callable[..., list[dict[str, Any]]]


def make(value: float, error: float = 1.0) -> Estimate:
    return mean_of(51, value=value, error=error)


AGREE, DIFFER = (make(0.0), make(0.0)), (make(0.0), make(9.0))


def run(minute: int, estimate: Estimate | None = None, **given: Any) -> RunRecord:
    """A stored run that reached its target."""
    place = {name: given.pop(name) for name in ("host", "python", "commit") if name in given}
    started_at = f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00+00:00"
    metric = given.pop("metric", RUN.metrics[0])
    estimate = estimate or make(1.0)
    assert RUN.provenance is not None
    ended = {
        "decision": Decision(stop=True, reason=given.pop("reason", StopReason.SATISFIED)),
        "provenance": replace(RUN.provenance, started_at=started_at, **place),
        "analyses": (replace(RUN.analyses[0], metric=metric, estimate=estimate),),
    }
    return replace(RUN, metrics=(metric,), **{**ended, **given})


@pytest.fixture
def judge(store: Path, cli: Callable[..., click.testing.Result]) -> Judge:
    """Return the track records of these runs."""

    def judged(*records: RunRecord) -> list[dict[str, Any]]:
        with Journal(store) as journal:
            for record in records:
                run_id = journal.begin(record)
                journal.finish(run_id, record)
        found: list[dict[str, Any]] = json.loads(cli("track-record", "--json").stdout)[
            "track_records"
        ]
        return found

    return judged


def test_a_pair_holds_just_when_welchs_test_does_not_reject() -> None:
    rng = np.random.default_rng(22)
    verdicts = set()
    for _ in range(50):
        one, two = rng.normal(0.0, 1.0, 8), rng.normal(1.5, 3.0, 15)
        found = track_record([(estimate_mean(one), estimate_mean(two))])
        low, high = CompareMeans(DescrStatsW(two), DescrStatsW(one)).tconfint_diff(usevar="unequal")
        assert found.held == int(low <= 0.0 <= high)
        verdicts.add(found.held)
    assert verdicts == {0, 1}


@pytest.mark.parametrize(
    ("held", "pairs"), [(1, 1), (1, 2), (0, 1), (0, 2), (17, 20), (16, 20), (71, 71), (80, 80)]
)
def test_the_share_has_wilsons_interval_and_the_claim_stands_unless_the_binomial_test_rejects_it(
    held: int, pairs: int
) -> None:
    found = track_record([AGREE] * held + [DIFFER] * (pairs - held))
    low, high = proportion_confint(held, pairs, method="wilson")
    assert (found.held, found.pairs) == (held, pairs)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    less, more = (
        scipy_stats.binomtest(held, pairs, 0.95, alternative=way).pvalue
        for way in ("less", "greater")
    )
    expected = "LESS" if less < 0.025 else "AS_CLAIMED"
    assert found.standing.name == ("MORE" if more < 0.025 else expected)


def test_of_an_asymmetric_interval_the_end_towards_the_other_run_counts() -> None:
    earlier = replace(make(11.0, error=0.2), low=10.88, high=11.69)
    for later, held in ((11.68, 1), (11.38, 1), (10.89, 1), (11.70, 0), (10.87, 0)):
        pair = earlier, make(later, error=1e-9)
        assert track_record([pair]).held == track_record([pair[::-1]]).held == held


def test_intervals_without_width_hold_only_what_is_the_same() -> None:
    exact = [make(value, error=0.0) for value in (1.0, 2.0)]
    found = track_record([(exact[0], exact[0]), (exact[0], exact[1])] * 20)
    assert (found.held, found.pairs, found.widening) == (20, 40, None)


def test_intervals_widened_by_the_widening_would_have_held() -> None:
    values = np.random.default_rng(24).normal(0.0, 3.0, (100, 2))
    found = track_record([(make(one), make(two)) for one, two in values])
    assert found.widening is not None
    wide = found.widening * (1.0 + 1e-9)
    again = track_record([(make(one, wide), make(two, wide)) for one, two in values])
    assert found.held < again.held == 95


def test_names_are_told_apart_the_worst_first() -> None:
    found = track_record([AGREE, DIFFER, AGREE, AGREE], names=["a", "b", "b", "a"])
    told = [(each.name, each.held, each.pairs) for each in found.by_name]
    assert told == [("b", 1, 2), ("a", 2, 2)]


def test_runs_are_paired_in_order_of_time_each_once(judge: Judge) -> None:
    runs = [run(minute, make(9.0 * (minute > 1))) for minute in range(5)]
    (found,) = judge(*(runs[at] for at in (3, 0, 4, 2, 1)))
    assert (found["held"], found["pairs"]) == (2, 2)


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
        {"reason": StopReason.TIME_BUDGET},
        {"decision": None},
        {"provenance": None},
        {"analyses": ()},
        {"analyses": (replace(RUN.analyses[0], estimate=None),)},
    ],
    ids=str,
)
def test_only_complete_runs_of_the_same_thing_are_paired(judge: Judge, other: Any) -> None:
    assert judge(run(0), run(1, **other)) == []
    (found,) = judge(run(2))
    assert found["pairs"] == 1


def test_a_run_whose_target_is_out_of_reach_counts(judge: Judge) -> None:
    assert judge(run(0), run(1, reason=StopReason.OUT_OF_REACH))[0]["pairs"] == 1


def test_each_machine_and_each_confidence_has_a_record_of_its_own(judge: Judge) -> None:
    sure = replace(make(1.0), confidence=0.99)
    runs = [run(minute, host="here") for minute in range(6)]
    runs += [run(minute, host="elsewhere") for minute in range(4)]
    runs += [run(minute, sure, host="here") for minute in range(2)]
    records = [(each["host"], each["confidence"], each["pairs"]) for each in judge(*runs)]
    assert records == [("here", 0.95, 3), ("elsewhere", 0.95, 2), ("here", 0.99, 1)]


REFERENCE = TTestIndPower()


@pytest.mark.parametrize("power", [0.5, 0.8, 0.99])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("effect", [0.05, 0.3, 1.0, 3.0])
def test_sizes_power_and_smallest_change_are_those_of_the_t_test(
    effect: float, confidence: float, power: float
) -> None:
    # One tail: a verdict in the wrong direction is none.
    alpha = (1.0 - confidence) / 2.0
    found = br.plan(mean_of(sd=0.1, n=30), change=0.1 * effect, power=power, confidence=confidence)
    terms = {"alpha": alpha, "alternative": "larger"}
    before, at = (
        float(REFERENCE.power(effect, size, **terms)) for size in (max(found.n - 1, 2), found.n)
    )
    assert at >= power * (1.0 - 1e-9)
    assert before < power or found.n == 2
    assert found.power_now == pytest.approx(float(REFERENCE.power(effect, 30, **terms)))
    assert float(REFERENCE.power(found.change_now / 0.1, 30, **terms)) == pytest.approx(power)


def test_prices_are_those_of_the_confidence_that_is_asked_for() -> None:
    sure = br.plan(mean_of(n=200), confidence=0.99)
    assert sure.prices == br.plan(mean_of(n=200, confidence=0.99)).prices
    assert sure.pilot.confidence == 0.99


@given(st.floats(0.002, 1.0), st.floats(0.001, 0.9), st.floats(0.05, 0.9), st.floats(0.001, 0.09))
def test_smaller_changes_more_power_and_more_confidence_take_more(
    change: float, less: float, power: float, more: float
) -> None:
    pilot = mean_of(n=40)
    base = br.plan(pilot, change=change, power=power)
    assert br.plan(pilot, change=change * (1.0 - less), power=power).n >= base.n
    assert br.plan(pilot, change=change, power=power + more).n >= base.n
    surer = br.plan(pilot, change=change, power=power, confidence=0.95 + more / 2.0)
    assert surer.n >= base.n
    assert base.n_low <= base.n <= base.n_high
