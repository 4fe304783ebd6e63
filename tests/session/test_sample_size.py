from collections.abc import Callable
from functools import cache

import pytest
from tests.session.telling import codes, number

import benchrigor as br
from benchrigor.errors import NotEstimable
from benchrigor.model import Code, RunRecord
from benchrigor.session import plan
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload


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


def test_an_invocation_pays_for_its_own_warm_up() -> None:
    found = plan(pilot(rounds="restarted"), change=0.02)
    assert found.counted_in == "invocation"
    assert found.seconds == pytest.approx(
        found.n * pilot(rounds="restarted").elapsed_s / found.pilot.n
    )


def test_no_price_is_below_what_the_run_itself_would_look_at() -> None:
    series = plan(pilot(), half_widths=(0.5,)).prices[0].n
    estimate = number(pilot())
    assert series >= 750
    assert series * estimate.n_effective / estimate.n >= 100 * (1.0 - 1e-9)
    assert plan(pilot(rounds="restarted"), half_widths=(0.5,)).prices[0].n == 15
    assert plan(pilot(preset="quick"), half_widths=(0.5,)).prices[0].n < 750


def test_one_process_does_not_speak_for_others() -> None:
    assert plan(pilot()).notices[0].code is Code.THIS_PROCESS_ONLY
    assert Code.THIS_PROCESS_ONLY not in codes(plan(pilot(rounds="restarted")))


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
