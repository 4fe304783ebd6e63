from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.model.series import as_series, short

finite = st.floats(-1e100, 1e100)


@given(st.lists(finite, min_size=1, max_size=30))
def test_every_way_to_hold_numbers_gives_the_same_series(values: list[float]) -> None:
    expected = np.array(values)
    for given_ in (values, tuple(values), expected, memoryview(expected), iter_of(values)):
        assert np.array_equal(as_series(given_), expected)


def iter_of(values: list[float]) -> object:
    return (value for value in values)


@pytest.mark.parametrize(
    "values",
    [range(1, 4), [1, 2, 3], [True, True, True], np.float32([1, 2, 3]), [Fraction(1), 2, 3.0]],
)
def test_whole_numbers_and_other_reals_are_readings(values: object) -> None:
    assert as_series(values).dtype == np.float64


def test_the_series_is_read_only_and_the_callers_array_is_not_touched() -> None:
    mine = np.array([1.0, 2.0])
    series = as_series(mine)
    mine[0] = 5.0
    assert series[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        series[0] = 2.0


@given(st.lists(finite, min_size=1, max_size=30), st.data())
def test_the_first_bad_index_is_named(values: list[float], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    values[index] = data.draw(st.sampled_from([float("nan"), float("inf"), float("-inf")]))
    with pytest.raises(InvalidInput, match=rf"readings\[{index}\] is "):
        as_series(values, name="readings")


def test_errors_can_name_a_number_of_thousands_of_digits() -> None:
    assert short(10**5000) == "of type int and too long to show"
    assert short([1, 10**5000]) == "of type list and too long to show"
