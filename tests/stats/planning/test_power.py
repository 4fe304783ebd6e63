import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import mean_of
from statsmodels.stats.power import TTestIndPower

import benchrigor as br

REFERENCE = TTestIndPower()


@pytest.mark.parametrize("power", [0.5, 0.8, 0.99])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("effect", [0.05, 0.3, 1.0, 3.0])
def test_sizes_power_and_smallest_change_are_those_of_the_t_test(
    effect: float, confidence: float, power: float
) -> None:
    # One tail: a verdict in the wrong direction is none.
    alpha = (1.0 - confidence) / 2.0
    found = br.plan(mean_of(sd=0.1, n=30), change=0.1 * effect, power=power, confidence=confidence)
    terms = {"alpha": alpha, "alternative": "larger"}
    before, at = (
        float(REFERENCE.power(effect, size, **terms)) for size in (max(found.n - 1, 2), found.n)
    )
    assert at >= power * (1.0 - 1e-9)
    assert before < power or found.n == 2
    assert found.power_now == pytest.approx(float(REFERENCE.power(effect, 30, **terms)))
    assert float(REFERENCE.power(found.change_now / 0.1, 30, **terms)) == pytest.approx(power)


def test_prices_are_those_of_the_confidence_that_is_asked_for() -> None:
    sure = br.plan(mean_of(n=200), confidence=0.99)
    assert sure.prices == br.plan(mean_of(n=200, confidence=0.99)).prices
    assert sure.pilot.confidence == 0.99


@given(st.floats(0.002, 1.0), st.floats(0.001, 0.9), st.floats(0.05, 0.9), st.floats(0.001, 0.09))
def test_smaller_changes_more_power_and_more_confidence_take_more(
    change: float, less: float, power: float, more: float
) -> None:
    pilot = mean_of(n=40)
    base = br.plan(pilot, change=change, power=power)
    assert br.plan(pilot, change=change * (1.0 - less), power=power).n >= base.n
    assert br.plan(pilot, change=change, power=power + more).n >= base.n
    surer = br.plan(pilot, change=change, power=power, confidence=0.95 + more / 2.0)
    assert surer.n >= base.n
    assert base.n_low <= base.n <= base.n_high
