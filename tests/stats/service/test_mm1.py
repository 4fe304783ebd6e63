"""Chances are held against simulated queues; a bound is left by chance about once in a thousand."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from benchrigor.errors import InvalidInput
from benchrigor.stats.service.mm1 import (
    items_in,
    mean_wait_s,
    mean_waiting,
    rounded_up,
    unblocked_read_probability,
    unblocked_write_probability,
)

utilisations = st.floats(0.001, 0.999)


def read(utilisation: float, items: float) -> float:
    return unblocked_read_probability(utilisation=utilisation, service_rate=items, period_s=1.0)


def write(utilisation: float, items: float, capacity: int) -> float:
    return unblocked_write_probability(
        utilisation=utilisation, service_rate=items, period_s=1.0, capacity=capacity
    )


def test_a_read_is_unblocked_when_all_items_of_the_period_are_there() -> None:
    assert read(0.8, 32.0) == pytest.approx(0.8**32)
    assert read(0.95, 512.0) == pytest.approx(3.93e-12, rel=1e-2)


def test_a_write_is_unblocked_when_there_is_room_for_all_items_of_the_period() -> None:
    assert write(0.8, 3.0, 10) == pytest.approx(1.0 - 0.8**8)
    assert write(0.8, 10.0, 10) == pytest.approx(1.0 - 0.8)
    assert write(0.8, 11.0, 10) == 0.0


def test_part_of_an_item_counts_as_one() -> None:
    assert read(0.5, 2.1) == 0.5**3
    assert read(0.5, 0.001) == 0.5


@pytest.mark.parametrize(
    ("rate", "period_s", "items"),
    [
        (100.0, 0.03, 3),
        (10.0, 0.1 + 0.2, 3),  # 3.0000000000000004
        (3.0000000001, 1.0, 3),
        (3.0001, 1.0, 4),
        (2.9999999999, 1.0, 3),
        (1e-9, 1e-3, 1),
        (1e15, 1.0, 10**15),
    ],
)
def test_rounding_does_not_add_an_item(rate: float, period_s: float, items: int) -> None:
    assert items_in(rate, period_s) == items


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_whole_number_of_items_in_decimals_is_that_number(items: int, parts: int) -> None:
    assert items_in(items * parts, 1.0 / parts) == items


@given(st.floats(1e-6, 1e6))
def test_rounding_up_is_at_most_a_billionth_below(number: float) -> None:
    up = rounded_up(number)
    assert number * (1.0 - 1e-8) <= up < number + 1.0
    assert up >= 1


@given(utilisations, st.integers(1, 40), st.integers(0, 400))
def test_chances_agree_with_many_digits(utilisation: float, items: int, more: int) -> None:
    rho = mpmath.mpf(utilisation)
    assert read(utilisation, items) == pytest.approx(float(rho**items), rel=1e-12)
    wanted = float(1 - rho ** (more + 1))
    assert write(utilisation, items, items + more) == pytest.approx(wanted, rel=1e-12)


def test_nothing_cancels_where_the_utilisation_is_near_1() -> None:
    utilisation = 1.0 - 2.0**-50
    assert write(utilisation, 1.0, 4) == pytest.approx(4 * 2.0**-50, rel=1e-12)


@given(utilisations, utilisations, st.integers(1, 50))
def test_a_fuller_queue_is_better_to_read_and_worse_to_write(
    one: float, other: float, items: int
) -> None:
    low, high = sorted((one, other))
    assert read(low, items) <= read(high, items)
    assert write(low, items, 60) >= write(high, items, 60)


@given(utilisations, st.integers(1, 50), st.integers(1, 50))
def test_a_longer_period_is_worse_for_both(utilisation: float, one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert read(utilisation, low) >= read(utilisation, high)
    assert write(utilisation, low, 60) >= write(utilisation, high, 60)


@given(utilisations, st.floats(0.1, 100.0), st.floats(1e-6, 1e6))
def test_the_unit_of_time_does_not_matter(utilisation: float, items: float, unit: float) -> None:
    scaled = unblocked_read_probability(
        utilisation=utilisation, service_rate=items / unit, period_s=unit
    )
    assert scaled == read(utilisation, items)


def test_a_saturated_queue_is_always_full() -> None:
    assert read(1.0, 5.0) == read(3.0, 5.0) == 1.0
    assert write(1.0, 5.0, 50) == write(3.0, 5.0, 50) == 0.0


def test_an_empty_queue_is_never_full() -> None:
    assert read(0.0, 5.0) == 0.0
    assert write(0.0, 5.0, 5) == 1.0


def unblocked_periods(utilisation: float, items: int, rng: np.random.Generator) -> list[bool]:
    """Simulate an M/M/1 queue; say of far-apart periods whether the server never waited."""
    n = 400_000
    arrivals = np.cumsum(rng.exponential(1.0 / utilisation, n))
    services = rng.exponential(1.0, n)
    # Idle time before item i is what the start of all services so far exceeds their sum.
    before = np.concatenate([[0.0], np.cumsum(services)[:-1]])
    starts = np.maximum.accumulate(arrivals - before) + before
    ends = starts + services
    # The server waits from one end to the next start.
    waits_from, waits_to = ends[:-1], starts[1:]
    gaps = waits_to > waits_from + 1e-12
    waits_from, waits_to = waits_from[gaps], waits_to[gaps]
    found = []
    for begin in np.arange(2000.0, float(ends[-1]) - 2000.0, 600.0):
        index = int(np.searchsorted(waits_to, begin))
        found.append(index == waits_to.size or bool(waits_from[index] > begin + items))
    return found


def test_the_formula_is_a_lower_bound_of_what_a_simulated_queue_does() -> None:
    found = unblocked_periods(0.8, 32, np.random.default_rng(71))
    n, seen = len(found), sum(found)
    assert seen > scipy_stats.binom.ppf(0.999, n, read(0.8, 32.0))
    least, most = scipy_stats.binom.ppf([5e-4, 0.9995], n, 0.13)
    assert least <= seen <= most


def test_items_wait_as_by_pollaczek_and_khinchine() -> None:
    assert mean_waiting(0.8) == pytest.approx(3.2)
    assert mean_waiting(0.8, variation=0.0) == pytest.approx(1.6)
    assert mean_wait_s(arrival_rate=8.0, service_rate=10.0) == pytest.approx(0.4)


@pytest.mark.parametrize("variation", [0.0, 0.25, 1.0, 4.0])
def test_simulated_items_wait_as_long(variation: float) -> None:
    rng = np.random.default_rng(72)
    means = []
    for _ in range(200):
        gaps = rng.exponential(1.0 / 0.6, 3000)
        spread = rng.gamma(1.0 / variation, variation, 3000) if variation else np.ones(3000)
        steps = np.cumsum(spread - gaps)  # Lindley's recursion in one pass
        waits = steps - np.minimum.accumulate(np.minimum(steps, 0.0))
        means.append(float(waits[500:].mean()))
    wanted = mean_wait_s(arrival_rate=0.6, service_rate=1.0, variation=variation)
    assert scipy_stats.ttest_1samp(means, wanted).pvalue > 1e-3


@given(utilisations, st.floats(0.0, 50.0), st.floats(1e-6, 1e6))
def test_waits_scale_with_the_unit_of_time(
    utilisation: float, variation: float, unit: float
) -> None:
    wait_s = mean_wait_s(arrival_rate=utilisation, service_rate=1.0, variation=variation)
    scaled = mean_wait_s(
        arrival_rate=utilisation / unit, service_rate=1 / unit, variation=variation
    )
    assert scaled == pytest.approx(wait_s * unit)
    assert wait_s * utilisation == pytest.approx(mean_waiting(utilisation, variation=variation))


def test_a_saturated_stage_makes_wait_for_ever() -> None:
    assert mean_waiting(1.0) == math.inf
    assert mean_wait_s(arrival_rate=3.0, service_rate=2.0) == math.inf


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"utilisation": math.nan}, "utilisation is nan, expected a number of at least 0"),
        ({"utilisation": -0.1}, "utilisation is -0.1"),
        ({"utilisation": "high"}, "utilisation is 'high'"),
        ({"service_rate": 0.0}, "service_rate is 0.0, expected a number above 0"),
        ({"service_rate": None}, "service_rate is None"),
        ({"service_rate": 1e-200}, "service_rate is 1e-200, expected one of at least 1e-150"),
        ({"service_rate": 10**400}, "service_rate is 1000.*expected a number above 0, up to"),
        ({"period_s": math.inf}, "period_s is inf"),
        ({"period_s": True}, "period_s is True"),
        ({"capacity": 0}, "capacity is 0, expected a whole number of at least 1"),
        ({"capacity": 2.5}, "capacity is 2.5"),
        ({"capacity": True}, "capacity is True"),
    ],
)
def test_what_is_out_of_range_is_named(given_: dict[str, object], said: str) -> None:
    arguments: dict[str, object] = {
        "utilisation": 0.5,
        "service_rate": 10.0,
        "period_s": 1.0,
        "capacity": 20,
    }
    with pytest.raises(InvalidInput, match=said):
        unblocked_write_probability(**{**arguments, **given_})  # type: ignore[arg-type]


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        unblocked_read_probability(utilisation=-1.0, service_rate=0.0, period_s=math.nan)
    assert len(caught.value.problems) == 3
    with pytest.raises(InvalidInput, match="variation is -1"):
        mean_waiting(0.5, variation=-1.0)
    with pytest.raises(InvalidInput, match="arrival_rate is 0"):
        mean_wait_s(arrival_rate=0.0, service_rate=1.0)
