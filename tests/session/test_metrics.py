"""What a metric is: rates, shares, which way is better; and what a pilot plans."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from simulated.series import persistent
from tests.session.telling import following, number, steady, told, units

import benchrigor as br
from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Metric, RunRecord, Verdict
from benchrigor.session import plan
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload
from benchrigor.units import Quantity


def units_of(metric: Metric, values: np.ndarray, **options: Any) -> br.RunRecord:
    """Tell readings of units in one session."""
    given = br.Options(**{"target": 1e-9, "budget_readings": len(values), **options})
    give = units(following(values), name=metric.name, reading_s=1e-6)
    return told(br.Session(given, (metric,), seed=1), give)


RATE, OK = Metric(name="rate", unit="req/s"), Metric(name="ok", kind=Quantity.SHARE)


def test_a_rate_of_0_has_no_harmonic_mean() -> None:
    values = np.append(steady(level=100.0, cv=0.01)(799), 0.0)
    assert "harmonic" not in number(units_of(RATE, values)).method


def test_the_target_of_a_share_is_relative_to_the_rarer_outcome() -> None:
    values = (np.random.default_rng(3).random(60_000) < 0.98).astype(float)
    record = units_of(Metric(name="ok"), values, target=0.1)
    assert record.decision is not None
    assert record.decision.satisfied
    assert number(record).half_width <= 0.1 * (1.0 - number(record).value)


def test_shares_are_compared_as_shares() -> None:
    rng = np.random.default_rng(4)
    old, new = (persistent(rng, 4_000, share, 0.5).astype(float) for share in (0.99, 0.9))
    metric = Metric(name="ok", direction=br.Direction.HIGHER)
    by_session = br.compare_runs(*(units_of(metric, each) for each in (old, new)))
    for comparison in (by_session, br.stats.compare(old, new, direction="higher")):
        assert comparison.verdict is Verdict.WORSE
        assert comparison.ratio is not None
        assert comparison.ratio.method == comparison.difference.method == "MOVER"  # type: ignore[union-attr]
        assert comparison.ratio.low < 0.9 / 0.99 < comparison.ratio.high


@cache
def pilot(**given: object) -> RunRecord:
    clock = FakeClock()
    options = br.Options(**{"target": 0.05, **given})  # type: ignore[arg-type]
    restarted = options.rounds == "restarted"
    workload = SyntheticWorkload(
        mean=0.001,
        cv=0.1,
        warm_up=StepWarmUp(amplitude=2.0, length=80),
        restarted=restarted,
        between_cv=0.02 if restarted else 0.0,
        seed=1,
        clock=clock,
    )
    return br.Session(options, seed=1, clock=clock, name="synthetic").run(workload)


def test_no_price_is_below_what_the_run_itself_would_look_at() -> None:
    series = plan(pilot(), half_widths=(0.5,)).prices[0].n
    estimate = number(pilot())
    assert series >= 750
    assert series * estimate.n_effective / estimate.n >= 100 * (1.0 - 1e-9)
    assert plan(pilot(rounds="restarted"), half_widths=(0.5,)).prices[0].n == 15
    assert plan(pilot(preset="quick"), half_widths=(0.5,)).prices[0].n < 750


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (lambda: br.Session(name="empty", seed=1).result(), Code.NO_DATA),
        (lambda: pilot(max_rounds=1), Code.TOO_FEW_READINGS),
    ],
)
def test_a_run_without_a_number_says_why(run: Callable[[], RunRecord], why: Code) -> None:
    with pytest.raises(NotEstimable) as caught:
        plan(run())
    assert caught.value.notice.code is why  # type: ignore[attr-defined]
