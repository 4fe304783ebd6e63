import pickle
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.interference import quantise
from benchrigor.interference.profiles import Quantiser


def streamed(values: npt.ArrayLike, bins: int = 256) -> np.ndarray:
    column = Quantiser(bins)
    column.add(values)
    return column.values()


def classes(count: int, noise: float, n: int) -> np.ndarray:
    """Return values of so many classes over three decades."""
    rng = np.random.default_rng(1)
    return rng.choice(np.geomspace(1e6, 1e9, count), n) * rng.normal(1.0, noise, n)


def clusters(values: np.ndarray) -> list[int]:
    """Return where, in ascending order, a value lies 10 % or more above the one before."""
    ascending = np.sort(values)
    return np.flatnonzero(np.diff(ascending) / ascending[:-1] >= 0.1).tolist()


BOTH = pytest.mark.parametrize("way", [streamed, quantise], ids=["streamed", "at once"])
WAY = Callable[..., np.ndarray]


@BOTH
def test_few_values_come_back_as_they_are(way: WAY) -> None:
    values = np.random.default_rng(2).choice(
        np.r_[0.0, -1.0 / 3.0, np.geomspace(1e-9, 1, 254)], 9_000
    )
    assert way(values).tolist() == values.tolist()


@BOTH
def test_the_two_nearest_are_merged_at_their_weighted_mean(way: WAY) -> None:
    found = way([100.0, 1.0, 110.0, 100.0, 2.0], bins=3)
    assert found == pytest.approx([310 / 3, 1.0, 310 / 3, 310 / 3, 2.0])


@BOTH
def test_nothing_is_near_to_zero(way: WAY) -> None:
    assert way([0.0, 1e-300, 1.0, 1.5, -1.0], bins=4).tolist() == [0.0, 1e-300, 1.25, 1.25, -1.0]


@BOTH
@pytest.mark.parametrize(
    ("count", "noise", "n", "most"),
    [(12, 0.003, 3_000, 0.001), (40, 0.01, 20_000, 0.015)],
    ids=["wide apart", "19 % apart"],
)
def test_classes_over_three_decades_keep_their_clusters(
    way: WAY, count: int, noise: float, n: int, most: float
) -> None:
    values = classes(count, noise, n)
    found = way(values)
    assert np.unique(found).size == 256
    assert np.abs(found / values - 1.0).max() < most
    assert clusters(found) == clusters(values)
    assert len(clusters(found)) == count - 1


@BOTH
def test_of_pairs_as_near_as_each_other_no_more_are_merged_than_need_be(way: WAY) -> None:
    values = 2.0 ** np.arange(10)
    assert way(values, bins=9).tolist() == [1.5, 1.5, *values[2:]]


def one_at_a_time(values: np.ndarray, bins: int) -> np.ndarray:
    """Merge the two nearest bins whenever there is one too many, as published."""
    groups: list[list[int]] = []
    for index in range(values.size):
        groups.append([index])
        groups.sort(key=lambda group: values[group].mean())
        if len(groups) > bins:
            centres = np.array([values[group].mean() for group in groups])
            nearest = int(np.argmin(np.diff(centres) / centres[:-1]))
            groups[nearest] += groups.pop(nearest + 1)
    found = np.empty(values.size)
    for group in groups:
        found[group] = values[group].mean()
    return found


def test_blocks_move_values_no_farther_than_one_at_a_time() -> None:
    values = 10.0 ** np.random.default_rng(3).uniform(6.0, 9.0, 600)
    moved, expected = (np.abs(way(values, 64) / values - 1.0) for way in (streamed, one_at_a_time))
    assert moved.mean() < 1.2 * expected.mean()
    assert moved.max() < 1.5 * expected.max()


def test_looking_changes_nothing() -> None:
    values = classes(40, 0.01, 5_000)
    watched = Quantiser()
    for index, value in enumerate(values):
        watched.append(value)
        if index % 500 == 7:
            watched.values()
    assert watched.values().tolist() == streamed(values).tolist()


def test_a_value_takes_little_more_than_a_byte() -> None:
    column = Quantiser()
    column.add(classes(40, 0.01, 100_000))
    bins_and_pending = 256 * 16 + 2_048 * 8
    assert len(pickle.dumps(column)) < 1.25 * 100_000 + bins_and_pending


numbers = st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=60)


@BOTH
@given(values=numbers, bins=st.integers(2, 20))
def test_bins_are_bounded_and_order_is_kept(way: WAY, values: list[float], bins: int) -> None:
    found = way(values, bins)
    assert found.shape == (len(values),)
    assert np.unique(found).size == min(bins, np.unique(values).size)
    assert (np.diff(found[np.argsort(values, kind="stable")]) >= 0.0).all()
    assert min(values) <= found.min()
    assert found.max() <= max(values)
