from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.model import Floats
from benchrigor.stats.rateshifts import find_shift
from benchrigor.stats.tallies import Row, tallied


def stretches(items: Floats, busy: float = 1.0) -> Floats:
    found = np.zeros((Row.COUNT, items.size))
    found[Row.ITEMS], found[Row.BUSY] = items, busy
    return tallied(found)


def poisson(seed: int, *levels: tuple[float, int]) -> Floats:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.poisson(level, n) for level, n in levels]).astype(np.float64)


@pytest.mark.parametrize("latter", [50.0, 200.0, 115.0])
def test_a_shift_is_found_where_it_is(latter: float) -> None:
    behind = 6 if latter != 115.0 else 60
    found = find_shift(stretches(poisson(1, (100.0, 60), (latter, behind))))
    assert found is not None
    assert abs(found - 60) <= 1 + (latter == 115.0) * 8


def test_without_a_shift_none_is_found_in_a_thousand_looks() -> None:
    alarms = sum(
        find_shift(stretches(poisson(seed, (100.0, 128)))) is not None for seed in range(1000)
    )
    assert alarms <= 1


def test_a_change_by_less_than_a_tenth_is_no_phase() -> None:
    assert find_shift(stretches(poisson(2, (1e6, 60), (0.95e6, 60)))) is None


def test_one_stall_is_no_phase() -> None:
    items = poisson(3, (100.0, 80))
    items[77] = 0.0
    assert find_shift(stretches(items)) is None


def test_a_stage_that_hangs_is_another_phase() -> None:
    assert find_shift(stretches(np.array([100.0] * 40 + [0.0] * 5))) == 40


def test_few_stretches_tell_nothing() -> None:
    assert find_shift(stretches(np.array([100.0] * 15 + [50.0] * 8))) is None


@given(st.floats(1e-6, 1e6))
def test_the_unit_of_time_does_not_matter(unit: float) -> None:
    items = poisson(4, (100.0, 40), (60.0, 10))
    assert find_shift(stretches(items, busy=unit)) == find_shift(stretches(items))
