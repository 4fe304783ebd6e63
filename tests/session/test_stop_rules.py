"""When sessions stop, and what they can still reach: by phases, looks, budgets and memory."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.session.telling import (
    Given,
    codes,
    engine_of,
    following,
    number,
    reason,
    steady,
    tell,
    told,
    units,
)

import benchrigor as br
from benchrigor.model import (
    Code,
    Decision,
    Metric,
    Options,
    Progress,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.report import explain, render
from benchrigor.session import default_rules, stop_rules
from benchrigor.session.engine import Engine
from benchrigor.session.subject import Subject
from benchrigor.testing import ExponentialWarmUp, SyntheticWorkload

SATISFIED = Decision(stop=True, reason=StopReason.SATISFIED)


def test_a_session_is_satisfied_once_its_latest_readings_are_of_the_longest_phase() -> None:
    inside = []

    def note(progress: Progress) -> None:
        if progress.fresh:
            (phase,) = progress.analyses[0].phases
            inside.append(phase.phases[-1].label == "stable")

    options = Options(target=0.05)
    engine = engine_of(options, rules=[note, *default_rules(options)])
    levels = np.repeat([2.0, 1.0, 1.5, 1.0], [200, 1_600, 700, 60_000])
    told(engine, units(following(levels * steady(8, cv=0.02)(levels.size)), reading_s=1e-9))
    assert engine.decision == SATISFIED
    assert inside[-1]


def test_ten_rounds_all_alike_are_not_enough_and_thirty_are() -> None:
    record = told(engine_of(Options(target=0.05)), lambda _: {"readings": {"time": 2.0}})
    assert 30 <= len(record.rounds) <= 60


# Two looks in a row


def looks_of(engine: Engine[Subject], give: Callable[[RoundPlan], Given]) -> list[Progress]:
    """Tell rounds until the engine ends, and return the progress at its looks."""
    looks = []

    def look() -> None:
        if engine.progress is not None and engine.progress.fresh:
            looks.append(engine.progress)

    told(engine, give, after=look)
    return looks


def narrow(progress: Progress, target: float) -> bool:
    (known,) = (each.estimate for each in progress.analyses)
    return known is not None and known.relative_half_width <= target


def test_readings_that_run_out_at_the_first_look_satisfy_nobody() -> None:
    engine = engine_of(Options(target=0.1, budget_readings=500))
    (look,) = looks_of(engine, units(steady(cv=0.02), size=500))
    assert narrow(look, 0.1)
    assert engine.decision == Decision(stop=True, reason=StopReason.READINGS_BUDGET)


# What a budget allows


def progress_of(n: int, seconds: float, *, cv: float = 0.01, **options: Any) -> Progress:
    """Return the progress after one round of readings."""
    engine = engine_of(Options(**options))
    values = np.random.default_rng(2).lognormal(0.0, cv, n)
    tell(engine, {"elapsed_ns": round(1e9 * seconds), "unit_readings": {"load": values}})
    assert engine.progress is not None
    return engine.progress


@pytest.mark.parametrize(
    ("seconds", "share"),
    [(1.0, math.sqrt(0.1)), (2.0, math.sqrt(0.2)), (0.5, None)],  # the last is too soon to say
)
def test_half_widths_shrink_with_the_root_of_the_time(seconds: float, share: float | None) -> None:
    progress = progress_of(1000, seconds, cv=1.0)
    known = progress.analyses[0].estimate
    assert known is not None
    wanted = None if share is None else pytest.approx(share * known.relative_half_width, rel=0.05)
    assert progress.reachable == wanted


def test_a_budget_may_hold_too_few_readings() -> None:
    assert progress_of(1, 3.0).reachable == math.inf
    assert progress_of(1, 1.0).reachable is None  # it may have been a cold one
    few = progress_of(10, 3.0).reachable
    assert few is not None
    assert few < 0.01  # less than the target, but not a small part of it


@pytest.mark.parametrize("options", [{"target": None}, {"budget_s": math.inf}, {"target": 0.05}])
def test_without_a_narrow_target_or_an_end_all_is_within_reach(options: dict[str, Any]) -> None:
    assert progress_of(1000, 3.0, cv=0.6, **options).reachable is None


# The memory


@pytest.mark.parametrize("elapsed_ns", [0, 1_000])
def test_a_metric_that_never_comes_ends_it_with_an_estimate_of_the_other(
    monkeypatch: pytest.MonkeyPatch, elapsed_ns: int
) -> None:
    monkeypatch.setattr(stop_rules, "MOST_READINGS", 50_000)
    engine = engine_of(metrics=[Metric(name="a", unit="s"), Metric(name="b", unit="s")])
    record = told(engine, units(steady(), name="a", reading_s=elapsed_ns / 1e12))
    assert reason(record) is StopReason.MEMORY_LIMIT
    assert 50_000 <= record.readings("a").size < 100_000
    assert number(record, "a").value == pytest.approx(1.0, rel=0.01)
    assert Code.NO_DATA in codes(record)


# Few readings are enough where the budget holds no more, and their interval is very narrow


_SLOW_S = 0.02


def run(
    series: np.ndarray, reading_s: float = _SLOW_S, size: int | None = None, **options: Any
) -> RunRecord:
    """Give a session the readings that it asks for, or ``size``, until it ends."""
    give = units(following(series), size=size, reading_s=reading_s)
    return told(engine_of(Options(**options), seed=1), give)


def slow(cv: float, n: int = 2000) -> np.ndarray:
    return steady(3, level=_SLOW_S, cv=cv)(n)


ENDLESS = {"reading_s": 1.0, "budget_s": math.inf}


@pytest.mark.parametrize(
    ("limits", "fewest", "most"),
    [
        ({"reading_s": 0.001}, 750, 750),
        ({"reading_s": 0.013}, 750, 750),  # 9.75 s
        (ENDLESS, 750, 750),
        (ENDLESS | {"budget_s": 800.0}, 750, 750),
        (ENDLESS | {"budget_s": 600.0}, 30, 100),
        (ENDLESS | {"budget_readings": 750}, 750, 750),
        (ENDLESS | {"budget_readings": 600}, 30, 100),
        (ENDLESS | {"size": 10, "max_rounds": 75}, 750, 750),
        (ENDLESS | {"size": 10, "max_rounds": 60}, 30, 100),
    ],
)
def test_only_a_budget_that_ends_before_the_second_full_look_forces_an_early_end(
    limits: dict[str, Any], fewest: int, most: int
) -> None:
    record = run(slow(0.001), **limits)
    assert record.decision is not None
    assert record.decision.satisfied
    assert fewest <= record.readings().size <= most


def in_modes(seed: int, n: int) -> np.ndarray:
    """Stay at 1 and 1.2 in turn, for 40 and 10 readings on average: the mean is 1.04."""
    rng = np.random.default_rng([20261128, seed])
    modes = (np.arange(n) + (rng.random() < 0.2)) % 2
    stays = rng.geometric(1.0 / np.array([40.0, 10.0])[modes])
    return np.repeat(1.0 + 0.2 * modes, stays)[:n] + rng.normal(0.0, 0.005, n)


def test_slow_readings_without_a_limit_hold_the_mean_of_modes_that_last() -> None:
    given: dict[str, Any] = ENDLESS | {"target": 0.05, "size": 25}
    records = [run(in_modes(seed, 8000), **given) for seed in range(20)]
    assert min(record.readings().size for record in records) >= 750
    assert sum(number(each).low <= 1.04 <= number(each).high for each in records) >= 16


def dependent() -> np.ndarray:
    noise = np.random.default_rng(5).normal(0.0, 1.0, 2000)
    for index in range(1, noise.size):
        noise[index] += 0.95 * noise[index - 1]
    return _SLOW_S * (1.0 + 0.001 * noise)


def warming_up(amplitude: float) -> np.ndarray:
    return slow(0.004) + _SLOW_S * amplitude * np.exp(-np.arange(2000) / 100.0)


@pytest.mark.parametrize("series", [warming_up(0.1), warming_up(0.5), dependent()])
def test_what_is_not_settled_or_depends_on_itself_takes_more_readings(series: np.ndarray) -> None:
    record = run(series)
    assert record.decision is not None
    assert not record.decision.satisfied or record.readings().size > 300


@pytest.mark.parametrize(
    ("start_s", "fewest", "most"),
    [(0.0, 15, 15), (1.0, 6, 9)],
    ids=["fifteen fit into ten seconds", "fifteen do not"],
)
def test_six_restarted_rounds_suffice_where_fifteen_do_not_fit(
    start_s: float, fewest: int, most: int
) -> None:
    warm_up = ExponentialWarmUp(amplitude=0.5, time_constant=0.5)
    workload = SyntheticWorkload(mean=_SLOW_S, cv=0.001, warm_up=warm_up, restarted=True, seed=1)

    def give(plan: RoundPlan) -> dict[str, Any]:
        values = workload.draw(plan)
        values = values[:10] if plan.index == 0 else values  # it learns what they cost
        elapsed_ns = round((start_s + values.sum()) * 1e9)
        return {"elapsed_ns": elapsed_ns, "unit_readings": {"time": values}}

    record = told(engine_of(Options(rounds="restarted"), seed=1), give)
    assert record.decision is not None
    assert record.decision.satisfied
    assert fewest <= len(record.rounds) <= most


# Without a target that somebody gave there is nothing to miss


OFTEN_SAID = r"target|missed|reached|wanted|less sure|not-converged|cannot be reached"


@pytest.mark.parametrize("target", [None, 0.02, "2%", 0.03])
def test_only_a_target_that_is_given_is_missed_even_if_it_is_the_default(clock, target):
    """Noisy work that ends with its budget, far from 2%."""
    given = {} if target is None else {"target": target}
    session = br.Session(Options(budget_s=0.5, **given), seed=1, clock=clock)
    record = session.run(SyntheticWorkload(mean=0.01, cv=0.15, seed=1, clock=clock))
    assert reason(record) is StopReason.TIME_BUDGET
    assert number(record).relative_half_width > 0.03
    assert (Code.NOT_CONVERGED in codes(record)) is (target is not None)
    for shown in map(str, (record, render(record), explain(record))):
        assert target is not None or not re.search(OFTEN_SAID, shown)


def test_rules_go_by_the_target_that_they_were_made_for() -> None:
    engine = engine_of(Options(target=1e-6), rules=default_rules(Options(target=0.05)))
    told(engine, units(steady(cv=0.1)))
    assert engine.decision == SATISFIED
