"""What is told of a round: in which shapes, and what stays exact."""

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.model import Delays, References, Round, RoundPlan

N = 5


def told(values: object = (0.1,) * N, **beside: object) -> Round:
    plan = RoundPlan(index=0, readings=N)
    return Round(plan=plan, elapsed_ns=10**9, unit_readings={"time": values}, **beside)  # type: ignore[arg-type]  # bad on purpose


WAYS: list[Callable[[list[float]], object]] = [list, tuple, np.array, lambda v: (x for x in v)]


@given(st.lists(st.floats(0.0, 1e100), min_size=1, max_size=30), st.sampled_from(WAYS))
def test_every_way_to_hold_numbers_gives_the_same_series(values: list[float], way) -> None:
    assert np.array_equal(told(way(values)).unit_readings["time"], np.array(values))


@pytest.mark.parametrize(
    "values",
    [range(1, 4), [1, 2, 3], [True, True], np.float32([1, 2]), [Fraction(1), 2], memoryview(b"ab")],
)
def test_whole_numbers_and_other_reals_are_readings(values: Iterable[float]) -> None:
    assert told(values).unit_readings["time"].dtype == np.float64


@given(st.lists(st.floats(0.0, 1e100), min_size=1, max_size=30), st.data())
def test_the_first_bad_index_is_named(values: list[float], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    values[index] = data.draw(st.sampled_from([float("nan"), float("inf"), float("-inf")]))
    with pytest.raises(InvalidInput, match=rf"\[{index}\] is "):
        told(values)


def test_a_series_is_read_only_and_the_array_of_the_caller_is_not_touched() -> None:
    mine = np.array([1.0, 2.0])
    series = told(mine).unit_readings["time"]
    mine[0] = 5.0
    assert series[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        series[0] = 2.0


def test_seconds_of_each_reading_are_groups_of_one() -> None:
    plain, named = told(delays=range(N)), told(delays={"steal": range(N)})
    assert plain.delays is not None
    assert named.delays is not None
    assert plain.delays.stops.tolist() == [1, 2, 3, 4, 5]
    assert {name: each.tolist() for name, each in plain.delays.seconds.items()} == {
        "run queue": [0, 1, 2, 3, 4]
    }
    assert list(named.delays.seconds) == ["steal"]
    references = told(references={"command": [1.0] * N}).references
    assert references is not None
    assert references.seconds["command"].tolist() == [1.0] * N


def test_whole_clock_times_stay_exact_and_none_goes_back() -> None:
    starts = told(starts_ns=[2**62 + each for each in range(N)]).starts_ns
    assert starts is not None
    assert starts.tolist() == [2**62 + each for each in range(N)]
    with pytest.raises(InvalidInput, match=r"starts_ns\[3\]"):
        told(starts_ns=[1, 2, 4, 3, 5])


@pytest.mark.parametrize("kind", [Delays, References])
def test_seconds_without_names_and_versions_that_are_none_are_refused(kind: type) -> None:
    with pytest.raises(InvalidInput):
        kind(stops=[1], seconds=[1.0])
    with pytest.raises(InvalidInput):
        References(stops=[1], seconds={"interpreter": [1.0]}, version="x")  # type: ignore[arg-type]  # bad on purpose
