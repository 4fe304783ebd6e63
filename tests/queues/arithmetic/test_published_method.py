from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from benchrigor.errors import InvalidInput
from benchrigor.model.series import Floats
from benchrigor.queues.arithmetic.moments import Row
from benchrigor.queues.arithmetic.published_method import (
    QUANTILE_COUNTS,
    STEADY_QUANTILES,
    QuantileMean,
    add_quantiles,
    join_periods,
    unblocked_read_probability,
    unblocked_write_probability,
    widest,
    window_quantiles,
)
from benchrigor.queues.data.service import RateReason

utilisations = st.floats(0.001, 0.999)


def by_hand(counts: list[float], *, normalised: bool) -> list[float]:
    """Equations 2 and 3, term by term."""
    weights = [math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi) for x in range(-2, 3)]
    if normalised:
        weights = [each / sum(weights) for each in weights]
    found = []
    for start in range(len(counts) - QUANTILE_COUNTS + 1):
        window = counts[start : start + QUANTILE_COUNTS]
        filtered = [
            sum(weights[k] * window[i + k] for k in range(5)) for i in range(QUANTILE_COUNTS - 4)
        ]
        mean = sum(filtered) / len(filtered)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in filtered) / (len(filtered) - 1))
        found.append(mean + 1.64485 * deviation)
    return found


@given(st.lists(st.floats(0.0, 1e6), min_size=16, max_size=60), st.booleans())
def test_quantiles_are_those_of_the_published_equations(
    counts: list[float], normalised: bool
) -> None:
    found = window_quantiles(np.array(counts), normalised=normalised)
    assert found == pytest.approx(by_hand(counts, normalised=normalised), rel=1e-6, abs=1e-6)


def test_fewer_counts_than_a_window_give_no_quantile() -> None:
    assert window_quantiles(np.ones(15), normalised=True).size == 0


def test_the_kernel_as_published_loses_what_it_is_known_to_lose() -> None:
    assert window_quantiles(np.ones(16), normalised=False)[0] == pytest.approx(0.990866, abs=1e-6)
    assert window_quantiles(np.ones(16), normalised=True)[0] == pytest.approx(1.0)


def test_the_quantile_of_the_text_is_the_normal_one() -> None:
    assert reference.norm.ppf(0.95) == pytest.approx(1.64485, abs=1e-5)


@given(
    st.lists(st.floats(10.0, 1000.0), min_size=2, max_size=200),
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
)
def test_quantiles_added_in_parts_converge_as_all_at_once(
    values: list[float], sizes: list[int]
) -> None:
    whole, stopped = add_quantiles(QuantileMean(), np.array(values), relative=True)
    state, at, start = QuantileMean(), None, 0
    while start < len(values) and at is None:
        size = sizes[start % len(sizes)]
        state, at = add_quantiles(state, np.array(values[start : start + size]), relative=True)
        at = None if at is None else start + at
        start += size
    assert at == stopped
    assert (state.n, state.steady) == (whole.n, whole.steady)
    assert state.mean == pytest.approx(whole.mean)
    assert state.second == pytest.approx(whole.second, rel=1e-6, abs=1e-6)


@given(st.lists(st.floats(10.0, 1000.0), min_size=3, max_size=100))
def test_mean_and_deviation_are_those_of_all_quantiles(values: list[float]) -> None:
    found, stopped = add_quantiles(QuantileMean(), np.array(values), relative=True)
    kept = values[: len(values) if stopped is None else stopped + 1]
    assert found.mean == pytest.approx(np.mean(kept))
    assert found.deviation == pytest.approx(np.std(kept, ddof=1), rel=1e-6, abs=1e-6)


def test_quantiles_without_noise_converge_when_sixteen_after_two_are_steady() -> None:
    _, stopped = add_quantiles(QuantileMean(), np.full(40, 7.0), relative=False)
    assert stopped == 2 + STEADY_QUANTILES - 1


def test_the_published_tolerance_depends_on_the_unit_and_the_relative_one_does_not() -> None:
    noise = np.random.default_rng(1).normal(0.0, 1e-3, 400)
    values = 100.0 + np.convolve(noise, np.ones(12) / 12.0, mode="same")
    stops = {
        relative: [
            add_quantiles(QuantileMean(), values * unit, relative=relative)[1]
            for unit in (1.0, 1e4)
        ]
        for relative in (False, True)
    }
    assert stops[True][0] == stops[True][1] is not None
    assert stops[False][0] is not None
    assert stops[False][1] is None or stops[False][1] > stops[False][0]


