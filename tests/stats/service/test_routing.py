"""Coverage is tested by seeded simulation; a bound is left by chance about once in a thousand."""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal
from scipy import stats as scipy_stats

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.stats.estimators.mean import estimate_mean
from benchrigor.stats.estimators.rate import estimate_rate
from benchrigor.stats.service.routing import filter_ratio, filter_ratio_of, visit_ratios

REPETITIONS = 400
LEAST, MOST = (int(scipy_stats.binom.ppf(p, REPETITIONS, 0.95)) for p in (1e-3, 0.9995))
RNG = np.random.default_rng(77)
TAKEN = RNG.poisson(50.0, 300)
GIVEN = RNG.binomial(TAKEN, 0.4)


def ratio(value: float, low: float, high: float, **given: object) -> Estimate:
    known: dict[str, object] = {
        "confidence": 0.95,
        "n": 20,
        "n_effective": 15.0,
        "method": "any",
    }
    return Estimate(value=value, low=low, high=high, **{**known, **given})  # type: ignore[arg-type]


def test_the_ratio_is_all_items_in_over_all_items_out() -> None:
    found = filter_ratio(TAKEN, GIVEN)
    assert found.value == pytest.approx(TAKEN.sum() / GIVEN.sum())
    assert found.low < found.value < found.high
    assert found.method == "long-run-variance, ratio of sums"
    assert found.n == 300


def test_the_ratio_is_a_rate_with_items_out_for_time() -> None:
    found, rate = filter_ratio(TAKEN, GIVEN), estimate_rate(TAKEN / GIVEN, weights=GIVEN)
    assert (found.low, found.high) == (rate.low, rate.high)


def test_periods_without_items_out_are_taken_with_those_after_them() -> None:
    found = filter_ratio([5, 6, 7, 8, 9, 3], [0, 2, 1, 0, 3, 0])
    merged = filter_ratio([11, 7, 20], [2, 1, 3])
    assert (found.value, found.low, found.high, found.n) == (
        merged.value,
        merged.low,
        merged.high,
        3,
    )


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), min_size=2, max_size=60))
def test_nothing_is_lost_in_merging(counts: list[tuple[int, int]]) -> None:
    taken, given_ = (list(each) for each in zip(*counts, strict=True))
    if sum(count > 0 for count in given_) < 2:
        with pytest.raises(NotEstimable, match="expected in at least 2"):
            filter_ratio(taken, given_)
        return
    found = filter_ratio(taken, given_)
    assert found.value == pytest.approx(sum(taken) / sum(given_))
    assert 0.0 <= found.low <= found.value * (1.0 + 1e-12)
    assert found.value <= found.high * (1.0 + 1e-12)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_the_units_of_the_counts_do_not_matter(one: float, other: float) -> None:
    found, scaled = filter_ratio(TAKEN, GIVEN), filter_ratio(TAKEN * one, GIVEN * other)
    factor = one / other
    assert (scaled.low, scaled.high) == pytest.approx((found.low * factor, found.high * factor))


def test_a_stage_that_passes_everything_has_a_ratio_of_1() -> None:
    found = filter_ratio(TAKEN, TAKEN)
    assert (found.low, found.value, found.high) == (1.0, 1.0, 1.0)
    assert [notice.code for notice in found.notices] == [Code.CONSTANT]


def passed(
    rng: np.random.Generator, kind: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], float]:
    if kind == "sparse":
        taken = rng.poisson(20.0, 300)
        return taken, rng.binomial(taken, 0.02), 50.0
    if kind == "multiplying":
        taken = rng.poisson(20.0, 100)
        return taken, 3 * taken - rng.binomial(taken, 0.2), 1.0 / 2.8
    slow = signal.lfilter([1.0], [1.0, -0.9], rng.normal(size=500)) * math.sqrt(1.0 - 0.81)
    taken = rng.poisson(30.0 * np.exp(0.5 * slow))
    return taken, rng.binomial(taken, 0.3), 1.0 / 0.3


@pytest.mark.parametrize("kind", ["sparse", "multiplying", "bursts"])
def test_the_interval_of_a_filter_ratio_covers(kind: str) -> None:
    hits = 0
    for repetition in range(REPETITIONS):
        taken, given_, truth = passed(np.random.default_rng([78, repetition]), kind)
        found = filter_ratio(taken, given_)
        hits += found.low <= truth <= found.high
    assert LEAST <= hits <= MOST


def test_pairing_tells_more_than_two_rates() -> None:
    slow = np.exp(0.5 * np.sin(np.arange(300) / 7.0))
    taken = RNG.poisson(50.0 * slow)
    given_ = RNG.binomial(taken, 0.4)
    paired = filter_ratio(taken, given_)
    apart = filter_ratio_of(estimate_mean(taken), estimate_mean(given_))
    assert apart.value == pytest.approx(paired.value)
    assert paired.half_width < 0.5 * apart.half_width


