import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.stats import find_stable_phase, observe

READINGS = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=200)


@given(READINGS)
def test_figures_are_in_order_and_levels_share_all_readings(values: list[float]) -> None:
    observed = observe(values)
    assert observed.least <= observed.p10 <= observed.median <= observed.greatest
    assert observed.least <= observed.mean <= observed.greatest
    assert (observed.least, observed.greatest) == (min(values), max(values))
    assert 1 <= len(observed.levels) <= 5
    assert sum(each.share for each in observed.levels) == pytest.approx(1.0)


def stepping(*levels: float, n: int = 100, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([level * rng.normal(1.0, 0.005, n) for level in levels])


def levels(values: np.ndarray, *, cut: bool) -> list[tuple[float, float]]:
    phases = (find_stable_phase(values),) if cut else ()
    found = observe(values, phases).levels
    return [(round(each.value, 1), round(each.share, 2)) for each in found]


def test_phases_of_the_same_level_are_one_level() -> None:
    values = stepping(1.2, 3.4, 1.2, 2.0, 3.4)
    assert levels(values, cut=True) == [(1.2, 0.4), (2.0, 0.2), (3.4, 0.4)]


def test_without_phases_the_levels_are_modes() -> None:
    values = stepping(1.2, 3.4)
    rng = np.random.default_rng(2)
    assert levels(rng.permutation(values), cut=False) == [(1.2, 0.5), (3.4, 0.5)]


def test_of_more_than_five_levels_the_nearest_are_taken_together() -> None:
    values = stepping(1.0, 2.0, 4.0, 8.0, 8.8, 16.0, 40.0)
    found = levels(values, cut=True)
    assert len(found) == 5
    assert found[-1] == (40.0, 0.14)
    assert found[0] == (1.5, 0.29)


def test_readings_that_are_all_alike_have_one_level() -> None:
    observed = observe([0.0] * 100)
    assert [(each.value, each.share) for each in observed.levels] == [(0.0, 1.0)]
    assert observed.greatest == observed.mean == 0.0


def test_calls_are_counted_where_readings_average_several() -> None:
    observed = observe([1.0, 2.0], batch=50)
    assert (observed.n, observed.calls) == (2, 100)
