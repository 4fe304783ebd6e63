"""Few readings are enough where the budget holds no more, and their interval is very narrow."""

import math
from typing import Any

import numpy as np
import pytest
from tests.session.telling import following, number, steady, told, units

from benchrigor.model import Options, RoundPlan, RunRecord
from benchrigor.session import Engine
from benchrigor.testing import ExponentialWarmUp, SyntheticWorkload

_SLOW_S = 0.02


def run(
    series: np.ndarray, reading_s: float = _SLOW_S, size: int | None = None, **options: Any
) -> RunRecord:
    """Give a session the readings that it asks for, or ``size``, until it ends."""
    give = units(following(series), size=size, reading_s=reading_s)
    return told(Engine(Options(**options), seed=1), give)


def slow(cv: float, n: int = 2000) -> np.ndarray:
    return steady(3, level=_SLOW_S, cv=cv)(n)


@pytest.mark.parametrize(
    ("cv", "fewest", "most"), [(0.001, 30, 75), (0.01, 75, 250), (0.03, 150, 499)]
)
def test_the_wider_the_interval_the_more_readings_it_takes(
    cv: float, fewest: int, most: int
) -> None:
    record = run(slow(cv))
    assert record.decision is not None
    assert record.decision.satisfied
    assert fewest <= record.readings().size <= most
    assert record.analyses[0].required is not None
    assert record.analyses[0].required <= record.readings().size


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


def test_a_slow_first_call_does_not_force_an_early_end() -> None:
    give = units(following(slow(0.001)), reading_s=0.005)

    def late(plan: RoundPlan) -> dict[str, Any]:
        given = dict(give(plan))
        given["elapsed_ns"] += 5 * 10**9 * (plan.index == 0)
        return given

    assert told(Engine(Options(), seed=1), late).readings().size == 750


def in_modes(seed: int, n: int) -> np.ndarray:
    """Stay at 1 and 1.2 in turn, for 40 and 10 readings on average: the mean is 1.04."""
    rng = np.random.default_rng([20261128, seed])
    levels, stays = np.array([1.0, 1.2]), np.array([40.0, 10.0])
    modes = (np.arange(n) + (rng.random() < 0.2)) % 2
    series = np.repeat(levels[modes], rng.geometric(1.0 / stays[modes]))[:n]
    return series + rng.normal(0.0, 0.005, n)


def test_slow_readings_without_limit_hold_the_mean_of_modes_that_last() -> None:
    records = [run(in_modes(seed, 8000), **ENDLESS, target=0.05, size=25) for seed in range(20)]
    assert min(record.readings().size for record in records) >= 750
    estimates = [number(record) for record in records]
    assert sum(known.low <= 1.04 <= known.high for known in estimates) >= 16


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


def test_strict_sessions_need_all_evidence() -> None:
    decision = run(slow(0.001), preset="strict").decision
    assert decision is not None
    assert not decision.satisfied  # 10 s are over before


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

    record = told(Engine(Options(rounds="restarted"), seed=1), give)
    assert record.decision is not None
    assert record.decision.satisfied
    assert fewest <= len(record.rounds) <= most


def test_the_first_look_at_pieces_needs_no_force() -> None:
    record = run(slow(0.001, 20_000), pieces=30, budget_s=300.0)
    assert record.decision is not None
    assert record.decision.satisfied
    assert record.rounds[-1].plan.piece == 3
