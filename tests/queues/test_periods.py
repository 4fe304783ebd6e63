"""Periods of a stage, taken apart and put together, and pooled in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues.periods import Periods, PooledPeriods

BLOCK = Periods(
    servers=2,
    start_s=[0.0, 0.1, 0.2],
    period_s=0.1,
    items=[4, 0, 6],
    given=[1, 2, 3],
    arrived=[[5, 6, 7], np.nan],
    blocked_s=[0.0, 0.1, 0.0],
    cpu_s=[0.01, np.nan, 0.03],
    whole=[True, True, False],
)


def test_what_is_not_given_stands_for_not_known() -> None:
    block = Periods(period_s=0.1, items=3)
    assert (block.n, block.servers, block.arrived.shape) == (1, 1, (0, 1))
    assert (block.blocked_s[0], bool(block.whole[0]), block.start_s[0]) == (0.0, True, 0.0)
    assert np.isnan([block.given[0], block.cpu_s[0], block.delay_s[0]]).all()


def test_a_part_holds_the_same_periods() -> None:
    part = BLOCK.part(BLOCK.items > 0)
    assert (part.n, part.servers) == (2, 2)
    assert part.start_s.tolist() == [0.0, 0.2]
    assert part.arrived[0].tolist() == [5.0, 7.0]
    assert part.whole.tolist() == [True, False]


def test_parts_put_end_to_end_are_the_whole() -> None:
    again = Periods.end_to_end([BLOCK.part(slice(1)), BLOCK.part(slice(1, None))])
    assert again.items.tolist() == BLOCK.items.tolist()
    assert again.cpu_s.tolist() == pytest.approx(BLOCK.cpu_s.tolist(), nan_ok=True)
    assert (again.servers, again.arrived.shape) == (2, (2, 3))


def test_joined_they_are_one_period_of_which_less_is_known() -> None:
    one = BLOCK.joined()
    assert (one.n, one.servers, one.start_s[0]) == (1, 2, 0.0)
    assert (one.period_s[0], one.items[0], one.given[0]) == pytest.approx((0.3, 10.0, 6.0))
    assert one.arrived[:, 0].tolist() == pytest.approx([18.0, np.nan], nan_ok=True)
    assert np.isnan(one.cpu_s[0])
    assert not one.whole[0]


def test_times_can_be_left_out() -> None:
    block = BLOCK.without_times()
    assert np.isnan(block.cpu_s).all()
    assert block.items.tolist() == BLOCK.items.tolist()


@given(st.lists(st.integers(0, 700), max_size=12))
def test_pooling_loses_nothing_however_periods_are_added(blocks: list[int]) -> None:
    periods = sum(blocks)
    numbers = np.arange(float(periods))
    table = np.vstack([numbers, numbers % 17, np.ones(periods)])
    parts, whole = PooledPeriods(3), PooledPeriods(3)
    for block in np.split(table, np.cumsum(blocks), axis=1):
        parts.add(block)
    whole.add(table)
    full = parts.full
    assert np.array_equal(full, whole.full)
    assert full.shape[1] < 256
    size = int(full[2, 0]) if full.size else 1
    assert (full[2] == size).all()
    assert periods - full.shape[1] * size < size
    assert full[1].sum() == table[1, : full.shape[1] * size].sum()
    assert full[0].tolist() == numbers[: full.shape[1] * size : size].tolist()
    assert parts.all()[1:].sum(axis=1).tolist() == table[1:].sum(axis=1).tolist()


def test_what_is_not_known_of_one_period_is_not_known_of_its_stretch() -> None:
    pooled = PooledPeriods(2)
    pooled.add(np.vstack([np.arange(256.0), np.where(np.arange(256) == 3, np.nan, 1.0)]))
    assert pooled.full[1, :3].tolist() == pytest.approx([2.0, np.nan, 2.0], nan_ok=True)
