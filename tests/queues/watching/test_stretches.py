"""Sums of any number of periods, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues.watching.stretches import Stretches


@given(st.lists(st.integers(0, 700), max_size=12))
def test_nothing_is_lost_but_what_is_not_full_yet(blocks: list[int]) -> None:
    periods = sum(blocks)
    numbers = np.arange(float(periods))
    table = np.column_stack([numbers, numbers % 17, np.ones(periods)])
    stretches, whole = Stretches(3), Stretches(3)
    for block in np.split(table, np.cumsum(blocks)):
        stretches.add(block)
    whole.add(table)
    rows = stretches.rows
    assert np.array_equal(rows, whole.rows)
    assert len(rows) < 256
    size = int(rows[0, 2]) if len(rows) else 1
    assert (rows[:, 2] == size).all()
    assert periods - len(rows) * size < size
    assert rows[:, 1].sum() == table[: len(rows) * size, 1].sum()
    assert rows[:, 0].tolist() == numbers[: len(rows) * size : size].tolist()


def test_few_periods_are_kept_as_they_are() -> None:
    stretches = Stretches(2)
    stretches.add(np.array([[0.0, 5.0], [1.0, 7.0]]))
    assert stretches.rows.tolist() == [[0.0, 5.0], [1.0, 7.0]]


def test_what_is_not_known_of_one_is_not_known_of_its_stretch() -> None:
    stretches = Stretches(2)
    stretches.add(np.column_stack([np.arange(256.0), np.where(np.arange(256) == 3, np.nan, 1.0)]))
    assert stretches.rows[:3, 1].tolist() == pytest.approx([2.0, np.nan, 2.0], nan_ok=True)
