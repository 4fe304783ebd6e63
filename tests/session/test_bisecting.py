"""The order of places: what of it is fixed, and what is left to chance."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, spearmanr

from benchrigor.session.work_schedule import bisecting, shuffled

Order = Callable[[int, np.random.Generator], np.ndarray]
ORDERS = pytest.mark.parametrize("order", [bisecting, shuffled])


def shares(levels: int, seed: int = 0) -> np.ndarray:
    """Return the midpoints of so many whole levels, as parts of 1, in their order."""
    parts = 2**levels
    places = bisecting(parts - 1, np.random.default_rng(seed))
    return (1.0 + places * (parts - 2)) / parts


@ORDERS
@given(n=st.integers(2, 300), seed=st.integers(0, 1000))
def test_places_are_evenly_spaced(order: Order, n: int, seed: int) -> None:
    places = order(n, np.random.default_rng(seed))
    assert np.sort(places) == pytest.approx(np.linspace(0.0, 1.0, n))


@ORDERS
def test_a_single_place_is_the_first(order: Order) -> None:
    assert order(1, np.random.default_rng(1)).tolist() == [0.0]


@ORDERS
def test_the_generator_decides(order: Order) -> None:
    one, same, other = (order(50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert list(one) == list(same)
    assert list(one) != list(other)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_seven_are_the_midpoints_of_three_levels(seed: int) -> None:
    middles = [1 / 2, 1 / 4, 3 / 4, 1 / 8, 7 / 8, 3 / 8, 5 / 8]
    assert shares(3, seed) == pytest.approx(middles)
    assert shares(6, seed)[:7] == pytest.approx(middles)


@given(levels=st.integers(2, 8), seed=st.integers(0, 1000))
def test_each_level_is_complete_before_the_next_and_comes_in_mirrored_pairs(
    levels: int, seed: int
) -> None:
    found = shares(levels, seed)
    for level in range(1, levels):
        these = found[2**level - 1 : 2 ** (level + 1) - 1]
        odd = np.arange(1, 2 ** (level + 1), 2) / 2.0 ** (level + 1)
        assert np.sort(these) == pytest.approx(odd)
        assert these[::2] + these[1::2] == pytest.approx(1.0)


def test_within_a_level_each_midpoint_is_as_likely_to_come_first() -> None:
    runs, pairs = 2000, 4
    first = [shares(4, seed)[7] for seed in range(runs)]
    values, times = np.unique(first, return_counts=True)
    assert values == pytest.approx(np.arange(1, 16, 2) / 16)
    low, high = binom.ppf([1e-5, 1.0 - 1e-5], runs, 0.5 / pairs)
    assert times.min() >= low
    assert times.max() <= high


@pytest.mark.parametrize("n", [20, 30, 40, 50])
def test_no_beginning_of_it_rises(n: int) -> None:
    for seed in range(50):
        places = bisecting(50, np.random.default_rng(seed))[:n]
        assert abs(spearmanr(np.arange(n), places).statistic) < 0.3


def test_shuffled_places_are_each_as_likely_to_come_first() -> None:
    runs = 2000
    first = [shuffled(5, np.random.default_rng(seed))[0] for seed in range(runs)]
    _, times = np.unique(first, return_counts=True)
    low, high = binom.ppf([1e-5, 1.0 - 1e-5], runs, 1 / 5)
    assert times.size == 5
    assert times.min() >= low
    assert times.max() <= high
