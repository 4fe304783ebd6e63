"""When sessions stop, by phases and by effective rounds."""

import numpy as np

from benchrigor.model import Code, Decision, Options, Progress, Round, RunRecord, StopReason
from benchrigor.session import Engine, default_rules
from benchrigor.session.stop_rules import minimum_effective, narrow_enough, satisfied

SATISFIED = Decision(stop=True, reason=StopReason.SATISFIED)


def stepping(engine: Engine) -> RunRecord:
    """Tell a series of which the first 200 readings are slower by half."""
    rng, taken = np.random.default_rng(1), 0
    while (plan := engine.ask()) is not None:
        levels = np.where(np.arange(taken, taken + plan.readings) < 200, 1.5, 1.0)
        taken += plan.readings
        values = rng.normal(levels, 0.05)
        engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    return engine.result()


def test_a_session_goes_on_until_four_fifths_are_stable() -> None:
    shares = []

    def note(progress: Progress) -> None:
        if progress.fresh:
            (analysis,) = progress.analyses
            assert analysis.estimate is not None
            assert analysis.estimate.relative_half_width <= 0.05
            assert analysis.estimate.n_effective >= 100
            shares.append(sum(phase.n for phase in analysis.phases) / analysis.n)

    options = Options(target=0.05)
    record = stepping(Engine(options, rules=[note, *default_rules(options)]))
    assert record.decision == SATISFIED
    assert record.readings().size == 1125
    *before, last = shares
    assert [round(share, 2) for share in before] == [0.6, 0.73]
    assert last >= 0.8


def test_without_the_rule_the_same_session_ends_at_its_first_look() -> None:
    rule = satisfied(narrow_enough(Options(target=0.05)), minimum_effective(100.0))
    record = stepping(Engine(Options(target=0.05), rules=[rule]))
    assert record.decision == SATISFIED
    assert record.readings().size == 500


def test_the_prediction_counts_what_a_stable_share_takes() -> None:
    # 200 readings do not belong to the phase: they are a fifth of 1000.
    found = [
        stepping(Engine(Options(target=target, readings_per_round=500, max_rounds=1))).analysis()
        for target in (0.05, 0.001)
    ]
    wide, narrow = (analysis.required for analysis in found if analysis is not None)
    assert wide == 1000
    assert narrow is not None
    assert narrow > 1000


def test_restarted_rounds_that_share_no_steady_state_end_the_session() -> None:
    rng = np.random.default_rng(2)
    engine = Engine(Options(rounds="restarted", max_rejected=20, max_rounds=40))
    while (plan := engine.ask()) is not None:
        values = np.linspace(1.0, 2.0, plan.readings) + rng.normal(0.0, 0.02, plan.readings)
        engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    record = engine.result()
    assert record.decision == Decision(stop=True, reason=StopReason.TOO_MANY_REJECTED)
    assert len(record.rounds) == 23  # the looks are at 10, 15 and 23
    assert record.estimate() is None
    assert [notice.code for notice in record.notices] == [Code.NO_STABLE_PHASE]


def test_a_warm_up_that_ends_just_before_a_look_does_not_bias_the_estimate() -> None:
    rng = np.random.default_rng(12)
    readings = 1.0 + 0.1 * rng.normal(size=40_000) + 0.5 * (np.arange(40_000) < 450)
    engine, at = Engine(Options(target=0.05)), 0
    while (plan := engine.ask()) is not None:
        values = readings[at : at + plan.readings]
        at += plan.readings
        engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    estimate = engine.result().estimate()
    assert estimate is not None
    assert at > 500
    assert estimate.low < 1.0 < estimate.high


def test_a_phase_that_has_ended_before_the_budget_is_warned_of() -> None:
    rng = np.random.default_rng(13)
    engine = Engine(Options(max_rounds=1, readings_per_round=500))
    plan = engine.ask()
    assert plan is not None
    values = 1.0 + 0.1 * rng.normal(size=500) + 0.5 * (np.arange(500) < 400)
    engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    said = [notice.code for notice in engine.result().notices]
    assert Code.MOVED_ON in said
    assert Code.NOT_CONVERGED in said


def test_ten_rounds_all_alike_are_not_enough_and_thirty_are() -> None:
    engine, told = Engine(Options(target=0.05)), 0
    while (plan := engine.ask()) is not None:
        engine.tell(Round(plan=plan, elapsed_ns=1, readings={"time": 2.0}))
        told += 1
    assert 30 <= told <= 60
