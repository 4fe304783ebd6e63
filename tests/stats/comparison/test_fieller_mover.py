import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.estimates import estimated

from benchrigor.model import Estimate
from benchrigor.stats.comparison.fieller_mover import (
    Contrast,
    UncertainValue,
    difference_of,
    further_units,
    p_value_at,
    ratio_of,
    uncertain_value,
)

SIZE = (20, 20.0)


def value_of(
    value: float, below: float, above: float | None = None, df: float = 9.0
) -> UncertainValue:
    return UncertainValue(
        value=value,
        below=below,
        above=below if above is None else above,
        degrees_of_freedom=df,
    )


values = st.builds(
    value_of,
    st.floats(1.0, 10.0),
    st.floats(0.001, 0.05),
    st.floats(0.001, 0.05),
    st.sampled_from([3.0, 9.0, 100.0, math.inf]),
)


def ratio(contrast: Contrast, confidence: float = 0.95) -> Estimate:
    found = ratio_of(contrast, confidence, SIZE, "Fieller")
    assert found is not None
    return found


def test_the_ratio_is_that_of_fieller() -> None:
    # Equal degrees of freedom that do not matter: the closed form with the normal quantile.
    contrast = Contrast(baseline=value_of(4.0, 0.5, df=1e12), candidate=value_of(6.0, 0.9, df=1e12))
    z = float(mpmath.sqrt(2) * mpmath.erfinv(0.95))
    g = (z * 0.5 / 4.0) ** 2
    reach = z / 4.0 * math.sqrt(0.9**2 + 1.5**2 * 0.5**2 - g * 0.9**2)
    found = ratio(contrast)
    assert found.low == pytest.approx((1.5 - reach) / (1 - g))
    assert found.high == pytest.approx((1.5 + reach) / (1 - g))


def test_the_ratio_of_asymmetric_values_is_that_of_donner_and_zou() -> None:
    # Donner & Zou 2012: with ends (l, u) of each value_of at the confidence wanted.
    z = float(mpmath.sqrt(2) * mpmath.erfinv(0.95))
    c, lc, uc = 6.0, 5.0, 8.5
    b, lb, ub = 4.0, 3.6, 5.2
    contrast = Contrast(
        baseline=value_of(b, (b - lb) / z, (ub - b) / z, math.inf),
        candidate=value_of(c, (c - lc) / z, (uc - c) / z, math.inf),
    )
    low = (b * c - math.sqrt((b * c) ** 2 - lc * ub * (2 * c - lc) * (2 * b - ub))) / (
        ub * (2 * b - ub)
    )
    high = (b * c + math.sqrt((b * c) ** 2 - uc * lb * (2 * c - uc) * (2 * b - lb))) / (
        lb * (2 * b - lb)
    )
    found = ratio(contrast)
    assert (found.low, found.high) == pytest.approx((low, high))
    apart = difference_of(contrast, 0.95, SIZE, "MOVER")
    assert apart.low == pytest.approx(2.0 - math.hypot(c - lc, ub - b))
    assert apart.high == pytest.approx(2.0 + math.hypot(uc - c, b - lb))


@given(values, values, st.sampled_from([0.8, 0.95, 0.999]), st.floats(-0.9, 0.9))
def test_an_end_of_the_ratio_is_where_the_test_just_rejects(
    baseline: UncertainValue, candidate: UncertainValue, confidence: float, correlation: float
) -> None:
    contrast = Contrast(baseline=baseline, candidate=candidate, correlation=correlation)
    found = ratio(contrast, confidence)
    for end in (found.low, found.high):
        assert p_value_at(contrast, end) == pytest.approx(1.0 - confidence, rel=1e-4)


@pytest.mark.parametrize("value", [0.0, 0.5, -4.0])
def test_a_baseline_that_is_not_above_zero_has_no_ratio(value: float) -> None:
    contrast = Contrast(baseline=value_of(value, 0.5), candidate=value_of(6.0, 0.5))
    assert ratio_of(contrast, 0.95, SIZE, "Fieller") is None


def test_huge_and_tiny_readings_do_not_leave_the_range() -> None:
    for unit in (1e-160, 1e150):
        contrast = Contrast(
            baseline=value_of(4.0 * unit, 0.2 * unit), candidate=value_of(6.0 * unit, 0.3 * unit)
        )
        plain = ratio(Contrast(baseline=value_of(4.0, 0.2), candidate=value_of(6.0, 0.3)))
        found = ratio(contrast)
        assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_errors_are_recovered_from_the_interval_of_an_estimate() -> None:
    estimate = estimated(1.0, 0.9, 1.3, standard_error=0.09, degrees_of_freedom=9.0)
    t = float(scipy_stats.t.ppf(0.975, 9))
    found = uncertain_value(estimate, symmetric=False)
    assert (found.below, found.above) == pytest.approx((0.1 / t, 0.3 / t))
    assert uncertain_value(estimate, symmetric=True).above == 0.09


@given(st.integers(2, 1000), st.integers(2, 1000), st.floats(0.05, 0.99), st.floats(0.01, 0.1))
def test_further_units_shrink_the_error_as_wanted(m: int, n: int, shrink: float, e: float) -> None:
    contrast = Contrast(baseline=value_of(1.0, 0.03), candidate=value_of(1.0, e))
    k = further_units(contrast, (m, n), shrink)

    def error(more: int) -> float:
        return math.hypot(0.03 * math.sqrt(m / (m + more)), e * math.sqrt(n / (n + more)))

    assert error(k) <= shrink * error(0) * (1 + 1e-9)
    assert error(k - 1) > shrink * error(0) * (1 - 1e-9)
