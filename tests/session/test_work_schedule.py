"""Work amounts for simulated workloads, round by round, and their order."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated.schedules import SPEED, Lasting, begun, drive

from benchrigor.errors import WorkTooShort
from benchrigor.model import Code, Options

QUICK_ROUNDS = Options().quick_rounds
PILOTS = [3.0, 9.0, 4.0, 8.0, 5.0, 7.0]
"""Told first, they are the pilots: a first round, which may be cold, and five that are long."""


def line(overhead: float = 0.0, speed: float = SPEED) -> Lasting:
    return lambda work: overhead + work / speed


def cold(lasting: Lasting, first_s: float) -> Lasting:
    """Return durations of which the first is another one."""
    told = itertools.count()
    return lambda work: lasting(work) if next(told) else first_s


def tell(schedule: Any, lasting: Lasting, amounts: list[float]) -> None:
    for work in amounts:
        schedule.tell(work, lasting(work))


def notices_of(schedule: Any) -> dict[Code, int]:
    of_rounds = [notice for notice in schedule.notices if "rounds" in notice.evidence]
    return {notice.code: int(notice.evidence["rounds"]) for notice in of_rounds}


@pytest.mark.parametrize(
    ("low", "high", "first"),
    [
        (5, 100, 5),
        (5.0, 100, 5.0),
        (0, 10**12, 1),
        (0, None, 1),
        (0.0, 1.0, 2.0**-40),
        (0.0, None, 1.0),
    ],
)
def test_the_first_round_is_the_smallest(low: float, high: float | None, first: float) -> None:
    found = begun(low, high).next()
    assert found == first
    assert type(found) is type(first)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, None), (0.0, None), (0.0, 1e-320), (10**17, 10**17 + 1), (0, 10**300)],
    ids=["whole", "endless", "tiny", "neighbours", "huge"],
)
def test_the_growth_always_ends(low: float, high: float | None) -> None:
    schedule = begun(low, high)
    with pytest.raises(WorkTooShort):
        drive(schedule, lambda _: 1e-6, rounds=1100)


WORKLOADS: dict[str, tuple[float, float | None, Lasting]] = {
    "12 orders": (0, 10**12, line()),
    "12 orders, hidden work": (1, 10**12, line(0.5)),
    "12 orders, some overhead": (0, 10**12, line(0.05)),
    "share": (0.0, 1.0, line(0.0, 1e-3)),
    "share with overhead": (0.0, 1.0, line(0.2, 1e-3)),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_twelve_orders_of_magnitude_come_down_to_a_useful_range(name: str) -> None:
    low, high, lasting = WORKLOADS[name]
    for seed in range(5):
        schedule = begun(low, high)
        work, _ = drive(schedule, lasting, noise=0.05, seed=seed)
        amounts = work[np.array(schedule.counted)]
        assert amounts.size >= 10
        assert amounts.max() >= 4.0 * amounts.min()
        assert lasting(amounts.min()) >= 0.1 * 0.8
        assert lasting(amounts.max()) >= 2.0 * lasting(amounts.min())


def first_set(seed: int, order: str = "bisecting") -> np.ndarray:
    """Return the amounts of the first set, from 1e7 to 2.3e8, as shares of this range."""
    schedule = begun(10**7, 10**12, order=order, seed=seed)
    work, _ = drive(schedule, line(), counted=QUICK_ROUNDS)
    return (work[np.array(schedule.counted)] - 1e7) / 2.2e8


@pytest.mark.parametrize("order", ["bisecting", "random"])
def test_the_seed_orders_amounts_that_are_evenly_spaced(order: str) -> None:
    one, same, other = (first_set(seed, order) for seed in (1, 1, 2))
    assert list(one) == list(same)
    assert list(one) != list(other)
    assert np.sort(one) == pytest.approx(np.linspace(0.0, 1.0, QUICK_ROUNDS), abs=1e-6)
    assert np.sort(one) == pytest.approx(np.sort(other))


def test_rounds_that_are_hardly_long_enough_still_differ() -> None:
    schedule = begun(0, 100)
    work, _ = drive(schedule, lambda work: 0.0015 * work)  # 64 is too short, 67 is not
    amounts = work[np.array(schedule.counted)]
    assert len(set(amounts)) >= 20
    assert amounts.min() <= 70


@pytest.mark.parametrize("order", ["bisecting", "random"])
def test_the_same_rounds_give_the_same_amounts(order: str) -> None:
    schedule = begun(0, 10**12, order=order, seed=3)
    work, seconds = drive(schedule, line(0.2), rounds=70, noise=0.05)
    resumed = begun(0, 10**12, order=order, seed=3)
    for index in range(70):
        assert resumed.next() == work[index] == resumed.next()
        resumed.tell(work[index], seconds[index])
    assert resumed.next(10.0) == schedule.next(10.0)
    assert resumed.counted == schedule.counted
    assert resumed.sample == schedule.sample
    assert resumed.notices == schedule.notices


COSTLY, FREE = line(1.0, 2.0), line(0.0, 2.0)  # the overhead of one is worth 2.0
SMALL, LARGE = [*PILOTS, 0.5, 1.0, 1.9], [*np.linspace(2.1, 11.0, 10)]
KNOWN: dict[str, tuple[list[tuple[Lasting, list[float]]], tuple[int, int], dict[Code, int]]] = {
    "more overhead than work": (
        [(COSTLY, [*SMALL, *LARGE])],
        (9, 10),
        {Code.PILOT_ROUNDS: 6, Code.SMALL_WORK: 3},
    ),
    "overhead that turns out smaller": (
        [(COSTLY, [*SMALL, *LARGE]), (line(0.0, 1.5), [*np.linspace(3.0, 60.0, 20)])],
        (6, 33),
        {Code.PILOT_ROUNDS: 6},
    ),
    "no ten without much overhead": (
        [(COSTLY, [*SMALL, *LARGE[:9]])],
        (6, 12),
        {Code.PILOT_ROUNDS: 6, Code.OVERHEAD_DOMINATES: 3},
    ),
    "few rounds, of whatever overhead": (
        [(COSTLY, [0.5, 1.0, 1.5, *LARGE[:6]])],
        (1, 8),
        {Code.PILOT_ROUNDS: 1},
    ),
    "work that is not visible": (
        [(lambda work: 0.5 - 1e-6 * work, [*range(1, 13)])],
        (1, 11),
        {Code.PILOT_ROUNDS: 1},
    ),
    "a first round and two others": ([(FREE, [1.0, 4.0, 3.0])], (0, 3), {}),
    "a first round and three others": (
        [(FREE, [1.0, 4.0, 3.0, 2.0])],
        (1, 3),
        {Code.PILOT_ROUNDS: 1},
    ),
    "no more than thirty long pilots": (
        [(lambda work: 0.5 - 1e-6 * work, [*range(1, 32), *range(40, 50)])],
        (31, 10),
        {Code.PILOT_ROUNDS: 31},
    ),
    "too short for most, from the amount known before": (
        [({1: 0.01, 2: 0.2, 4: 0.01, 3: 0.01, 5: 0.2, 6: 0.2}.__getitem__, [1, 2, 4, 3, 5, 6])],
        (4, 2),
        {Code.SHORT_ROUNDS: 4},
    ),
    "half as long as wanted, and less": (
        [({1: 0.2, 2: 0.3, 3: 0.3, 4: 0.3, 5: 0.05}.__getitem__, [1, 2, 3, 4, 5])],
        (1, 4),
        {Code.PILOT_ROUNDS: 1},
    ),
    "long with no more work than short ones": (
        [({100: 0.01, 50: 0.2, 200: 0.01}.__getitem__, [100, 50, 200])],
        (3, 0),
        {Code.SHORT_ROUNDS: 3},
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_rounds_count_or_are_left_out_with_a_notice(name: str) -> None:
    told, (left_out, kept), notices = KNOWN[name]
    schedule = begun(0.0, 1000.0)
    for lasting, amounts in told:
        tell(schedule, lasting, amounts)
    assert schedule.counted == (False,) * left_out + (True,) * kept
    assert {
        code: n for code, n in notices_of(schedule).items() if code != Code.LONG_ROUNDS
    } == notices


def test_no_amount_is_planned_that_the_overhead_outweighs() -> None:
    schedule = begun(0.0, 1000.0)
    tell(schedule, COSTLY, [*SMALL, *LARGE])
    (notice,) = [each for each in schedule.notices if each.code is Code.SMALL_WORK]
    assert notice.evidence == {"rounds": 3, "overhead_s": pytest.approx(1.0)}
    work, _ = drive(schedule, COSTLY, rounds=100)
    assert work.min() >= 2.0 * (1.0 - 1e-6)


@pytest.mark.parametrize(("worth", "cut"), [(1.9, True), (2.1, False), (7.0, False)])
def test_nothing_is_left_out_where_the_rest_would_be_much_alike(worth: float, cut: bool) -> None:
    schedule, amounts = begun(1.0, 10.0), np.linspace(1.0, 10.0, 40)
    tell(schedule, line(worth / 10.0, 10.0), [*PILOTS, *amounts])
    small = int((amounts < worth).sum())
    assert sum(schedule.counted) == 40 - (small if cut else 0)  # 10 is 5 times 2, no more
    code = Code.SMALL_WORK if cut else Code.OVERHEAD_DOMINATES
    assert notices_of(schedule) == {Code.PILOT_ROUNDS: 6, code: small}


def test_one_early_exit_leaves_smaller_rounds_as_they_are() -> None:
    schedule = begun(10**7, 10**10)
    drive(schedule, line(), rounds=12)
    schedule.tell(schedule.next(), 0.001)
    assert schedule.counted == (False,) + (True,) * 11 + (False,)
    assert notices_of(schedule) == {Code.SHORT_ROUNDS: 1, Code.PILOT_ROUNDS: 1}
    after, _ = drive(schedule, line(), rounds=QUICK_ROUNDS)
    assert after.min() < 3e7


@pytest.mark.parametrize("overhead", [0.0, 0.3])
def test_no_round_is_expected_to_outlast_the_time_left(overhead: float) -> None:
    lasting, spent, limited = line(overhead), 0.0, 0
    schedule = begun(10**7, 10**12)
    tell(schedule, lasting, [10**7, 10**8])  # from then on the line is known
    while spent < 20.0:
        work, freely = schedule.next(20.0 - spent), schedule.next()
        smallest = max(0.1, 2.0 * overhead) * (1.0 + 1e-6)
        assert lasting(work) <= max(smallest, (20.0 - spent) * (1.0 + 1e-6))
        limited += work < freely
        schedule.tell(work, lasting(work))
        spent += lasting(work)
    assert limited >= 1
    assert spent <= 20.0 + smallest


def test_while_work_is_hidden_the_time_left_is_kept_at_the_largest_pace() -> None:
    schedule = begun(10, 10**6)
    tell(schedule, {10: 1.0, 20: 0.9}.__getitem__, [10, 20])
    assert schedule.next(100.0) > 80  # of 160
    assert 20 < schedule.next(2.0) <= 43  # 20 took 0.95 s on average


def test_a_head_start_does_not_make_the_longest_round_longer() -> None:
    schedule, seconds = begun(10, 10**6), {10: 0.1, 400: 1.0, 800: 40.0}
    tell(schedule, seconds.__getitem__, [10, 400, 800])
    slope, overhead = np.polyfit(list(seconds), list(seconds.values()), 1)
    assert overhead < -5.0
    assert overhead + slope * schedule.next() <= 2.3


def test_whole_amounts_are_no_smaller_than_what_counts() -> None:
    schedule = begun(1, 1000)
    work, _ = drive(schedule, lambda work: 0.54 + 0.1 * work, rounds=70)  # it is worth 5.4
    assert work[15:60].min() == 6


def test_whole_amounts_beyond_the_precision_of_floats_stay_within_the_range() -> None:
    schedule = begun(0, 2**53 + 3)
    schedule.tell(2**53, 0.01)
    assert schedule.next() == 2**53 + 3


def test_pilots_are_left_out_once_ten_others_are_long_enough() -> None:
    schedule, lasting = begun(1.0, 1e6), FREE
    tell(schedule, lasting, PILOTS)
    assert schedule.sample == 0
    for told in range(1, 10):
        schedule.tell(5.0, 0.01 if told == 3 else lasting(2.0 + told))
        assert schedule.counted[:6] == (False,) + (True,) * 5
        assert schedule.sample == told - (told >= 3)
        assert notices_of(schedule)[Code.PILOT_ROUNDS] == 1
    tell(schedule, lasting, [6.0, 7.0])
    assert schedule.counted == (False,) * 6 + (True,) * 2 + (False,) + (True,) * 8
    assert schedule.sample == 10
    assert notices_of(schedule)[Code.PILOT_ROUNDS] == 6


def test_a_range_of_few_numbers_is_used_whole_and_evenly() -> None:
    schedule = begun(1, 4)
    work, _ = drive(schedule, lambda work: 0.2 * work, counted=QUICK_ROUNDS)
    amounts, times = np.unique(work[np.array(schedule.counted)], return_counts=True)
    assert list(amounts) == [1, 2, 3, 4]
    assert set(times) <= {12, 13}  # 50 / 4


@settings(deadline=None, max_examples=30)
@given(
    low=st.one_of(st.just(0), st.integers(1, 10**6), st.floats(1e-6, 1e6)),
    span=st.one_of(st.none(), st.integers(1, 10**12), st.floats(1.0, 1e290)),
    overhead=st.floats(-0.05, 2.0),
    log_speed=st.floats(-3.0, 12.0),
    noise=st.floats(0.0, 0.3),
)
def test_amounts_stay_within_the_range(
    low: float, span: float | None, overhead: float, log_speed: float, noise: float
) -> None:
    high = None if span is None else low + span
    whole = isinstance(low, int) and isinstance(high, int | None)
    schedule, rng = begun(low, high), np.random.default_rng(1)
    for _ in range(70):
        try:
            work = schedule.next(30.0)
        except WorkTooShort:
            break
        assert work == schedule.next(30.0)
        assert isinstance(work, int if whole else float)
        assert 0 < work < math.inf
        assert low <= work
        assert high is None or work <= high
        seconds = max(overhead + work / 10.0**log_speed, 1e-9) * abs(1.0 + noise * rng.normal())
        schedule.tell(work, min(seconds, 1e12))


@pytest.mark.parametrize(("quick_s", "quick_rounds"), [(60.0, 50), (30.0, 20), (120.0, 100)])
def test_a_first_answer_takes_the_time_and_the_rounds_asked_for(
    quick_s: float, quick_rounds: int
) -> None:
    schedule = begun(0, None, shortest_s=0.01, quick_s=quick_s, quick_rounds=quick_rounds, seed=1)
    seconds = list[float]()
    while schedule.sample < quick_rounds:
        seconds.append(line(0.05)(schedule.next()))
        schedule.tell((seconds[-1] - 0.05) * SPEED, seconds[-1])
    counted = seconds[-quick_rounds:]
    assert sum(counted) == pytest.approx(quick_s, rel=0.15)
    longest = 2.0 * quick_s / quick_rounds - min(counted)  # as published, but for rounding
    assert max(counted) == pytest.approx(longest, rel=0.15)


@pytest.mark.parametrize(
    ("high", "budget_s", "further", "is_told"),
    [
        (10**12, 600.0, 3, True),
        (None, 600.0, 0, False),
        (2 * 10**8, 600.0, 0, False),  # tried whole
    ],
)
def test_a_few_further_rounds_try_larger_amounts_and_do_not_count(
    high: float | None, budget_s: float, further: int, is_told: bool
) -> None:
    schedule = begun(10**7, high)
    schedule.tries_further = True
    left_s, amounts = budget_s, list[float]()
    for _ in range(60):
        amounts.append(schedule.next(left_s))
        schedule.tell(amounts[-1], amounts[-1] / SPEED)
        left_s -= amounts[-1] / SPEED
    counted, work = np.array(schedule.counted), np.array(amounts)
    assert len(schedule.further) == notices_of(schedule).get(Code.FURTHER_ROUNDS, 0) == further
    asked = {notice.code: notice.evidence.get("asked") for notice in schedule.notices}
    assert asked.get(Code.RANGE_UNTRIED) == (high if is_told else None)
    assert not counted[schedule.further].any()
    if further == 3:
        assert work[schedule.further].min() >= 2.0 * work[counted].max()
        assert work[schedule.further].max() / SPEED <= budget_s / 8.0
        plain, _ = drive(begun(10**7, high), line(), rounds=57)
        assert np.delete(work, schedule.further) == pytest.approx(plain, rel=1e-9)
