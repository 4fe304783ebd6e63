"""Few readings are enough where their interval is much narrower than wanted."""

import numpy as np
import pytest

from benchrigor.model import Floats, Options, Round, RunRecord
from benchrigor.session import Engine
from benchrigor.session.stop_rules import min_evidence
from benchrigor.testing import ExponentialWarmUp, FakeClock, SyntheticWorkload

_SLOW_S = 0.02


def run(series: Floats, reading_s: float = _SLOW_S, **options: object) -> RunRecord:
    """Give a session the readings that it asks for, until it ends or none is left."""
    engine, n = Engine(Options(**options), seed=1), 0  # type: ignore[arg-type]
    while n < series.size and (plan := engine.ask()) is not None:
        values = series[n : n + plan.readings]
        n += values.size
        elapsed_ns = round(values.size * reading_s * 1e9)
        engine.tell(Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    return engine.result()


def steady(cv: float, n: int = 2000) -> Floats:
    return _SLOW_S * np.random.default_rng(3).normal(1.0, cv, n)


@pytest.mark.parametrize(
    ("cv", "fewest", "most"), [(0.001, 30, 75), (0.01, 75, 250), (0.03, 150, 499)]
)
def test_the_wider_the_interval_the_more_readings_it_takes(cv, fewest, most):
    record = run(steady(cv))
    assert record.decision.satisfied
    assert fewest <= record.readings().size <= most
    assert record.analysis().required <= record.readings().size


def test_readings_that_come_fast_end_at_the_second_full_look():
    assert run(steady(0.001), reading_s=0.001).readings().size == 750


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


def test_six_restarted_rounds_suffice():
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
        elapsed_ns = round(values.sum() * 1e9)
        engine.tell(Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    record = engine.result()
    assert record.decision.satisfied
    assert len(record.rounds) <= 9


def test_the_share_of_the_target_grows_from_a_tenth_to_all_of_it():
    least = min_evidence(Options(), by_round=False)
    shares = [least.share(n) for n in (29, 30, 100, 499, 500, 750)]
    assert shares == sorted(shares)
    assert (shares[0], shares[1], shares[-2]) == (0.0, pytest.approx(0.1), 1.0)
    assert least.share(499) < 0.8
    assert least.effective_of(30) == pytest.approx(20.0)
    assert min_evidence(Options(preset="strict"), by_round=False).share(500) == 0.0
