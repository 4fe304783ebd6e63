from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.model.series import Floats
from benchrigor.queues.arithmetic.moments import Row, batches_of
from benchrigor.queues.arithmetic.rate_shift import find_shift


def stretches(items: Floats, busy: float = 1.0) -> Floats:
    found = np.zeros((Row.COUNT, items.size))
    found[Row.ITEMS], found[Row.BUSY] = items, busy
    return batches_of(found)


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


def wandering(seed: int, n: int, correlation: float, spread: float = 0.3) -> Floats:
    """Draw counts around a level that is autoregressive from stretch to stretch."""
    rng = np.random.default_rng([20261123, seed])
    level = rng.standard_normal()
    levels = []
    for shock in rng.standard_normal(n):
        level = correlation * level + np.sqrt(1.0 - correlation**2) * shock
        levels.append(level)
    return rng.poisson(100.0 * np.exp(spread * np.array(levels))).astype(np.float64)


# By steps between neighbours alone 30 and 125 of these series had one.
@pytest.mark.parametrize("correlation", [0.9, 0.97])
def test_noise_that_wanders_is_no_shift(correlation: float) -> None:
    alarms = sum(
        find_shift(stretches(wandering(seed, 160, correlation))) is not None for seed in range(200)
    )
    assert alarms <= 6


@pytest.mark.parametrize(("place", "factor"), [(80, 0.4), (80, 2.5), (150, 0.4)])
def test_a_shift_beyond_noise_that_wanders_is_found(place: int, factor: float) -> None:
    found = 0
    for seed in range(50):
        items = wandering(seed, 200, 0.5, spread=0.15)
        items[place:] *= factor
        at = find_shift(stretches(items))
        found += at is not None and abs(at - place) <= 8
    assert found >= 45  # at one check, of many


def test_a_short_warm_up_is_a_phase_of_its_own() -> None:
    assert find_shift(stretches(poisson(5, (40.0, 10), (100.0, 190)))) == 10


@pytest.mark.parametrize("last", [50.0, 200.0])
def test_a_drift_is_cut(last: float) -> None:
    levels = np.linspace(100.0, last, 200)
    items = np.random.default_rng(6).poisson(40.0 * levels).astype(np.float64)
    found = find_shift(stretches(items))
    assert found is not None
    assert 60 <= found <= 140


@given(st.floats(1e-6, 1e6))
def test_the_unit_of_time_does_not_matter(unit: float) -> None:
    items = poisson(4, (100.0, 40), (60.0, 10))
    assert find_shift(stretches(items, busy=unit)) == find_shift(stretches(items))
