import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats
from simulated.estimates import estimated, mean_of

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.stats import estimate_rate, filter_ratio, sum_rates, utilisation_of

RNG = np.random.default_rng(77)
TAKEN = RNG.poisson(50.0, 300)
GIVEN = RNG.binomial(TAKEN, 0.4)
NOTICE = Notice.warning(Code.SHORT_RUN, "Short.")


def rate(
    value: float, down: float, up: float | None = None, *, df: float | None = None
) -> Estimate:
    """Make an estimate of given standard errors downwards and upwards."""
    quantile = -float(special.stdtrit(math.inf if df is None else df, 0.025))
    high = value + quantile * (down if up is None else up)
    return estimated(value, value - quantile * down, high, degrees_of_freedom=df)


rates = st.builds(
    rate,
    st.floats(1.0, 100.0),
    st.floats(0.001, 0.3),
    st.floats(0.001, 0.3),
    df=st.sampled_from([None, 4.0, 30.0]),
)


def shown(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def test_the_sum_is_that_of_welch_and_satterthwaite() -> None:
    rng = np.random.default_rng(75)
    samples = [rng.normal(mean, sd, n) for mean, sd, n in ((5.0, 1.0, 6), (9.0, 3.0, 9))]
    squares = [float(sample.var(ddof=1)) / sample.size for sample in samples]
    df = sum(squares) ** 2 / (squares[0] ** 2 / 5 + squares[1] ** 2 / 8)
    error = math.sqrt(sum(squares))
    levels = [
        mean_of(each.size, value=float(each.mean()), sd=float(each.std(ddof=1))) for each in samples
    ]
    found = sum_rates(levels)
    wanted = sum(float(sample.mean()) for sample in samples)
    reach = float(scipy_stats.t.ppf(0.975, df)) * error
    assert found.degrees_of_freedom == pytest.approx(df)
    assert found.standard_error == pytest.approx(error)
    assert shown(found) == pytest.approx((wanted, wanted - reach, wanted + reach))


def test_the_sum_of_asymmetric_rates_is_that_of_zou_and_donner() -> None:
    one, other = rate(10.0, 1.0, 2.0), rate(20.0, 0.5, 1.5)
    found = sum_rates([one, other])
    down = math.hypot(one.value - one.low, other.value - other.low)
    up = math.hypot(one.high - one.value, other.high - other.value)
    assert shown(found) == pytest.approx((30.0, 30.0 - down, 30.0 + up))
    assert (found.n, found.n_effective) == (40, 30.0)


def test_a_rate_known_exactly_shifts_the_sum() -> None:
    one = rate(10.0, 1.0, 2.0)
    assert shown(sum_rates([one, 5])) == pytest.approx((15.0, one.low + 5.0, one.high + 5.0))
    exact = sum_rates([1.0, 2.0])
    assert shown(exact) == (3.0, 3.0, 3.0)
    assert (exact.method, exact.n) == ("exact", 0)


@given(st.lists(rates, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_the_parts_does_not_matter(parts: list[Estimate], random: object) -> None:
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = sum_rates(parts), sum_rates(shuffled)
    assert shown(one) == shown(other)
    assert one.degrees_of_freedom == other.degrees_of_freedom


@given(st.lists(rates, min_size=2, max_size=6))
def test_a_sum_is_known_better_than_by_adding_the_ends(parts: list[Estimate]) -> None:
    found = sum_rates(parts)
    assert sum(part.low for part in parts) <= found.low <= found.value
    assert found.value <= found.high <= sum(part.high for part in parts)


def test_the_notices_of_all_parts_are_carried_once() -> None:
    one = replace(rate(1.0, 0.1), notices=(NOTICE,))
    assert sum_rates([one, rate(2.0, 0.1), one]).notices == (NOTICE,)
    assert utilisation_of(rate(1.0, 0.1), one).notices == (NOTICE,)


@given(st.floats(0.0, 1e9), st.floats(1e-9, 1e9), st.integers(1, 100))
def test_the_utilisation_of_exact_rates_is_exact(
    arrival: float, service: float, servers: int
) -> None:
    wanted = arrival / (servers * service)
    found = utilisation_of(arrival, service, servers=servers)
    assert shown(found) == (wanted, wanted, wanted)
    assert (found.confidence, found.notices) == (0.95, ())


def test_an_exact_arrival_rate_turns_the_interval_of_the_service_over() -> None:
    service = rate(30.0, 2.0, 3.0, df=7.0)
    found = utilisation_of(60.0, service, servers=2)
    assert shown(found) == pytest.approx((1.0, 30.0 / service.high, 30.0 / service.low))


@given(rates, rates, st.integers(1, 20), st.floats(1e-6, 1e6))
def test_the_unit_of_time_does_not_matter(
    arrival: Estimate, service: Estimate, servers: int, unit: float
) -> None:
    def scaled(each: Estimate) -> Estimate:
        return replace(each, value=each.value * unit, low=each.low * unit, high=each.high * unit)

    found = utilisation_of(arrival, service, servers=servers)
    other = utilisation_of(scaled(arrival), scaled(service), servers=servers)
    assert shown(other) == pytest.approx(shown(found), rel=1e-6)
    assert 0.0 <= found.low <= found.value <= found.high


def test_no_utilisation_is_below_0() -> None:
    assert utilisation_of(rate(1.0, 2.0), 10.0).low == 0.0
    assert shown(utilisation_of(0, 10.0)) == (0.0, 0.0, 0.0)


def test_two_rates_make_the_ratio_of_mover() -> None:
    arrival, service = rate(6.0, 0.5, 1.2), rate(4.0, 0.2, 0.6)
    found = utilisation_of(arrival, service)
    # Donner & Zou 2012, with the ends of both intervals.
    c, lc, uc = shown(arrival)
    b, lb, ub = shown(service)
    low = (c * b - math.sqrt((c * b) ** 2 - lc * ub * (2 * c - lc) * (2 * b - ub))) / (
        ub * (2 * b - ub)
    )
    high = (c * b + math.sqrt((c * b) ** 2 - uc * lb * (2 * c - uc) * (2 * b - lb))) / (
        lb * (2 * b - lb)
    )
    assert shown(found) == pytest.approx((1.5, low, high))
    assert (found.method, found.n, found.n_effective) == ("MOVER, ratio", 40, 30.0)


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
        with pytest.raises(NotEstimable):
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
