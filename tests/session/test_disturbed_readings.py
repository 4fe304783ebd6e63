"""Sessions leave readings out during which delay was measured, through every door alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Code, Delays, Disturbed
from benchrigor.session import Engine
from benchrigor.session.pairs.pair_engine import PairEngine, PairRound

TRUTH_S, DELAY_S = 1e-3, 2e-3
Told = Callable[[br.RoundPlan, np.ndarray, np.ndarray], dict[str, Any]]


def drawn(rng: np.random.Generator, n: int, hits: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw times without waiting, and delays, which hit long ones more often."""
    own = TRUTH_S * rng.gamma(100.0, 0.01, n)
    return own, np.where(rng.random(n) < -np.expm1(-hits * own / TRUTH_S), DELAY_S, 0.0)


def by_reading(_: br.RoundPlan, own: np.ndarray, delay: np.ndarray) -> dict[str, Any]:
    return {"unit_readings": {"time": own + delay}, "delays": delay}


def session(told: Told = by_reading, *, hits: float = 0.5, **options: Any) -> br.RunRecord:
    engine = Engine(br.Options(**{"target": 0.01, **options}), seed=1)
    rng = np.random.default_rng(20271202)
    while (plan := engine.ask()) is not None:
        own, delay = drawn(rng, plan.readings, hits)
        elapsed_ns = round(1e9 * float((own + delay).sum()))
        engine.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, **told(plan, own, delay)))
    return engine.result()


def left_out(record: br.RunRecord) -> Disturbed:
    analysis = record.analysis()
    assert analysis is not None
    assert analysis.disturbed is not None
    return analysis.disturbed


def test_the_number_is_that_of_undisturbed_readings_and_what_all_give_stands_beside_it() -> None:
    record = session()
    found, disturbed, analysis = record.estimate(), left_out(record), record.analysis()
    assert found is not None
    assert analysis is not None
    assert disturbed.estimate is not None
    assert found.low <= TRUTH_S <= found.high
    assert found.value == pytest.approx(TRUTH_S, rel=0.01)
    assert disturbed.estimate.value == pytest.approx(record.readings().mean(), rel=0.02)
    assert disturbed.n == analysis.taken == record.readings().size
    assert analysis.n == record.counted().size < record.readings().size
    assert disturbed.lost == pytest.approx(0.44, abs=0.03)
    assert " just now)" in str(record)
    for text in (br.report.render(record), br.report.explain(record)):
        assert " with waiting, " in " ".join(text.split())
        assert "% run delay" in " ".join(text.split())


def test_kept_readings_all_count_as_if_nothing_had_been_measured() -> None:
    kept = session(disturbed="keep", budget_readings=900)
    unknown = session(
        lambda _, own, delay: {"unit_readings": {"time": own + delay}}, budget_readings=900
    )
    analyses = kept.analysis(), unknown.analysis()
    assert analyses[0] is not None
    assert analyses[1] is not None
    assert analyses[0].disturbed is None
    assert analyses[0].estimate == analyses[1].estimate
    assert " with waiting" not in str(kept)


def test_without_delay_nothing_is_left_out() -> None:
    record = session(hits=0.0)
    analysis = record.analysis()
    assert analysis is not None
    assert analysis.disturbed is None
    assert analysis.n == record.readings().size


def test_a_little_delay_is_left_out_and_not_worth_a_word() -> None:
    record = session(hits=0.002)
    assert not left_out(record).matters
    assert left_out(record).estimate is None
    assert " with waiting" not in str(record)


def test_where_all_readings_are_disturbed_they_count_and_that_is_said() -> None:
    record = session(hits=6.0, budget_readings=900)
    found, analysis = record.estimate(), record.analysis()
    assert found is not None
    assert analysis is not None
    assert analysis.disturbed is None
    assert found.value == pytest.approx(TRUTH_S + DELAY_S, rel=0.02)
    assert [each.code for each in analysis.notices].count(Code.HARDLY_UNDISTURBED) == 1


def test_satisfied_sessions_have_as_many_undisturbed_readings_as_others_have_in_all() -> None:
    record = session(target=0.2)
    analysis = record.analysis()
    assert analysis is not None
    assert record.decision is not None
    assert str(record.decision.reason) == "satisfied"
    assert analysis.n >= 500


