"""Laws of every ratio of means: one test inverted, and neither side preferred."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.estimates import estimated

from benchrigor.errors import NotEstimable
from benchrigor.model import Comparison, Estimate, Verdict
from benchrigor.stats import compare

DECIDED = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


def slow(rng: np.random.Generator, n: int, factor: float) -> np.ndarray:
    return rng.lognormal(0.0, 0.1, n) * np.where(rng.random(n) < 0.12, factor, 1.0)


def series(seed: int, n: int, factor: float, moving: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pace = np.exp(moving * np.cumsum(rng.normal(0.0, 0.05, n)))
    one, two = (slow(rng, n, factor) * pace for _ in range(2))
    return one, two * rng.choice([0.3, 0.9, 1.0, 1.2])


DOORS: dict[str, dict[str, Any]] = {
    "pairs": {"paired": True},
    "stable pairs": {"paired": True, "trim": True},
    "medians of pairs": {"paired": True, "statistic": "median"},
    "paired invocations": {"paired": True},
    "invocations": {},
    "samples": {},
}


def by_door(door: str, one: np.ndarray, two: np.ndarray, margin: float = 0.0) -> Comparison:
    if "invocations" in door:
        return compare(one[:, None], two[:, None], margin=margin, **DOORS[door])
    shorter = two[: max(two.size // 2, 2)] if door == "samples" else two
    return compare(one, shorter, margin=margin, **DOORS[door])


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    one, two = series(
        draw(st.integers(0, 10**6)),
        draw(st.integers(12, 90)),
        draw(st.sampled_from([1.0, 3.0, 10.0, 100.0])),
        draw(st.sampled_from([0.0, 0.3, 1.0])),
    )
    return one, two, draw(st.sampled_from([0.0, 0.01]))


@pytest.mark.parametrize("door", [each for each in DOORS if each != "samples"])
@settings(max_examples=25)
@given(cases())
def test_exchanged_sides_give_the_mirror(
    door: str, case: tuple[np.ndarray, np.ndarray, float]
) -> None:
    one, two, margin = case
    try:
        found, back = by_door(door, one, two, margin), by_door(door, two, one, margin)
    except NotEstimable:
        reject()
    assert found.ratio is not None
    assert back.ratio is not None
    assert 1.0 / found.ratio.value == pytest.approx(back.ratio.value, rel=1e-9)
    ends = (1.0 / found.ratio.high, 1.0 / found.ratio.low if found.ratio.low else math.inf)
    assert ends == pytest.approx((back.ratio.low, back.ratio.high), rel=1e-7)
    assert found.p_value == pytest.approx(back.p_value, rel=1e-6, abs=1e-14)
    assert found.p_beyond == pytest.approx(back.p_beyond, rel=1e-6, abs=1e-14)
    assert DECIDED.get(found.verdict, found.verdict) is back.verdict
    assert (found.median_ratio is None) == (back.median_ratio is None)
    if found.median_ratio is not None and back.median_ratio is not None:
        assert found.median_ratio.low == pytest.approx(1.0 / back.median_ratio.high, rel=1e-9)


@pytest.mark.parametrize("door", [each for each in DOORS if each != "medians of pairs"])
@settings(max_examples=25)
@given(cases())
def test_verdict_interval_and_p_value_agree(
    door: str, case: tuple[np.ndarray, np.ndarray, float]
) -> None:
    found = by_door(door, *case)
    ratio = found.ratio
    assert ratio is not None
    assert found.p_value is not None
    assert 0.0 <= ratio.low <= ratio.value <= ratio.high
    if found.baseline is None:
        return  # blocks of pairs have the sign test, of few probabilities
    is_bounded = ratio.low > 0.0 and ratio.high < math.inf
    assume(abs(found.p_value - 0.05) > 1e-9)
    assert (found.p_value < 0.05) == (is_bounded and not ratio.low <= 1.0 <= ratio.high)
    if found.verdict in DECIDED:
        assert found.p_value < 0.05
        assert found.p_beyond < 0.05
    if found.margin == 0.0:
        assert (found.verdict in DECIDED) == (found.p_value < 0.05)
    if not is_bounded:
        assert found.verdict is Verdict.UNDECIDED


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(5, 29))
def test_the_order_of_few_pairs_does_not_matter(seed: int, n: int) -> None:
    one, two = series(seed, n, 10.0, 0.0)
    moved = np.random.default_rng(seed).permutation(n)
    found, other = (by_door("pairs", *sides) for sides in ((one, two), (one[moved], two[moved])))
    assert found.ratio is not None
    assert other.ratio is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx(
        (other.ratio.low, other.ratio.high), rel=1e-9
    )
    assert found.p_value == pytest.approx(other.p_value)


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_few_pairs_have_the_roots_of_fieller(factor: float) -> None:
    one, two = series(3, 15, factor, 0.0)
    found, n = by_door("pairs", one, two), 15
    t = float(scipy_stats.t.ppf(0.975, n - 1))
    (a, b), (_, c) = np.cov(one, two) / n
    roots = np.roots([one.mean() ** 2 - t**2 * a, -2.0 * (one.mean() * two.mean() - t**2 * b),
                      two.mean() ** 2 - t**2 * c])  # fmt: skip
    assert found.ratio is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx(tuple(sorted(roots)))
    assert found.p_value == pytest.approx(scipy_stats.ttest_rel(one, two).pvalue)


def value_of(value: float, error: float, df: float = 9.0) -> Estimate:
    reach = float(scipy_stats.t.ppf(0.975, df)) * error
    known = {"standard_error": error, "degrees_of_freedom": df}
    return estimated(value, value - reach, value + reach, **known)


def scaled(given: Estimate, unit: float) -> Estimate:
    ends = {name: getattr(given, name) * unit for name in ("value", "low", "high")}
    return replace(given, **ends, standard_error=(given.standard_error or 0.0) * unit)


def ratio_of(baseline: Estimate, candidate: Estimate) -> Estimate:
    found = compare(baseline, candidate).ratio
    assert found is not None
    return found


def test_the_ratio_of_asymmetric_values_is_that_of_donner_and_zou() -> None:
    """Of medians, whose intervals need not be symmetric (Donner & Zou 2012)."""
    c, lc, uc = 6.0, 5.0, 8.5
    b, lb, ub = 4.0, 3.6, 5.2
    found: Comparison = compare(estimated(b, lb, ub), estimated(c, lc, uc), statistic="median")
    low = (b * c - math.sqrt((b * c) ** 2 - lc * ub * (2 * c - lc) * (2 * b - ub))) / (
        ub * (2 * b - ub)
    )
    high = (b * c + math.sqrt((b * c) ** 2 - uc * lb * (2 * c - uc) * (2 * b - lb))) / (
        lb * (2 * b - lb)
    )
    assert found.ratio is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx((low, high))
    assert found.difference.low == pytest.approx(2.0 - math.hypot(c - lc, ub - b))
    assert found.difference.high == pytest.approx(2.0 + math.hypot(uc - c, b - lb))


estimates = st.builds(
    value_of,
    st.floats(1.0, 10.0),
    st.floats(0.001, 0.05),
    st.sampled_from([3.0, 9.0, 100.0, 1e9]),
)


@given(estimates, estimates)
def test_an_end_of_the_ratio_is_where_the_test_just_rejects(one: Estimate, two: Estimate) -> None:
    found = ratio_of(one, two)
    for end in (found.low, found.high):
        p_value = compare(one, scaled(two, 1.0 / end), margin=0.0).p_value
        assert p_value == pytest.approx(0.05, rel=1e-4)


def test_huge_and_tiny_readings_do_not_leave_the_range() -> None:
    one, two = value_of(4.0, 0.2), value_of(6.0, 0.3)
    plain = ratio_of(one, two)
    for unit in (1e-160, 1e150):
        found = ratio_of(scaled(one, unit), scaled(two, unit))
        assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
