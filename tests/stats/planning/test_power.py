import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import mean_of
from statsmodels.stats.power import TTestIndPower

import benchrigor as br
from benchrigor.model import Code, Notice
from benchrigor.stats import estimate_invocations, estimate_mean, required_readings

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


def test_a_margin_leaves_the_rest_of_the_change_to_be_seen() -> None:
    plain = br.plan(mean_of(), change=0.02)
    beyond = br.plan(mean_of(), change=0.03, margin=0.01)
    # The noise of 1.01 times the baseline is a little larger, too.
    assert beyond.n == pytest.approx(plain.n * (1.0 + 1.01**2) / 2.0, abs=1.0)
    assert beyond.change_now == pytest.approx(plain.change_now + 0.01, rel=0.01)


def test_prices_are_the_readings_that_half_widths_require() -> None:
    pilot = mean_of(n=200)
    widths = (0.05, 0.01, 0.003)
    found = br.plan(pilot, half_widths=widths)
    assert [each.half_width for each in found.prices] == list(widths)
    assert [each.n for each in found.prices] == [required_readings(pilot, w) for w in widths]
    assert all(each.n_low <= each.n <= each.n_high for each in found.prices)
    assert all(each.seconds is None for each in found.prices)


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


def test_a_huge_change_needs_no_more_than_an_interval_does() -> None:
    assert br.plan(mean_of(sd=1e-6, n=30), change=10.0).n == 2
    # Ten degrees of freedom from 1000 readings: one takes some 180.
    persistent = replace(mean_of(sd=1e-6, n=1_000), degrees_of_freedom=10.0, n_effective=20.0)
    assert br.plan(persistent, change=10.0).n == math.ceil(2_000 / 11)


def test_a_long_pilot_plans_as_a_short_one_does() -> None:
    readings = np.random.default_rng(15).normal(1.0, 0.012, 100_000)
    # Its variance is learned from 4096 averages at most.
    long = estimate_mean(readings)
    assert long.degrees_of_freedom is not None
    assert long.degrees_of_freedom < 5_000
    short = mean_of(sd=0.012, n=1_000)
    for change in (0.03, 0.013):
        expected = br.plan(short, change=change, margin=0.01).n
        assert br.plan(long, change=change, margin=0.01).n == pytest.approx(
            expected, rel=0.02, abs=2
        )


def test_invocations_are_called_so_and_few_of_them_are_named() -> None:
    rng = np.random.default_rng(14)
    pilot = estimate_invocations([rng.normal(level, 0.1, 50) for level in rng.normal(5, 0.01, 12)])
    found = br.plan(pilot, change=0.03)
    assert found.counted_in == "invocation"
    assert found.n < 10
    assert [each.code for each in found.notices] == [Code.FEW_INVOCATIONS]


def test_few_readings_are_named_and_being_short_of_a_target_is_not() -> None:
    short = Notice.of(Code.NOT_CONVERGED)
    early = Notice.of(Code.SHORT_RUN, n=100, noun_="readings", wanted=200)
    pilot = replace(mean_of(sd=0.01, n=100), notices=(short, early))
    found = br.plan(pilot, change=0.03)
    assert found.counted_in == "reading"
    assert [each.code for each in found.notices] == [Code.SHORT_RUN, Code.FEW_READINGS]