def periods(free: object, items: float = 20.0) -> Floats:
    unblocked = np.asarray(free, dtype=np.float64)
    found = np.zeros((Row.COUNT, unblocked.size))
    found[Row.ITEMS], found[Row.WALL] = items, 0.01
    found[Row.PERIODS], found[Row.USED], found[Row.UNBLOCKED] = 1.0, 1.0, unblocked
    return found


def test_a_joined_period_is_free_only_if_all_of_its_parts_are() -> None:
    found = join_periods(periods([1, 1, 1, 0, 1]), 2)
    assert found[Row.UNBLOCKED].tolist() == [1.0, 0.0]
    assert found[Row.ITEMS].tolist() == [40.0, 40.0]
    assert found[Row.PERIODS].tolist() == [1.0, 1.0]
    assert found[Row.WALL] == pytest.approx([0.02, 0.02])


def test_a_stage_that_never_waits_gets_the_widest_period_that_there_is_data_for() -> None:
    assert widest(periods(np.ones(200))) == 8


def test_waiting_keeps_periods_narrow() -> None:
    free = np.tile([1, 1, 1, 1, 1, 1, 0, 0], 64)
    assert widest(periods(free)) == 1


def test_periods_that_were_told_need_not_stay_free_for_long() -> None:
    assert widest(periods(np.tile([1, 1, 1, 1, 0], 40))) == 1


def test_periods_of_few_items_are_widened() -> None:
    assert widest(periods(np.ones(128), items=8.0)) == 4
    assert widest(periods(np.tile([1] * 6 + [0] * 2, 64), items=8.0)) is RateReason.FEW_ITEMS


def test_what_blocked_periods_held_need_not_be_known() -> None:
    known = periods(np.tile([1] * 6 + [0] * 4, 64), items=25.0)
    unknown = known.copy()
    unknown[Row.ITEMS] *= unknown[Row.UNBLOCKED]
    assert widest(known) == widest(unknown) == 1


@pytest.mark.parametrize(
    ("free", "reason"),
    [
        (np.zeros(128), RateReason.NO_NONBLOCKING),
        ([1.0] * 5 + [0.0] * 123, RateReason.FEW_NONBLOCKING),
        (np.zeros(20), RateReason.NO_NONBLOCKING),
        (np.ones(20), RateReason.NOT_CONVERGED),
    ],
)
def test_why_no_period_will_do_is_said(free: object, reason: RateReason) -> None:
    assert widest(periods(free)) is reason


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
    ],
)
def test_rounding_does_not_add_an_item(rate: float, period_s: float, items: int) -> None:
    found = unblocked_read_probability(utilisation=0.5, service_rate=rate, period_s=period_s)
    assert found == 0.5**items


@given(utilisations, st.integers(1, 40), st.integers(0, 400))
def test_chances_agree_with_many_digits(utilisation: float, items: int, more: int) -> None:
    rho = mpmath.mpf(utilisation)
    assert read(utilisation, items) == pytest.approx(float(rho**items), rel=1e-12)
    wanted = float(1 - rho ** (more + 1))
    assert write(utilisation, items, items + more) == pytest.approx(wanted, rel=1e-12)


def test_nothing_cancels_where_the_utilisation_is_near_1() -> None:
    utilisation = 1.0 - 2.0**-50
    assert write(utilisation, 1.0, 4) == pytest.approx(4 * 2.0**-50, rel=1e-12)


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
    assert seen > reference.binom.ppf(0.999, n, read(0.8, 32.0))
    least, most = reference.binom.ppf([5e-4, 0.9995], n, 0.13)
    assert least <= seen <= most


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"utilisation": math.nan}, "utilisation is nan, expected a number from 0 to"),
        ({"utilisation": -0.1}, "utilisation is -0.1"),
        ({"utilisation": "high"}, "utilisation is 'high'"),
        ({"service_rate": 0.0}, "service_rate is 0.0, expected a number above 0"),
        ({"service_rate": None}, "service_rate is None"),
        (
            {"service_rate": 1e-200},
            "service_rate is 1e-200, expected a number above 0 .1e-150",
        ),
        ({"service_rate": 10**400}, "service_rate is 1000.*expected a number above 0"),
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


def test_all_that_is_wrong_is_raised_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        unblocked_read_probability(utilisation=-1.0, service_rate=0.0, period_s=math.nan)
    assert len(caught.value.problems) == 3
