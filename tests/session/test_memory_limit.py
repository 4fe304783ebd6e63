"""A session that is never satisfied ends before its readings fill the memory."""

from __future__ import annotations

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Code, Metric, StopReason
from benchrigor.session import stop_rules
from benchrigor.session.pairs.pair_engine import PairEngine, PairRound

MOST = 50_000


@pytest.mark.slow
@pytest.mark.parametrize("elapsed_ns", [0, 1_000])
def test_a_metric_that_never_comes_ends_it_with_an_estimate_of_the_other(
    monkeypatch: pytest.MonkeyPatch, elapsed_ns: int
) -> None:
    monkeypatch.setattr(stop_rules, "MOST_READINGS", MOST)
    rng = np.random.default_rng(1)
    session = br.Session(metrics=[Metric(name="a", unit="s"), Metric(name="b", unit="s")], seed=1)
    sizes = []
    while (plan := session.ask()) is not None:
        sizes.append(plan.readings)
        values = rng.normal(1.0, 0.1, plan.readings)
        session.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"a": values}))
    record = session.result()
    assert record.decision is not None
    assert record.decision.reason is StopReason.MEMORY_LIMIT
    assert MOST <= sum(sizes) < 2 * MOST
    estimate = record.estimate("a")
    assert estimate is not None
    assert estimate.value == pytest.approx(1.0, rel=0.01)
    assert Code.NO_DATA in [notice.code for notice in record.notices]


def test_readings_of_all_metrics_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_rules, "MOST_READINGS", 300)
    session = br.Session(seed=1)
    for _ in range(2):
        plan = session.ask()
        assert plan is not None
        session.tell(
            br.Round(
                plan=plan, elapsed_ns=1, unit_readings={name: np.ones(100) for name in ("a", "b")}
            )
        )
    assert session.decision is not None
    assert session.decision.reason is StopReason.MEMORY_LIMIT


def test_pairs_are_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchrigor.session.pairs.pair_engine.MOST_READINGS", 5_000)
    engine, rng = PairEngine(target=1e-9, seed=1), np.random.default_rng(1)
    while (plan := engine.ask()) is not None:
        sides = {name: rng.normal(1.0, 0.1, plan.pairs) for name in ("baseline", "candidate")}
        engine.tell(PairRound(plan=plan, elapsed_ns=0, **sides))
    found = engine.result()
    assert found.reason is StopReason.MEMORY_LIMIT
    assert found.ratio is not None
    assert engine.pairs < 5_000
