"""Laws of `protocols.StopRule`: monotone in budget; a list of rules, the first answer wins."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.model import Decision, Options, Progress, Round, StopReason
from benchrigor.protocols import StopRule
from benchrigor.session import Session, default_rules

BUDGETS = {
    StopReason.TIME_BUDGET: "budget_s",
    StopReason.READINGS_BUDGET: "budget_readings",
    StopReason.ROUND_LIMIT: "max_rounds",
}
START = Progress(
    rounds=0,
    readings=0,
    rejected_rounds=0,
    elapsed_s=0.0,
    seconds_left=None,
    readings_needed=None,
    stop_requested=False,
    analyses=(),
    fresh=True,
)
amounts = st.integers(0, 30)


def decision(amount: int, **budget: int) -> Decision | None:
    """Return what the rules of a session decide when it has spent so much of everything."""
    spent = replace(START, rounds=amount, readings=amount, elapsed_s=float(amount))
    rules = default_rules(Options(**{"budget_s": math.inf, **budget}))
    return next(filter(None, (rule(spent) for rule in rules)), None)


@pytest.mark.parametrize("reason", BUDGETS)
@given(amount=amounts, more=amounts)
def test_who_stops_stops_with_more_spent_and_with_less_to_spend(
    reason: StopReason, amount: int, more: int
) -> None:
    stop, budget = Decision(stop=True, reason=reason), BUDGETS[reason]
    if decision(amount, **{budget: 20}) == stop:
        assert decision(amount, **{budget: 10}) == stop
        assert decision(amount + more, **{budget: 20}) == stop
    assert decision(amount, **{budget: 10}) == (stop if amount >= 10 else None)


@pytest.mark.parametrize(("rejected", "stops"), [(99, False), (100, True)])
def test_too_many_rejected_rounds_end_a_session(rejected: int, stops: bool) -> None:
    progress = replace(START, rejected_rounds=rejected)
    decided = [each.reason for rule in default_rules(Options()) if (each := rule(progress))]
    assert decided == [StopReason.TOO_MANY_REJECTED] * stops


@pytest.mark.parametrize("rule", default_rules(Options(budget_readings=5, max_rounds=5)))
def test_before_anything_happened_no_rule_stops(rule: StopRule) -> None:
    assert rule(replace(START, missing=("time",))) is None


@pytest.mark.parametrize("first", BUDGETS)
@pytest.mark.parametrize("second", BUDGETS)
def test_the_first_answer_wins(first: StopReason, second: StopReason) -> None:
    def silent(_: Progress) -> None:
        return None

    def answer(reason: StopReason) -> StopRule:
        return lambda _: Decision(stop=True, reason=reason)

    engine = Session(rules=[silent, answer(first), answer(second)])
    plan = engine.ask()
    assert plan is not None
    told = Round(plan=plan, elapsed_ns=1, readings={"time": 1.0})
    assert engine.tell(told) == Decision(stop=True, reason=first)


def test_a_reason_may_be_given_by_its_word() -> None:
    assert Decision(stop=True, reason="satisfied").satisfied  # type: ignore[arg-type]
