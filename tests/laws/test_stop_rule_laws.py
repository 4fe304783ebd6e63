"""Laws of `protocols.StopRule`: monotone in budget; a list of rules, the first answer wins."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.model import Decision, Options, Progress, Round, StopReason
from benchrigor.protocols import StopRule
from benchrigor.session import Engine, default_rules
from benchrigor.session.stop_rules import limit

SMALL: dict[StopReason, StopRule] = {
    StopReason.TIME_BUDGET: limit(StopReason.TIME_BUDGET, 10.0),
    StopReason.READINGS_BUDGET: limit(StopReason.READINGS_BUDGET, 10),
    StopReason.ROUND_LIMIT: limit(StopReason.ROUND_LIMIT, 10),
    StopReason.TOO_MANY_REJECTED: limit(StopReason.TOO_MANY_REJECTED, 10),
}
LARGE: dict[StopReason, StopRule] = {
    StopReason.TIME_BUDGET: limit(StopReason.TIME_BUDGET, 20.0),
    StopReason.READINGS_BUDGET: limit(StopReason.READINGS_BUDGET, 20),
    StopReason.ROUND_LIMIT: limit(StopReason.ROUND_LIMIT, 20),
    StopReason.TOO_MANY_REJECTED: limit(StopReason.TOO_MANY_REJECTED, 20),
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


def standing(amount: int) -> Progress:
    return replace(
        START, rounds=amount, readings=amount, rejected_rounds=amount, elapsed_s=float(amount)
    )


@pytest.mark.parametrize("reason", SMALL)
@given(amount=amounts, more=amounts)
def test_who_stops_stops_with_more_spent_and_with_less_to_spend(
    reason: StopReason, amount: int, more: int
) -> None:
    stop = Decision(stop=True, reason=reason)
    if LARGE[reason](standing(amount)) == stop:
        assert SMALL[reason](standing(amount)) == stop
        assert LARGE[reason](standing(amount + more)) == stop
    assert SMALL[reason](standing(amount)) == (stop if amount >= 10 else None)


@pytest.mark.parametrize("rule", default_rules(Options(budget_readings=5, max_rounds=5)))
def test_before_anything_happened_no_rule_stops(rule: StopRule) -> None:
    assert rule(replace(START, missing=("time",))) is None


@pytest.mark.parametrize("first", SMALL)
@pytest.mark.parametrize("second", SMALL)
def test_the_first_answer_wins(first: StopReason, second: StopReason) -> None:
    def silent(_: Progress) -> None:
        return None

    def answer(reason: StopReason) -> StopRule:
        return lambda _: Decision(stop=True, reason=reason)

    engine = Engine(rules=[silent, answer(first), answer(second)])
    plan = engine.ask()
    assert plan is not None
    told = Round(plan=plan, elapsed_ns=1, readings={"time": 1.0})
    assert engine.tell(told) == Decision(stop=True, reason=first)


@pytest.mark.parametrize("reason", [None, "battery-low"])
def test_a_session_ends_for_a_known_reason(reason: str | None) -> None:
    with pytest.raises(InvalidInput, match=f"reason is {reason!r}, expected 'satisfied' or "):
        Decision(stop=True, reason=reason)  # type: ignore[arg-type]


def test_a_reason_may_be_given_by_its_word() -> None:
    assert Decision(stop=True, reason="satisfied").satisfied  # type: ignore[arg-type]
