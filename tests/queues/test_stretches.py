"""Sums of any number of periods, in bounded memory."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues.stretches import Stretches


def filled(counts: list[int]) -> Stretches:
    stretches = Stretches()
    for number, count in enumerate(counts):
        stretches.add(float(number), (float(count), 1.0))
    return stretches


def test_few_periods_are_kept_as_they_are() -> None:
    assert filled([5, 7, 9]).rows == [[0.0, 5.0, 1.0], [1.0, 7.0, 1.0], [2.0, 9.0, 1.0]]


@given(st.integers(0, 5_000), st.integers(0, 100))
def test_nothing_is_lost_but_what_is_not_full_yet(periods: int, first: int) -> None:
    counts = [(first + number) % 17 for number in range(periods)]
    rows = filled(counts).rows
    assert len(rows) < 256
    size = int(rows[0][2]) if rows else 1
    assert {row[2] for row in rows} <= {size}
    whole = len(rows) * size
    assert periods - whole < size
    assert sum(row[1] for row in rows) == sum(counts[:whole])
    assert [row[0] for row in rows] == [float(number) for number in range(0, whole, size)]


def test_what_is_not_known_of_one_is_not_known_of_its_stretch() -> None:
    rows = filled([1] * 256).rows
    assert rows[0] == [0.0, 2.0, 2.0]
    stretches = Stretches()
    for number in range(256):
        stretches.add(number, (math.nan if number == 3 else 1.0,))
    assert [math.isnan(row[1]) for row in stretches.rows[:3]] == [False, True, False]