def test_two_rates_make_the_ratio_of_mover() -> None:
    found = filter_ratio_of(ratio(6.0, 5.0, 8.5), ratio(4.0, 3.6, 5.2))
    # Donner & Zou 2012, with the ends of both intervals.
    c, lc, uc, b, lb, ub = 6.0, 5.0, 8.5, 4.0, 3.6, 5.2
    low = (c * b - math.sqrt((c * b) ** 2 - lc * ub * (2 * c - lc) * (2 * b - ub))) / (
        ub * (2 * b - ub)
    )
    high = (c * b + math.sqrt((c * b) ** 2 - uc * lb * (2 * c - uc) * (2 * b - lb))) / (
        lb * (2 * b - lb)
    )
    assert (found.value, found.low, found.high) == pytest.approx((1.5, low, high))
    assert filter_ratio_of(0.0, 4.0).value == 0.0


def test_a_rate_out_that_may_be_0_allows_no_ratio() -> None:
    with pytest.raises(NotEstimable, match="rate_out may be as little as -1"):
        filter_ratio_of(3.0, ratio(1.0, -1.0, 3.0))


def test_visits_are_one_over_the_product_of_the_ratios_before() -> None:
    found = visit_ratios([10.0, 0.25, 2.0])
    assert [each.value for each in found] == pytest.approx([1.0, 0.1, 0.4, 0.2])
    assert all(each.low == each.value == each.high for each in found)
    assert [each.value for each in visit_ratios([])] == [1.0]


def test_the_interval_of_one_ratio_is_turned_over() -> None:
    one, shifted = (
        visit_ratios([ratio(4.0, 3.0, 8.0)])[1],
        visit_ratios([ratio(4.0, 3.0, 8.0), 2])[2],
    )
    assert (one.value, one.low, one.high) == pytest.approx((0.25, 1.0 / 8.0, 1.0 / 3.0))
    assert (shifted.value, shifted.low, shifted.high) == pytest.approx((1 / 8, 1 / 16, 1 / 6))
    assert one.method == "MOVER, product of 1"


def test_logarithms_of_several_ratios_add_up() -> None:
    found = visit_ratios([ratio(4.0, 3.0, 8.0), ratio(0.5, 0.4, 0.6)])[2]
    down = math.hypot(math.log(8.0 / 4.0), math.log(0.6 / 0.5))
    up = math.hypot(math.log(4.0 / 3.0), math.log(0.5 / 0.4))
    wanted = 0.5, 0.5 * math.exp(-down), 0.5 * math.exp(up)
    assert (found.value, found.low, found.high) == pytest.approx(wanted)
    assert (found.n, found.n_effective) == (40, 30.0)


def test_the_interval_of_visits_covers() -> None:
    hits = 0
    for repetition in range(REPETITIONS):
        rng = np.random.default_rng([79, repetition])
        ratios = []
        for keep in (0.2, 0.5):
            taken = rng.poisson(40.0, 60)
            ratios.append(filter_ratio(taken, rng.binomial(taken, keep)))
        found = visit_ratios(ratios)[2]
        hits += found.low <= 0.1 <= found.high
    assert LEAST <= hits <= MOST


def test_a_ratio_that_may_be_0_allows_no_visits() -> None:
    with pytest.raises(NotEstimable, match=r"filter_ratios\[1\] may be as little as 0"):
        visit_ratios([2.0, ratio(1.0, 0.0, 3.0)])


def test_items_that_hardly_ever_come_out_are_refused() -> None:
    with pytest.raises(NotEstimable, match="Items came out in 1 of 3 periods") as caught:
        filter_ratio([5, 5, 5], [0, 1, 0])
    assert isinstance(caught.value.notice, Notice)
    assert caught.value.notice.code is Code.TOO_FEW_READINGS
    with pytest.raises(NotEstimable, match="Items came out in 0 of 1 period,"):
        filter_ratio([5], [0])


@pytest.mark.parametrize(
    ("taken", "given_", "confidence", "said"),
    [
        ([1, 2, -3], [1, 1, 1], 0.95, r"items_in\[2\] is -3.0, expected a count of at least 0"),
        ([1, 2, 3], [1, -1, 1], 0.95, r"items_out\[1\] is -1.0, expected a count"),
        ([1, 2, 3], [1, math.nan, 1], 0.95, r"items_out\[1\] is nan"),
        ([1, 2], [1, 2, 3], 0.95, "items_in holds 2 periods and items_out 3, expected the same"),
        ("many", [1, 2], 0.95, "items_in is 'many'"),
        ([1, 2], [], 0.95, "items_out is empty"),
        ([1, 2], [1, 1], 2.0, "confidence is 2.0"),
    ],
)
def test_counts_that_are_none_are_named(
    taken: object, given_: object, confidence: float, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        filter_ratio(taken, given_, confidence=confidence)  # type: ignore[arg-type]


def test_rates_and_ratios_that_are_none_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"rate_in is -1\.0") as caught:
        filter_ratio_of(-1.0, 0.0)
    assert len(caught.value.problems) == 2
    mixed = [ratio(1.0, 0.9, 1.1), replace(ratio(1.0, 0.9, 1.1), confidence=0.9)]
    with pytest.raises(InvalidInput, match="rate_in and rate_out have confidences"):
        filter_ratio_of(*mixed)
    with pytest.raises(InvalidInput, match=r"filter_ratios have confidences 0\.9 and 0\.95"):
        visit_ratios(mixed)
    with pytest.raises(InvalidInput, match=r"filter_ratios\[1\] is 0, expected a number above 0"):
        visit_ratios([1.0, 0])
    with pytest.raises(InvalidInput, match="filter_ratios is None"):
        visit_ratios(None)  # type: ignore[arg-type]