def test_groups_of_readings_are_left_out_as_a_whole() -> None:
    def by_ten(plan: br.RoundPlan, own: np.ndarray, delay: np.ndarray) -> dict[str, Any]:
        stops = np.append(np.arange(10, own.size, 10), own.size)
        delay = np.where(np.arange(own.size) % 10 == 3, delay, 0.0)
        seconds = np.add.reduceat(delay, stops - np.diff(stops, prepend=0))
        given = Delays(stops=stops, seconds={"run queue": seconds})
        return {"unit_readings": {"time": own + delay}, "delays": given}

    record = session(by_ten)
    found = record.estimate()
    assert found is not None
    assert found.low <= TRUTH_S <= found.high
    assert left_out(record).left_out == pytest.approx(0.4 * record.readings().size, rel=0.1)


def test_other_metrics_are_of_the_same_readings() -> None:
    def with_size(plan: br.RoundPlan, own: np.ndarray, delay: np.ndarray) -> dict[str, Any]:
        size = 100.0 + 50.0 * (delay > 0.0) + own
        return {"unit_readings": {"time": own + delay, "size": size}, "delays": delay}

    record = session(with_size, budget_readings=1_000)
    size = record.estimate("size")
    assert size is not None
    assert size.value == pytest.approx(100.0, abs=0.01)


@pytest.mark.slow
def test_each_restarted_round_leaves_its_own_out() -> None:
    record = session(rounds="restarted", max_rounds=12, target=1e-6, budget_s=1e4)
    analysis, disturbed = record.analysis(), left_out(record)
    assert analysis is not None
    assert analysis.kind == "invocations"
    assert analysis.estimate is not None
    assert analysis.estimate.value == pytest.approx(TRUTH_S, rel=0.005)
    sizes = [phase.change_points.n for phase in analysis.phases]
    assert sizes == disturbed.sizes([500] * 12)
    assert sum(sizes) == analysis.n


def pairs(**options: Any) -> br.Comparison:
    """Compare two functions in turn, of which the candidate takes 5 % longer and is hit more."""
    engine = PairEngine(seed=1, margin=0.01, budget_s=20.0, **options)
    rng = np.random.default_rng(20271204)
    while (plan := engine.ask()) is not None:
        old, first = drawn(rng, plan.pairs, 0.1)
        new, second = drawn(rng, plan.pairs, 0.4)
        baseline, candidate = old + first, 1.05 * new + second
        engine.tell(
            PairRound(
                plan=plan,
                baseline=baseline,
                candidate=candidate,
                elapsed_ns=round(1e9 * float((baseline + candidate).sum())),
                delays=Delays(
                    stops=np.arange(1, plan.pairs + 1), seconds={"run queue": first + second}
                ),
            )
        )
    return engine.result()


@pytest.mark.slow
def test_a_pair_counts_when_both_its_readings_are_undisturbed() -> None:
    found, kept = pairs(), pairs(disturbed="keep")
    assert found.ratio is not None
    assert found.ratio.low <= 1.05 <= found.ratio.high
    assert found.ratio.value == pytest.approx(1.05, abs=0.01)
    assert kept.ratio is None or kept.ratio.value > 1.3
    assert [each.code for each in found.notices].count(Code.DISTURBED) == 1


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> br.testing.FakeClock:
    """Give measure_pair a meter of delay that moves its clock."""
    clock = br.testing.FakeClock(resolution_ns=1)
    meter = br.testing.FakeMeter(clock)
    monkeypatch.setattr("benchrigor.session.pairs.measuring_pair.meter_for", lambda _: meter)
    clock.meter = meter  # type: ignore[attr-defined]  # for the test to move
    return clock


def test_functions_in_turn_are_measured_with_their_delay(restless: Any) -> None:
    rng = np.random.default_rng(20271205)

    def taking(ns: int) -> Callable[[], None]:
        def call() -> None:
            restless.advance(round(ns * rng.normal(1.0, 0.01)))
            if rng.random() < 0.2:
                restless.meter.lose(3_000_000)

        return call

    found = br.measure_pair(taking(5_000_000), taking(5_000_000), clock=restless, seed=1)
    assert found.ratio is not None
    assert found.ratio.half_width < 0.006
    assert found.verdict is br.Verdict.EQUIVALENT
