"""Few readings are enough where the budget holds no more, and their interval is very narrow."""

import math

import numpy as np
import pytest

from benchrigor.model import Options, Round, RunRecord
from benchrigor.session import Engine
from benchrigor.testing import ExponentialWarmUp, FakeClock, SyntheticWorkload

_SLOW_S = 0.02


def run(
    series: np.ndarray, reading_s: float = _SLOW_S, size: int | None = None, **options: object
) -> RunRecord:
    """Give a session the readings that it asks for, or ``size``, until it ends or none is left."""
    engine, n = Engine(Options(**options), seed=1), 0  # type: ignore[arg-type]
    while n < series.size and (plan := engine.ask()) is not None:
        values = series[n : n + (size or plan.readings)]
        n += values.size
        elapsed_ns = round(values.size * reading_s * 1e9)
        engine.tell(Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    return engine.result()


def steady(cv: float, n: int = 2000) -> np.ndarray:
    return _SLOW_S * np.random.default_rng(3).normal(1.0, cv, n)


@pytest.mark.parametrize(
    ("cv", "fewest", "most"), [(0.001, 30, 75), (0.01, 75, 250), (0.03, 150, 499)]
)
def test_the_wider_the_interval_the_more_readings_it_takes(cv, fewest, most):
    record = run(steady(cv))
    assert record.decision.satisfied
    assert fewest <= record.readings().size <= most
    assert record.analysis().required <= record.readings().size


@pytest.mark.parametrize(
    ("reading_s", "limits"),
    [
        (0.001, {}),
        (0.013, {}),  # 9.75 s
        (1.0, {"budget_s": math.inf}),
        (1.0, {"budget_s": 800.0}),
        (1.0, {"budget_s": math.inf, "budget_readings": 750}),
        (1.0, {"budget_s": math.inf, "size": 10, "max_rounds": 75}),
    ],
)
def test_a_session_whose_budget_holds_the_full_looks_ends_at_none_before(reading_s, limits):
    record = run(steady(0.001), reading_s, **limits)
    assert record.decision.satisfied
    assert record.readings().size == 750


@pytest.mark.parametrize(
    "limits",
    [
        {"budget_s": 600.0},
        {"budget_s": math.inf, "budget_readings": 600},
        {"budget_s": math.inf, "size": 10, "max_rounds": 60},
    ],
)
def test_any_budget_that_ends_before_the_second_full_look_forces_an_early_end(limits):
    record = run(steady(0.001), 1.0, **limits)
    assert record.decision.satisfied
    assert 30 <= record.readings().size <= 100


def test_a_slow_first_call_does_not_force_an_early_end():
    engine = Engine(Options(), seed=1)
    series, n = steady(0.001), 0
    while (plan := engine.ask()) is not None:
        values = series[n : n + plan.readings]
        n += values.size
        elapsed_s = 0.005 * values.size + (5.0 if plan.index == 0 else 0.0)
        engine.tell(
            Round(plan=plan, elapsed_ns=round(elapsed_s * 1e9), unit_readings={"time": values})
        )
    assert engine.result().decision.satisfied
    assert n == 750


def in_modes(seed: int, n: int) -> np.ndarray:
    """Stay at 1 and 1.2 in turn, for 40 and 10 readings on average: the mean is 1.04."""
    rng = np.random.default_rng([20261128, seed])
    levels, stays = np.array([1.0, 1.2]), np.array([40.0, 10.0])
    modes = (np.arange(n) + (rng.random() < 0.2)) % 2
    series = np.repeat(levels[modes], rng.geometric(1.0 / stays[modes]))[:n]
    return series + rng.normal(0.0, 0.005, n)


def test_slow_readings_without_limit_hold_the_mean_of_modes_that_last():
    limits = {"target": 0.05, "budget_s": math.inf, "size": 25}
    records = [run(in_modes(seed, 8000), 1.0, **limits) for seed in range(20)]
    assert min(record.readings().size for record in records) >= 750
    estimates = [record.estimate() for record in records]
    assert sum(known.low <= 1.04 <= known.high for known in estimates) >= 16


def test_strict_sessions_need_all_evidence():
    record = run(steady(0.001), preset="strict")
    assert not record.decision.satisfied  # 10 s are over before


@pytest.mark.parametrize("amplitude", [0.1, 0.5])
def test_a_warm_up_that_is_not_settled_is_no_reason_to_stop(amplitude):
    series = steady(0.004)
    series += _SLOW_S * amplitude * np.exp(-np.arange(series.size) / 100.0)
    record = run(series)
    assert not record.decision.satisfied or record.readings().size > 300


def test_dependent_readings_need_more_of_them():
    noise = np.random.default_rng(5).normal(0.0, 1.0, 2000)
    for index in range(1, noise.size):
        noise[index] += 0.95 * noise[index - 1]
    record = run(_SLOW_S * (1.0 + 0.001 * noise))
    assert not record.decision.satisfied or record.readings().size > 300


@pytest.mark.parametrize(
    ("start_s", "fewest", "most"),
    [(0.0, 15, 15), (1.0, 6, 9)],
    ids=["fifteen fit into ten seconds", "fifteen do not"],
)
def test_six_restarted_rounds_suffice_where_fifteen_do_not_fit(start_s, fewest, most):
    clock = FakeClock()
    workload = SyntheticWorkload(
        mean=_SLOW_S,
        cv=0.001,
        warm_up=ExponentialWarmUp(amplitude=0.5, time_constant=0.5),
        restarted=True,
        seed=1,
        clock=clock,
    )
    engine = Engine(Options(rounds="restarted"), seed=1)
    while (plan := engine.ask()) is not None:
        values = workload.draw(plan)
        values = values[:10] if plan.index == 0 else values  # it learns what they cost
        elapsed_ns = round((start_s + values.sum()) * 1e9)
        engine.tell(Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    record = engine.result()
    assert record.decision.satisfied
    assert fewest <= len(record.rounds) <= most


def test_the_first_look_at_pieces_needs_no_force():
    engine = Engine(Options(pieces=30, budget_s=300.0), seed=1)
    series, n = steady(0.001, 20_000), 0
    while (plan := engine.ask()) is not None:
        values = series[n : n + plan.readings]
        n += values.size
        elapsed_ns = round(values.size * _SLOW_S * 1e9)
        engine.tell(Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    record = engine.result()
    assert record.decision.satisfied
    assert record.rounds[-1].plan.piece == 3
