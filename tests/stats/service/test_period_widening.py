from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.model import Floats, RateReason
from benchrigor.stats.service.moments import Row
from benchrigor.stats.service.period_widening import joined, longest_run, widest


def periods(free: object, items: float = 20.0) -> Floats:
    unblocked = np.asarray(free, dtype=np.float64)
    found = np.zeros((Row.COUNT, unblocked.size))
    found[Row.ITEMS], found[Row.WALL] = items, 0.01
    found[Row.PERIODS], found[Row.USED], found[Row.UNBLOCKED] = 1.0, 1.0, unblocked
    return found


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_the_longest_run_is_the_longest_of_all(flags: list[bool]) -> None:
    words = "".join("x" if flag else " " for flag in flags).split()
    assert longest_run(np.array(flags, dtype=float)) == max(map(len, words), default=0)


def test_a_joined_period_is_free_only_if_all_of_its_parts_are() -> None:
    found = joined(periods([1, 1, 1, 0, 1]), 2)
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
